"""Hosts by way of paramiko: one connection a host, a connection more for each resident channel."""

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import paramiko

from stressor.model import Host, Route
from stressor.remote.base import (
    Channel,
    Outcome,
    Stream,
    TimedOut,
    Unreachable,
    UnreachableReason,
)
from stressor.remote.command import (
    FilesByRun,
    command_line,
    completed,
    not_begun,
    own_output,
)
from stressor.remote.deadline import Attempt, Deadline, Overrun
from stressor.remote.fault import Fault, hops, require_literals
from stressor.remote.paramiko_channel import ParamikoChannel, ParamikoStream, Session
from stressor.remote.paramiko_dial import Keys, Link, dial, load_keys
from stressor.remote.trust import Trust, required_trust

T = TypeVar("T")

_SESSIONS = 8
"""Sessions side by side on one connection; sshd's MaxSessions is 10 by default (sshd_config(5))."""

_RETRIED = frozenset({UnreachableReason.LOST, UnreachableReason.SILENT})


class _Secrets:
    """What logging in needs from disk, read once: keys, and which host keys to trust."""

    def __init__(self, route: Route) -> None:
        chain = hops(route)
        require_literals(hop.address for hop in chain)
        self.trusts: tuple[Trust, ...] = tuple(required_trust(hop) for hop in chain)
        self.keys: Keys = load_keys(route)


class ParamikoRemote(FilesByRun):
    """A host behind paramiko. Threads may call side by side."""

    def __init__(self, host: Host, route: Route) -> None:
        self._host, self._route = host, route
        self._state = threading.Lock()
        self._dialling = threading.Lock()
        self._sessions = threading.BoundedSemaphore(_SESSIONS)
        self._secrets: _Secrets | None = None
        self._link: Link | None = None

    @property
    def host(self) -> Host:
        return self._host

    def run(self, argv: Sequence[str], *, deadline_s: float, stdin: bytes = b"") -> Outcome:
        """See Remote.run. A command that a signal ended has returncode 255, as ssh says it."""
        command, deadline = command_line(self._host, argv), Deadline.after(deadline_s)
        attempt = Attempt(lambda: self._run(command, stdin, deadline))
        return self._outcome(attempt, deadline)

    def open_channel(
        self, argv: Sequence[str], *, deadline_s: float
    ) -> Channel | Unreachable | TimedOut:
        """See Remote.open_channel. Returns once the process has started."""
        command, deadline = command_line(self._host, argv), Deadline.after(deadline_s)
        link = Link()
        attempt = Attempt(lambda: self._open_channel(command, link, deadline), _discard)
        try:
            return attempt.wait(deadline)
        except Fault as fault:
            link.close()
            return fault.at(self._host)
        except Overrun:
            link.close()
            return TimedOut(self._host.name, deadline.took_s())

    def forward(self, port: int, *, deadline_s: float) -> Stream | Unreachable | TimedOut:
        """See Remote.forward."""
        deadline = Deadline.after(deadline_s)
        attempt = Attempt(lambda: self._forward(port, deadline), ParamikoStream.close)
        try:
            return attempt.wait(deadline)
        except Fault as fault:
            return fault.at(self._host)
        except Overrun:
            self.close()
            return TimedOut(self._host.name, deadline.took_s())

    def close(self) -> None:
        """Close the connection; the next call makes a new one."""
        with self._state:
            link, self._link = self._link, None
        if link is not None:
            link.close()

    def _outcome(self, attempt: Attempt[Outcome], deadline: Deadline) -> Outcome:
        try:
            return attempt.wait(deadline)
        except Fault as fault:
            return fault.at(self._host)
        except Overrun:
            # Somebody stands in a wait that paramiko does not bound: only closing the connection
            # gets them out, and the peer has not read for long enough to call it gone.
            self.close()
            return TimedOut(self._host.name, deadline.took_s())

    def _run(self, command: str, stdin: bytes, deadline: Deadline) -> Outcome:
        if not self._sessions.acquire(timeout=deadline.remaining_s()):
            raise Fault(UnreachableReason.SILENT, f"{_SESSIONS} sessions are still busy")
        try:
            channel = self._opened(Link.session, deadline)
            try:
                return self._converse(channel, command, stdin, deadline)
            finally:
                channel.close()
        finally:
            self._sessions.release()

    def _converse(
        self, channel: paramiko.Channel, command: str, stdin: bytes, deadline: Deadline
    ) -> Outcome:
        session = Session(channel, deadline)
        session.execute(command)
        said = session.finish(stdin)
        took_s = deadline.took_s()
        if said.returncode is None:
            return TimedOut(self._host.name, took_s, own_output(said.stdout) or b"")
        return completed(self._host, said.returncode, said.stdout, said.stderr, took_s)

    def _open_channel(
        self, command: str, link: Link, deadline: Deadline
    ) -> ParamikoChannel | TimedOut:
        self._dial(link, deadline)
        channel = link.session(deadline.remaining_s(), armed=True)
        session = Session(channel, deadline)
        session.execute(command)
        if session.begins():
            return ParamikoChannel(link, channel)
        returncode = session.returncode()
        link.close()
        channel.close()
        if returncode is None:
            return TimedOut(self._host.name, deadline.took_s())
        raise not_begun(self._host, returncode, session.err.raw())

    def _forward(self, port: int, deadline: Deadline) -> ParamikoStream:
        def direct(link: Link, timeout_s: float) -> paramiko.Channel:
            return link.direct("127.0.0.1", port, timeout_s)

        return ParamikoStream(self._opened(direct, deadline))

    def _opened(
        self, open_: Callable[[Link, float], paramiko.Channel], deadline: Deadline
    ) -> paramiko.Channel:
        """A channel of the shared connection. An old connection that is gone, or does not answer
        in half of the time, is replaced once: nothing has been asked of the host by then."""
        link, fresh = self._linked(deadline)
        remaining_s = deadline.remaining_s()
        try:
            return open_(link, remaining_s if fresh else remaining_s / 2)
        except Fault as fault:
            if fault.reason not in _RETRIED:
                raise
            self._drop(link)
            if fresh:
                raise
        link, _ = self._linked(deadline)
        return open_(link, deadline.remaining_s())

    def _linked(self, deadline: Deadline) -> tuple[Link, bool]:
        if not self._dialling.acquire(timeout=deadline.remaining_s()):
            raise Fault(UnreachableReason.SILENT, "another call is still logging in")
        try:
            link = self._link
            if link is not None and link.alive():
                return link, False
            return self._relink(deadline), True
        finally:
            self._dialling.release()

    def _relink(self, deadline: Deadline) -> Link:
        self.close()
        link = Link()
        with self._state:
            self._link = link
        try:
            self._dial(link, deadline)
        except Fault:
            self._drop(link)
            raise
        return link

    def _drop(self, link: Link) -> None:
        with self._state:
            if self._link is link:
                self._link = None
        link.close()

    def _dial(self, link: Link, deadline: Deadline) -> None:
        with self._state:
            secrets = self._secrets
        if secrets is None:
            secrets = _Secrets(self._route)
            with self._state:
                self._secrets = secrets
        dial(self._route, link, secrets.trusts, secrets.keys, deadline)


def _discard(late: ParamikoChannel | TimedOut) -> None:
    if isinstance(late, ParamikoChannel):
        late.close()
