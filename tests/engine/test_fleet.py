"""Arming a fleet: what is tried before a guard is opened."""

import queue

from stressor.core import events as ev
from stressor.engine.fleet import Fleet
from stressor.engine.loop import EventQueue
from stressor.model import Host, Route
from stressor.testing.clock import ManualClock
from stressor.testing.remote import FakeHost, FakeRemote

HOST = Host("n1", (Route("127.0.0.1"),))


def armed(rehearsal: str | None) -> tuple[ev.Event, FakeHost]:
    """The fleet's answer for a host whose guard never speaks, and the host."""
    events: EventQueue = queue.SimpleQueue()
    machine = FakeHost(HOST)
    fleet = Fleet(
        "r1",
        ManualClock(),
        events,
        lambda _host: FakeRemote(machine),
        lambda _host: rehearsal,
        ("guard",),
    )
    fleet.arm((HOST,), left_s=60.0, beat_s=5.0)
    return events.get(timeout=10.0), machine


def test_i1_no_guard_is_armed_where_the_abort_route_failed_its_rehearsal() -> None:
    event, machine = armed("auth: no key fits")
    assert isinstance(event, ev.GuardRefused)
    assert event.reason == "abort could not get there: auth: no key fits"
    assert machine.calls == []


def test_i1_the_guard_is_opened_after_the_rehearsal() -> None:
    event, machine = armed(None)
    assert isinstance(event, ev.GuardRefused)
    assert event.reason.startswith("protocol: ")
    assert machine.calls == [("guard",)]
