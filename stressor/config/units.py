"""Literals with units, as phase files write them: `90s`, `1h30m`, `250ms`, `4GiB`, `40%`.

A bare number is refused where a unit is needed: `hold: 10` has been read as seconds, minutes and
milliseconds by different tools. Zero alone needs none, it is the same in every unit.
"""

import re

from stressor.workloads import literals

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h)")
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:us|ms|s|m|h))+")


def duration_s(value: object) -> float:
    """Seconds of a literal like `90s` or `1h30m`. Raises ValueError with the remedy."""
    if _is_zero(value):
        return 0.0
    if isinstance(value, str) and _DURATION.fullmatch(value):
        return sum(float(n) * _SECONDS[unit] for n, unit in _DURATION_PART.findall(value))
    raise ValueError(f"{_shown(value)} is not a duration: write it like 90s, 10m or 2h")


def size_bytes(value: object) -> int:
    """Bytes of a literal like `4GiB` or `500MB`. Raises ValueError with the remedy."""
    if _is_zero(value):
        return 0
    size = literals.size_bytes(value)
    if size is None:
        raise ValueError(f"{_shown(value)} is not a size: write it like 4KiB, 16MiB or 4GiB")
    return size


def ratio(value: object) -> float:
    """The part of one of a literal like `40%` (0.4). Raises ValueError with the remedy."""
    if _is_zero(value):
        return 0.0
    share = literals.share(value)
    if share is None:
        raise ValueError(f"{_shown(value)} is not a share: write it like 40%")
    return share


def number(value: object) -> float:
    """A bare, finite number. Raises ValueError for anything else, a bool included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{_shown(value)} is not a bare number")
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"{_shown(value)} is not a finite number")
    return float(value)


def in_unit_of(signal: str, value: object) -> float:
    """The limit of a gate in the unit that the signal's name ends in (`_s`, `_bytes`, `_ratio`;
    anything else counts things and takes a bare number). Raises ValueError with the remedy."""
    if signal.endswith("_ratio"):
        return ratio(value)
    if signal.endswith("_bytes"):
        return float(size_bytes(value))
    if signal.endswith("_s") and not signal.endswith("_per_s"):
        return duration_s(value)
    return number(value)


def _is_zero(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == 0


def _shown(value: object) -> str:
    return "nothing" if value is None else f"`{value}`"
