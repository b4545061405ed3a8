"""Child processes under a deadline, and resident ones spoken to in lines."""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

from stressor.errors import ChannelClosed
from stressor.remote.command import BEGIN, Output
from stressor.remote.deadline import Deadline
from stressor.remote.lines import LineBuffer, encode_line, require_room

Child = subprocess.Popen[bytes]

_CHUNK_BYTES = 65536
_TAIL_BYTES = 4096
_REAP_S = 0.05


@dataclass(frozen=True, slots=True)
class Ended:
    """What a child left: `returncode` None means that it was killed at the deadline."""

    returncode: int | None
    stdout: bytes
    stderr: bytes


def start(argv: Sequence[str]) -> Child:
    """A child in a session of its own (a Ctrl-C at the terminal is not meant for it), its pipes
    set non-blocking. Raises OSError when it cannot be started."""
    pipe = subprocess.PIPE
    child = subprocess.Popen(
        argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, bufsize=0
    )
    for end in _pipes(child):
        os.set_blocking(end.fileno(), False)
    return child


def run_child(argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Ended:
    """Run a child to its end; at the deadline its process group is killed. Raises OSError."""
    child = start(argv)
    try:
        pump = _Pump(child, stdin)
        in_time = pump.run(deadline) and _exited(child, deadline)
        returncode = child.returncode if in_time else None
        return Ended(returncode, pump.out.raw(), pump.err.raw())
    finally:
        end(child)


def end(child: Child) -> None:
    """Kill the child's process group if it lives, close its pipes, never wait for it: a process
    that sits in the kernel ends when it can, and a daemon thread collects it then."""
    for pipe in _pipes(child):
        pipe.close()
    if child.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    reap(child)


def reap(child: Child) -> None:
    """Collect the child's exit status, now or on a daemon thread."""
    try:
        child.wait(_REAP_S)
    except subprocess.TimeoutExpired:
        threading.Thread(target=child.wait, name="stressor-reap", daemon=True).start()


def _pipes(child: Child) -> tuple[IO[bytes], ...]:
    return tuple(pipe for pipe in (child.stdin, child.stdout, child.stderr) if pipe is not None)


def _three(child: Child) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    if child.stdin is None or child.stdout is None or child.stderr is None:
        raise ValueError("the child was not started with three pipes")
    return child.stdin, child.stdout, child.stderr


def _exited(child: Child, deadline: Deadline) -> bool:
    try:
        child.wait(max(_REAP_S, deadline.remaining_s()))
    except subprocess.TimeoutExpired:
        return False
    return True


class _Pump:
    """Feeds stdin and drains both outputs side by side, so that no full pipe stops the child."""

    def __init__(self, child: Child, stdin: bytes) -> None:
        self.out, self.err = Output.empty(), Output.empty()
        self._stdin, stdout, stderr = _three(child)
        self._unsent = memoryview(stdin)
        self._selector = selectors.DefaultSelector()
        self._selector.register(stdout, selectors.EVENT_READ, self.out)
        self._selector.register(stderr, selectors.EVENT_READ, self.err)
        self._selector.register(self._stdin, selectors.EVENT_WRITE, None)

    def run(self, deadline: Deadline) -> bool:
        """True when both outputs ended before the deadline."""
        with self._selector:
            while self._selector.get_map():
                for key, _ in self._selector.select(deadline.remaining_s()):
                    self._turn(key)
                if deadline.passed():
                    return not self._selector.get_map()
        return True

    def _turn(self, key: selectors.SelectorKey) -> None:
        if key.data is None:
            self._feed()
            return
        data = read_some(key.fd)
        if data is None:
            return
        key.data.add(data)
        if not data:
            self._selector.unregister(key.fileobj)

    def _feed(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._stdin.fileno(), self._unsent) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._unsent = self._unsent[:0]
        if not self._unsent:
            self._selector.unregister(self._stdin)
            self._stdin.close()


def read_some(fd: int, size: int = _CHUNK_BYTES) -> bytes | None:
    """What a non-blocking descriptor has now: None = nothing, b"" = end."""
    try:
        return os.read(fd, size)
    except BlockingIOError:
        return None
    except OSError:
        return b""


class PipeChannel:
    """A resident child spoken to in lines over its pipes."""

    def __init__(self, child: Child, *, kill: bool) -> None:
        self._child, self._kill = child, kill
        self._stdin, self._stdout, self._stderr = (pipe.fileno() for pipe in _three(child))
        self._buffer, self._unsent, self._tail = LineBuffer(), b"", b""
        self._lock = threading.Lock()
        self._closed = False

    def fileno(self) -> int:
        """The child's stdout."""
        return self._stdout

    def send(self, line: str) -> None:
        """Queue one line without blocking. Raises ChannelClosed."""
        data = encode_line(line)
        with self._lock:
            self._require_open()
            self._flush()
            require_room(len(self._unsent), len(data))
            self._unsent += data
            self._flush()

    def receive(self) -> tuple[str, ...]:
        """The complete lines so far. Raises ChannelClosed at EOF."""
        with self._lock:
            self._require_open()
            self._flush_quietly()
            self._drain_stderr()
            return self._read_lines()

    def close(self) -> None:
        """Close the pipes; a transport's child is killed, a local process sees its stdin end."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if self._kill:
            end(self._child)
            return
        for pipe in _pipes(self._child):
            pipe.close()
        reap(self._child)

    def _read_lines(self) -> tuple[str, ...]:
        data = read_some(self._stdout)
        if data is None:
            return ()
        if not data:
            self._drain_stderr()
            raise ChannelClosed("the peer closed the channel" + self._last_words())
        return self._buffer.feed(data)

    def _require_open(self) -> None:
        if self._closed:
            raise ChannelClosed("the channel was closed here")

    def _flush(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._stdin, self._unsent) :]
        except BlockingIOError:
            return
        except OSError as error:
            raise ChannelClosed("the peer closed the channel" + self._last_words()) from error

    def _flush_quietly(self) -> None:
        # What the peer said before it went is worth more than that it went: reading says so next.
        with contextlib.suppress(ChannelClosed):
            self._flush()

    def _drain_stderr(self) -> None:
        while data := read_some(self._stderr):
            self._tail = (self._tail + data)[-_TAIL_BYTES:]

    def _last_words(self) -> str:
        words = self._tail.decode("utf-8", "replace").strip().splitlines()
        return f": {words[-1]}" if words else ""


@dataclass(frozen=True, slots=True)
class Begun:
    """How a resident child started: whether BEGIN came, what stderr said, whether it ended."""

    begun: bool
    stderr: bytes
    exited: bool


def await_begin(child: Child, deadline: Deadline) -> Begun:
    """Read a fresh child until BEGIN, its end or the deadline. Nothing behind BEGIN is read, so
    that the channel's descriptor is readable for what is there."""
    _, stdout, stderr = _three(child)
    out, err = Output.empty(), Output.empty()
    with selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ, (out, 1))
        selector.register(stderr, selectors.EVENT_READ, (err, _CHUNK_BYTES))
        while not out.kept.endswith(BEGIN) and selector.get_map() and not deadline.passed():
            _read_ready(selector, deadline.remaining_s())
        exited = not selector.get_map() and _exited(child, deadline)
    return Begun(out.kept.endswith(BEGIN), err.raw(), exited)


def _read_ready(selector: selectors.BaseSelector, timeout_s: float) -> None:
    for key, _ in selector.select(timeout_s):
        output, size = key.data
        data = read_some(key.fd, size)
        if data:
            output.add(data)
        elif data is not None:
            selector.unregister(key.fileobj)


def wait_until(holds: Callable[[], bool], deadline: Deadline, pause: Callable[[], object]) -> bool:
    """Whether `holds` came true before the deadline; `pause` is called between looks."""
    while not holds():
        if deadline.passed():
            return False
        pause()
    return True
