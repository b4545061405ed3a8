"""Real processes that carry the marks of a run, for tests on Linux as root.

Everything started here is bounded by `timeout` and ended by pid. A tree lives in mount namespaces
of its own, as a container does: `env` carries the first mark, `volume` the second.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

FREEZER = Path("/sys/fs/cgroup/freezer")
UNIFIED = Path("/sys/fs/cgroup/unified")
PIDS = Path("/sys/fs/cgroup/pids")
BOUND_S = "60"


def fresh_run() -> str:
    """A run identity that no other test has."""
    return f"t{uuid.uuid4().hex[:10]}"


def state_of(pid: int) -> str:
    """The state letter of a process, "" when there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return text.rpartition(") ")[2].split()[0]


def alive(pid: int) -> bool:
    """Runs still: neither gone nor a zombie."""
    return state_of(pid) not in ("", "Z", "X")


def cmdline(pid: int) -> str:
    """The words of a process, "" for a zombie and for none."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def eventually(true: object, *, within_s: float = 5.0, every_s: float = 0.02) -> bool:
    """Does the callable `true` become true within the time?"""
    assert callable(true)
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if true():
            return True
        time.sleep(every_s)
    return bool(true())


def end(pid: int) -> None:
    """SIGKILL to one pid, gone or not."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@contextmanager
def cgroup(hierarchy: Path, name: str = "") -> Iterator[Path]:
    """A cgroup below the one that this process is in, removed with everything in it afterwards."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    here = "/"
    for line in lines:
        _, controllers, path = line.split(":", 2)
        wanted = "" if hierarchy == UNIFIED else hierarchy.name
        if controllers == wanted:
            here = path
    directory = hierarchy / here.lstrip("/") / (name or f"guardtest-{uuid.uuid4().hex[:8]}")
    directory.mkdir()
    try:
        yield directory
    finally:
        _empty(directory)


def _empty(directory: Path) -> None:
    def gone() -> bool:
        for sub in sorted(directory.rglob("*/"), reverse=True) if directory.exists() else []:
            _remove(sub)
        return _remove(directory)

    eventually(gone, within_s=5)


def _remove(directory: Path) -> bool:
    state = directory / "freezer.state"
    if state.exists():
        state.write_text("THAWED")
    procs = directory / "cgroup.procs"
    for pid in procs.read_text().split() if procs.exists() else []:
        end(int(pid))
    try:
        directory.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


@dataclass
class Tree:
    """A started tree: `leader` is our child; `pids` everything in its session."""

    leader: subprocess.Popen[bytes]
    scratch: Path | None = None
    extra: list[int] = field(default_factory=list)

    @property
    def pids(self) -> list[int]:
        """The living processes of the tree's session."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                text = (entry / "stat").read_text(errors="replace")
            except (FileNotFoundError, ProcessLookupError):
                continue
            fields = text.rpartition(") ")[2].split()
            if int(fields[3]) == self.leader.pid and fields[0] not in ("Z", "X"):
                found.append(int(entry.name))
        return found


SLEEPERS = "for i in $(seq {n}); do timeout 60 sleep 50 & done; wait"


def volume_under(root: Path, run: str) -> Path:
    """A folder with the path shape of an emptyDir volume of `run`."""
    return root / f"pods/0-1-2/volumes/kubernetes.io~empty-dir/stressor-{run}"


@contextmanager
def tree(
    *,
    env_run: str | None = None,
    volume_run: str | None = None,
    own_namespace: bool = True,
    cgroups: Sequence[Path] = (),
    script: str = "",
    count: int = 3,
    env: Mapping[str, str] | None = None,
) -> Iterator[Tree]:
    """Start sleepers (or `script`, in sh; $SCRATCH is the volume) with the marks asked for."""
    scratch = Path(tempfile.mkdtemp(prefix="guardtest-"))
    variables = {"PATH": os.environ["PATH"], "SCRATCH": str(scratch / "scratch"), **(env or {})}
    if env_run is not None:
        variables["STRESSOR_RUN"] = env_run
    (scratch / "scratch").mkdir()
    lines = [f"echo $$ > {group}/cgroup.procs" for group in cgroups]
    if volume_run is not None:
        volume = volume_under(scratch, volume_run)
        volume.mkdir(parents=True)
        lines.append(f"mount --bind {volume} {scratch}/scratch")
    lines += [f"touch {scratch}/ready", script or SLEEPERS.format(n=count)]
    argv = ["timeout", BOUND_S, "sh", "-ec", "\n".join(lines)]
    if own_namespace:
        argv = ["unshare", "--mount", "--propagation", "private", *argv]
    process = subprocess.Popen(argv, env=variables, start_new_session=True, cwd="/")
    started = Tree(process, scratch)
    try:
        assert eventually(lambda: (scratch / "ready").exists()), "the tree did not start"
        if not script:
            assert eventually(lambda: len(started.pids) >= count * 2 + 1)
        yield started
    finally:
        for _ in range(3):
            for pid in [*started.pids, *started.extra]:
                end(pid)
        process.kill()
        process.wait(timeout=10)
        shutil.rmtree(scratch, ignore_errors=True)
