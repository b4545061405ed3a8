"""What a run says: folded on a terminal, whole in a file, harmless everywhere."""

from dataclasses import replace

import pytest

from stressor.cli.narrate import Narrator
from stressor.core import events as ev
from stressor.core.run import begin
from stressor.core.state import Stage
from stressor.model import HostProof, HostState, Survivor
from stressor.report.lines import WIDTH
from tests.report.journals import PLAN

FACTS = "cgroup=v1 kill=freezer shell=busybox deadman=read-t timer=ok oom=refused boot=18448.85"


def said(capsys: pytest.CaptureFixture[str], text: str, *, fold: bool) -> list[str]:
    Narrator(0.0, fold=fold).say(1.13, text)
    return capsys.readouterr().err.splitlines()


def test_a_terminal_gets_no_line_that_it_would_break_in_a_word(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = said(capsys, f"guard  bystander armed: {FACTS}", fold=True)
    assert lines[0].startswith("00:00:01Z    1.13s  guard  bystander armed: cgroup=v1 ")
    assert all(line.startswith(" " * 27) for line in lines[1:])
    assert len(lines) == 2
    assert max(map(len, lines)) <= WIDTH
    assert " ".join(line.strip() for line in lines).endswith(FACTS)


def test_a_file_gets_one_line_an_event(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(said(capsys, f"guard  bystander armed: {FACTS}", fold=False)) == 1


@pytest.mark.parametrize("fold", [True, False])
def test_what_a_host_says_moves_no_cursor(
    capsys: pytest.CaptureFixture[str], *, fold: bool
) -> None:
    """A guard's words come from the host; nobody has looked at them."""
    lines = said(capsys, "guard  n1 TRIPPED: \x1b[2Jall is well\nVERDICT  PASS", fold=fold)
    assert lines == [r"00:00:01Z    1.13s  guard  n1 TRIPPED: \x1b[2Jall is well VERDICT  PASS"]


def told(capsys: pytest.CaptureFixture[str], stage: Stage, *events: ev.Event) -> list[str]:
    """What is said of `events` that come in this stage, the stage's own line apart."""
    narrator = Narrator(0.0)
    state = replace(begin(PLAN)[0], stage=stage)
    for event in events:
        narrator.watch(state, event, ())
    return [line for line in capsys.readouterr().err.splitlines() if "ARMED" not in line]


TRIPPED = ev.GuardTripped(1.0, "n1", "tombstone")


def test_a_trip_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    again = ev.GuardTripped(2.0, "n1", "tombstone")
    assert len(told(capsys, Stage.BASELINE, TRIPPED, again)) == 1


def test_what_a_clean_up_does_to_the_guards_is_no_alarm(capsys: pytest.CaptureFixture[str]) -> None:
    cut = ev.HostProven(2.0, HostProof("n1", HostState.UNVERIFIED, detail="answer-cut"))
    assert told(capsys, Stage.CLEANING, TRIPPED, cut) == []


def test_survivors_are_told_at_any_time(capsys: pytest.CaptureFixture[str]) -> None:
    survivor = Survivor(7, "fio", "D", "io", 1.0)
    late = ev.HostProven(2.0, HostProof("n1", HostState.SURVIVORS, survivors=(survivor,)))
    assert len(told(capsys, Stage.CLEANING, late)) == 1
