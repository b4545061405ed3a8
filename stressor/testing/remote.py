"""A host made of values, behind the Remote seam, for tests of what stands on it."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from stressor.errors import ChannelClosed
from stressor.model import Host
from stressor.remote.base import (
    Channel,
    Completed,
    Outcome,
    Stream,
    TimedOut,
    Unreachable,
    UnreachableReason,
)
from stressor.remote.lines import encode_line
from stressor.remote.readable import Readable

Command = Callable[[tuple[str, ...], bytes], Outcome]
Answer = Callable[[str], Sequence[str]]
Serve = Callable[[bytes], bytes]
Scripted = TypeVar("Scripted")


class FakeFault(StrEnum):
    """What is wrong with a fake host. LYING: every command ends with 0, says and does nothing."""

    NONE = "none"
    UNREACHABLE = "unreachable"
    KEY_CHANGED = "key_changed"
    FROZEN = "frozen"
    LYING = "lying"


@dataclass(slots=True)
class FakeHost:
    """The machine: its state is plain data that a test sets and reads.

    `commands` maps the beginning of an argv to an outcome or to a function of (argv, stdin); the
    longest beginning wins, and what matches none ends with 127. `channels` maps the beginning of
    an argv to a function from a received line to the lines that it answers. `ports` maps a port of
    the loopback to a function from request to answer; `forwards` False forbids to reach them.
    `calls` records every argv that arrived, put and get included.
    """

    host: Host
    commands: Mapping[tuple[str, ...], Outcome | Command] = field(default_factory=dict)
    channels: Mapping[tuple[str, ...], Answer] = field(default_factory=dict)
    ports: Mapping[int, Serve] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    modes: dict[str, int] = field(default_factory=dict)
    forwards: bool = True
    fault: FakeFault = FakeFault.NONE
    calls: list[tuple[str, ...]] = field(default_factory=list)
    opened: list["FakeChannel"] = field(default_factory=list)

    def drop_channels(self) -> None:
        """Every open channel ends, as when the session's sshd dies."""
        for channel in self.opened:
            channel.end()


class FakeRemote:
    """A Remote to a FakeHost. No call takes time: a frozen host times out at once, and the outcome
    says the deadline."""

    def __init__(self, machine: FakeHost) -> None:
        self._machine = machine

    @property
    def host(self) -> Host:
        return self._machine.host

    def run(self, argv: Sequence[str], *, deadline_s: float, stdin: bytes = b"") -> Outcome:
        """The scripted outcome."""
        if not argv:
            raise ValueError("an empty argv names no command")
        self._machine.calls.append(tuple(argv))
        fault = self._fault(deadline_s)
        return fault or self._scripted(tuple(argv), stdin)

    def put(self, data: bytes, path: str, *, mode: int, deadline_s: float) -> Outcome:
        """Sets `files` and `modes`."""
        self._machine.calls.append(("put", path))
        fault = self._fault(deadline_s)
        if fault is None:
            self._machine.files[path], self._machine.modes[path] = data, mode
        return fault or Completed(0, b"", b"", 0.0)

    def get(self, path: str, *, deadline_s: float) -> Outcome:
        """Reads `files`."""
        self._machine.calls.append(("get", path))
        fault = self._fault(deadline_s)
        if fault is not None:
            return fault
        if path not in self._machine.files:
            return Completed(1, b"", f"cat: {path}: No such file or directory\n".encode(), 0.0)
        return Completed(0, self._machine.files[path], b"", 0.0)

    def open_channel(
        self, argv: Sequence[str], *, deadline_s: float
    ) -> Channel | Unreachable | TimedOut:
        """A channel that answers by script; PROTOCOL when none is scripted."""
        self._machine.calls.append(tuple(argv))
        fault = self._fault(deadline_s)
        if isinstance(fault, Unreachable | TimedOut):
            return fault
        answer = _longest(self._machine.channels, tuple(argv))
        if answer is None:
            return self._unreachable(UnreachableReason.PROTOCOL, f"nothing answers to {argv[0]}")
        channel = FakeChannel(self._machine, answer)
        self._machine.opened.append(channel)
        return channel

    def forward(self, port: int, *, deadline_s: float) -> Stream | Unreachable | TimedOut:
        """A stream to a scripted port."""
        fault = self._fault(deadline_s)
        if isinstance(fault, Unreachable | TimedOut):
            return fault
        if not self._machine.forwards:
            return self._unreachable(UnreachableReason.FORBIDDEN, "forwarding is forbidden")
        if port not in self._machine.ports:
            return self._unreachable(UnreachableReason.REFUSED, f"nothing listens on {port}")
        return FakeStream(self._machine.ports[port])

    def close(self) -> None:
        """Nothing is kept open."""

    def _fault(self, deadline_s: float) -> Outcome | None:
        match self._machine.fault:
            case FakeFault.NONE:
                return None
            case FakeFault.UNREACHABLE:
                return self._unreachable(UnreachableReason.SILENT, "no answer")
            case FakeFault.KEY_CHANGED:
                return self._unreachable(UnreachableReason.KEY_CHANGED, "shows another key")
            case FakeFault.FROZEN:
                return TimedOut(self.host.name, deadline_s)
            case FakeFault.LYING:
                return Completed(0, b"", b"", 0.0)

    def _scripted(self, argv: tuple[str, ...], stdin: bytes) -> Outcome:
        scripted = _longest(self._machine.commands, argv)
        if scripted is None:
            return Completed(127, b"", f"{argv[0]}: not found\n".encode(), 0.0)
        if isinstance(scripted, Completed | Unreachable | TimedOut):
            return scripted
        return scripted(argv, stdin)

    def _unreachable(self, reason: UnreachableReason, detail: str) -> Unreachable:
        return Unreachable(self.host.name, reason, detail)


class FakeChannel:
    """A channel whose peer answers by script. With a frozen or unreachable host, sends succeed and
    nothing comes back: just what a real one does."""

    def __init__(self, machine: FakeHost, answer: Answer) -> None:
        self._machine, self._answer = machine, answer
        self._lock = threading.RLock()
        self._readable = Readable()
        self._lines: list[str] = []
        self._ended = self._closed = False
        self.sent: list[str] = []

    def fileno(self) -> int:
        """Readable while lines wait or the channel has ended."""
        return self._readable.fileno()

    def send(self, line: str) -> None:
        """Record the line and queue the answer. Raises ChannelClosed."""
        encode_line(line)
        with self._lock:
            if self._closed or self._ended:
                raise ChannelClosed("the channel is closed")
            self.sent.append(line)
            if self._machine.fault in (FakeFault.NONE, FakeFault.LYING):
                self.say(*self._answer(line))

    def receive(self) -> tuple[str, ...]:
        """The lines that wait. Raises ChannelClosed after the last one."""
        with self._lock:
            lines, self._lines = tuple(self._lines), []
            if self._closed or (self._ended and not lines):
                raise ChannelClosed("the channel is closed")
            if not self._ended:
                self._readable.clear()
            return lines

    def say(self, *lines: str) -> None:
        """The peer says something of its own accord."""
        with self._lock:
            self._lines += lines
            if lines:
                self._readable.set()

    def end(self) -> None:
        """The peer goes away."""
        with self._lock:
            self._ended = True
            self._readable.set()

    def close(self) -> None:
        """Close; safe to repeat."""
        with self._lock:
            self._closed = True
            self._readable.close()


class FakeStream:
    """A stream to a scripted port: each `sendall` is a request, and its answer follows."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._unread = b""

    def settimeout(self, timeout: float | None) -> None:
        """No call takes time."""

    def sendall(self, data: bytes) -> None:
        """Ask."""
        self._unread += self._serve(data)

    def recv(self, size: int) -> bytes:
        """The next bytes of the answer, b"" after them."""
        data, self._unread = self._unread[:size], self._unread[size:]
        return data

    def close(self) -> None:
        """Nothing to close."""


def _longest(table: Mapping[tuple[str, ...], Scripted], argv: tuple[str, ...]) -> Scripted | None:
    fitting = [start for start in table if argv[: len(start)] == start]
    return table[max(fitting, key=len)] if fitting else None
