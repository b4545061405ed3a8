"""Preflight's I/O on hosts made of values: what is asked, and what silence becomes."""

from dataclasses import replace

import pytest

from stressor.checks import CHECKS
from stressor.checks.base import Finding, Level
from stressor.engine.preflight import Inspector
from stressor.model import Host, Route, Transport
from stressor.remote.base import Completed, Outcome, Remote, TimedOut
from stressor.testing.clock import ManualClock
from stressor.testing.remote import FakeFault, FakeHost, FakeRemote

HOST = Host("n1", (Route("127.0.0.1"),))
DONE = Completed(0, b"", b"", 0.0)
EMPTY: dict[tuple[str, ...], Outcome] = {("true",): DONE, ("sudo", "-n", "--", "true"): DONE}


def inspector(*machines: FakeHost, only: frozenset[str] = frozenset()) -> Inspector:
    by_name = {machine.host.name: machine for machine in machines}
    clock = ManualClock()

    def connect(host: Host, _route: int) -> Remote:
        # As the backends do: what runs under sudo is the host's word, not the machine's.
        return FakeRemote(replace(by_name[host.name], host=host))

    return Inspector(connect, only, clock.now_s, clock.now_s)


def levels(found: tuple[Finding, ...]) -> dict[str, Level]:
    return {one.check: one.level for one in found}


def test_i4_a_host_that_answers_nothing_useful_passes_no_check_but_its_login() -> None:
    found = inspector(FakeHost(HOST, commands=EMPTY)).host(HOST)
    assert levels(found) == {
        "login": Level.PASS,
        **{check.NAME: Level.FAIL for check in CHECKS},
        "sshd": Level.WARN,
    }
    assert all(one.unknown for one in found if one.check != "login")


def test_a_host_that_is_not_reached_is_said_once_and_nothing_else_is_claimed() -> None:
    found = inspector(FakeHost(HOST, fault=FakeFault.UNREACHABLE)).host(HOST)
    assert levels(found) == {"login": Level.FAIL, "host": Level.SKIP}


def test_sudo_that_asks_for_a_password_is_a_failure_of_the_route() -> None:
    host = replace(HOST, become=True)
    denied = Completed(1, b"", b"sudo: a password is required\n", 0.0)
    machine = FakeHost(host, commands={**EMPTY, ("sudo", "-n", "--", "true"): denied})
    (login, *_) = inspector(machine).host(host)
    assert (login.check, login.level) == ("login", Level.FAIL)
    assert "sudo" in login.text


def test_noise_of_a_login_is_a_warning() -> None:
    noisy = replace(DONE, noise_bytes=12)
    (login, *_) = inspector(FakeHost(HOST, commands={("true",): noisy})).host(HOST)
    assert (login.level, "12 bytes" in login.text) == (Level.WARN, True)


def test_only_asks_for_what_was_named() -> None:
    machine = FakeHost(HOST, commands=EMPTY)
    found = inspector(machine, only=frozenset({"clock"})).host(HOST)
    assert set(levels(found)) == {"clock"}
    assert len([call for call in machine.calls if call[0] == "sh"]) == 1


def test_the_second_route_is_used_when_the_first_is_dead() -> None:
    host = replace(HOST, routes=(Route("127.0.0.1"), Route("127.0.0.2")))
    ways = (FakeHost(host, fault=FakeFault.UNREACHABLE), FakeHost(host, commands=EMPTY))
    found = Inspector(lambda one, route: FakeRemote(replace(ways[route], host=one))).host(host)
    assert [one.level for one in found if one.check == "login"] == [Level.FAIL, Level.PASS]
    assert "clock" in levels(found)
    assert "sh" not in [call[0] for call in ways[0].calls]
    assert "sh" in [call[0] for call in ways[1].calls]


def test_i4_a_script_that_hangs_is_unknown_and_says_so() -> None:
    hung = TimedOut("n1", 8.0)
    found = inspector(FakeHost(HOST, commands={**EMPTY, ("sh",): hung})).host(HOST)
    asked = [one for one in found if one.check != "login"]
    assert {(one.unknown, one.text) for one in asked} == {(True, "unknown: silent")}


def test_this_machine_has_no_login_to_try() -> None:
    host = replace(HOST, transport=Transport.LOCAL)
    found = levels(inspector(FakeHost(host, commands=EMPTY)).host(host))
    assert (found["login"], "sshd" in found) == (Level.SKIP, False)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_every_host_gets_its_findings(order: tuple[int, int]) -> None:
    other = replace(HOST, name="n2")
    hosts = (HOST, other)
    machines = (FakeHost(HOST, commands=EMPTY), FakeHost(other, fault=FakeFault.UNREACHABLE))
    asked = [hosts[at] for at in order]
    found = {host.name: levels(some) for host, some in inspector(*machines).inspect(asked)}
    assert found["n1"]["login"] is Level.PASS
    assert found["n2"]["login"] is Level.FAIL
