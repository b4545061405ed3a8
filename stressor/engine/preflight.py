"""Preflight's I/O: every route tried and timed, every host asked, all hosts at once.

Findings come as hosts answer, so that a dead one delays nobody's line. What is found is judged in
`checks`; nothing here decides.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field, replace

from stressor.checks import CHECKS, blast_radius, clock, guard_trip, login, sshd
from stressor.checks.base import Answer, Finding, Level, joined, judge, read, unknown
from stressor.checks.blast_radius import Own
from stressor.engine.abort import KILL_DEADLINE_S
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
from stressor.remote.knock import knock

SCRIPT_DEADLINE_S = 8.0
"""For one script."""
SCRIPTS_DEADLINE_S = 20.0
"""For all of them in one session: each bounds what may hang in it by a few seconds."""
HANDSHAKES = 4
"""Logins that one host may get at the same moment: its guard, the rehearsal, a scrape, a kill."""
SESSIONS = {Transport.OPENSSH: 8, Transport.PARAMIKO: 4, Transport.LOCAL: 1}
"""Sessions side by side on one connection (scrapes, and a kill beside them)."""
AT_ONCE = 256
"""Threads, one a host. Fewer, and dead hosts that take their whole deadline would keep living ones
waiting behind them."""
WORKING = 8
"""Hosts that have answered a knock and are logged in to at the same time. A handshake costs tens of
milliseconds of processor here: fifty at once on two cores took longer than a login may, and
sixteen long enough to be called slow."""
JUMP_AT_ONCE = 32
"""Logins through one jump host that stand at its door together, at most."""

Connect = Callable[[Host, int], Remote]
Clock = Callable[[], float]
Knock = Callable[[Route, float], UnreachableReason | None]


@dataclass(frozen=True, slots=True)
class Inspector:
    """Asks hosts. `only`: the names of the checks to run; empty for all. `own` is this machine, to
    be told from the hosts (None: it is not asked), and `disposable` says that it may be one of
    them. `unix_s` is the wall clock, to which the hosts' clocks are compared; `now_s` measures
    spans."""

    connect: Connect
    only: frozenset[str] = frozenset()
    own: Own | None = None
    disposable: bool = False
    knock: Knock = knock
    unix_s: Clock = time.time
    now_s: Clock = time.monotonic
    _working: threading.Semaphore = field(
        default_factory=lambda: threading.BoundedSemaphore(WORKING), init=False
    )

    def inspect(self, hosts: Sequence[Host]) -> Iterator[tuple[Host, tuple[Finding, ...]]]:
        """Each host with its findings, in the order in which they were ready; the jump hosts of
        their routes among them."""
        with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="preflight") as pool:
            asked = {pool.submit(self.host, host): host for host in hosts}
            for jump, behind in jump_hosts(hosts).items():
                asked[pool.submit(self.jump, jump, behind)] = jump
            for done in as_completed(asked):
                yield asked[done], done.result()

    def jump(self, host: Host, behind: int) -> tuple[Finding, ...]:
        """The findings of a jump host with so many routes behind it: its own login, and whether
        its sshd lets them through. Nothing else of it matters."""
        trial = self._trial(host, 0)
        found = list(login.judge_login(trial))
        if trial.reason is None and self._wanted(sshd.NAME):
            handshakes = min(JUMP_AT_ONCE, behind * HANDSHAKES)
            load = sshd.Load(handshakes, handshakes, is_jump=True)
            with self._working, closing(self.connect(host, 0)) as remote:
                found += self._judge_sshd(self._answer(remote, sshd.argv(host)), load)
        return tuple(f for f in found if self._wanted(f.check) or f.level is Level.FAIL)

    def host(self, host: Host) -> tuple[Finding, ...]:
        """All findings of one host. One that no route reaches gets no answer on anything else."""
        trials = tuple(self._trial(host, route) for route in range(len(host.routes)))
        found = [finding for trial in trials for finding in login.judge_login(trial)]
        if host.transport is Transport.LOCAL:
            found = [Finding(login.NAME, host.name, Level.SKIP, "this machine: no login")]
        reached = next((at for at, trial in enumerate(trials) if trial.reason is None), None)
        if reached is None:
            text = "no other check was made: the host was not reached"
            kept = [*found, Finding("host", host.name, Level.SKIP, text)]
        else:
            kept = [*found, *self._scripts(host, reached)]
        return tuple(f for f in kept if self._wanted(f.check) or f.level is Level.FAIL)

    def _wanted(self, name: str) -> bool:
        return not self.only or name in self.only

    def _trial(self, host: Host, route: int) -> login.LoginTrial:
        """Login and `sudo -n`, timed. The login is made as the user, so that the two are told
        apart."""
        way = host.routes[route]
        blank = login.LoginTrial(
            host.name, f"{way.user}@{way.address}:{way.port}", become=host.become
        )
        silent = None if host.transport is Transport.LOCAL else self.knock(way, KILL_DEADLINE_S)
        if silent is not None:
            return replace(blank, reason=silent.value)
        with self._working, closing(self.connect(replace(host, become=False), route)) as remote:
            return self._login(remote, blank)

    def _login(self, remote: Remote, blank: login.LoginTrial) -> login.LoginTrial:
        first, login_s = self._timed(remote, ("true",))
        if not isinstance(first, Completed):
            return replace(blank, reason=_reason(first))
        _, command_s = self._timed(remote, ("true",))
        known = replace(blank, login_s=login_s, command_s=command_s, noise_bytes=first.noise_bytes)
        return self._sudo(remote, known) if blank.become else known

    def _sudo(self, remote: Remote, known: login.LoginTrial) -> login.LoginTrial:
        outcome, took_s = self._timed(remote, ("sudo", "-n", "--", "true"))
        if isinstance(outcome, Completed) and outcome.returncode == 0:
            return replace(known, sudo_s=took_s)
        refused = isinstance(outcome, Completed)
        return replace(known, reason=UnreachableReason.SUDO.value if refused else _reason(outcome))

    def _timed(self, remote: Remote, argv: tuple[str, ...]) -> tuple[Outcome, float]:
        began_s = self.now_s()
        outcome = remote.run(argv, deadline_s=KILL_DEADLINE_S)
        return outcome, self.now_s() - began_s

    def _scripts(self, host: Host, route: int) -> Iterator[Finding]:
        """The clock alone, for its round trip counts; everything else in one session."""
        with self._working, closing(self.connect(host, route)) as remote:
            if self._wanted(clock.NAME):
                yield from judge(clock, self._answer(remote, clock.argv(host)))
            if self._wanted(guard_trip.NAME):
                yield from self._guard(remote)
            rest = [one for one in CHECKS if one is not clock and self._wanted(one.NAME)]
            asked = [*(one.argv(host) for one in rest), *self._further(host)]
            if asked:
                answer = self._answer(remote, joined(asked), SCRIPTS_DEADLINE_S)
                yield from (finding for one in rest for finding in judge(one, answer))
                yield from self._judge_further(host, answer)

    def _guard(self, remote: Remote) -> tuple[Finding, ...]:
        """Start a guard as a run does, and end it again."""
        began_s = self.now_s()
        outcome = remote.run(guard_argv(), deadline_s=SCRIPT_DEADLINE_S, stdin=b"1 beat\n2 quit\n")
        took_s = self.now_s() - began_s
        if not isinstance(outcome, Completed):
            return guard_trip.judge(remote.host.name, False, took_s, _reason(outcome))
        said = outcome.stdout.decode("utf-8", "replace").splitlines()
        words = [protocol.parse(line) for line in said]
        wanted = [protocol.Refusal(1, "beat", "not-armed"), protocol.Ack(2, "quit")]
        problem = f"it said: {' | '.join(said)[:60] or 'nothing'} (exit {outcome.returncode})"
        return guard_trip.judge(remote.host.name, words == wanted, took_s, problem)

    def _further(self, host: Host) -> Iterator[tuple[str, ...]]:
        """The scripts whose judgement takes more than the host's answer."""
        if self.own is not None and self._wanted(blast_radius.NAME):
            yield blast_radius.argv(host)
        if self._wanted(sshd.NAME) and host.transport is not Transport.LOCAL:
            yield sshd.argv(host)

    def _judge_further(self, host: Host, answer: Answer) -> Iterator[Finding]:
        if self.own is not None and self._wanted(blast_radius.NAME):
            yield from self._place(host, answer, self.own)
        if self._wanted(sshd.NAME) and host.transport is not Transport.LOCAL:
            load = sshd.Load(HANDSHAKES, SESSIONS[host.transport])
            yield from self._judge_sshd(answer, load)

    def _place(self, host: Host, answer: Answer, own: Own) -> tuple[Finding, ...]:
        reading = read(blast_radius.NAME, answer)
        if isinstance(reading, str):
            return (unknown(blast_radius.NAME, host.name, Level.WARN, reading, "run it again"),)
        return blast_radius.judge_host(reading, host.roles, own, disposable=self.disposable)

    def _judge_sshd(self, answer: Answer, load: sshd.Load) -> tuple[Finding, ...]:
        reading = read(sshd.NAME, answer)
        if isinstance(reading, str):
            return (unknown(sshd.NAME, answer.host, Level.WARN, reading, "sshd -T as root"),)
        return sshd.judge(reading, load)

    def _answer(
        self, remote: Remote, argv: tuple[str, ...], deadline_s: float = SCRIPT_DEADLINE_S
    ) -> Answer:
        """What the host said until its end or the deadline, and what was wrong with it."""
        sent_unix_s = self.unix_s()
        outcome = remote.run(argv, deadline_s=deadline_s)
        received_unix_s = self.unix_s()
        said = (
            None if isinstance(outcome, Unreachable) else outcome.stdout.decode("utf-8", "replace")
        )
        problem = "" if isinstance(outcome, Completed) else _reason(outcome)
        return Answer(remote.host.name, said, sent_unix_s, received_unix_s, problem)


def jump_hosts(hosts: Sequence[Host]) -> dict[Host, int]:
    """Each machine that somebody jumps over, as a host of its own, and how many routes lead over
    it. It is root there or its user; nobody needs sudo on a jump host."""
    found: dict[tuple[str, int], tuple[Host, int]] = {}
    for host in hosts:
        for route in host.routes:
            for at, hop in enumerate(route.jumps):
                way = replace(hop, jumps=route.jumps[:at])
                jump = Host(f"jump {hop.address}", (way,), transport=host.transport)
                known, behind = found.get((hop.address, hop.port), (jump, 0))
                found[hop.address, hop.port] = (known, behind + 1)
    return dict(found.values())


def _reason(outcome: Outcome) -> str:
    if isinstance(outcome, Unreachable):
        return outcome.reason.value
    if isinstance(outcome, TimedOut):
        return UnreachableReason.SILENT.value
    return f"exit {outcome.returncode}"
