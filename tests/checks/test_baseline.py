"""What preflight makes of an etcd without load."""

import pytest

from stressor.checks import baseline
from stressor.checks.base import Level
from stressor.engine.baseline import Baseline
from stressor.errors import RemoteError
from stressor.model import Sample
from stressor.workloads.gates import FSYNC_P99_LIMIT_S

GOOD = {
    "etcd_has_leader": 1.0,
    "etcd_wal_fsync_slow_count": 0.0,
    "etcd_wal_fsync_p99_s": 0.004,
    "etcd_wal_fsync_mean_s": 0.002,
}


def samples(**changes: float | None) -> tuple[Sample, ...]:
    values: dict[str, float | None] = {**GOOD, **changes}
    return tuple(
        Sample(0.0, name, "node1", value, 8, "why" if value is None else "1 of 8 took more")
        for name, value in values.items()
    )


def test_a_calm_member_passes_with_its_figures() -> None:
    (finding,) = baseline.judge("node1", [samples()])
    assert finding.level is Level.PASS
    assert finding.text == "fsync mean 2 ms, p99 <=4 ms of 8, has a leader"


@pytest.mark.parametrize(
    ("changes", "level", "text"),
    [
        ({"etcd_has_leader": 0.0}, Level.FAIL, "has no leader"),
        ({"etcd_wal_fsync_slow_count": 1.0}, Level.FAIL, "without load, 1 of 8"),
        ({"etcd_wal_fsync_p99_s": 0.256}, Level.FAIL, "fsync p99 256 ms"),
        ({"etcd_wal_fsync_mean_s": 0.043}, Level.WARN, "fsync mean 43 ms"),
        ({"etcd_wal_fsync_p99_s": None}, Level.FAIL, "unknown: etcd_wal_fsync_p99_s: why"),
        ({"etcd_has_leader": None}, Level.FAIL, "unknown: etcd_has_leader: why"),
    ],
)
def test_a_member_that_is_not_well_is_named(
    changes: dict[str, float | None], level: Level, text: str
) -> None:
    (finding,) = baseline.judge("node1", [samples(**changes)])
    assert (finding.level, finding.host) == (level, "node1")
    assert text in finding.text
    assert finding.unknown is (None in changes.values())


SLOW = {"etcd_wal_fsync_p99_s": 0.256}
SILENT: dict[str, float | None] = {"etcd_has_leader": None}


@pytest.mark.parametrize(
    ("windows", "level", "text"),
    [
        ((SLOW, {}), Level.WARN, "1 of 2 windows: without load, fsync p99 256 ms"),
        ((SLOW, SLOW, {}), Level.WARN, "2 of 3 windows"),
        ((SLOW, SLOW, SLOW), Level.FAIL, "fsync p99 256 ms"),
        ((SLOW, SILENT), Level.FAIL, "unknown: etcd_has_leader"),
        ((SILENT, {}), Level.PASS, "has a leader"),
    ],
)
def test_the_last_window_counts_and_a_bad_one_before_it_is_told(
    windows: tuple[dict[str, float | None], ...], level: Level, text: str
) -> None:
    (finding,) = baseline.judge("node1", [samples(**changes) for changes in windows])
    assert finding.level is level
    assert text in finding.text


def test_nothing_read_at_all_is_unknown() -> None:
    (finding,) = baseline.judge("node1", [])
    assert finding.unknown
    assert finding.level is Level.FAIL


def test_the_limit_is_that_of_the_safety_gate() -> None:
    assert baseline.FAIL_P99_S == FSYNC_P99_LIMIT_S


def exposition(count: int) -> bytes:
    name = "etcd_disk_wal_fsync_duration_seconds"
    return f"""\
{name}_bucket{{le="0.001"}} {count}
{name}_bucket{{le="8.192"}} {count}
{name}_bucket{{le="+Inf"}} {count}
{name}_sum {count * 0.0005}
{name}_count {count}
etcd_server_has_leader 1
etcd_server_is_leader 0
etcd_server_leader_changes_seen_total 1
process_start_time_seconds 1000
""".encode()


def test_a_quiet_member_gets_further_windows_before_it_is_unknown() -> None:
    """The third scrape is the first with a new fsync."""
    counts = iter((10, 10, 12))
    slept: list[float] = []
    look = Baseline(0.5, slept.append, lambda: 0.0)
    read = look.read({"node1": lambda _: exposition(next(counts))})
    (finding,) = baseline.judge("node1", read["node1"])
    assert finding.level is Level.PASS
    assert len(slept) == 2


def test_a_member_that_never_syncs_or_answers_is_unknown() -> None:
    def refuses(_deadline_s: float) -> bytes:
        raise RemoteError("nobody listens")

    look = Baseline(0.5, lambda _: None, lambda: 0.0)
    read = look.read({"still": lambda _: exposition(10), "down": refuses})
    still, down = baseline.judge("still", read["still"]), baseline.judge("down", read["down"])
    assert still[0].unknown
    assert down[0].unknown
    assert "nobody listens" in down[0].text
