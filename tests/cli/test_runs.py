"""Which journal a verb reads: the named run's, or that of the run that was written to last."""

import json
import os
import subprocess
import sys
from pathlib import Path

from stressor.lifeline import journal_path
from tests.cli.child import run
from tests.report.journals import clean, raw


def _report(*words: str, state: Path) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "stressor", "report", *words, state=state)


def _journal(state: Path, name: str, written_unix_s: float) -> None:
    path = journal_path(state, name)
    path.parent.mkdir(parents=True)
    path.write_bytes(raw(clean()).replace(b'"7f3a"', f'"{name}"'.encode()))
    os.utime(path, (written_unix_s, written_unix_s))


def test_the_newest_run_is_reported_or_the_named_one(tmp_path: Path) -> None:
    _journal(tmp_path, "a-new", 2e9)
    _journal(tmp_path, "b-old", 1e9)
    journal_path(tmp_path, "c-bare").parent.mkdir()
    newest = _report("-o", "json", state=tmp_path)
    assert json.loads(newest.stdout)["run"] == "a-new", newest.stderr
    named = _report("b-old", "-o", "json", state=tmp_path)
    assert json.loads(named.stdout)["run"] == "b-old", named.stderr


def test_an_unknown_run_is_told_which_there_are(tmp_path: Path) -> None:
    none_yet = _report(state=tmp_path)
    assert none_yet.returncode == 2
    assert f"no run in {tmp_path / 'runs'} yet" in none_yet.stderr
    _journal(tmp_path, "a", 1e9)
    unknown = _report("b", state=tmp_path)
    assert unknown.returncode == 2
    assert f"no run `b` in {tmp_path / 'runs'}; there are: a" in unknown.stderr
