"""Sizes and shares as phase files write them: `4GiB`, `1.5 MB`, `40%`.

Parameters of workloads and limits of gates are read here, so that one literal means the same in
both. What to say about a value that is none, each reader knows itself.
"""

import re

_BYTES: dict[str, int] = {
    "B": 1,
    **{prefix + "iB": 1 << 10 * (power + 1) for power, prefix in enumerate(("K", "M", "G", "T"))},
    **{prefix + "B": int(1e3) ** (power + 1) for power, prefix in enumerate(("k", "M", "G", "T"))},
}
# Fifteen digits are exact as a float; without a bound, four hundred of them would be infinite.
_NUMBER = r"(\d{1,15}(?:\.\d+)?)"
_SIZE = re.compile(_NUMBER + r"\s?([A-Za-z]+)")
_SHARE = re.compile(_NUMBER + r"\s?%")


def size_bytes(value: object) -> int | None:
    """Bytes of a literal like `64MiB` (1024s) or `64MB` (1000s), rounded; None when it is none."""
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2] not in _BYTES:
        return None
    return round(float(match[1]) * _BYTES[match[2]])


def share(value: object) -> float | None:
    """The part of one in a literal like `40%` (0.4); None when it is none."""
    match = _SHARE.fullmatch(value) if isinstance(value, str) else None
    return None if match is None else float(match[1]) / 100.0
