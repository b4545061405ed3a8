"""Preflight's I/O: every route tried and timed, every host asked, all hosts at once.

Findings come as hosts answer, so that a dead one delays nobody's line. What is found is judged in
`checks`; nothing here decides.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace

from stressor.checks import CHECKS, login, sshd
from stressor.checks.base import Answer, Check, Finding, Level, judge, read, unknown
from stressor.engine.abort import KILL_DEADLINE_S
from stressor.model import Host, Transport
from stressor.remote.base import (
    Completed,
    Outcome,
    Remote,
    TimedOut,
    Unreachable,
    UnreachableReason,
)

SCRIPT_DEADLINE_S = 8.0
HANDSHAKES = 4
"""Logins that one host may get at the same moment: its guard, the rehearsal, a scrape, a kill."""
SESSIONS = {Transport.OPENSSH: 8, Transport.PARAMIKO: 4, Transport.LOCAL: 1}
"""Sessions side by side on one connection (scrapes, and a kill beside them)."""
AT_ONCE = 32

Connect = Callable[[Host, int], Remote]
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Inspector:
    """Asks hosts. `only`: the names of the checks to run; empty for all. `unix_s` is the wall
    clock, to which the hosts' clocks are compared; `now_s` measures spans."""

    connect: Connect
    only: frozenset[str] = frozenset()
    unix_s: Clock = time.time
    now_s: Clock = time.monotonic

    def inspect(self, hosts: Sequence[Host]) -> Iterator[tuple[Host, tuple[Finding, ...]]]:
        """Each host with its findings, in the order in which they were ready."""
        with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="preflight") as pool:
            asked = {pool.submit(self.host, host): host for host in hosts}
            for done in as_completed(asked):
                yield asked[done], done.result()

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
        remote = self.connect(replace(host, become=False), route)
        try:
            first, login_s = self._timed(remote, ("true",))
            if not isinstance(first, Completed):
                return replace(blank, reason=_reason(first))
            _, command_s = self._timed(remote, ("true",))
            known = replace(
                blank, login_s=login_s, command_s=command_s, noise_bytes=first.noise_bytes
            )
            return self._sudo(remote, known) if host.become else known
        finally:
            remote.close()

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
        remote = self.connect(host, route)
        try:
            for check in CHECKS:
                if self._wanted(check.NAME):
                    yield from self._script(remote, check)
            if self._wanted(sshd.NAME) and host.transport is not Transport.LOCAL:
                yield from self._sshd(remote)
        finally:
            remote.close()

    def _script(self, remote: Remote, check: Check) -> tuple[Finding, ...]:
        return judge(check, self._answer(remote, check.argv(remote.host)))

    def _sshd(self, remote: Remote) -> tuple[Finding, ...]:
        host = remote.host
        reading = read(sshd.NAME, self._answer(remote, sshd.argv(host)))
        if isinstance(reading, str):
            return (unknown(sshd.NAME, host.name, Level.WARN, reading, "sshd -T as root"),)
        return sshd.judge(reading, sshd.Load(HANDSHAKES, SESSIONS[host.transport]))

    def _answer(self, remote: Remote, argv: tuple[str, ...]) -> Answer:
        sent_unix_s = self.unix_s()
        outcome = remote.run(argv, deadline_s=SCRIPT_DEADLINE_S)
        received_unix_s = self.unix_s()
        if isinstance(outcome, Completed):
            text, problem = outcome.stdout.decode("utf-8", "replace"), ""
        else:
            text, problem = None, _reason(outcome)
        return Answer(remote.host.name, text, sent_unix_s, received_unix_s, problem)


def _reason(outcome: Outcome) -> str:
    if isinstance(outcome, Unreachable):
        return outcome.reason.value
    if isinstance(outcome, TimedOut):
        return UnreachableReason.SILENT.value
    return f"exit {outcome.returncode}"
