"""A lifeline file that others may change chooses where an abort logs in: both verbs say so."""

import subprocess
import sys
from pathlib import Path

import pytest

from stressor import lifeline
from stressor.lifeline import Lifeline
from stressor.model import Host, Route
from tests.cli.child import run

WARNING = "WARNING  lifeline file is open to others: chmod 600 it"
DEAD_END = Host("node1", (Route("127.0.0.1", 1),))
"""Nothing listens on the tcpmux port of loopback: the abort must end without proof."""


def _stressor(*words: str, state: Path) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "stressor", *words, state=state)


def _run_with_mistakes(state: Path) -> subprocess.CompletedProcess[str]:
    here = Path(__file__).parent
    words = ("run", str(here / "ten-mistakes.yaml"), "--inventory", str(here / "inventory.yaml"))
    return _stressor(*words, state=state)


def test_abort_warns_before_the_sweep_and_goes_on(tmp_path: Path) -> None:
    path = lifeline.write(tmp_path, Lifeline("c", 1.0, (DEAD_END,)))
    path.chmod(0o644)
    done = _stressor("abort", "--budget", "1", state=tmp_path)
    assert done.returncode == 4, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines.count(WARNING) == 1
    assert lines.index(WARNING) < next(n for n, line in enumerate(lines) if "node1" in line)
    assert max(map(len, lines)) <= 64


def test_abort_warns_of_the_file_it_read_not_of_the_name_in_it(tmp_path: Path) -> None:
    path = lifeline.write(tmp_path, Lifeline("c", 1.0, ()))
    path.write_text(path.read_text().replace('"c"', '"../c"'))
    path.chmod(0o666)
    done = _stressor("abort", "--budget", "1", state=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert WARNING in done.stdout.splitlines()


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_private_file_gets_no_warning(tmp_path: Path, mode: int) -> None:
    lifeline.write(tmp_path, Lifeline("c", 1.0, ())).chmod(mode)
    assert "WARNING" not in _stressor("abort", "--budget", "1", state=tmp_path).stdout
    assert "WARNING" not in _run_with_mistakes(tmp_path).stderr


def test_run_warns_with_the_path_on_stderr(tmp_path: Path) -> None:
    path = lifeline.write(tmp_path, Lifeline("c", 1.0, ()))
    path.chmod(0o660)
    done = _run_with_mistakes(tmp_path)
    warning = f"WARNING  {path} is open to others: chmod 600 it"
    assert done.stderr.splitlines().count(warning) == 1, done.stderr
    assert done.stdout == ""
    assert done.returncode == 2
