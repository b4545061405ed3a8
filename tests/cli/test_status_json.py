"""`stressor status -o json`: the facts of the journal, and whether its run still writes."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from stressor.cli.status import as_json
from stressor.journal import Journal
from stressor.lifeline import journal_path
from stressor.report.fold import fold
from tests.cli.child import run
from tests.report.journals import aborted, armed, clean, journal, killed, loading, raw

HEAD = ["schema_version", "verdict", "exit_code", "next_command"]


def _said(found: Journal, now_s: float) -> dict[str, Any]:
    said = json.loads(as_json(fold(found), now_s))
    assert list(said)[:4] == HEAD
    assert isinstance(said, dict)
    return said


def test_a_running_run_has_no_exit_code_and_no_verdict_and_can_be_stopped() -> None:
    said = _said(journal(loading()), 12.0)
    assert (said["state"], said["exit_code"], said["verdict"]) == ("running", None, "unknown")
    assert said["next_command"] == "stressor abort"
    assert (said["run"], said["cluster"], said["stage"]) == ("7f3a", "lab", "loading")
    assert (said["elapsed_s"], said["silent_s"], said["steps_planned"]) == (12.0, 0.5, 1)
    assert said["guards"][0]["host"] == "node1"
    assert {"signal", "source", "last", "last_s"} <= said["signals"][0].keys()


def test_a_run_that_only_armed_can_be_stopped_too() -> None:
    said = _said(journal(armed()), 2.0)
    assert (said["state"], said["next_command"]) == ("running", "stressor abort")
    assert said["steps"] == []


def test_a_killed_run_is_silent_and_must_be_aborted() -> None:
    said = _said(killed(), 99.0)
    assert (said["state"], said["verdict"], said["exit_code"]) == ("silent", "unknown", None)
    assert said["next_command"] == "stressor abort"


@pytest.mark.parametrize(
    ("items", "code", "verdict", "next_command"),
    [
        (clean(), 0, "pass", "stressor report 7f3a"),
        (aborted(), 99, "fail", "stressor cleanup --run 7f3a"),
    ],
)
def test_a_run_that_ended_says_how(
    items: list[Any], code: int, verdict: str, next_command: str
) -> None:
    said = _said(journal(items), 999.0)
    assert (said["state"], said["exit_code"], said["verdict"]) == ("ended", code, verdict)
    assert said["next_command"] == next_command


def test_i4_a_time_that_nobody_knows_is_null() -> None:
    earlier_boot = _said(killed(), -400.0)
    assert (earlier_boot["elapsed_s"], earlier_boot["silent_s"]) == (None, None)
    headless = json.loads(as_json(fold(Journal(None, (), False)), 5000.0, known=False))
    assert (headless["elapsed_s"], headless["silent_s"]) == (None, None)
    assert (headless["run"], headless["verdict"]) == (None, "unknown")


def test_the_verb_answers_from_the_journal_alone(tmp_path: Path) -> None:
    path = journal_path(tmp_path, "7f3a")
    path.parent.mkdir(parents=True)
    path.write_bytes(raw(clean()))
    done = run(sys.executable, "-m", "stressor", "status", "-o", "json", state=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["run"] == "7f3a"
