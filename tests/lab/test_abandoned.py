"""The run's process is gone, hangs or slept: the hosts stop the load on their own."""

import signal
import time
from collections.abc import Callable

import pytest

from tests.lab.bed import Bed, Run

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

Launch = Callable[..., Run]

BEAT_TIMEOUT_S = 5.0
LOOK_S = 1.5
"""What our own look at two hosts by new connections may cost on two busy cores."""


def test_i2_sigkill_of_the_run_ends_the_load_within_the_beat_time_out(
    bed: Bed, launch: Launch
) -> None:
    run = launch("disk", jobs=2)
    run.wait_loading()
    run.signal(signal.SIGKILL)
    run.wait_gone(("node1", "node2"), BEAT_TIMEOUT_S + 1.0 + LOOK_S)


def test_i2_a_hung_decider_stops_beating_and_the_load_ends(bed: Bed, launch: Launch) -> None:
    run = launch("disk", "--debug-hang-after", "25", jobs=2)
    run.wait_loading()
    wait_until_hung(run)
    run.wait_gone(("node1", "node2"), BEAT_TIMEOUT_S + 1.0 + LOOK_S)
    assert run.process.poll() is None, "the decider was to hang, not to end"


def wait_until_hung(run: Run) -> None:
    """The hook stops the decider 25 s after the run's anchor: its journal falls silent then."""
    end_s = time.monotonic() + 60
    while time.monotonic() < end_s:
        before = len(run.kinds())
        time.sleep(1.2)
        if len(run.kinds()) == before:
            return
    raise AssertionError("the decider never fell silent")


def test_i3_a_stopped_and_continued_run_starts_nothing(bed: Bed, launch: Launch) -> None:
    run = launch("cpu")
    run.wait_loading()
    run.signal(signal.SIGSTOP)
    run.wait_gone(("node1", "node2"), 10.0)
    time.sleep(2.0)
    run.signal(signal.SIGCONT)
    assert run.end() in (98, 99), run.said()
    for _ in range(4):
        assert all(not bed.marked(host, run.name) for host in bed.load_hosts)
        time.sleep(0.5)
