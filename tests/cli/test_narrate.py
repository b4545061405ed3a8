"""What a run says: folded on a terminal, whole in a file, harmless everywhere."""

import pytest

from stressor.cli.narrate import Narrator
from stressor.report.lines import WIDTH

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
