"""What etcd is like before any load: a slow or leaderless one is not loaded to find that out."""

from collections.abc import Iterator, Sequence

from stressor.checks.base import Finding, Level, unknown
from stressor.model import Sample

NAME = "etcd-baseline"
WARN_MEAN_S = 0.010
"""The etcd FAQ asks for a 99th percentile of WAL fsyncs below 10 ms. The few fsyncs of an idle
member make no percentile, and 10 ms lies inside a bucket; a mean above it is bad in any case."""
FAIL_P99_S = 0.128
"""The limit of the safety gate (workloads.gates): a run would be stopped by it at once."""
_DISK = "a faster or own disk for etcd's data; fio --fdatasync=1 there"


def judge(host: str, windows: Sequence[Sequence[Sample]]) -> tuple[Finding, ...]:
    """The findings of one member from its windows without load, the last of which counts. FAIL: no
    leader, an fsync beyond half the election time-out, or a p99 beyond the safety gate. Unknown
    fails, too: what cannot be measured at rest is no baseline. A member that was calm only after a
    window that would have failed is warned of: one slow fsync may have a cause that has gone."""
    if not windows:
        return _window(host, ())
    last = _window(host, windows[-1])
    bad = [
        finding
        for window in windows[:-1]
        for finding in _window(host, window)
        if finding.level is Level.FAIL and not finding.unknown
    ]
    if bad and all(finding.level is not Level.FAIL for finding in last):
        text = f"{len(bad)} of {len(windows)} windows: {bad[0].text}"
        return (Finding(NAME, host, Level.WARN, text, bad[0].remedy),)
    return last


def calm(samples: Sequence[Sample]) -> bool:
    """Whether this window needs no other beside it."""
    return all(finding.level is not Level.FAIL for finding in _window("", samples))


def _window(host: str, samples: Sequence[Sample]) -> tuple[Finding, ...]:
    values = {sample.signal: sample for sample in samples}
    found = tuple(_found(host, values))
    if found:
        return found
    mean, p99 = values["etcd_wal_fsync_mean_s"], values["etcd_wal_fsync_p99_s"]
    text = f"fsync mean {_ms(mean.value)}, p99 <={_ms(p99.value)} of {p99.n}, has a leader"
    return (Finding(NAME, host, Level.PASS, text),)


def _found(host: str, values: dict[str, Sample]) -> Iterator[Finding]:
    wanted = (
        "etcd_has_leader",
        "etcd_wal_fsync_slow_count",
        "etcd_wal_fsync_p99_s",
        "etcd_wal_fsync_mean_s",
    )
    for signal in wanted:
        sample = values.get(signal)
        if sample is None or sample.value is None:
            detail = "nothing was read" if sample is None else sample.detail
            remedy = "curl its metrics URL on the host; etcd_metrics_url"
            yield unknown(NAME, host, Level.FAIL, f"{signal}: {detail}", remedy)
            # One cause, one line: whoever does not answer lacks every signal.
            return
    yield from _judged(host, values)


def _judged(host: str, values: dict[str, Sample]) -> Iterator[Finding]:
    leader, slow, p99, mean = (
        values[signal].value or 0.0
        for signal in (
            "etcd_has_leader",
            "etcd_wal_fsync_slow_count",
            "etcd_wal_fsync_p99_s",
            "etcd_wal_fsync_mean_s",
        )
    )
    if leader < 1:
        yield Finding(NAME, host, Level.FAIL, "has no leader", "etcdctl endpoint status --cluster")
    if slow > 0:
        text = values["etcd_wal_fsync_slow_count"].detail
        yield Finding(NAME, host, Level.FAIL, f"without load, {text}", _DISK)
    if p99 > FAIL_P99_S:
        text = f"without load, fsync p99 {_ms(p99)}"
        yield Finding(NAME, host, Level.FAIL, text, _DISK)
    elif mean > WARN_MEAN_S:
        text = f"without load, fsync mean {_ms(mean)}"
        yield Finding(NAME, host, Level.WARN, text, _DISK)


def _ms(value_s: float | None) -> str:
    return "unknown" if value_s is None else f"{value_s * 1000:.3g} ms"
