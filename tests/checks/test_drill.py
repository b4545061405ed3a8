"""How fresh a drill has to be."""

from dataclasses import replace

import pytest

from stressor.checks import drill
from stressor.checks.base import Level
from stressor.checks.drill import Drilled, Now

DAY_S = 86400.0
NOW_S = 1_800_000_000.0
HOST = Now("n1", "aa")
FRESH = Drilled("n1", NOW_S - 2 * DAY_S, ("cold", "guard", "script"), "aa")


@pytest.mark.parametrize(
    ("entry", "level", "text"),
    [
        (FRESH, Level.PASS, "3 ways proven 2.0 days ago"),
        (replace(FRESH, at_unix_s=NOW_S - 30 * DAY_S), Level.PASS, "30.0 days ago"),
        (replace(FRESH, at_unix_s=NOW_S - 31 * DAY_S), Level.FAIL, "31 days old"),
        (replace(FRESH, at_unix_s=NOW_S + DAY_S), Level.FAIL, "unknown: the last drill lies in"),
        (replace(FRESH, access="bb"), Level.FAIL, "have changed since"),
        (replace(FRESH, ways=("cold", "guard")), Level.FAIL, "did not prove: script"),
        (replace(FRESH, host="n2"), Level.FAIL, "no abort was ever tried"),
    ],
)
def test_a_drill_is_fresh_whole_and_of_the_host_as_it_is(
    entry: Drilled, level: Level, text: str
) -> None:
    (found,) = drill.judge((HOST,), (entry,), now_unix_s=NOW_S)
    assert found.level is level
    assert text in found.text
    assert level is Level.PASS or found.remedy == "stressor drill"
