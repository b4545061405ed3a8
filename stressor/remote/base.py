"""The seam to hosts: a few verbs, every call with a deadline, every outcome a value.

Three backends (paramiko, the system's OpenSSH, local) and `testing.FakeRemote` pass one contract
suite (tests/contract). An outcome is data and not an exception, because "unreachable" is what an
abort has to count and report, not what should unwind it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from stressor.model import Host


class UnreachableReason(StrEnum):
    """Why no command could be run: each needs another remedy."""

    REFUSED = "refused"
    NO_ROUTE = "no_route"
    SILENT = "silent"
    AUTH = "auth"
    KEY_CHANGED = "key_changed"
    KEY_UNKNOWN = "key_unknown"
    SUDO = "sudo"
    FORBIDDEN = "forbidden"
    LOST = "lost"
    PROTOCOL = "protocol"


@dataclass(frozen=True, slots=True)
class Completed:
    """The command ran to its end. `returncode` is negative for a signal where that is known.
    `noise_bytes`: what the login wrote before the command began; it is not in `stdout`."""

    returncode: int
    stdout: bytes
    stderr: bytes
    took_s: float
    noise_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The host could not be talked to; nothing is known about what runs there."""

    host: str
    reason: UnreachableReason
    detail: str


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The deadline passed after the command was sent: it may have run, and may run still."""

    host: str
    after_s: float
    stdout: bytes = b""


Outcome = Completed | Unreachable | TimedOut


class Channel(Protocol):
    """A resident remote process spoken to in lines of text, without blocking.

    A send that succeeded proves nothing: with a frozen peer it succeeds for minutes. Only an
    acknowledged line counts.
    """

    def fileno(self) -> int:
        """A descriptor that selects readable when `receive` has something to say."""
        ...

    def send(self, line: str) -> None:
        """Queue one line (no newline in it) without blocking. Raises ChannelClosed."""
        ...

    def receive(self) -> tuple[str, ...]:
        """The complete lines that arrived so far, perhaps none. Raises ChannelClosed at EOF,
        after the last complete line was handed out."""
        ...

    def close(self) -> None:
        """Close without waiting; safe to repeat."""
        ...


class Stream(Protocol):
    """A byte stream to a port on the host's loopback, with the socket verbs http.client needs."""

    def settimeout(self, timeout: float | None) -> None: ...

    def sendall(self, data: bytes) -> None: ...

    def recv(self, size: int) -> bytes: ...

    def close(self) -> None: ...


class Remote(Protocol):
    """One host. Thread-safe for `run`, `put`, `get`, `forward` side by side.

    `argv` is never a shell string; where the transport needs one (ssh does), it is quoted in the
    backend, once. With `host.become`, commands run under `sudo -n --`. `deadline_s` bounds the
    whole call on this side, connecting included, and is enforced by this side's clock.
    """

    @property
    def host(self) -> Host: ...

    def run(self, argv: Sequence[str], *, deadline_s: float, stdin: bytes = b"") -> Outcome:
        """Run `argv`, wait for its end, collect its output (bounded to 8 MiB a stream)."""
        ...

    def put(self, data: bytes, path: str, *, mode: int, deadline_s: float) -> Outcome:
        """Write `data` to `path` with `mode`, through a temporary name beside it."""
        ...

    def get(self, path: str, *, deadline_s: float) -> Outcome:
        """The file's bytes in `stdout`; returncode ≠ 0 with the reason in stderr otherwise."""
        ...

    def open_channel(
        self, argv: Sequence[str], *, deadline_s: float
    ) -> Channel | Unreachable | TimedOut:
        """Start `argv` on a connection of its own and speak to its stdin and stdout in lines."""
        ...

    def forward(self, port: int, *, deadline_s: float) -> Stream | Unreachable | TimedOut:
        """A stream to 127.0.0.1:`port` on the host (direct-tcpip). FORBIDDEN when sshd says no."""
        ...

    def close(self) -> None:
        """Close every connection of this Remote without waiting; safe to repeat."""
        ...
