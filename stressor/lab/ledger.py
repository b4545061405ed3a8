"""`lab.json`: what the lab has started, written before each thing is started.

A thing is entered first and made second, so that `down` finds every process, mount,
namespace, interface and cgroup however `up` ended.  An entry whose thing never came to be is
harmless: taking down something absent succeeds.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from stressor.lab.errors import LabError

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Process:
    """A process that the lab started, told from a later one with its pid by its start time."""

    role: str
    pid: int
    start_time: int
    """Field 22 of /proc/PID/stat: clock ticks after boot."""


@dataclass(frozen=True, slots=True)
class Record:
    """The whole of lab.json."""

    boot_id: str
    phase: str
    """`starting` until the lab was healthy once, then `up`; `down` while it is taken apart."""
    nodes: int = 0
    flavour: str = ""
    processes: tuple[Process, ...] = ()
    namespaces: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    """Interfaces on the controlling side; those inside namespaces end with these."""
    mounts: tuple[str, ...] = ()
    """Mount points in the order in which they were mounted."""
    cgroups: tuple[str, ...] = ()
    """Top folders of the hosts' cgroup trees, in every hierarchy."""
    folders: tuple[str, ...] = ()
    """Folders that `down` deletes after the mounts are gone."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What others may want to read: versions, addresses, image names, paths."""


def boot_id() -> str:
    """Identity of this boot: start times of another boot prove nothing."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_time(pid: int) -> int | None:
    """Start time of `pid` in clock ticks after boot, or None when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def alive(process: Process) -> bool:
    """True while exactly the recorded process runs (a zombie does not run)."""
    return start_time(process.pid) == process.start_time


def write_atomic(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace `path` by `text` so that a reader, or a crash, meets the old or the new whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
    draft.replace(path)


def to_json(record: Record) -> str:
    return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(record)}, indent=1) + "\n"


def from_json(text: str) -> Record:
    """Raises LabError on anything but a record of this schema version."""
    try:
        data = json.loads(text)
        if data.pop("schema_version") != SCHEMA_VERSION:
            raise LabError("lab.json was written by another version of stressor")
        processes = tuple(Process(**entry) for entry in data.pop("processes"))
        lists: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
        }
        return Record(processes=processes, **lists)
    except (ValueError, KeyError, TypeError, AttributeError) as broken:
        raise LabError(f"lab.json cannot be read: {broken}") from broken


class Ledger:
    """The record on disk, safe to enter things into from several threads."""

    def __init__(self, path: Path, record: Record) -> None:
        self._path = path
        self._record = record
        self._turn = threading.Lock()

    @classmethod
    def load(cls, path: Path) -> Ledger | None:
        """The ledger at `path`, or None when no lab was ever started there."""
        try:
            text = path.read_text()
        except FileNotFoundError:
            return None
        return cls(path, from_json(text))

    @property
    def record(self) -> Record:
        return self._record

    def update(self, **changes: Any) -> None:
        with self._turn:
            self._record = replace(self._record, **changes)
            write_atomic(self._path, to_json(self._record))

    def append(self, kind: str, *names: str) -> None:
        """Enter `names` into the list `kind` before they are made; known ones stay in place."""
        with self._turn:
            known: tuple[str, ...] = getattr(self._record, kind)
            new = tuple(name for name in names if name not in known)
            changes: dict[str, Any] = {kind: known + new}
            self._record = replace(self._record, **changes)
            write_atomic(self._path, to_json(self._record))

    def enter(self, process: Process) -> None:
        with self._turn:
            entries = (*self._record.processes, process)
            self._record = replace(self._record, processes=entries)
            write_atomic(self._path, to_json(self._record))

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)

    def process(self, role: str) -> Process | None:
        """The newest process entered as `role`, alive or not."""
        found = [entry for entry in self._record.processes if entry.role == role]
        return found[-1] if found else None


@contextmanager
def exclusive(state: Path) -> Iterator[None]:
    """Hold the lab's lock file: one `up`, `down`, `break` or `heal` at a time.

    Raises LabError when another process holds it.
    """
    import fcntl

    state.mkdir(parents=True, exist_ok=True)
    with (state / "lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as held:
            raise LabError(f"another lab command is running (it holds {state}/lock)") from held
        yield
