"""When a lock may be given back: the hosts decide, and silence is no yes."""

import pytest

from stressor.checks.base import Facts, Reading
from stressor.checks.leftovers import Hold, hold
from stressor.cli.unlock import _hosts_say, _lease
from stressor.errors import ExitCode, KubeError
from stressor.testing.kube import FakeKube

STAT = "S 1 " + "0 " * 17 + "77"


def reading(**facts: tuple[str, ...]) -> Reading:
    return Reading("n1", Facts(facts), 0.0, 0.0)


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({"folder": ("none",)}, Hold.FREE),
        ({"folder": ("read",)}, Hold.FREE),
        ({}, None),
        ({"folder": ("read",), "run": ("r1",), "tombstone": ("r1",)}, Hold.FREE),
        ({"folder": ("read",), "run": ("r1",)}, Hold.UNPROVEN),
        ({"folder": ("read",), "run": ("r1",), "guard": (f"r1 9 77 {STAT}",)}, Hold.HELD),
        ({"folder": ("read",), "run": ("r2",), "guard": (f"r2 9 77 {STAT}",)}, Hold.FREE),
    ],
)
def test_what_a_run_is_to_a_host(facts: dict[str, tuple[str, ...]], found: Hold | None) -> None:
    assert hold(reading(**facts), "r1") is found


@pytest.mark.parametrize(
    ("found", "code", "text"),
    [
        ({"n1": Hold.FREE, "n2": Hold.HELD}, ExitCode.LOCK_HELD, "its guard is on n2"),
        ({"n1": Hold.UNPROVEN, "n2": None}, ExitCode.UNVERIFIED_HOSTS, "not proven dead on n1"),
        ({"n1": Hold.FREE, "n2": None}, ExitCode.UNVERIFIED_HOSTS, "no answer from n2"),
        ({}, ExitCode.UNVERIFIED_HOSTS, "no host is known"),
    ],
)
def test_a_lock_stays_until_every_host_has_said_that_it_may_go(
    found: dict[str, Hold | None], code: ExitCode, text: str
) -> None:
    outcome = _hosts_say("r1", found)
    assert outcome is not None
    assert outcome.code is code
    assert text in outcome.text
    assert outcome.next_command == "stressor abort --run r1"


def test_free_hosts_leave_it_to_the_lease() -> None:
    assert _hosts_say("r1", {"n1": Hold.FREE}) is None
    kube = FakeKube()
    assert _lease("r1", kube).text == "free: nobody holds the cluster"
    kube.acquire_lease(
        holder="ann@desk:7", run="r1", abort_command="a", expires_s=60, deadline_s=1.0
    )
    other = _lease("r2", kube)
    assert (other.code, other.next_command) == (ExitCode.LOCK_HELD, "a")
    assert "run r1 of ann@desk:7 holds it" in other.text
    assert kube.read_lease(deadline_s=1.0) is not None
    assert _lease("r1", kube).code is ExitCode.PASS
    assert kube.read_lease(deadline_s=1.0) is None


def test_i4_an_api_that_does_not_answer_is_unknown() -> None:
    outcome = _lease("r1", KubeError("nobody listens"))
    assert outcome.code is ExitCode.UNVERIFIED_HOSTS
    assert "expires by itself" in outcome.text
