"""The root filesystem that all hosts share read-only, made by debootstrap once."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from stressor.lab import places as p
from stressor.lab.errors import LabError
from stressor.lab.shell import attempt, run

SUITE = "bookworm"
PACKAGES = (
    "systemd systemd-sysv dbus openssh-server iproute2 iptables procps containerd runc "
    "containernetworking-plugins conntrack ethtool socat fio stress-ng ca-certificates kmod mount "
    "util-linux iperf3 python3-minimal busybox curl sudo"
).split()
"""What a kubelet needs, what the load image is cut from, and what guards use on a host."""
_LIMIT_S = 1800.0
_RECIPE = "3"
"""Raise it when `_finish` changes: it is part of the cache key."""


def folder(places: p.Places) -> Path:
    text = " ".join([_RECIPE, SUITE, *PACKAGES])
    return places.cache / "lab" / f"rootfs-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def mirror() -> str | None:
    """The package source that this machine already uses for the suite, if it has one."""
    shown = "$(REPO_URI) $(CREATED_BY) $(RELEASE) $(COMPONENT)"
    with suppress(LabError):
        listed = attempt(["apt-get", "indextargets", "--format", shown], timeout_s=20).stdout
        for line in listed.splitlines():
            uri, *kind = line.split()
            if kind == ["Packages", SUITE, "main"] and uri.startswith("http"):
                return uri
    return None


def _unmount_inside(root: Path) -> None:
    """A cut-off debootstrap leaves /proc and /sys mounted in what it was making."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in reversed(points):
        if point.startswith(f"{root}/"):
            attempt(["umount", "--lazy", point], timeout_s=10)


def _finish(root: Path) -> None:
    """Drop what must not be shared (keys, resolver) and what no host reads."""
    for key in (root / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    for name in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/man", "usr/share/doc"):
        shutil.rmtree(root / name, ignore_errors=True)
    (root / "etc/machine-id").write_text("")
    run(["chroot", str(root), "useradd", "--create-home", "--shell=/bin/bash", p.OPERATOR])
    (root / "etc/resolv.conf").write_text("")


def build(places: p.Places, say: Callable[[str], None]) -> Path:
    """Make the root filesystem unless it is there; raises LabError with debootstrap's words."""
    target = folder(places)
    if target.exists():
        return target
    say("root filesystem of the hosts (debootstrap): usually 2-3 min")
    draft = target.with_name(f".{target.name}.part")
    draft.parent.mkdir(parents=True, exist_ok=True)
    _unmount_inside(draft)
    shutil.rmtree(draft, ignore_errors=True)
    argv = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE]
    source = mirror()
    run([*argv, str(draft), *([source] if source else [])], timeout_s=_LIMIT_S, cwd=Path("/"))
    _unmount_inside(draft)
    _finish(draft)
    draft.rename(target)
    return target
