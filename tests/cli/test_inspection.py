"""What of preflight may be accepted with a reason, and what may not."""

import pytest

from stressor.cli.inspection import ACCEPTABLE, ASKED_BY_RUN, NAMES, accepted
from stressor.errors import ConfigError


def test_a_reason_is_kept_as_written() -> None:
    assert accepted(["free-disk=a = b", "orchestrator=only one machine"]) == {
        "free-disk": "a = b",
        "orchestrator": "only one machine",
    }


@pytest.mark.parametrize("option", ["free-disk", "free-disk=", "free-disk= "])
def test_nothing_is_accepted_without_a_reason(option: str) -> None:
    with pytest.raises(ConfigError, match="write why"):
        accepted([option])


@pytest.mark.parametrize(
    "name", ["login", "drill", "leftovers", "run-folder", "nodes", "storage", "nosuch"]
)
def test_i1_what_an_abort_stands_on_cannot_be_accepted(name: str) -> None:
    with pytest.raises(ConfigError, match="not one that may be accepted"):
        accepted([f"{name}=I know better"])


def test_every_name_is_a_check() -> None:
    assert set(ACCEPTABLE) <= set(NAMES)
    assert set(NAMES) >= ASKED_BY_RUN
    assert len(NAMES) == len(set(NAMES))
