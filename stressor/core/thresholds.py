"""Gates against samples: inactive, pending, firing, stale. Pure; the time is an argument.

A `Watch` is one gate at one source. It is advanced by samples and judged at any time; a signal
that nobody delivers is judged too, because missing data fires like a breach (I4). The states follow
Prometheus' alerting rules (inactive, pending, firing, with a hold duration); stale is added.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from stressor.model import Breach, Comparison, Gate, Sample

STALE_PERIODS = 3.0
"""A signal is stale when its newest good sample is older than this many periods (design.md)."""


class GateState(StrEnum):
    """Where a gate stands at one source."""

    INACTIVE = "inactive"
    PENDING = "pending"
    FIRING = "firing"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Watch:
    """One gate at one source. `since_s` is when watching began: staleness counts from there until
    the first good sample. `window` holds (at_s, value) of the last `gate.window_s`."""

    gate: Gate
    source: str
    period_s: float
    since_s: float
    last_good_s: float | None = None
    bad_since_s: float | None = None
    value: float | None = None
    window: tuple[tuple[float, float], ...] = ()


def watches(
    gates: Iterable[Gate],
    sources: dict[str, tuple[str, ...]],
    periods_s: dict[str, float],
    at_s: float,
    known: tuple[Watch, ...] = (),
) -> tuple[Watch, ...]:
    """A watch for each gate at each source that must report its signal.

    A watch in `known` for the same gate and source goes on with what it has seen. A gate on a
    signal without sources has no watch: `schedule.flaws` refuses plans whose stops hang on one.
    """
    old = {(watch.gate, watch.source): watch for watch in known}
    return tuple(
        old.get((gate, source), Watch(gate, source, periods_s[gate.signal], at_s))
        for gate in gates
        for source in sources.get(gate.signal, ())
    )


def observe(watch: Watch, sample: Sample) -> Watch:
    """The watch after `sample`. A sample without a value, or with one that compares with nothing
    (NaN), changes nothing: it is not good news."""
    if sample.signal != watch.gate.signal or sample.source != watch.source:
        return watch
    if sample.value is None or math.isnan(sample.value):
        return watch
    window = (*_within(watch, sample.at_s), (sample.at_s, sample.value))
    value = sum(v for _, v in window) if watch.gate.window_s else sample.value
    bad_since_s = _bad_since(watch, value, sample.at_s)
    return replace(
        watch,
        last_good_s=sample.at_s,
        bad_since_s=bad_since_s,
        value=value,
        window=window if watch.gate.window_s else (),
    )


def judge(watch: Watch, at_s: float) -> GateState:
    """Where the gate stands at `at_s`."""
    if at_s - _newest(watch) > STALE_PERIODS * watch.period_s:
        return GateState.STALE
    if watch.bad_since_s is None:
        return GateState.INACTIVE
    held = _newest(watch) - watch.bad_since_s
    return GateState.FIRING if held >= watch.gate.hold_s else GateState.PENDING


def breach(watch: Watch, at_s: float) -> Breach | None:
    """The breach that the watch stands for at `at_s`, if its gate fires or is stale."""
    state = judge(watch, at_s)
    if state is GateState.STALE:
        return Breach(at_s, watch.gate, watch.source, None, _newest(watch), stale=True)
    if state is GateState.FIRING and watch.bad_since_s is not None:
        return Breach(at_s, watch.gate, watch.source, watch.value, watch.bad_since_s)
    return None


def _newest(watch: Watch) -> float:
    return watch.since_s if watch.last_good_s is None else watch.last_good_s


def _within(watch: Watch, at_s: float) -> tuple[tuple[float, float], ...]:
    return tuple(item for item in watch.window if at_s - item[0] < watch.gate.window_s)


def _bad_since(watch: Watch, value: float, at_s: float) -> float | None:
    beyond = value > watch.gate.limit
    if watch.gate.comparison is Comparison.BELOW:
        beyond = value < watch.gate.limit
    if not beyond:
        return None
    return at_s if watch.bad_since_s is None else watch.bad_since_s
