"""Gates against samples at given times."""

from dataclasses import replace

import pytest

from stressor.core.thresholds import GateState, Watch, breach, judge, observe, watches
from stressor.model import Comparison, Gate, Sample

ABOVE = Gate("x_s", Comparison.ABOVE, 1.0)
HELD = replace(ABOVE, hold_s=5.0)
COUNT = Gate("slow_fsyncs", Comparison.ABOVE, 3.0, window_s=10.0)


def after(gate: Gate, *readings: tuple[float, float | None]) -> Watch:
    """A watch since time 0 with a period of 2 s, after these (time, value) readings."""
    watch = Watch(gate, "a", 2.0, 0.0)
    for at_s, value in readings:
        watch = observe(watch, Sample(at_s, gate.signal, "a", value))
    return watch


@pytest.mark.parametrize(
    ("comparison", "value", "state"),
    [
        (Comparison.ABOVE, 1.0, GateState.INACTIVE),
        (Comparison.ABOVE, 1.0001, GateState.FIRING),
        (Comparison.BELOW, 1.0, GateState.INACTIVE),
        (Comparison.BELOW, 0.9999, GateState.FIRING),
        (Comparison.ABOVE, float("inf"), GateState.FIRING),
        (Comparison.BELOW, float("-inf"), GateState.FIRING),
    ],
)
def test_the_limit_itself_is_good(comparison: Comparison, value: float, state: GateState) -> None:
    assert judge(after(replace(ABOVE, comparison=comparison), (1.0, value)), 1.0) is state


def test_hold_fires_once_the_signal_was_bad_for_so_long() -> None:
    bad = [(float(t), 2.0) for t in range(6)]
    assert judge(after(HELD, *bad[:5]), 4.0) is GateState.PENDING
    assert judge(after(HELD, *bad), 5.0) is GateState.FIRING


def test_hold_begins_anew_after_a_good_sample() -> None:
    watch = after(HELD, (0.0, 2.0), (3.0, 0.5), (4.0, 2.0), (8.0, 2.0))
    assert judge(watch, 8.0) is GateState.PENDING
    assert watch.bad_since_s == 4.0


def test_hold_is_not_filled_by_time_without_samples() -> None:
    assert judge(after(HELD, (0.0, 2.0)), 5.9) is GateState.PENDING


def test_a_sample_without_value_neither_ends_nor_feeds_a_hold() -> None:
    watch = after(HELD, (0.0, 2.0), (2.0, None), (4.0, float("nan")), (5.0, 2.0))
    assert judge(watch, 5.0) is GateState.FIRING
    assert watch.last_good_s == 5.0


def test_a_firing_gate_recovers() -> None:
    assert judge(after(ABOVE, (1.0, 2.0), (2.0, 0.5)), 2.0) is GateState.INACTIVE


def test_stale_after_three_periods_from_the_newest_good_sample() -> None:
    watch = after(ABOVE, (1.0, 0.5), (6.9, None))
    assert judge(watch, 7.0) is GateState.INACTIVE
    assert judge(watch, 7.001) is GateState.STALE
    assert judge(after(ABOVE), 6.0) is GateState.INACTIVE
    assert judge(after(ABOVE), 6.001) is GateState.STALE


def test_a_stale_breach_has_no_value_and_says_since_when() -> None:
    found = breach(after(ABOVE, (1.0, 2.0)), 9.0)
    assert found is not None
    assert (found.value, found.since_s, found.stale) == (None, 1.0, True)


def test_stale_recovers_with_a_good_sample() -> None:
    watch = observe(after(ABOVE, (1.0, 0.5)), Sample(20.0, "x_s", "a", 0.5))
    assert breach(watch, 20.0) is None


def test_a_window_sums_what_is_inside_it() -> None:
    watch = after(COUNT, (0.0, 2.0), (4.0, 1.0), (9.9, 1.0))
    assert (watch.value, judge(watch, 9.9)) == (4.0, GateState.FIRING)
    later = observe(watch, Sample(10.0, "slow_fsyncs", "a", 0.0))
    assert (later.value, judge(later, 10.0)) == (2.0, GateState.INACTIVE)


def test_samples_of_another_signal_or_source_are_none_of_its_business() -> None:
    watch = after(ABOVE)
    assert observe(watch, Sample(1.0, "y_s", "a", 2.0)) is watch
    assert observe(watch, Sample(1.0, "x_s", "b", 2.0)) is watch


def test_a_watch_for_each_gate_at_each_source_and_known_ones_go_on() -> None:
    known = after(ABOVE, (1.0, 0.5))
    made = watches((ABOVE, HELD), {"x_s": ("a", "b")}, {"x_s": 2.0}, 3.0, (known,))
    assert [(w.gate, w.source, w.last_good_s) for w in made] == [
        (ABOVE, "a", 1.0),
        (ABOVE, "b", None),
        (HELD, "a", None),
        (HELD, "b", None),
    ]
    assert made[0] is known
    assert made[1].since_s == 3.0
