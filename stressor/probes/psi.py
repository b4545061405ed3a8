"""Pressure stall information of a host: the share of time in which work waited for a resource.

Ratios come from the growth of `total` (microseconds) over the host's own boot clock. The kernel's
avg10 moves only every 2 s, `total` on every read (docs/signals.md).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from stressor.model import Sample, SignalSpec, Subject

SIGNALS = (
    SignalSpec(
        "psi_cpu_some_ratio", Subject.HOST, 1.0, "share of time in which a task waited for a CPU"
    ),
    SignalSpec(
        "psi_io_some_ratio", Subject.HOST, 1.0, "share of time in which a task waited for I/O"
    ),
    SignalSpec(
        "psi_io_full_ratio", Subject.HOST, 1.0, "share of time in which all tasks waited for I/O"
    ),
    SignalSpec(
        "psi_memory_some_ratio",
        Subject.HOST,
        1.0,
        "share of time in which a task waited for memory",
    ),
    SignalSpec(
        "psi_memory_full_ratio",
        Subject.HOST,
        1.0,
        "share of time in which all tasks waited for memory",
    ),
)

_TOTAL = re.compile(r"^(some|full) .*\btotal=(\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PsiTotals:
    """Stall time since boot in microseconds, read at `boot_s` of the host's CLOCK_BOOTTIME.

    None: the file could not be read. Kernels built with PSI off by default show the files and fail
    the read, so only a read proves that they work.
    """

    boot_s: float
    cpu_some_us: int | None = None
    io_some_us: int | None = None
    io_full_us: int | None = None
    memory_some_us: int | None = None
    memory_full_us: int | None = None


def parse(texts: Mapping[str, str], *, boot_s: float) -> PsiTotals:
    """The totals in the texts of /proc/pressure/{cpu,io,memory}, keyed by those names.

    Never raises: an absent or unreadable text leaves its totals None.
    """
    totals = {
        f"{resource}_{kind}": int(total)
        for resource, text in texts.items()
        for kind, total in _TOTAL.findall(text)
    }
    return PsiTotals(
        boot_s,
        cpu_some_us=totals.get("cpu_some"),
        io_some_us=totals.get("io_some"),
        io_full_us=totals.get("io_full"),
        memory_some_us=totals.get("memory_some"),
        memory_full_us=totals.get("memory_full"),
    )


def difference(
    before: PsiTotals, after: PsiTotals, *, source: str, at_s: float
) -> tuple[Sample, ...]:
    """The five ratios of the window between two readings of one host."""
    pairs = zip(_fields(before), _fields(after), strict=True)
    window_s = after.boot_s - before.boot_s
    return tuple(
        _ratio(spec.name, old, new, window_s, source, at_s)
        for spec, (old, new) in zip(SIGNALS, pairs, strict=True)
    )


def unanswered(source: str, at_s: float, detail: str) -> tuple[Sample, ...]:
    """The five signals as unknown: the host gave no reading."""
    return tuple(Sample(at_s, spec.name, source, None, None, detail) for spec in SIGNALS)


def _fields(totals: PsiTotals) -> tuple[int | None, ...]:
    return (
        totals.cpu_some_us,
        totals.io_some_us,
        totals.io_full_us,
        totals.memory_some_us,
        totals.memory_full_us,
    )


def _ratio(
    signal: str, old: int | None, new: int | None, window_s: float, source: str, at_s: float
) -> Sample:
    if old is None or new is None:
        return Sample(at_s, signal, source, None, None, "the host's PSI cannot be read")
    if window_s <= 0 or new < old:
        return Sample(at_s, signal, source, None, None, "the host was rebooted: window discarded")
    # The two clocks are read one after the other: a full stall may measure a hair above 1.
    return Sample(at_s, signal, source, min((new - old) / 1e6 / window_s, 1.0))
