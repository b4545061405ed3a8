"""A cgroup tree of its own for each lab host, in every hierarchy of this machine.

Three kubelets on one machine would else share one /kubepods.  The trees stand below the
cgroup that the lab itself runs in (never beside it: that place may belong to somebody else),
and systemd-nspawn's cgroup namespace makes each the root of its host.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_NO_PROCESSES_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One mounted cgroup hierarchy and the folder in it that this process stands in."""

    controllers: str
    """Comma-separated as in /proc/self/cgroup; empty for version 2."""
    own: Path

    @property
    def unified(self) -> bool:
        return self.controllers == ""


def parse(cgroup: str, mountinfo: str) -> tuple[Hierarchy, ...]:
    """Hierarchies from the texts of /proc/self/cgroup and /proc/self/mountinfo."""
    mounts: dict[str, tuple[Path, str]] = {}
    for line in mountinfo.splitlines():
        head, _, tail = line.partition(" - ")
        kind, _, options = [*tail.split(), "", "", ""][:3]
        root, point = head.split()[3:5]
        if kind == "cgroup2":
            mounts.setdefault("", (Path(point), root))
        elif kind == "cgroup":
            names = [o for o in options.split(",") if o not in {"rw", "ro", "xattr"}]
            mounts.setdefault(",".join(sorted(names)), (Path(point), root))
    found = []
    for line in cgroup.splitlines():
        _, controllers, path = line.split(":", 2)
        place = mounts.get(",".join(sorted(controllers.split(","))) if controllers else "")
        if place:
            inner = os.path.relpath(path, place[1]) if place[1] != "/" else path.lstrip("/")
            found.append(Hierarchy(controllers, place[0] / inner))
    return tuple(found)


def hierarchies() -> tuple[Hierarchy, ...]:
    return parse(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())


def legacy(found: tuple[Hierarchy, ...]) -> bool:
    """True when the controllers are on version 1, as hosts have to be started then."""
    return any(not entry.unified and "=" not in entry.controllers for entry in found)


def folders(found: tuple[Hierarchy, ...], name: str) -> tuple[Path, ...]:
    """Where the tree `name` stands in each hierarchy.

    With version 2 alone it stands below the root, in the lab's own folder: a cgroup with
    processes in it cannot hand controllers down.
    """
    if legacy(found):
        return tuple(entry.own / name for entry in found)
    return tuple(_mount_of(entry.own) / "stressor-lab" / name for entry in found)


def _mount_of(folder: Path) -> Path:
    while not os.path.ismount(folder):
        folder = folder.parent
    return folder


def make(folder: Path) -> None:
    """Create one tree's top folder and hand it what it needs before processes may enter."""
    if (folder.parent.parent / "cgroup.controllers").exists() and folder.parent.name == (
        "stressor-lab"
    ):
        folder.parent.mkdir(exist_ok=True)
        for above in (folder.parent.parent, folder.parent):
            names = (above / "cgroup.controllers").read_text().split()
            (above / "cgroup.subtree_control").write_text(" ".join(f"+{n}" for n in names))
    folder.mkdir(exist_ok=True)
    for name in ("cpuset.cpus", "cpuset.mems"):
        # Version 1: a new cpuset has no processor and refuses every process until it has.
        if (folder / "cgroup.clone_children").exists() and (folder / name).exists():
            (folder / name).write_text((folder.parent / name).read_text())


def place(pid: int, trees: tuple[Path, ...]) -> None:
    for folder in trees:
        (folder / "cgroup.procs").write_text(str(pid))


def limit_memory(trees: tuple[Path, ...], limit_bytes: int) -> None:
    """Cap a host's memory, so that a load in it cannot starve the machine around it."""
    for folder in trees:
        for name in ("memory.limit_in_bytes", "memory.max"):
            with suppress(OSError):
                if (folder / name).exists():
                    (folder / name).write_text(str(limit_bytes))


def pids(folder: Path) -> frozenset[int]:
    """Every process in the tree below `folder`, as this side numbers them."""
    found: set[int] = set()
    for where, _, files in os.walk(folder):
        if "cgroup.procs" in files:
            with suppress(OSError):
                found.update(map(int, (Path(where) / "cgroup.procs").read_text().split()))
    return frozenset(found - {0})


def freeze(folder: Path, frozen: bool) -> None:
    """Stop or thaw every process below `folder` if it is a freezer (version 1 or 2).

    On version 1 a thaw also reaches cgroups below that were frozen on their own.
    """
    state, switch = folder / "freezer.state", folder / "cgroup.freeze"
    if state.exists():
        if not frozen:
            for where, _, files in os.walk(folder):
                if "freezer.state" in files:
                    with suppress(OSError):
                        (Path(where) / "freezer.state").write_text("THAWED")
        else:
            state.write_text("FROZEN")
    elif switch.exists():
        switch.write_text("1" if frozen else "0")


def freezer_of(trees: tuple[Path, ...]) -> Path | None:
    """The tree that can stop a host's processes: version 1's freezer, else version 2."""
    for name in ("freezer.state", "cgroup.freeze"):
        for folder in trees:
            if (folder / name).exists():
                return folder
    return None


def remove(folder: Path) -> bool:
    """Delete the empty tree at `folder`, deepest first; True when nothing is left of it."""
    limit = time.monotonic() + _NO_PROCESSES_WAIT_S
    while folder.exists():
        for where, _, _ in os.walk(folder, topdown=False):
            with suppress(OSError):
                Path(where).rmdir()
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)
    return True
