"""What preflight wants to know of this machine itself."""

import os
from collections.abc import Mapping
from pathlib import Path

from stressor.checks.blast_radius import Own, mount_of

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MOUNTS = Path("/proc/self/mountinfo")


def own(state: Path, env: Mapping[str, str]) -> Own:
    """The facts; what cannot be read (no Linux) is None."""
    mounts = _text(_MOUNTS)
    found = None if mounts is None else mount_of(os.path.realpath(state), mounts)
    filesystem, source = found or (None, None)
    return Own(
        boot_id=(_text(_BOOT_ID) or "").strip() or None,
        filesystem=filesystem,
        source=source,
        in_pod="KUBERNETES_SERVICE_HOST" in env,
    )


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None
