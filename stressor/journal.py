"""The journal of one run: append-only JSON lines, readable while the run goes on, valid after
SIGKILL at any byte.

The first line is the header with the one wall-clock anchor; each further line is a record
`{"t": seconds since the anchor, "kind": "event.SampleTaken", "data": {...}}`. Kinds start with
`event.`, `effect.` or `note.`; a reader keeps kinds that it does not know. The file is written by a
thread of its own: nothing that stops load ever waits for a disk (I8).
"""

import json
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path

from stressor.errors import JournalError

SCHEMA = 1
QUEUE_LIMIT = 20_000
"""Records waiting for the disk: a minute of 64 hosts with five signals a second each."""
GATHER_S = 0.1
"""How long records are gathered between two fsyncs when nobody waits for one: at most ten a
second, so that the journal is no load of its own."""


@dataclass(frozen=True, slots=True)
class Header:
    """Who started what, when and why. `anchor_unix_s` and `anchor_boot_s` are the same moment on
    the wall clock and on CLOCK_BOOTTIME of the host `host`; every `t` counts from it."""

    run: str
    cluster: str
    suite: str
    anchor_unix_s: float
    anchor_boot_s: float
    who: str
    host: str
    argv: tuple[str, ...]
    reason: str
    pid: int
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True)
class Record:
    """One line: `t` in seconds since the anchor."""

    t: float
    kind: str
    data: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Journal:
    """A journal as far as it was on disk. `cut`: its last line was torn, and dropped. Without a
    header, the writer died before it did anything."""

    header: Header | None
    records: tuple[Record, ...]
    cut: bool


def encode(value: object) -> object:
    """Records, enums, tuples, sets and mappings as what JSON has; floats to the microsecond, or to
    nine digits below 1. Raises JournalError for NaN, infinity and anything else."""
    if value is None or (isinstance(value, bool | int) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return encode(value.value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return _rounded(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in fields(value)}
    return _encode_many(value)


def kind_of(family: str, value: object) -> str:
    """The kind of a record that holds `value`: `event.Tick` for a Tick of the family `event`."""
    return f"{family}.{type(value).__name__}"


def read(path: Path) -> Journal:
    """The journal at `path`. A torn last line is dropped; any other damage raises JournalError
    that names the line."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise JournalError(f"{path}: cannot be read: {error.strerror}") from error
    return parse(raw, str(path))


def parse(raw: bytes, name: str) -> Journal:
    """`read` on bytes; `name` is what an error calls them."""
    *lines, rest = raw.split(b"\n")
    values = [_line(line, f"{name}:{number}") for number, line in enumerate(lines, 1)]
    if not values:
        return Journal(None, (), cut=True)
    header = _header(values[0], f"{name}:1")
    records = tuple(_record(value, f"{name}:{n}") for n, value in enumerate(values[1:], 2))
    return Journal(header, records, cut=rest != b"")


class JournalWriter:
    """Writes one journal. Thread-safe; the clock gives seconds since the anchor.

    Opening creates the file (mode 0600, never an existing one) and has the header on disk before
    it returns. Raises JournalError when that fails. Later failures of the disk raise nothing: they
    show as `failure`, as an age that grows, and as a `sync` that answers False.
    """

    def __init__(
        self,
        path: Path,
        header: Header,
        *,
        clock: Callable[[], float],
        queue_limit: int = QUEUE_LIMIT,
    ) -> None:
        self.path = path
        self._clock = clock
        self._limit = queue_limit
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._changed = threading.Condition()
        self._appended = self._durable = self._wanted = self._dropped = 0
        self._oldest_in_flight: float | None = None
        self._closing = False
        self._failure: str | None = None
        self._fd = _create(path, _dump({"kind": "header", **_as_dict(header)}))
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Records lost because the queue was full, the disk failed or the journal was closed."""
        return self._dropped

    @property
    def failure(self) -> str | None:
        """Why nothing is written any more, or None."""
        return self._failure

    def append(self, kind: str, t: float, data: object) -> None:
        """Queue one record, without waiting; where that is impossible, count it as dropped. Raises
        JournalError when `data` cannot be encoded or is no record."""
        line = _dump({"t": encode(t), "kind": kind, "data": _as_dict(data)})
        with self._changed:
            if self._closing or self._failure or len(self._waiting) >= self._limit:
                self._dropped += 1
                return
            self._waiting.append((self._clock(), line))
            self._appended += 1
            self._changed.notify_all()

    def oldest_unwritten_age_s(self, now_s: float) -> float:
        """How long the oldest record that is not yet on disk has waited; 0 when all are. `now_s`
        is of the writer's clock. Above 2 s the run must stop (design.md, Beat)."""
        with self._changed:
            oldest = self._oldest_in_flight
            if oldest is None and self._waiting:
                oldest = self._waiting[0][0]
        return 0.0 if oldest is None else max(0.0, now_s - oldest)

    def sync(self, timeout_s: float) -> bool:
        """Wait until everything appended so far is on disk. False: it may not be, for the time
        passed or the disk failed."""
        with self._changed:
            target = self._appended
            self._wanted = max(self._wanted, target)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._durable >= target or self._failure, timeout_s)
            return self._durable >= target

    def close(self, timeout_s: float) -> bool:
        """Write what is left and close the file; safe to repeat. False: something did not reach
        the disk in time; the file is left to the process's end then."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout_s)
        return not self._thread.is_alive() and self._durable == self._appended

    def _run(self) -> None:
        try:
            while batch := self._next_batch():
                _write_all(self._fd, b"".join(batch))
                os.fsync(self._fd)
                with self._changed:
                    self._durable += len(batch)
                    self._oldest_in_flight = None
                    self._changed.notify_all()
        except OSError as error:
            with self._changed:
                self._failure = f"{self.path}: {error.strerror}"
                self._changed.notify_all()
        finally:
            os.close(self._fd)

    def _next_batch(self) -> tuple[bytes, ...]:
        """The records to write next, as soon as there are some; none when closed and done."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            self._changed.wait_for(lambda: self._wanted > self._durable or self._closing, GATHER_S)
            if self._waiting:
                self._oldest_in_flight = self._waiting[0][0]
            batch = tuple(line for _, line in self._waiting)
            self._waiting.clear()
            return batch


def _rounded(value: float) -> float:
    if not math.isfinite(value):
        raise JournalError(f"{value} is no value for a journal: unknown is None")
    return round(value, 6) if abs(value) >= 1 else float(f"{value:.9g}")


def _encode_many(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): encode(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, frozenset | set):
        return sorted((encode(item) for item in value), key=str)
    raise JournalError(f"a {type(value).__name__} has no place in a journal")


def _as_dict(data: object) -> dict[str, object]:
    encoded = encode(data)
    if not isinstance(encoded, dict):
        raise JournalError(f"a record is a mapping of names to values, not {encoded!r}")
    return encoded


def _dump(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def _create(path: Path, header: bytes) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, flags, 0o600)
        _write_all(fd, header)
        os.fsync(fd)
        _sync_folder(path.parent)
    except OSError as error:
        raise JournalError(f"{path}: cannot be written: {error.strerror}") from error
    return fd


def _sync_folder(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _line(line: bytes, where: str) -> dict[str, object]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise JournalError(f"{where}: damaged: not JSON") from error
    if not isinstance(value, dict):
        raise JournalError(f"{where}: damaged: not a record")
    return value


def _header(value: dict[str, object], where: str) -> Header:
    schema = value.get("schema")
    if value.pop("kind", None) != "header" or not isinstance(schema, int):
        raise JournalError(f"{where}: damaged: the first line is no journal header")
    if schema > SCHEMA:
        raise JournalError(f"{where}: schema {schema} is newer than this program ({SCHEMA})")
    known = {field.name for field in fields(Header)}
    argv = value.get("argv")
    try:
        kept = {name: inner for name, inner in value.items() if name in known}
        return Header(**{**kept, "argv": tuple(argv)})  # type: ignore[arg-type]
    except TypeError as error:
        raise JournalError(f"{where}: damaged: the header is not complete") from error


def _record(value: dict[str, object], where: str) -> Record:
    t, kind, data = value.get("t"), value.get("kind"), value.get("data")
    if isinstance(t, bool) or not isinstance(t, int | float):
        raise JournalError(f"{where}: damaged: a record without its time")
    if not isinstance(kind, str) or not isinstance(data, dict):
        raise JournalError(f"{where}: damaged: a record without kind or data")
    return Record(float(t), kind, data)
