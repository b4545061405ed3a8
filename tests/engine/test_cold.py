"""Killing through new connections: outcomes to evidence, routes in order, one budget."""

import pytest

from stressor.engine.abort import ColdKiller, judge
from stressor.engine.sweep import Sweep
from stressor.model import Host, HostState, Route
from stressor.remote.base import Completed, Outcome, Remote, TimedOut, Unreachable
from stressor.remote.base import UnreachableReason as Why
from stressor.testing.clock import ManualClock
from stressor.testing.remote import FakeFault, FakeHost, FakeRemote

CLEAN = b"! hello kill r1 boot=1.0\n! proof 0 state=CLEAN stopped=0 scans=2 took_ms=400 detail=x\n"
STOPPED = CLEAN.replace(b"state=CLEAN stopped=0", b"state=STOPPED stopped=3")


def host(name: str = "n1", routes: int = 1) -> Host:
    return Host(name, tuple(Route(f"127.0.0.{i + 1}") for i in range(routes)))


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Completed(0, CLEAN, b"", 0.1), HostState.CLEAN),
        (Completed(0, STOPPED, b"", 0.1), HostState.STOPPED),
        (Completed(0, b"", b"", 0.1), HostState.UNVERIFIED),
        (Completed(0, b"all is well\n", b"", 0.1), HostState.UNVERIFIED),
        (TimedOut("n1", 8.0), HostState.UNVERIFIED),
        (Unreachable("n1", Why.NO_ROUTE, "no route"), HostState.UNREACHABLE),
        (Unreachable("n1", Why.KEY_CHANGED, "other key"), HostState.KEY_CHANGED),
    ],
)
def test_i5_only_the_hosts_own_word_is_evidence(outcome: Outcome, state: HostState) -> None:
    assert judge("n1", outcome).state is state


def killer(*machines: FakeHost) -> ColdKiller:
    by_name = {machine.host.name: machine for machine in machines}
    return ColdKiller(lambda one, _route: FakeRemote(by_name[one.name]))


def test_the_next_route_is_taken_when_the_first_is_dead() -> None:
    target = host(routes=2)
    ways = {
        0: FakeHost(target, fault=FakeFault.UNREACHABLE),
        1: FakeHost(target, commands={("sh",): Completed(0, STOPPED, b"", 0.1)}),
    }

    def connect(_host: Host, route: int) -> Remote:
        return FakeRemote(ways[route])

    proof = ColdKiller(connect).kill(target, "r1", "test", 0.0)
    assert (proof.state, proof.stopped) == (HostState.STOPPED, 3)


def test_a_host_that_says_0_and_does_nothing_is_unverified() -> None:
    liar = FakeHost(host(), fault=FakeFault.LYING)
    assert killer(liar).kill(liar.host, "r1", "test", 0.0).state is HostState.UNVERIFIED


def sweep_of(clock: ManualClock, budget_s: float, *machines: FakeHost) -> Sweep:
    return Sweep(killer(*machines), clock.now_s, clock.advance, budget_s)


def test_every_host_is_tried_until_proven_or_the_budget_ends() -> None:
    clock = ManualClock()
    well = FakeHost(host("well"), commands={("sh",): Completed(0, CLEAN, b"", 0.1)})
    dead = FakeHost(host("dead"), fault=FakeFault.UNREACHABLE)
    lines = list(sweep_of(clock, 6.0, well, dead).run((well.host, dead.host), "r1", "test", 0.0))
    last = {line.proof.host: line for line in lines if line.last}
    assert last["well"].proof.state is HostState.CLEAN
    assert last["dead"].proof.state is HostState.UNREACHABLE
    assert last["dead"].attempt > 1
    assert clock.now_s() <= 6.0


def test_a_changed_key_is_not_tried_again() -> None:
    other = FakeHost(host(), fault=FakeFault.KEY_CHANGED)
    lines = list(sweep_of(ManualClock(), 60.0, other).run((other.host,), "r1", "test", 0.0))
    assert [line.proof.state for line in lines] == [HostState.KEY_CHANGED]


def rehearsed(*answers: Outcome) -> str | None:
    target = host(routes=len(answers))
    ways = [FakeHost(target, commands={("id", "-u"): answer}) for answer in answers]
    return ColdKiller(lambda _host, route: FakeRemote(ways[route])).rehearse(target)


def test_i1_a_login_as_root_on_one_route_is_a_rehearsed_abort() -> None:
    assert rehearsed(Completed(0, b"Welcome to n1\n0\n", b"", 0.1)) is None
    assert rehearsed(TimedOut("n1", 8.0), Completed(0, b"0\n", b"", 0.1)) is None


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (Completed(0, b"1000\n", b"", 0.1), "not root there: 1000"),
        (Completed(0, b"", b"", 0.1), "not root there: no answer"),
        (Completed(127, b"0\n", b"", 0.1), "id ended with 127"),
        (TimedOut("n1", 8.0), "no login within 8 s"),
        (Unreachable("n1", Why.SUDO, "a password is required"), "sudo: a password is required"),
    ],
)
def test_i1_what_does_not_show_root_is_no_rehearsed_abort(outcome: Outcome, why: str) -> None:
    assert rehearsed(outcome) == why
