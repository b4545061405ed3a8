"""The scripts themselves: clean sh, and whole answers from the shells that are here."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stressor.checks import CHECKS, sshd
from stressor.checks.base import joined, parse_facts, script_argv
from stressor.model import Host, Route

HOST = Host("cp-1", (Route("10.0.0.1"),), scratch_dir="/no such/folder")
SCRIPTS = {**{each.NAME: each.argv(HOST) for each in CHECKS}, sshd.NAME: sshd.argv(HOST)}
SHELLS = {"sh": ["sh"], "dash": ["dash"], "bash": ["bash"], "busybox": ["busybox", "ash"]}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_clean_posix_sh(name: str) -> None:
    shellcheck = Path(sys.executable).parent / "shellcheck"
    checked = subprocess.run(
        [shellcheck, "-s", "sh", "-"],
        input=SCRIPTS[name][2],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (checked.stdout, checked.returncode) == ("", 0)


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shutil.which(shell)])
def test_a_script_answers_whole_and_says_nothing_else(shell: str, name: str) -> None:
    argv = [*SHELLS[shell], *SCRIPTS[name][1:]]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20)
    facts = parse_facts(name, done.stdout)
    assert facts is not None
    assert (done.stderr, done.returncode) == ("", 0)
    assert not list(Path("/run").glob(".stressor-preflight.*"))


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shutil.which(shell)])
def test_joined_scripts_answer_each_in_a_frame_of_its_own(shell: str) -> None:
    first = script_argv("first", 'for word; do echo "word=$word"; done', "a b", "$(id)", "'")
    broken = script_argv("broken", "exit 3")
    last = script_argv("last", 'echo "count=$#"; cat')
    argv = joined((first, broken, last))
    done = subprocess.run(
        [*SHELLS[shell], *argv[1:]], capture_output=True, text=True, timeout=20, input="noise=1\n"
    )
    found = {name: parse_facts(name, done.stdout) for name in ("first", "broken", "last")}
    assert found["first"] is not None
    assert found["first"].all("word") == ("a b", "$(id)", "'")
    assert found["broken"] is None
    assert found["last"] is not None
    assert found["last"].values == {"count": ("0",)}
