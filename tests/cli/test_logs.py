"""Which log a verb gets: what settings ask for, and less beside a narrator."""

from dataclasses import replace
from pathlib import Path

import pytest

from stressor.cli import logs
from stressor.config.settings import Settings
from stressor.log import Level

CHOSEN = Settings(Path("/s"), Path("/i"), "--inventory", None, 1.0, None, Level.WARNING)


@pytest.mark.parametrize(
    ("level", "narrated", "shown"),
    [
        (Level.WARNING, False, True),
        (Level.WARNING, True, False),
        (Level.ERROR, True, False),
        (Level.INFO, True, True),
        (Level.DEBUG, True, True),
    ],
)
def test_beside_a_narrator_the_screen_has_a_log_only_when_more_was_asked_for(
    level: Level, narrated: bool, shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with logs.start(replace(CHOSEN, log_level=level), narrated=narrated) as log:
        log.error("x")
    assert ("event=x" in capsys.readouterr().err) is shown


def test_the_file_has_the_log_of_a_narrated_verb_too(tmp_path: Path) -> None:
    file = tmp_path / "x.log"
    with logs.start(replace(CHOSEN, log_file=file), narrated=True) as log:
        log.info("x")
    assert "event=x" in file.read_text()


def test_outside_of_a_command_no_option_was_given() -> None:
    assert logs.given() == {}
