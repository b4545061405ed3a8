"""What a machine must have before the lab touches it; each lack is said with its remedy."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from stressor.lab import cgroups, golang, spindle
from stressor.lab import places as p
from stressor.lab.errors import LabError, LabRefused
from stressor.lab.shell import attempt

COLD_DISK_GIB = 12
"""Go caches 5.4, programs 0.5, root filesystem 0.5, images and seed 1.3; the rest for nodes."""
WARM_DISK_GIB = 3
MEMORY_GIB = 6
"""Three nodes take 1.4 GiB idle and the linker 1.9 GiB; the rest is for load."""
_GIB = 1 << 30

_PROGRAMS = {
    "systemd-nspawn": "systemd-container",
    "debootstrap": "debootstrap",
    "ip": "iproute2",
    "gcc": "gcc",
    "nsenter": "util-linux",
    "ssh-keygen": "openssh-client",
    "mkfs.ext4": "e2fsprogs",
    "chroot": "coreutils",
}
_V1_CONTROLLERS = frozenset({"memory", "cpu", "cpuacct", "cpuset", "pids", "freezer", "devices"})


def lacking_programs(which: Callable[[str], str | None]) -> list[str]:
    return [
        f"program {name} is missing: apt-get install {package}"
        for name, package in _PROGRAMS.items()
        if which(name) is None
    ]


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder


def lacking_room(places: p.Places, cold: bool) -> list[str]:
    wanted = COLD_DISK_GIB if cold else WARM_DISK_GIB
    found = []
    for folder in {_existing(places.cache), _existing(places.state)}:
        free = shutil.disk_usage(folder).free / _GIB
        if free < wanted:
            found.append(
                f"{free:.1f} GiB free under {folder}, {wanted} GiB needed: make room, or set "
                "STRESSOR_CACHE and STRESSOR_STATE to folders on a larger disk"
            )
    return found


def available_memory_gib(meminfo: str) -> float:
    for line in meminfo.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / (1 << 20)
    return 0.0


def _lacking_memory() -> list[str]:
    free = available_memory_gib(Path("/proc/meminfo").read_text())
    if free >= MEMORY_GIB:
        return []
    return [f"{free:.1f} GiB of memory available, {MEMORY_GIB} GiB needed: end other programs"]


def _filesystem(name: str) -> bool:
    return name in Path("/proc/filesystems").read_text().split()


def _namespaces_work() -> bool:
    """Ask the kernel: a veth pair and a bridge in a namespace that vanishes with its process."""
    script = (
        "ip link add name veth0 type veth peer name veth1"
        " && ip link add name bridge0 type bridge && ip link set dev veth0 master bridge0"
    )
    try:
        return attempt(["unshare", "--net", "sh", "-c", script], timeout_s=10).returncode == 0
    except LabError:
        return False


def _lacking_kernel() -> Iterable[str]:
    if not _filesystem("overlay"):
        yield "kernel feature overlayfs is missing: modprobe overlay, or another kernel"
    if not _filesystem("fuse") or not Path("/dev/fuse").exists():
        yield "kernel feature FUSE (/dev/fuse) is missing: modprobe fuse, or another kernel"
    if not spindle.library_present():
        yield "library libfuse is missing: apt-get install libfuse2"
    if not _namespaces_work():
        yield "network namespaces with veth and bridge do not work: modprobe veth bridge, as root"
    yield from _lacking_cgroups()


def _lacking_cgroups() -> Iterable[str]:
    found = cgroups.hierarchies()
    names = {name for entry in found for name in entry.controllers.split(",")}
    if cgroups.legacy(found):
        lacks = _V1_CONTROLLERS - names
        if lacks:
            yield f"cgroup controllers {', '.join(sorted(lacks))} are not mounted: mount them"
    elif not any(entry.unified for entry in found):
        yield "no cgroups are mounted: mount -t cgroup2 none /sys/fs/cgroup"


def check(places: p.Places, cold: bool) -> None:
    """Raise LabRefused that lists everything missing; nothing is changed."""
    if os.geteuid() != 0:
        raise LabRefused("the lab needs root (namespaces, mounts, cgroups): run it with sudo")
    found = [
        *lacking_programs(shutil.which),
        *_lacking_kernel(),
        *lacking_room(places, cold),
        *_lacking_memory(),
    ]
    if cold and golang.find_go() is None and not _may_install_go():
        text = ".".join(map(str, golang.wanted_go()))
        found.append(f"Go {text} or newer is missing: install it, or use a virtual environment")
    if found:
        raise LabRefused("this machine cannot carry the lab:\n  " + "\n  ".join(found))


def _may_install_go() -> bool:
    import sys

    return sys.prefix != sys.base_prefix
