"""The log: what a verb did, as key=value lines for people and grep, on stderr and in a file.

The journal is the record of a run; nothing is decided by a line here, and a log that cannot be
written stops nothing: lines are lost, counted, and the loss is said. structlog is imported by
`start`, because the verbs of an emergency log nothing and must start at once.
"""

import contextlib
import os
import queue
import sys
import threading
from collections.abc import Iterator, MutableMapping
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TextIO

from stressor.errors import ConfigError

LINES_HELD = 10_000
"""Lines that wait for the file at most, some megabytes; a disk that stands still costs lines."""
CLOSE_S = 2.0
"""How long the end of a verb waits for lines that are not on disk yet."""
_ORDER = ("timestamp", "level", "event", "run", "phase", "node")


class Level(StrEnum):
    """How much a line matters, least first."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Log(Protocol):
    """What a caller sees. `bind` gives a log whose every line carries the values; `run`, `phase`
    and `node` have their place at a line's beginning. No method raises."""

    def bind(self, **values: object) -> "Log": ...

    def debug(self, event: str, **values: object) -> object: ...

    def info(self, event: str, **values: object) -> object: ...

    def warning(self, event: str, **values: object) -> object: ...

    def error(self, event: str, **values: object) -> object: ...


class Silent:
    """A log that keeps nothing, for whoever was given none."""

    def bind(self, **values: object) -> "Silent":
        return self

    def debug(self, event: str, **values: object) -> None: ...

    def info(self, event: str, **values: object) -> None: ...

    def warning(self, event: str, **values: object) -> None: ...

    def error(self, event: str, **values: object) -> None: ...


@contextlib.contextmanager
def start(level: Level, file: Path | None = None, stderr: TextIO | None = None) -> Iterator[Log]:
    """A log while the block runs. `stderr` (None: no screen) gets lines of `level` and above; the
    file those and everything from INFO up, appended, mode 0600 where it is new.

    Raises ConfigError when the file cannot be opened, and nothing afterwards.
    """
    import structlog

    sinks: list[tuple[int, _Screen | _File]] = []
    if stderr is not None:
        sinks.append((_rank(level), _Screen(stderr)))
    kept = None if file is None else _File(_open(file))
    if kept is not None:
        sinks.append((min(_rank(level), _rank(Level.INFO)), kept))
    processors = structlog.processors
    try:
        yield structlog.wrap_logger(
            _Tee(tuple(sinks)),
            processors=[
                processors.add_log_level,
                processors.TimeStamper(fmt="iso", utc=True),
                _plain,
                processors.LogfmtRenderer(key_order=_ORDER, drop_missing=True, bool_as_flag=False),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(_least(sinks)),
            context_class=dict,
        )
    finally:
        if kept is not None and file is not None:
            _end(kept, file)


def _rank(level: Level) -> int:
    return 10 * (tuple(Level).index(level) + 1)


def _least(sinks: "list[tuple[int, _Screen | _File]]") -> int:
    """The level below which no line is made; where nobody would read it, CRITICAL, which no
    method has."""
    return min((rank for rank, _ in sinks), default=50)


def _open(path: Path) -> int:
    """Without waiting: a pipe that nobody reads is an error, not a halt."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        return os.open(path, flags, 0o600)
    except OSError as error:
        raise ConfigError((f"{path}: the log cannot be written: {error.strerror}",)) from error


def _end(kept: "_File", path: Path) -> None:
    lost = kept.close(CLOSE_S)
    if lost and sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(f"stressor: {path}: {lost} log lines were lost", file=sys.stderr)


def _plain(_logger: object, _method: str, values: MutableMapping[str, object]) -> dict[str, object]:
    """What hosts and tools said is hostile until it went through here: one line of printable ASCII.
    Unknown is `?`, never nothing."""
    return {name: _shown(value) for name, value in values.items()}


def _shown(value: object) -> str | int | bool:
    if isinstance(value, int | bool):
        return value
    if value is None:
        return "?"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple | list):
        return ",".join(str(_shown(one)) for one in value)
    flat = str(value).replace("\n", " ").encode("ascii", "backslashreplace").decode("ascii")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in flat)


class _Screen:
    """Lines for a terminal, until it goes away."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._gone = stream, False

    def put(self, line: str) -> None:
        if not self._gone:
            try:
                self._stream.write(line + "\n")
                self._stream.flush()
            except (OSError, ValueError):
                self._gone = True


class _File:
    """A thread writes: who logs never waits for a disk."""

    def __init__(self, fd: int) -> None:
        self._fd, self._lost, self._torn = fd, 0, False
        self._lines: queue.Queue[str | None] = queue.Queue(LINES_HELD)
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def put(self, line: str) -> None:
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._lost += 1

    def close(self, wait_s: float) -> int:
        """Write what is left, for `wait_s` at most; how many lines are not in the file."""
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=wait_s)
        self._thread.join(wait_s)
        if self._thread.is_alive():
            return self._lost + self._lines.qsize()
        os.close(self._fd)
        return self._lost

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                self._append(line)
            except OSError:
                self._lost += 1

    def _append(self, line: str) -> None:
        """A line that was cut by a full disk gets its end before the next one begins."""
        data = ("\n" if self._torn else "").encode() + line.encode() + b"\n"
        while data:
            done = os.write(self._fd, data)
            data = data[done:]
            self._torn = bool(data)


class _Tee:
    """What structlog hands finished lines to, one method a level."""

    def __init__(self, sinks: tuple[tuple[int, _Screen | _File], ...]) -> None:
        self._sinks = sinks

    def debug(self, line: str) -> None:
        self._put(Level.DEBUG, line)

    def info(self, line: str) -> None:
        self._put(Level.INFO, line)

    def warning(self, line: str) -> None:
        self._put(Level.WARNING, line)

    def error(self, line: str) -> None:
        self._put(Level.ERROR, line)

    def _put(self, level: Level, line: str) -> None:
        for least, sink in self._sinks:
            if _rank(level) >= least:
                sink.put(line)
