"""What an etcd member says about its own disk and quorum, read from its /metrics exposition.

Every figure is a difference between two scrapes: lifetime quantiles lag behind what happens now.
An fsync that hangs is invisible until it ends, so a window in which none finished says *unknown*,
never "healthy". docs/signals.md has the measurements behind these rules.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from stressor.model import Sample, SignalSpec, Subject

_FSYNC = "etcd_disk_wal_fsync_duration_seconds"
_WANTED = (
    _FSYNC,
    "etcd_server_has_leader",
    "etcd_server_is_leader",
    "etcd_server_leader_changes_seen_total",
    "process_start_time_seconds",
)
_LINE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{([^}]*)\})?\s+(\S+)(?:\s+-?\d+)?$")
_LE = re.compile(r'(?:^|,)le="([^"]+)"')

# Below this many observations a 99th percentile is just the largest one (docs/signals.md).
QUANTILE_MIN_COUNT = 100

FSYNC_SIGNALS = (
    SignalSpec(
        "etcd_wal_fsync_slow_count", Subject.ETCD, 2.0, "fsyncs beyond half the election time-out"
    ),
    SignalSpec("etcd_wal_fsync_p99_s", Subject.ETCD, 2.0, "99th percentile of the WAL fsyncs"),
    SignalSpec("etcd_wal_fsync_mean_s", Subject.ETCD, 2.0, "mean of the WAL fsyncs"),
)
SIGNALS = (
    *FSYNC_SIGNALS,
    SignalSpec("etcd_has_leader", Subject.ETCD, 2.0, "1 while the member knows a leader, else 0"),
    SignalSpec("etcd_leader_changes_count", Subject.ETCD, 2.0, "leader changes seen in the window"),
)


@dataclass(frozen=True, slots=True)
class EtcdScrape:
    """One exposition, reduced to what is needed. None: the member did not say.

    `fsync_buckets` are cumulative counts by upper edge in seconds, ascending, +Inf last.
    """

    fsync_buckets: tuple[tuple[float, int], ...] = ()
    fsync_sum_s: float | None = None
    fsync_count: int | None = None
    has_leader: bool | None = None
    is_leader: bool | None = None
    leader_changes: int | None = None
    process_start_s: float | None = None


@dataclass(frozen=True, slots=True)
class _Window:
    """fsyncs between two scrapes: `buckets` are cumulative, like the exposition's."""

    buckets: tuple[tuple[float, int], ...]
    count: int
    sum_s: float


def parse(text: bytes | str) -> EtcdScrape:
    """Pick the known metrics out of an exposition, line by line.

    Never raises: what is missing, malformed or cut off becomes None. A last line without its
    newline is dropped, because `18` may be the beginning of `189`.
    """
    buckets: dict[float, int] = {}
    single: dict[str, float] = {}
    for name, labels, value in _metrics(text):
        edge = _LE.search(labels)
        if name == f"{_FSYNC}_bucket":
            if edge is not None and (at := _number(edge.group(1))) is not None:
                buckets[at] = int(value)
        else:
            single[name] = value
    return EtcdScrape(
        fsync_buckets=tuple(sorted(buckets.items())),
        fsync_sum_s=single.get(f"{_FSYNC}_sum"),
        fsync_count=_whole(single.get(f"{_FSYNC}_count")),
        has_leader=_flag(single.get("etcd_server_has_leader")),
        is_leader=_flag(single.get("etcd_server_is_leader")),
        leader_changes=_whole(single.get("etcd_server_leader_changes_seen_total")),
        process_start_s=single.get("process_start_time_seconds"),
    )


def difference(
    before: EtcdScrape, after: EtcdScrape, *, source: str, at_s: float, slow_above_s: float
) -> tuple[Sample, ...]:
    """All signals of the window between two scrapes of one member.

    `slow_above_s` is half the election time-out. A window across a restart, with a counter that
    went backwards, or without a finished fsync has no fsync figures: their value is None.
    """
    fsyncs = _fsync_window(before, after)
    if isinstance(fsyncs, str):
        slow, p99, mean = (_unknown(spec.name, source, at_s, fsyncs) for spec in FSYNC_SIGNALS)
    else:
        slow = _slow(fsyncs, source, at_s, slow_above_s)
        p99 = _p99(fsyncs, source, at_s)
        mean = Sample(
            at_s, "etcd_wal_fsync_mean_s", source, fsyncs.sum_s / fsyncs.count, fsyncs.count
        )
    return (slow, p99, mean, _leader(after, source, at_s), _changes(before, after, source, at_s))


def unanswered(source: str, at_s: float, detail: str) -> tuple[Sample, ...]:
    """All signals as unknown: the member was asked and gave no answer that counts."""
    return tuple(_unknown(spec.name, source, at_s, detail) for spec in SIGNALS)


def _metrics(text: bytes | str) -> Iterator[tuple[str, str, float]]:
    for line in _complete_lines(text):
        if not line.startswith(_WANTED):
            continue
        match = _LINE.match(line)
        value = None if match is None else _number(match.group(3))
        if match is not None and value is not None and math.isfinite(value):
            yield match.group(1), match.group(2) or "", value


def _complete_lines(text: bytes | str) -> Iterator[str]:
    whole = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    start = 0
    while (end := whole.find("\n", start)) >= 0:
        yield whole[start:end].rstrip("\r")
        start = end + 1


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _flag(value: float | None) -> bool | None:
    return None if value is None else value != 0


def _restarted(before: EtcdScrape, after: EtcdScrape) -> str | None:
    """Why counters of the two scrapes cannot be subtracted, as far as the process goes."""
    if before.process_start_s is None or after.process_start_s is None:
        return "process_start_time_seconds is missing: a restart would go unseen"
    if before.process_start_s != after.process_start_s:
        return "etcd was restarted: window discarded"
    return None


def _fsync_window(before: EtcdScrape, after: EtcdScrape) -> _Window | str:
    problem = _restarted(before, after) or _incomplete(before) or _incomplete(after)
    if problem is not None:
        return problem
    edges = tuple(edge for edge, _ in after.fsync_buckets)
    if edges != tuple(edge for edge, _ in before.fsync_buckets):
        return "the histogram's buckets changed between scrapes: window discarded"
    pairs = zip(before.fsync_buckets, after.fsync_buckets, strict=True)
    buckets = tuple((edge, new - old) for (edge, old), (_, new) in pairs)
    sum_s = (after.fsync_sum_s or 0.0) - (before.fsync_sum_s or 0.0)
    if sum_s < 0 or any(count < 0 for _, count in buckets):
        return "a counter went backwards: window discarded"
    count = buckets[-1][1]
    if count == 0:
        return "no fsync finished in the window: unknown"
    return _Window(buckets, count, sum_s)


def _incomplete(scrape: EtcdScrape) -> str | None:
    if scrape.fsync_sum_s is None or scrape.fsync_count is None or not scrape.fsync_buckets:
        return f"{_FSYNC} is missing"
    edge, count = scrape.fsync_buckets[-1]
    if not math.isinf(edge) or count != scrape.fsync_count:
        return f"{_FSYNC} is incomplete"
    return None


def _slow(window: _Window, source: str, at_s: float, slow_above_s: float) -> Sample:
    """Count what lies certainly above the limit: beyond the first bucket edge at or above it.

    Election time-outs beyond the histogram's last edge are counted from that edge on: earlier than
    asked, never later.
    """
    finite = [(edge, count) for edge, count in window.buckets if not math.isinf(edge)]
    edge, below = next(((e, c) for e, c in finite if e >= slow_above_s), finite[-1])
    slow = window.count - below
    detail = f"{slow} of {window.count} fsyncs took more than {edge:g} s"
    name = "etcd_wal_fsync_slow_count"
    return Sample(at_s, name, source, float(slow), window.count, detail if slow else "")


def _p99(window: _Window, source: str, at_s: float) -> Sample:
    value, detail = _largest(window) if window.count < QUANTILE_MIN_COUNT else _interpolated(window)
    return Sample(at_s, "etcd_wal_fsync_p99_s", source, value, window.count, detail)


def _largest(window: _Window) -> tuple[float, str]:
    """The upper edge of the highest bucket in use: the largest fsync took no longer than this."""
    edge = next(edge for edge, count in window.buckets if count == window.count)
    if math.isinf(edge):
        return _beyond(window)
    return edge, f"{window.count} fsyncs are too few for a percentile: the largest bucket's edge"


def _interpolated(window: _Window) -> tuple[float, str]:
    """Linear interpolation inside the bucket of rank 0.99·n, as Prometheus does."""
    rank = 0.99 * window.count
    low, below = 0.0, 0
    for edge, count in window.buckets:
        if count >= rank:
            break
        low, below = edge, count
    if math.isinf(edge):
        return _beyond(window)
    return low + (edge - low) * (rank - below) / (count - below), ""


def _beyond(window: _Window) -> tuple[float, str]:
    last = max(edge for edge, _ in window.buckets if not math.isinf(edge))
    return last, f">={last:g} s: beyond the last bucket"


def _leader(after: EtcdScrape, source: str, at_s: float) -> Sample:
    if after.has_leader is None:
        return _unknown("etcd_has_leader", source, at_s, "etcd_server_has_leader is missing")
    return Sample(at_s, "etcd_has_leader", source, float(after.has_leader))


def _changes(before: EtcdScrape, after: EtcdScrape, source: str, at_s: float) -> Sample:
    name = "etcd_leader_changes_count"
    if before.leader_changes is None or after.leader_changes is None:
        detail = "etcd_server_leader_changes_seen_total is missing"
        return _unknown(name, source, at_s, detail)
    changes = after.leader_changes - before.leader_changes
    restarted = _restarted(before, after)
    if restarted is not None or changes < 0:
        detail = restarted or "a counter went backwards: window discarded"
        return _unknown(name, source, at_s, detail)
    return Sample(at_s, name, source, float(changes))


def _unknown(signal: str, source: str, at_s: float, detail: str) -> Sample:
    return Sample(at_s, signal, source, None, None, detail)
