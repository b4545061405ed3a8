"""Sessions of a paramiko connection: commands, resident channels, streams."""

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass

import paramiko

from stressor.errors import ChannelClosed, RemoteError
from stressor.remote.base import UnreachableReason
from stressor.remote.command import BEGIN, Output
from stressor.remote.deadline import Deadline
from stressor.remote.fault import Fault
from stressor.remote.lines import LineBuffer, encode_line, require_room
from stressor.remote.paramiko_dial import Link
from stressor.remote.paramiko_events import News
from stressor.remote.readable import Readable

_CHUNK_BYTES = 65536
_SENDING_POLL_S = 0.005
_SETTLE_S = 0.2
_TAIL_BYTES = 4096
_NO_STATUS = 255

Broken = (paramiko.SSHException, EOFError, OSError)


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a session said. `returncode` None: the deadline came first."""

    returncode: int | None
    stdout: bytes
    stderr: bytes


class Session:
    """One command on a session channel, fed and drained until its end or the deadline."""

    def __init__(self, channel: paramiko.Channel, deadline: Deadline) -> None:
        self._channel, self._deadline = channel, deadline
        self.out, self.err = Output.empty(), Output.empty()
        self._news = News()
        channel.in_buffer.set_event(self._news)
        channel.in_stderr_buffer.set_event(self._news)

    def execute(self, command: str) -> None:
        """Send the command and wait for sshd's word that it was started; paramiko sets no bound to
        that wait. Raises Fault."""
        transport = self._channel.get_transport()
        try:
            self._channel.exec_command(command)
        except Broken as error:
            lost = not transport.is_active()
            reason = UnreachableReason.LOST if lost else UnreachableReason.PROTOCOL
            said = error or type(error).__name__
            raise Fault(reason, f"sshd did not start the command: {said}") from error

    def finish(self, stdin: bytes) -> Gathered:
        """Feed stdin, drain both outputs, wait for the exit status. Raises Fault LOST."""
        try:
            self._exchange(memoryview(stdin))
            returncode = self._returncode()
        except Broken as error:
            raise Fault(UnreachableReason.LOST, f"the session broke: {error}") from error
        return Gathered(returncode, self.out.raw(), self.err.raw())

    def begins(self) -> bool:
        """Read until BEGIN; False when the session ended or the deadline came before it. Nothing
        behind BEGIN is read, so that the channel's descriptor is readable for what is there."""
        while not self._deadline.passed():
            self._news.take()
            ended = self._ended()
            some = self._drain(chunk=1)
            if self._begun() or (ended and not some):
                break
            self._pause(0 if ended else self._deadline.remaining_s())
        return self._begun()

    def returncode(self) -> int | None:
        """The exit status, waited for until the deadline. Raises Fault LOST."""
        return self._returncode()

    def _exchange(self, unsent: memoryview) -> None:
        self._channel.settimeout(0.0)
        unsent = self._feed(unsent, first=True)
        while not self._deadline.passed():
            self._news.take()
            ended = self._ended()
            if not self._drain() and ended:
                return
            unsent = self._feed(unsent, first=False)
            wait_s = 0 if ended else self._deadline.remaining_s()
            self._pause(min(wait_s, _SENDING_POLL_S) if unsent else wait_s)

    def _feed(self, unsent: memoryview, *, first: bool) -> memoryview:
        if not unsent:
            if first:
                self._channel.shutdown_write()
            return unsent
        if self._channel.send_ready():
            # A command that has ended takes no more input, and that is no failure of it.
            with contextlib.suppress(socket.timeout):
                unsent = unsent[self._send(unsent[:_CHUNK_BYTES]) :]
        if not unsent:
            self._channel.shutdown_write()
        return unsent

    def _send(self, piece: memoryview) -> int:
        if self._channel.closed:
            return len(piece)
        return self._channel.send(bytes(piece)) or len(piece)

    def _drain(self, chunk: int = _CHUNK_BYTES) -> bool:
        channel, some = self._channel, False
        while channel.recv_ready() and not (chunk == 1 and self._begun()):
            self.out.add(channel.recv(chunk))
            some = True
        while channel.recv_stderr_ready():
            self.err.add(channel.recv_stderr(_CHUNK_BYTES))
            some = True
        return some

    def _begun(self) -> bool:
        return self.out.kept.endswith(BEGIN)

    def _ended(self) -> bool:
        return self._channel.closed or bool(self._channel.eof_received)

    def _pause(self, wait_s: float) -> None:
        self._news.wait(wait_s)

    def _returncode(self) -> int | None:
        # `recv_exit_status` ignores time-outs (paramiko issue #1815).
        if not self._ended():
            return None
        if not self._channel.status_event.wait(self._deadline.remaining_s()):
            return None
        status: int = self._channel.exit_status
        return status if status >= 0 else self._without_status()

    def _without_status(self) -> int:
        # sshd closes a session without a status when a signal ended the command. A connection that
        # broke looks the same for the moment that paramiko needs to notice.
        transport = self._channel.get_transport()
        transport.join(_SETTLE_S)
        if not transport.is_active():
            raise Fault(UnreachableReason.LOST, "the connection was lost while the command ran")
        return _NO_STATUS


class ParamikoChannel:
    """A resident remote process on a connection of its own.

    A write can block in paramiko although the window is open (full socket, key renewal), so a
    thread does the writing and `send` only hands over.
    """

    def __init__(self, link: Link, channel: paramiko.Channel) -> None:
        self._link, self._channel = link, channel
        self._readable = Readable()
        channel.in_buffer.set_event(self._readable)
        self._buffer, self._tail = LineBuffer(), b""
        self._unsent = bytearray()
        self._news = threading.Condition()
        self._closed, self._broken = False, ""
        channel.settimeout(None)
        threading.Thread(target=self._write, name="stressor-channel", daemon=True).start()

    def fileno(self) -> int:
        """Readable when the peer said something."""
        return self._readable.fileno()

    def send(self, line: str) -> None:
        """Queue one line without blocking. Raises ChannelClosed."""
        data = encode_line(line)
        with self._news:
            self._require_open()
            if self._broken or self._channel.closed or self._channel.eof_received:
                raise ChannelClosed(f"the peer closed the channel{self._last_words()}")
            require_room(len(self._unsent), len(data))
            self._unsent += data
            self._news.notify()

    def receive(self) -> tuple[str, ...]:
        """The complete lines so far. Raises ChannelClosed at EOF."""
        self._require_open()
        try:
            return self._receive()
        except Broken as error:
            raise ChannelClosed(f"the channel broke: {error}") from error

    def close(self) -> None:
        """Close the connection without waiting."""
        with self._news:
            if self._closed:
                return
            self._closed = True
            self._news.notify()
        self._link.close()
        with contextlib.suppress(*Broken):
            self._channel.close()
        self._readable.close()

    def _receive(self) -> tuple[str, ...]:
        channel = self._channel
        ended = channel.closed or channel.eof_received
        while channel.recv_stderr_ready():
            self._tail = (self._tail + channel.recv_stderr(_CHUNK_BYTES))[-_TAIL_BYTES:]
        pieces = []
        while channel.recv_ready():
            pieces.append(channel.recv(_CHUNK_BYTES))
        if ended and not pieces:
            raise ChannelClosed(f"the peer closed the channel{self._last_words()}")
        return self._buffer.feed(b"".join(pieces))

    def _require_open(self) -> None:
        if self._closed:
            raise ChannelClosed("the channel was closed here")

    def _last_words(self) -> str:
        words = self._tail.decode("utf-8", "replace").strip().splitlines()
        return f": {words[-1]}" if words else ""

    def _write(self) -> None:
        try:
            while (piece := self._next_piece()) is not None:
                self._channel.sendall(piece)
                with self._news:
                    del self._unsent[: len(piece)]
        except Broken as error:
            with self._news:
                self._broken = str(error) or type(error).__name__

    def _next_piece(self) -> bytes | None:
        with self._news:
            self._news.wait_for(lambda: self._closed or self._unsent)
            return None if self._closed else bytes(self._unsent[:_CHUNK_BYTES])


class ParamikoStream:
    """A direct-tcpip channel as a Stream. Raises TimeoutError, RemoteError."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel

    def settimeout(self, timeout: float | None) -> None:
        """Seconds that one call may wait."""
        self._channel.settimeout(timeout)

    def sendall(self, data: bytes) -> None:
        """Send everything."""
        self._mapped(lambda: self._channel.sendall(data))

    def recv(self, size: int) -> bytes:
        """Up to `size` bytes, b"" at the end."""
        data: bytes = self._mapped(lambda: self._channel.recv(size))
        if not data and not self._channel.get_transport().is_active():
            raise RemoteError("the connection was lost")
        return data

    def close(self) -> None:
        """Close; safe to repeat."""
        with contextlib.suppress(*Broken):
            self._channel.close()

    def _mapped(self, work: Callable[[], bytes | None]) -> bytes:
        try:
            return work() or b""
        except TimeoutError:
            raise
        except Broken as error:
            raise RemoteError(f"the stream broke: {error}") from error
