"""etcd signals from recorded expositions (etcd 3.4.23, two members on loopback)."""

from dataclasses import replace
from pathlib import Path

import pytest

from stressor.model import Sample
from stressor.probes.etcd import SIGNALS, EtcdScrape, difference, parse, unanswered

FIXTURES = Path(__file__).parent / "fixtures" / "etcd"
EDGES = tuple(0.001 * 2**n for n in range(14))
BEFORE = parse((FIXTURES / "before.txt").read_bytes())
AFTER = parse((FIXTURES / "after.txt").read_bytes())


def scrape(*durations_s: float, changes: int = 1, start_s: float = 7.0) -> EtcdScrape:
    """An exposition after fsyncs of these durations, in etcd's buckets."""
    edges = (*EDGES, float("inf"))
    buckets = tuple((edge, sum(d <= edge for d in durations_s)) for edge in edges)
    return EtcdScrape(
        buckets, sum(durations_s), len(durations_s), True, False, changes, process_start_s=start_s
    )


EMPTY = scrape()


def signals(before: EtcdScrape, after: EtcdScrape, slow_above_s: float = 0.5) -> dict[str, Sample]:
    samples = difference(before, after, source="cp-1", at_s=9.0, slow_above_s=slow_above_s)
    return {sample.signal: sample for sample in samples}


def test_a_recorded_exposition_is_read() -> None:
    assert AFTER.fsync_count == 189
    assert AFTER.fsync_buckets[0] == (0.001, 185)
    assert AFTER.fsync_buckets[-1] == (float("inf"), 189)
    assert AFTER.fsync_sum_s == pytest.approx(0.106143341)
    assert (AFTER.has_leader, AFTER.is_leader, AFTER.leader_changes) == (True, True, 1)
    assert AFTER.process_start_s == 1.79608352047e09


def test_text_and_bytes_read_alike() -> None:
    assert parse((FIXTURES / "after.txt").read_text()) == AFTER


def test_a_lost_leader_is_seen() -> None:
    lonely = parse((FIXTURES / "no_leader.txt").read_bytes())
    samples = signals(AFTER, lonely)
    assert samples["etcd_has_leader"].value == 0.0


def test_the_recorded_window() -> None:
    samples = signals(BEFORE, AFTER)
    assert samples["etcd_wal_fsync_slow_count"] == Sample(
        9.0, "etcd_wal_fsync_slow_count", "cp-1", 0.0, 150
    )
    p99 = samples["etcd_wal_fsync_p99_s"]
    assert p99.n == 150
    # rank 148.5 lies between 148 (≤1 ms) and 149 (≤2 ms)
    assert p99.value == pytest.approx(0.0015)
    assert samples["etcd_wal_fsync_mean_s"].value == pytest.approx(
        (0.106143341 - 0.018611949) / 150
    )
    assert samples["etcd_leader_changes_count"].value == 0.0


def test_every_declared_signal_is_reported() -> None:
    names = {spec.name for spec in SIGNALS}
    assert set(signals(BEFORE, AFTER)) == names
    assert {sample.signal for sample in unanswered("cp-1", 1.0, "timed out")} == names


def test_a_cut_last_line_is_not_read_as_a_smaller_number() -> None:
    assert parse("etcd_server_has_leader 1\nprocess_start_time_seconds 17") == EtcdScrape(
        has_leader=True
    )


@pytest.mark.parametrize("value", ["NaN", "many", "+Inf", ""])
def test_a_value_that_is_no_number_is_missing(value: str) -> None:
    assert parse(f"etcd_server_has_leader {value}\n").has_leader is None


def test_another_metric_with_the_same_beginning_is_not_taken() -> None:
    text = "etcd_server_has_leader_since_seconds 0\netcd_server_has_leader 1\n"
    assert parse(text).has_leader is True


def test_slow_fsyncs_are_counted_from_the_first_certain_edge() -> None:
    slow = signals(EMPTY, scrape(0.01, 0.511, 0.6, 1.3))["etcd_wal_fsync_slow_count"]
    assert (slow.value, slow.n) == (2.0, 4)
    assert slow.detail == "2 of 4 fsyncs took more than 0.512 s"


def test_an_edge_equal_to_the_limit_is_the_first_certain_one() -> None:
    samples = signals(EMPTY, scrape(0.6), slow_above_s=0.512)
    assert samples["etcd_wal_fsync_slow_count"].value == 1.0


def test_an_election_timeout_beyond_the_histogram_counts_from_its_last_edge() -> None:
    samples = signals(EMPTY, scrape(9.0, 8.0), slow_above_s=25.0)
    assert samples["etcd_wal_fsync_slow_count"].value == 1.0


def test_few_fsyncs_give_the_largest_bucket_and_say_so() -> None:
    p99 = signals(EMPTY, scrape(*[0.003] * 98, 0.05))["etcd_wal_fsync_p99_s"]
    assert (p99.value, p99.n) == (0.064, 99)
    assert "99 fsyncs are too few" in p99.detail


def test_a_hundred_fsyncs_are_interpolated() -> None:
    p99 = signals(EMPTY, scrape(*[0.003] * 98, 0.05, 0.05))["etcd_wal_fsync_p99_s"]
    assert p99.value == pytest.approx(0.048)
    assert p99.detail == ""


@pytest.mark.parametrize("fast", [0, 150])
def test_beyond_the_last_bucket_is_said_as_at_least(fast: int) -> None:
    p99 = signals(EMPTY, scrape(*[0.003] * fast, *[9.0] * 5))["etcd_wal_fsync_p99_s"]
    assert p99.value == 8.192
    assert p99.detail.startswith(">=8.192 s")


FSYNC = ("etcd_wal_fsync_slow_count", "etcd_wal_fsync_p99_s", "etcd_wal_fsync_mean_s")
SOME = scrape(0.01, 0.02)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (SOME, SOME, "no fsync finished"),
        (SOME, scrape(0.01, 0.02, 0.02, start_s=8.0), "restarted"),
        (SOME, replace(SOME, process_start_s=None), "process_start_time_seconds is missing"),
        (SOME, scrape(0.01), "backwards"),
        (scrape(0.01, 0.3), scrape(0.01, 0.02, 0.02), "backwards"),
        (SOME, EtcdScrape(process_start_s=7.0), "is missing"),
        (EtcdScrape(process_start_s=7.0), SOME, "is missing"),
        (SOME, replace(SOME, fsync_buckets=SOME.fsync_buckets[:-1]), "incomplete"),
        (SOME, replace(SOME, fsync_count=3), "incomplete"),
        (replace(SOME, fsync_buckets=SOME.fsync_buckets[1:]), SOME, "buckets changed"),
    ],
)
def test_a_window_that_proves_nothing_is_unknown(
    before: EtcdScrape, after: EtcdScrape, why: str
) -> None:
    samples = signals(before, after)
    for name in FSYNC:
        assert samples[name].value is None
        assert why in samples[name].detail


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (replace(SOME, leader_changes=None), "is missing"),
        (replace(SOME, leader_changes=0), "backwards"),
        (replace(SOME, process_start_s=8.0), "restarted"),
    ],
)
def test_leader_changes_that_cannot_be_counted_are_unknown(after: EtcdScrape, why: str) -> None:
    changes = signals(SOME, after)["etcd_leader_changes_count"]
    assert changes.value is None
    assert why in changes.detail


def test_leader_changes_are_counted_without_any_fsync() -> None:
    samples = signals(SOME, replace(SOME, leader_changes=3))
    assert samples["etcd_leader_changes_count"].value == 2.0


def test_a_silent_member_is_unknown_and_never_zero() -> None:
    for sample in (
        *unanswered("cp-1", 1.0, "timed out"),
        *signals(EtcdScrape(), EtcdScrape()).values(),
    ):
        assert sample.value is None
        assert sample.detail
