"""Preflight's I/O on hosts made of values: what is asked, and what silence becomes."""

import threading
from dataclasses import replace

import pytest

from stressor.checks import CHECKS
from stressor.checks.base import Finding, Level
from stressor.checks.blast_radius import Own
from stressor.engine.preflight import HOST_DEADLINE_S, WORKING, Inspector, jump_hosts
from stressor.engine.turns import Turns
from stressor.model import Host, Route, Transport
from stressor.remote.base import (
    Completed,
    Outcome,
    Remote,
    TimedOut,
    Unreachable,
    UnreachableReason,
)
from stressor.testing.clock import ManualClock
from stressor.testing.remote import FakeFault, FakeHost, FakeRemote

HOST = Host("n1", (Route("127.0.0.1"),))
HERE = Own("boot-here", "ext4", "/dev/vda")
DONE = Completed(0, b"", b"", 0.0)
EMPTY: dict[tuple[str, ...], Outcome] = {("true",): DONE, ("sudo", "-n", "--", "true"): DONE}


def spoken(_route: Route, _deadline_s: float) -> None:
    """Every door that is knocked at opens."""


def inspector(*machines: FakeHost, only: frozenset[str] = frozenset()) -> Inspector:
    by_name = {machine.host.name: machine for machine in machines}
    clock = ManualClock()

    def connect(host: Host, _route: int) -> Remote:
        # As the backends do: what runs under sudo is the host's word, not the machine's.
        return FakeRemote(replace(by_name[host.name], host=host))

    return Inspector(connect, only, HERE, knock=spoken, unix_s=clock.now_s, now_s=clock.now_s)


def levels(found: tuple[Finding, ...]) -> dict[str, Level]:
    return {one.check: one.level for one in found}


def test_i4_a_host_that_answers_nothing_useful_passes_no_check_but_its_login() -> None:
    found = inspector(FakeHost(HOST, commands=EMPTY)).host(HOST)
    assert levels(found) == {
        "login": Level.PASS,
        **{check.NAME: Level.FAIL for check in CHECKS},
        "sshd": Level.WARN,
        "orchestrator": Level.WARN,
        "guard": Level.FAIL,
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
    found = Inspector(
        lambda one, route: FakeRemote(replace(ways[route], host=one)), knock=spoken
    ).host(host)
    assert [one.level for one in found if one.check == "login"] == [Level.FAIL, Level.PASS]
    assert "clock" in levels(found)
    assert "sh" not in [call[0] for call in ways[0].calls]
    assert "sh" in [call[0] for call in ways[1].calls]


@pytest.mark.parametrize(
    ("said", "code", "level", "text"),
    [
        (b"1 err beat not-armed\n2 ok quit\n", 0, Level.PASS, "starts, answers and ends"),
        (b"2 ok quit\n", 0, Level.FAIL, "unknown: no guard: it said: 2 ok quit"),
        (b"", 0, Level.FAIL, "it said: nothing (exit 0)"),
        (b"sh: 1: Syntax error\n", 2, Level.FAIL, "Syntax error (exit 2)"),
    ],
)
def test_a_guard_that_does_not_answer_as_one_is_none(
    said: bytes, code: int, level: Level, text: str
) -> None:
    answer = Completed(code, said, b"", 0.0)
    machine = FakeHost(HOST, commands={**EMPTY, ("sh",): answer})
    found = inspector(machine, only=frozenset({"guard"})).host(HOST)
    (guard,) = [one for one in found if one.check == "guard"]
    assert guard.level is level
    assert text in guard.text


def test_i4_a_script_that_hangs_is_unknown_and_says_so() -> None:
    hung = TimedOut("n1", 8.0)
    found = inspector(FakeHost(HOST, commands={**EMPTY, ("sh",): hung})).host(HOST)
    asked = [one for one in found if one.check not in ("login", "guard")]
    assert {(one.unknown, one.text) for one in asked} == {(True, "unknown: silent")}
    assert [one.text for one in found if one.check == "guard"] == ["unknown: no guard: silent"]


def test_this_machine_has_no_login_to_try() -> None:
    host = replace(HOST, transport=Transport.LOCAL)
    found = levels(inspector(FakeHost(host, commands=EMPTY)).host(host))
    assert (found["login"], "sshd" in found) == (Level.SKIP, False)


GATE = Route("192.0.2.1", 2222, "gate", "/k")
INNER = Route("192.0.2.2", 22, "inner", "/k")


def test_every_machine_that_somebody_jumps_over_is_a_host_of_its_own() -> None:
    hosts = (
        replace(HOST, routes=(Route("10.0.0.1", jumps=(GATE, INNER)), Route("10.0.0.2"))),
        replace(HOST, name="n2", routes=(Route("10.0.0.3", jumps=(GATE,)),), become=True),
    )
    found = {host.name: (host.routes, behind) for host, behind in jump_hosts(hosts).items()}
    assert found == {
        "jump 192.0.2.1": ((GATE,), 2),
        "jump 192.0.2.2": ((replace(INNER, jumps=(GATE,)),), 1),
    }
    assert jump_hosts((HOST,)) == {}


@pytest.mark.parametrize(
    ("setting", "level"), [("local", Level.PASS), ("no", Level.FAIL), ("remote", Level.FAIL)]
)
def test_a_jump_host_must_let_others_through(setting: str, level: Level) -> None:
    gate = Host("jump 192.0.2.1", (GATE,))
    lines = ("port=22", "maxstartups=10:30:60", "maxsessions=10", f"allowtcpforwarding={setting}")
    said = "\n".join(("stressor-facts sshd", *lines, "end sshd", "")).encode()
    machine = FakeHost(gate, commands={**EMPTY, ("sh",): Completed(0, said, b"", 0.0)})
    behind = replace(HOST, routes=(Route("10.0.0.1", jumps=(GATE,)),))
    machines = (machine, FakeHost(behind, commands=EMPTY))
    found = {host.name: levels(some) for host, some in inspector(*machines).inspect([behind])}
    assert found["jump 192.0.2.1"] == {"login": Level.PASS, "sshd": level}


MANY = [
    replace(HOST, name=f"n{at}", routes=(Route(f"10.0.0.{at}", jumps=(GATE,)),)) for at in range(64)
]


def asked_of_the_gate(commands: dict[tuple[str, ...], Outcome]) -> list[Finding]:
    """Findings of a jump host that has 64 hosts behind it, each with two routes over it."""
    hosts = [replace(host, routes=(*host.routes, *host.routes)) for host in MANY]
    gate = FakeHost(Host("jump 192.0.2.1", (GATE,)), commands=commands)
    machines = (gate, *(FakeHost(host, commands=EMPTY) for host in hosts))
    found = inspector(*machines).inspect(hosts)
    return [one for host, some in found for one in some if host.name == gate.host.name]


def test_a_jump_host_is_dialled_by_all_hosts_behind_it_at_once() -> None:
    lines = ("port=22", "maxstartups=10:30:100", "maxsessions=10", "allowtcpforwarding=yes")
    said = "\n".join(("stressor-facts sshd", *lines, "end sshd", "")).encode()
    found = asked_of_the_gate({**EMPTY, ("sh",): Completed(0, said, b"", 0.0)})
    assert [(one.check, one.level, one.text) for one in found] == [
        ("login", Level.PASS, "gate@192.0.2.1:2222: login 0.00 s"),
        ("sshd", Level.WARN, "MaxStartups 10:30:100: drops some of 64 logins"),
    ]


def test_a_jump_host_is_knocked_at_once_for_all_behind_it() -> None:
    knocks = list[Route]()

    def door(route: Route, _deadline_s: float) -> None:
        knocks.append(route)

    machines = [FakeHost(host, commands=EMPTY) for host in MANY]
    gate = FakeHost(Host("jump 192.0.2.1", (GATE,)), commands=EMPTY)
    found = list(replace(inspector(gate, *machines), knock=door).inspect(MANY))
    assert len(found) == len(MANY) + 1
    assert len(knocks) == 1


@pytest.mark.parametrize("reason", [UnreachableReason.PROTOCOL, UnreachableReason.FORBIDDEN])
def test_a_jump_host_that_runs_nothing_is_as_it_should_be(reason: UnreachableReason) -> None:
    (found,) = asked_of_the_gate({("true",): Unreachable("jump", reason, "nologin")})
    assert (found.check, found.level, found.unknown) == ("sshd", Level.WARN, True)
    assert "MaxStartups 128:30:256" in found.remedy


def on_kernel(boot: str) -> dict[tuple[str, ...], Outcome]:
    lines = ("stressor-facts orchestrator", f"boot={boot}", "end orchestrator", "")
    return {**EMPTY, ("sh",): Completed(0, "\n".join(lines).encode(), b"", 0.0)}


@pytest.mark.parametrize(
    ("boot", "disposable", "told", "caught"),
    [
        ("b-1", False, True, True),
        ("b-1", True, True, False),
        ("b-2", False, False, False),
        ("", False, False, False),
    ],
)
def test_a_jump_host_that_is_a_node_under_another_address_is_told(
    boot: str, disposable: bool, told: bool, caught: bool
) -> None:
    gate = Host("jump 192.0.2.1", (GATE,))
    node = replace(HOST, name="node1")
    behind = replace(HOST, name="n2", routes=(Route("10.0.0.1", jumps=(GATE,)),))
    machines = (
        FakeHost(gate, commands=on_kernel(boot)),
        FakeHost(node, commands=on_kernel("b-1")),
        FakeHost(behind, commands=on_kernel("b-9")),
    )
    asking = replace(inspector(*machines), disposable=disposable)
    found = [
        (one.host, one.level, one.text)
        for host, some in asking.inspect([node, behind])
        for one in some
        if one.check in ("orchestrator", "routes") and one.level is not Level.PASS
    ]
    same = (gate.name, Level.WARN, "the same machine as node1, a node of the tested cluster")
    only = ("n2", Level.FAIL, "every route leads over the tested cluster: node1")
    assert found == [same] * told + [only] * caught


def test_dead_hosts_do_not_keep_the_living_waiting() -> None:
    """More dead hosts than there are processors by far: each holds its thread until the last
    living one has been heard of."""
    dead, heard = 100, threading.Event()
    hosts = [
        replace(HOST, name=f"n{at}", routes=(Route(f"10.0.0.{at}"),)) for at in range(dead + 1)
    ]
    living = FakeHost(hosts[-1], commands=EMPTY)

    def connect(host: Host, _route: int) -> Remote:
        assert host.name == living.host.name, "a host that does not speak is not logged in to"
        return FakeRemote(living)

    def door(route: Route, _deadline_s: float) -> UnreachableReason | None:
        if route == living.host.routes[0]:
            return None
        assert heard.wait(30), "the living host was never heard of"
        return UnreachableReason.SILENT

    order = []
    for host, _ in Inspector(connect, knock=door).inspect(hosts):
        order.append(host.name)
        heard.set()
    assert order[0] == living.host.name
    assert len(order) == dead + 1


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_every_host_gets_its_findings(order: tuple[int, int]) -> None:
    other = replace(HOST, name="n2")
    hosts = (HOST, other)
    machines = (FakeHost(HOST, commands=EMPTY), FakeHost(other, fault=FakeFault.UNREACHABLE))
    asked = [hosts[at] for at in order]
    found = {host.name: levels(some) for host, some in inspector(*machines).inspect(asked)}
    assert found["n1"]["login"] is Level.PASS
    assert found["n2"]["login"] is Level.FAIL


def test_one_login_a_route_and_everything_is_asked_over_it() -> None:
    host = replace(HOST, become=True, routes=(Route("127.0.0.1"), Route("127.0.0.2")))
    machine, dialled = FakeHost(host, commands=EMPTY), list[tuple[bool, int]]()

    def connect(one: Host, route: int) -> Remote:
        dialled.append((one.become, route))
        return FakeRemote(replace(machine, host=one))

    found = Inspector(connect, knock=spoken).host(host)
    assert dialled == [(False, 0), (False, 1)]
    assert {"clock", "sshd"} < set(levels(found))
    scripts = [call for call in machine.calls if "sh" in call]
    assert [call[:4] for call in scripts] == [("sudo", "-n", "--", "sh")] * 3


@pytest.mark.parametrize(
    ("code", "said", "level", "text"),
    [
        (0, b"motd\nstressor-begin\n1 err beat not-armed\n2 ok quit\n", Level.PASS, "starts"),
        (1, b"motd\n", Level.FAIL, "unknown: no guard: sudo"),
    ],
)
def test_what_sudo_says_is_no_answer_of_what_it_starts(
    code: int, said: bytes, level: Level, text: str
) -> None:
    host = replace(HOST, become=True)
    answer = Completed(code, said, b"sudo: no\n", 0.0)
    machine = FakeHost(host, commands={**EMPTY, ("sudo", "-n", "--", "sh"): answer})
    found = inspector(machine, only=frozenset({"guard"})).host(host)
    (guard,) = [one for one in found if one.check == "guard"]
    assert (guard.level, guard.text.startswith(text)) == (level, True)


def test_hosts_that_hang_after_their_first_line_do_not_keep_the_living_waiting() -> None:
    """As behind a jump host: it answers for all of them. Each hangs until the last living one has
    been heard of; there are more of them than hosts that are logged in to at once."""
    hung, heard = 5 * WORKING, threading.Event()
    hosts = [replace(HOST, name=f"n{at}") for at in range(hung + 1)]
    living = FakeHost(hosts[-1], commands=EMPTY)

    def hang(_argv: tuple[str, ...], _stdin: bytes) -> Outcome:
        assert heard.wait(30), "the living host was never heard of"
        return TimedOut("n", 8.0)

    def connect(host: Host, _route: int) -> Remote:
        if host.name == living.host.name:
            return FakeRemote(replace(living, host=host))
        return FakeRemote(FakeHost(host, commands={("true",): hang}))

    order = []
    asked = Inspector(connect, knock=spoken, turns=Turns(WORKING, patience_s=0.01))
    for host, _ in asked.inspect(hosts):
        order.append(host.name)
        heard.set()
    assert order[0] == living.host.name
    assert len(order) == hung + 1


def test_a_host_has_so_much_time_and_no_more() -> None:
    """All of its routes and scripts together; what was not asked any more is unknown."""
    clock, given = ManualClock(), list[float]()
    ways = tuple(Route(f"127.0.0.{at}") for at in range(1, 12))
    host = replace(HOST, routes=ways)

    def door(route: Route, left_s: float) -> UnreachableReason | None:
        given.append(left_s)
        if route == ways[0]:
            return None
        clock.advance(left_s)
        return UnreachableReason.SILENT

    def slow(_argv: tuple[str, ...], _stdin: bytes) -> Outcome:
        clock.advance(13.0)
        return TimedOut("n1", 13.0)

    machine = FakeHost(host, commands={**EMPTY, ("sh",): slow})
    asking = Inspector(lambda *_: FakeRemote(machine), knock=door, now_s=clock.now_s)
    found = asking.host(host)
    assert clock.now_s() == pytest.approx(HOST_DEADLINE_S)
    # 13 s for each of three sessions, two whole knocks, and what is left for a third.
    assert given == pytest.approx([8.0, 8.0, 8.0, 5.0])
    said = [one for one in found if one.check == "login"]
    assert [one.level for one in said] == [Level.PASS] + [Level.FAIL] * 10
    assert all(one.unknown for one in found if one.check in {check.NAME for check in CHECKS})


def test_i4_what_a_host_has_no_time_left_for_is_unknown() -> None:
    clock = ManualClock()

    def slow(argv: tuple[str, ...], _stdin: bytes) -> Outcome:
        clock.advance(HOST_DEADLINE_S)
        return DONE

    machine = FakeHost(HOST, commands={("true",): slow})
    found = Inspector(
        lambda *_: FakeRemote(machine), knock=spoken, now_s=clock.now_s, only=frozenset({"psi"})
    ).host(HOST)
    said = {one.check: (one.unknown, one.text) for one in found}
    assert said["psi"] == (True, "unknown: silent")
    assert said["login"] == (True, "unknown: root@127.0.0.1:22: a step gave no answer in time")
    assert [call[0] for call in machine.calls] == ["true"]
