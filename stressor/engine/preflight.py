"""Preflight's I/O: every route tried and timed, every host asked, all hosts at once.

Findings come as hosts answer, so that a dead one delays nobody's line. What is found is judged in
`checks`; nothing here decides.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TypeVar

from stressor.checks import CHECKS, blast_radius, clock, guard_trip, login, sshd
from stressor.checks.base import Answer, Finding, Level, Reading, joined, judge, read, unknown
from stressor.checks.blast_radius import Own
from stressor.checks.routes import Door, judge_caught, standing_at
from stressor.engine.abort import KILL_DEADLINE_S
from stressor.engine.doors import Doors, Knock
from stressor.engine.turns import Turns
from stressor.guard import protocol
from stressor.guard.script import guard_argv
from stressor.model import Host, Route, Transport
from stressor.remote.base import (
    Completed,
    Outcome,
    Remote,
    TimedOut,
    Unreachable,
    UnreachableReason,
)
from stressor.remote.command import begun, last_line, own_output
from stressor.remote.knock import knock

SCRIPT_DEADLINE_S = 8.0
"""For one script."""
SCRIPTS_DEADLINE_S = 20.0
"""For all of them in one session: each bounds what may hang in it by a few seconds."""
HANDSHAKES = 4
"""Logins that one host may get at the same moment: its guard, the rehearsal, a scrape, a kill."""
SESSIONS = {Transport.OPENSSH: 8, Transport.PARAMIKO: 4, Transport.LOCAL: 1}
"""Sessions side by side on one connection (scrapes, and a kill beside them)."""
HOST_DEADLINE_S = 60.0
"""For everything that is asked of one host, over all of its routes. Two silent routes and a third
one that needs all of its time fit."""
AT_ONCE = 256
"""Threads, one a host. Fewer, and dead hosts that take their whole deadline would keep living ones
waiting behind them."""
WORKING = 6
"""Hosts that have answered a knock and are logged in to at the same time. A handshake costs tens of
milliseconds of processor here: fifty at once on two busy cores took longer than a login may, and
eight long enough for some to be called slow. Six were as quick in all."""
PATIENCE_S = login.WARN_S
"""A host that keeps one of those places for longer waits for something else than this machine's
processor, and another one is let in beside it. Without that, a few dead hosts behind a jump host,
or whose sshd hangs after its first line, would hold up all living ones."""
NO_SHELL = frozenset({UnreachableReason.PROTOCOL, UnreachableReason.FORBIDDEN})
"""What a jump host answers that lets others through and runs nothing itself, as it should."""
SUDO = ("sudo", "-n", "--")

T = TypeVar("T")
Connect = Callable[[Host, int], Remote]
Clock = Callable[[], float]


@dataclass(slots=True)
class Budget:
    """What is left of the time for one host. Waiting for a place is not charged to it."""

    now_s: Clock
    left_s: float = HOST_DEADLINE_S

    def charge(self, call: Callable[[float], T], most_s: float) -> tuple[T, float]:
        """The outcome of `call`, which is given the seconds that it may take, and how long it
        took."""
        began_s = self.now_s()
        outcome = call(max(min(most_s, self.left_s), 0.001))
        took_s = self.now_s() - began_s
        self.left_s -= took_s
        return outcome, took_s

    def run(
        self, remote: Remote, argv: tuple[str, ...], most_s: float, stdin: bytes = b""
    ) -> tuple[Outcome, float]:
        """`argv` on the host, and how long it took; nothing is sent any more when the time is
        over."""
        if self.left_s <= 0.0:
            return TimedOut(remote.host.name, 0.0), 0.0
        return self.charge(lambda left_s: remote.run(argv, deadline_s=left_s, stdin=stdin), most_s)


@dataclass(frozen=True, slots=True)
class Visit:
    """A login on one route, and what was found out over it."""

    trial: login.LoginTrial
    found: tuple[Finding, ...] = ()

    @property
    def reached(self) -> bool:
        """Whether somebody was let in, as root where that is needed."""
        return self.trial.reason is None


@dataclass(frozen=True, slots=True)
class Inspector:
    """Asks hosts, once: what it has learnt it keeps. `only`: the names of the checks to run; empty
    for all. `own` is this machine, to be told from the hosts (None: it is not asked), and
    `disposable` says that it may be one of them. `unix_s` is the wall clock, to which the hosts'
    clocks are compared; `now_s` measures spans."""

    connect: Connect
    only: frozenset[str] = frozenset()
    own: Own | None = None
    disposable: bool = False
    knock: Knock = knock
    unix_s: Clock = time.time
    now_s: Clock = time.monotonic
    turns: Turns = field(default_factory=lambda: Turns(WORKING, PATIENCE_S))
    _kernels: dict[Host, str] = field(default_factory=dict, init=False)
    _doors: Doors = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_doors", Doors(self.knock))

    def inspect(self, hosts: Sequence[Host]) -> Iterator[tuple[Host, tuple[Finding, ...]]]:
        """Each host with its findings, in the order in which they were ready; the jump hosts of
        their routes among them, and last what only all answers together show of these."""
        gates = jump_hosts(hosts)
        with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="preflight") as pool:
            asked = {pool.submit(self.host, host): host for host in hosts}
            asked |= {pool.submit(self.jump, gate, n): gate for gate, n in gates.items()}
            for done in as_completed(asked):
                yield asked[done], done.result()
        yield from self._disguised(gates, hosts)

    def _disguised(
        self, gates: Iterable[Host], hosts: Sequence[Host]
    ) -> Iterator[tuple[Host, tuple[Finding, ...]]]:
        """Jump hosts that are hosts of the inventory under addresses that tell nobody so, and whose
        only way leads over them. Where all may be one machine, the latter says nothing."""
        who = {self._kernels[host]: host for host in reversed(hosts) if host in self._kernels}
        found: dict[Door, Host] = {}
        for gate in gates:
            (way,), node = gate.routes, who.get(self._kernels.get(gate, ""))
            if node is not None and standing_at(way, hosts) is None:
                found[way.address, way.port] = node
                yield gate, (blast_radius.judge_gate(gate.name, node),)
        before = judge_caught(hosts)
        after = () if self.disposable else judge_caught(hosts, found)
        for host in hosts:
            new = tuple(one for one in after if one.host == host.name and one not in before)
            if new:
                yield host, new

    def jump(self, host: Host, behind: int) -> tuple[Finding, ...]:
        """The findings of a jump host with so many hosts behind it: its own login, and whether its
        sshd lets them through. Nothing else of it matters. An abort dials all of them at once, each
        over a connection of its own, and forwards are no sessions (sshd_config(5), MaxSessions)."""
        load = sshd.Load(max(HANDSHAKES, behind), sessions=1, is_jump=True)
        visit = self._visit(host, 0, Budget(self.now_s), lambda asking: asking.gate(load))
        if visit.trial.reason in NO_SHELL:
            why = "it runs no command; see whether the hosts behind it are reached"
            remedy = f"there: sshd -T; MaxStartups {2 * load.handshakes}:30:{4 * load.handshakes}"
            return self._kept((unknown(sshd.NAME, host.name, Level.WARN, why, remedy),))
        return self._kept((*login.judge_login(visit.trial), *visit.found))

    def host(self, host: Host) -> tuple[Finding, ...]:
        """All findings of one host, asked over the first route that lets us in. One that no route
        reaches gets no answer on anything else."""
        budget, visits = Budget(self.now_s), list[Visit]()
        for route in range(len(host.routes)):
            known = any(visit.reached for visit in visits)
            visits.append(self._visit(host, route, budget, _nothing if known else Asking.scripts))
        found = [one for visit in visits for one in login.judge_login(visit.trial)]
        if host.transport is Transport.LOCAL:
            found = [Finding(login.NAME, host.name, Level.SKIP, "this machine: no login")]
        if not any(visit.reached for visit in visits):
            text = "no other check was made: the host was not reached"
            found.append(Finding("host", host.name, Level.SKIP, text))
        return self._kept((*found, *(one for visit in visits for one in visit.found)))

    def wants(self, name: str) -> bool:
        """Whether this check was asked for."""
        return not self.only or name in self.only

    def _kept(self, found: tuple[Finding, ...]) -> tuple[Finding, ...]:
        return tuple(f for f in found if self.wants(f.check) or f.level is Level.FAIL)

    def _visit(self, host: Host, route: int, budget: Budget, then: "Then") -> Visit:
        """Log in on a route and, where that works, ask `then` over the same connection: a second
        handshake would tell nothing more."""
        way = host.routes[route]
        blank = login.LoginTrial(
            host.name, f"{way.user}@{way.address}:{way.port}", become=host.become
        )
        silent = self._knock(host, way, budget)
        if silent is not None:
            return Visit(replace(blank, reason=silent.value))
        # The login is made as the user, so that it and sudo are told apart.
        connect = self.connect
        with (
            self.turns.turn() as alive,
            closing(connect(replace(host, become=False), route)) as remote,
        ):
            trial = _login(remote, blank, budget)
            if trial.reason is not None:
                return Visit(trial)
            alive()
            return Visit(trial, tuple(then(Asking(self, host, remote, budget))))

    def _knock(self, host: Host, way: Route, budget: Budget) -> UnreachableReason | None:
        if host.transport is Transport.LOCAL:
            return None
        if budget.left_s <= 0.0:
            return UnreachableReason.SILENT
        # What somebody hears who has less time than usual is no answer for others.
        knock = self.knock if budget.left_s < KILL_DEADLINE_S else self._doors.knock
        return budget.charge(lambda left_s: knock(way, left_s), KILL_DEADLINE_S)[0]


def _login(remote: Remote, blank: login.LoginTrial, budget: Budget) -> login.LoginTrial:
    """Login and `sudo -n`, timed."""
    first, login_s = budget.run(remote, ("true",), KILL_DEADLINE_S)
    if not isinstance(first, Completed):
        return replace(blank, reason=_reason(first))
    second, took_s = budget.run(remote, ("true",), KILL_DEADLINE_S)
    command_s = took_s if isinstance(second, Completed) else None
    known = replace(blank, login_s=login_s, command_s=command_s, noise_bytes=first.noise_bytes)
    return _sudo(remote, known, budget) if blank.become else known


def _sudo(remote: Remote, known: login.LoginTrial, budget: Budget) -> login.LoginTrial:
    outcome, took_s = budget.run(remote, (*SUDO, "true"), KILL_DEADLINE_S)
    if isinstance(outcome, Completed) and outcome.returncode == 0:
        return replace(known, sudo_s=took_s)
    refused = isinstance(outcome, Completed)
    return replace(known, reason=UnreachableReason.SUDO.value if refused else _reason(outcome))


@dataclass(frozen=True, slots=True)
class Asking:
    """A host that has let us in: `remote` is logged in as the user, and commands run as root."""

    inspector: Inspector
    host: Host
    remote: Remote
    budget: Budget

    def scripts(self) -> Iterator[Finding]:
        """The clock alone, for its round trip counts; everything else in one session."""
        wants = self.inspector.wants
        if wants(clock.NAME):
            yield from judge(clock, self._answer(clock.argv(self.host)))
        if wants(guard_trip.NAME):
            yield from self._guard()
        rest = [one for one in CHECKS if one is not clock and wants(one.NAME)]
        asked = [*(one.argv(self.host) for one in rest), *self._further()]
        if asked:
            answer = self._answer(joined(asked), SCRIPTS_DEADLINE_S)
            yield from (finding for one in rest for finding in judge(one, answer))
            yield from self._judge_further(answer)

    def _guard(self) -> tuple[Finding, ...]:
        """Start a guard as a run does, and end it again."""
        host, orders = self.host.name, b"1 beat\n2 quit\n"
        outcome, took_s = self._as_root(guard_argv(), SCRIPT_DEADLINE_S, orders)
        if not isinstance(outcome, Completed):
            return guard_trip.judge(host, False, took_s, _reason(outcome))
        said = outcome.stdout.decode("utf-8", "replace").splitlines()
        words = [protocol.parse(line) for line in said]
        wanted = [protocol.Refusal(1, "beat", "not-armed"), protocol.Ack(2, "quit")]
        problem = f"it said: {' | '.join(said)[:60] or 'nothing'} (exit {outcome.returncode})"
        return guard_trip.judge(host, words == wanted, took_s, problem)

    def gate(self, load: sshd.Load) -> Iterator[Finding]:
        """Of a jump host: what its sshd is set to, against `load`, and which machine it is."""
        asked = tuple(self._further())
        if asked:
            answer = self._answer(joined(asked))
            self._kernel(read(blast_radius.NAME, answer))
            if self.inspector.wants(sshd.NAME):
                yield from _judge_sshd(answer, load)

    def _further(self) -> Iterator[tuple[str, ...]]:
        """The scripts whose judgement takes more than the host's answer."""
        if self.inspector.own is not None and self.inspector.wants(blast_radius.NAME):
            yield blast_radius.argv(self.host)
        if self.inspector.wants(sshd.NAME) and self.host.transport is not Transport.LOCAL:
            yield sshd.argv(self.host)

    def _judge_further(self, answer: Answer) -> Iterator[Finding]:
        if self.inspector.own is not None and self.inspector.wants(blast_radius.NAME):
            yield from self._place(answer, self.inspector.own)
        if self.inspector.wants(sshd.NAME) and self.host.transport is not Transport.LOCAL:
            yield from _judge_sshd(answer, sshd.Load(HANDSHAKES, SESSIONS[self.host.transport]))

    def _kernel(self, reading: Reading | str) -> None:
        boot = None if isinstance(reading, str) else reading.facts.one("boot")
        if boot is not None:
            self.inspector._kernels[self.host] = boot

    def _place(self, answer: Answer, own: Own) -> tuple[Finding, ...]:
        reading = read(blast_radius.NAME, answer)
        self._kernel(reading)
        if isinstance(reading, str):
            return (unknown(blast_radius.NAME, answer.host, Level.WARN, reading, "run it again"),)
        disposable = self.inspector.disposable
        return blast_radius.judge_host(reading, self.host.roles, own, disposable=disposable)

    def _answer(self, argv: tuple[str, ...], most_s: float = SCRIPT_DEADLINE_S) -> Answer:
        """What the host said until its end or the deadline, and what was wrong with it."""
        unix_s = self.inspector.unix_s
        sent_unix_s = unix_s()
        outcome, _ = self._as_root(argv, most_s)
        received_unix_s = unix_s()
        said = (
            None if isinstance(outcome, Unreachable) else outcome.stdout.decode("utf-8", "replace")
        )
        problem = "" if isinstance(outcome, Completed) else _reason(outcome)
        return Answer(self.host.name, said, sent_unix_s, received_unix_s, problem)

    def _as_root(
        self, argv: tuple[str, ...], most_s: float, stdin: bytes = b""
    ) -> tuple[Outcome, float]:
        """As a backend does it where the inventory says `become`: what sudo says is no answer."""
        if not self.host.become:
            return self.budget.run(self.remote, argv, most_s, stdin)
        outcome, took_s = self.budget.run(self.remote, begun(self.host, argv), most_s, stdin)
        if isinstance(outcome, Unreachable):
            return outcome, took_s
        own = own_output(outcome.stdout)
        if own is None and isinstance(outcome, Completed):
            detail = last_line(outcome.stderr)
            return Unreachable(self.host.name, UnreachableReason.SUDO, detail), took_s
        return replace(outcome, stdout=own or b""), took_s


Then = Callable[[Asking], Iterator[Finding]]


def _nothing(_: Asking) -> Iterator[Finding]:
    return iter(())


def _judge_sshd(answer: Answer, load: sshd.Load) -> tuple[Finding, ...]:
    reading = read(sshd.NAME, answer)
    if isinstance(reading, str):
        return (unknown(sshd.NAME, answer.host, Level.WARN, reading, "sshd -T as root"),)
    return sshd.judge(reading, load)


def jump_hosts(hosts: Sequence[Host]) -> dict[Host, int]:
    """Each machine that somebody jumps over, as a host of its own, and how many hosts have a route
    over it. It is root there or its user; nobody needs sudo on a jump host."""
    found: dict[Door, Host] = {}
    behind: dict[Door, set[str]] = {}
    for host in hosts:
        for route in host.routes:
            for at, hop in enumerate(route.jumps):
                way = replace(hop, jumps=route.jumps[:at])
                jump = Host(f"jump {hop.address}", (way,), transport=host.transport)
                found.setdefault((hop.address, hop.port), jump)
                behind.setdefault((hop.address, hop.port), set()).add(host.name)
    return {jump: len(behind[door]) for door, jump in found.items()}


def _reason(outcome: Outcome) -> str:
    if isinstance(outcome, Unreachable):
        return outcome.reason.value
    if isinstance(outcome, TimedOut):
        return UnreachableReason.SILENT.value
    return f"exit {outcome.returncode}"
