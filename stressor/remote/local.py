"""The machine that stressor itself runs on, behind the same seam as the others."""

import socket
from collections.abc import Sequence

from stressor.model import Host
from stressor.remote.base import (
    Channel,
    Outcome,
    Stream,
    TimedOut,
    Unreachable,
    UnreachableReason,
)
from stressor.remote.child import PipeChannel, await_begin, end, run_child, start
from stressor.remote.command import FilesByRun, begun, completed, not_begun, own_output
from stressor.remote.deadline import Deadline
from stressor.remote.streams import SocketStream


class LocalRemote(FilesByRun):
    """Commands as children of this process. On a time-out the child's process group is killed;
    `close` has nothing to do."""

    def __init__(self, host: Host) -> None:
        self._host = host

    @property
    def host(self) -> Host:
        return self._host

    def run(self, argv: Sequence[str], *, deadline_s: float, stdin: bytes = b"") -> Outcome:
        """See Remote.run. A missing program is returncode 127, as a shell has it."""
        deadline = Deadline.after(deadline_s)
        try:
            ended = run_child(begun(self._host, argv), stdin, deadline)
        except OSError as error:
            return self._unstartable(error)
        if ended.returncode is None:
            return TimedOut(self._host.name, deadline.took_s(), own_output(ended.stdout) or b"")
        took_s = deadline.took_s()
        return completed(self._host, ended.returncode, ended.stdout, ended.stderr, took_s)

    def open_channel(
        self, argv: Sequence[str], *, deadline_s: float
    ) -> Channel | Unreachable | TimedOut:
        """See Remote.open_channel. Closing ends the process's stdin and does not kill it."""
        deadline = Deadline.after(deadline_s)
        try:
            child = start(begun(self._host, argv))
        except OSError as error:
            return self._unstartable(error)
        first = await_begin(child, deadline)
        if first.begun:
            return PipeChannel(child, kill=False)
        end(child)
        if not first.exited:
            return TimedOut(self._host.name, deadline.took_s())
        return not_begun(self._host, child.returncode or 0, first.stderr).at(self._host)

    def forward(self, port: int, *, deadline_s: float) -> Stream | Unreachable | TimedOut:
        """See Remote.forward: a plain connection to loopback."""
        try:
            raw = socket.create_connection(("127.0.0.1", port), timeout=deadline_s)
        except TimeoutError:
            return self._unreachable(UnreachableReason.SILENT, f"port {port} does not answer")
        except OSError as error:
            return self._unreachable(UnreachableReason.REFUSED, f"port {port}: {error.strerror}")
        return SocketStream(raw, lambda: None)

    def close(self) -> None:
        """Nothing is kept open."""

    def _unstartable(self, error: OSError) -> Unreachable:
        reason = UnreachableReason.SUDO if self._host.become else UnreachableReason.PROTOCOL
        return self._unreachable(reason, f"cannot start {error.filename}: {error.strerror}")

    def _unreachable(self, reason: UnreachableReason, detail: str) -> Unreachable:
        return Unreachable(self._host.name, reason, detail)
