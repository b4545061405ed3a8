"""Just enough of the ELF format to tell a static program from one that needs libraries."""

from __future__ import annotations

import struct
from pathlib import Path

_PT_INTERP = 3


def static(path: Path) -> bool:
    """True for a 64-bit little-endian ELF program without an interpreter segment."""
    with path.open("rb") as handle:
        head = handle.read(64)
        if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
            return False
        (offset,) = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        handle.seek(offset)
        table = handle.read(size * count)
    kinds = (struct.unpack_from("<I", table, i * size)[0] for i in range(count))
    return _PT_INTERP not in kinds
