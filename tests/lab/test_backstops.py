"""A host's own backstops, each alone: no run, no API, one marked process on one node."""

import time
from collections.abc import Iterator

import pytest

from stressor.guard.script import guard_argv
from stressor.remote.base import Channel, Remote, TimedOut, Unreachable
from stressor.remote.connect import connect
from tests.lab.bed import Bed, wait_for

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120)]

RUN = "rbackstop"
NODE = "node2"
DEADLINE_S = 8.0


@pytest.fixture
def sleeper(bed: Bed) -> Iterator[None]:
    """A process with the run's mark in a mount namespace of its own."""
    clear(bed)
    words = ("unshare", "--mount", "sleep", "90")
    bed.ssh(
        NODE, "systemd-run", "--collect", "--unit=backstop", f"--setenv=STRESSOR_RUN={RUN}", *words
    )
    wait_for(lambda: True if bed.marked(NODE, RUN) else None, 10.0, str)
    yield
    clear(bed)


def clear(bed: Bed) -> None:
    script = (
        'systemctl stop "stressor-$1.timer" "stressor-late-$1.service" backstop.service; '
        'rm -rf "/run/stressor/$1"'
    )
    bed.ssh(NODE, "sh", "-c", script, "sh", RUN)


def arm(bed: Bed) -> tuple[Channel, Remote]:
    """A guard of RUN on NODE, armed for DEADLINE_S, without anybody who beats."""
    remote = connect(bed.inventory.host(NODE))
    channel = remote.open_channel(guard_argv(), deadline_s=15)
    assert not isinstance(channel, Unreachable | TimedOut), channel
    channel.send(f"1 arm {RUN} {DEADLINE_S:.0f} 60")
    said: list[str] = []

    def armed() -> bool | None:
        said.extend(channel.receive())
        return True if any(line.startswith("1 ok arm") for line in said) else None

    wait_for(armed, 10.0, lambda: str(said))
    return channel, remote


def gone_after_s(bed: Bed, limit_s: float) -> float:
    began_s = time.monotonic()
    wait_for(lambda: None if bed.marked(NODE, RUN) else True, limit_s, str)
    return time.monotonic() - began_s


@pytest.mark.usefixtures("sleeper")
def test_i2_the_host_timer_alone(bed: Bed) -> None:
    """Guard killed before it can do anything: PID 1 kills at the deadline."""
    _kept = arm(bed)
    kill = (
        'read -r pid start <"/run/stressor/$1/guard.pid"; '
        'all="$pid $(ps -o pid= --ppid "$pid" | tr "\\n" " ")"; kill -STOP $all; kill -9 $all'
    )
    bed.ssh(NODE, "sh", "-c", kill, "sh", RUN)
    assert bed.marked(NODE, RUN), "killed together with the guard: the timer was not needed"
    assert gone_after_s(bed, DEADLINE_S + 3.0) > 2.0


@pytest.mark.usefixtures("sleeper")
def test_i2_the_guards_deadline_alone(bed: Bed) -> None:
    """Host timer stopped, channel open, beats not due: the guard kills at its deadline."""
    _kept = arm(bed)
    bed.ssh(NODE, "systemctl", "stop", f"stressor-{RUN}.timer")
    assert bed.marked(NODE, RUN)
    assert gone_after_s(bed, DEADLINE_S + 3.0) > 2.0


@pytest.mark.usefixtures("sleeper")
def test_i2_a_closed_channel_alone(bed: Bed) -> None:
    channel, _remote = arm(bed)
    bed.ssh(NODE, "systemctl", "stop", f"stressor-{RUN}.timer")
    assert bed.marked(NODE, RUN)
    channel.close()
    assert gone_after_s(bed, 4.0) < 4.0
