"""What preflight wants to know of this machine itself."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from stressor.checks.blast_radius import Own, mount_of

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MOUNTS = Path("/proc/self/mountinfo")
_SYS = Path("/sys")
_LAYERS = 8
"""A mapped device stands on others, those on others: so deep is looked."""


def own(state: Path, env: Mapping[str, str], sys: Path = _SYS) -> Own:
    """The facts; what cannot be read (no Linux) is None. `sys` is where sysfs is mounted."""
    mounts = _text(_MOUNTS)
    found = None if mounts is None else mount_of(os.path.realpath(state), mounts)
    return Own(
        boot_id=(_text(_BOOT_ID) or "").strip() or None,
        filesystem=None if found is None else found.filesystem,
        source=None if found is None else found.source,
        in_pod="KUBERNETES_SERVICE_HOST" in env,
        disks=() if found is None else disks(found.device, sys),
    )


def disks(device: str, sys: Path = _SYS) -> tuple[str, ...]:
    """The paths in sysfs of a block device MAJOR:MINOR and of what lies below it (LVM, LUKS,
    multipath, md), sorted; empty for what is no block device, like tmpfs."""
    return tuple(sorted(set(_below(os.path.realpath(sys / "dev/block" / device), _LAYERS))))


def _below(path: str, layers: int) -> Iterator[str]:
    if layers and os.path.isdir(path):
        yield path
        try:
            under = os.listdir(os.path.join(path, "slaves"))
        except OSError:
            return
        for name in under:
            yield from _below(os.path.realpath(os.path.join(path, "slaves", name)), layers - 1)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None
