"""The loop around the decider, with a clock, a queue and a performer of the test's own."""

import queue
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from stressor.core import effects as fx
from stressor.core import events as ev
from stressor.core.state import RunState
from stressor.engine.loop import Loop
from stressor.errors import ExitCode
from stressor.model import StopReason
from stressor.testing.clock import ManualClock
from stressor.testing.story import a_plan


class PatientQueue(queue.SimpleQueue[ev.Event]):
    """A queue whose waiting moves the clock instead of the wall."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock

    def get(self, block: bool = True, timeout: float | None = None) -> ev.Event:
        try:
            return super().get(block=False)
        except queue.Empty:
            self.clock.advance(timeout or 0.0)
            raise


@dataclass(slots=True)
class Bench:
    """A loop over fakes. `script` maps a time to what happens then; `end_s` ends the run."""

    end_s: float = 6.0
    script: dict[float, Callable[["Bench"], None]] = field(default_factory=dict)
    armed: bool = True
    journal_age_s: float = 0.0
    hang_after_s: float | None = None
    pass_s: float = 0.0
    clock: ManualClock = field(default_factory=ManualClock)
    seen: list[tuple[float, ev.Event]] = field(default_factory=list)
    done: list[tuple[float, fx.Effect]] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    events: PatientQueue = field(init=False)

    def __post_init__(self) -> None:
        self.events = PatientQueue(self.clock)

    def run(self) -> int:
        loop = Loop(
            a_plan(),
            self.clock,
            self.events,
            self,
            self,
            self.watch,
            hang_after_s=self.hang_after_s,
            sleep=self.clock.advance,
        )
        return loop.run()

    def perform(self, effect: fx.Effect) -> None:
        self.done.append((self.clock.now_s(), effect))
        self.order.append(f"perform {type(effect).__name__}")
        if isinstance(effect, fx.ArmGuards) and self.armed:
            for host in effect.hosts:
                self.events.put(ev.GuardArmed(self.clock.now_s(), host, ()))

    def append(self, kind: str, t: float, data: object) -> None:
        self.written.append(kind)
        self.order.append(f"write {kind}")

    def oldest_unwritten_age_s(self, now_s: float) -> float:
        return self.journal_age_s

    def watch(self, state: RunState, event: ev.Event, effects: tuple[fx.Effect, ...]) -> None:
        self.clock.advance(self.pass_s)
        now_s = self.clock.now_s()
        self.seen.append((now_s, event))
        for at_s in [at_s for at_s in self.script if at_s <= now_s]:
            self.script.pop(at_s)(self)
        if now_s > self.end_s:
            self.events.put(ev.StopRequested(now_s, StopReason.OPERATOR, "end of test"))

    def ticks(self) -> list[ev.Tick]:
        return [event for _, event in self.seen if isinstance(event, ev.Tick)]

    def beats_s(self) -> list[float]:
        return [at_s for at_s, effect in self.done if isinstance(effect, fx.Beat)]


def unarmed(**changes: object) -> Bench:
    """A bench that stays in arming, where nothing but the pulse happens."""
    return Bench(armed=False, **changes)  # type: ignore[arg-type]


def test_four_ticks_a_second_and_one_beat() -> None:
    bench = unarmed(end_s=4.9)
    assert bench.run() == ExitCode.INTERRUPTED
    times_s = [tick.at_s for tick in bench.ticks()]
    assert times_s[:5] == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0])
    assert bench.beats_s()[:5] == pytest.approx([0.0, 1.0, 2.0, 3.0, 4.0])
    assert {tick.lateness_s for tick in bench.ticks()} == {0.0}


def test_a_loop_that_starts_late_on_the_clock_is_not_late() -> None:
    bench = unarmed(clock=ManualClock(100.0), end_s=101.0)
    bench.run()
    assert bench.ticks()[0] == ev.Tick(100.0, 0.0)


def test_lateness_is_measured_and_journaled_and_not_caught_up() -> None:
    bench = unarmed(script={2.0: lambda b: b.clock.advance(3.0)}, end_s=6.5)
    bench.run()
    late = [tick for tick in bench.ticks() if tick.lateness_s > 0.0]
    assert [tick.lateness_s for tick in late] == pytest.approx([2.75])
    after_s = [tick.at_s for tick in bench.ticks() if tick.at_s >= 5.0]
    assert after_s[:3] == pytest.approx([5.0, 5.25, 5.5])
    assert bench.written.count("event.Tick") == 1


def test_a_little_lateness_does_not_shift_the_cadence() -> None:
    bench = unarmed(script={1.0: lambda b: b.clock.advance(0.35)}, end_s=2.0)
    bench.run()
    times_s = [tick.at_s for tick in bench.ticks()]
    assert times_s[4:8] == pytest.approx([1.0, 1.35, 1.5, 1.75])


def test_a_late_tick_after_arming_ends_the_run() -> None:
    bench = Bench(script={1.0: lambda b: b.clock.advance(2.0)})
    assert bench.run() == ExitCode.REFUSED
    last = bench.ticks()[-1]
    assert (last.at_s, last.lateness_s) == pytest.approx((3.0, 1.75))
    assert bench.seen[-1][1] == last


def test_events_are_taken_before_the_next_tick_is_due() -> None:
    bench = Bench(end_s=1.0)
    bench.run()
    kinds = [type(event).__name__ for _, event in bench.seen[:4]]
    assert kinds == ["Tick", "GuardArmed", "GuardArmed", "GuardArmed"]


def test_passes_that_take_longer_than_a_tick_do_not_starve_the_queue() -> None:
    bench = unarmed(pass_s=0.3, end_s=3.0)
    assert bench.run() == ExitCode.INTERRUPTED
    assert bench.seen[-1][0] < 5.0


def test_a_hung_decider_stops_beating() -> None:
    bench = unarmed(hang_after_s=3.1, end_s=20.0)
    bench.run()
    beats_s = bench.beats_s()
    assert [at_s for at_s in beats_s if at_s <= 3.25] == pytest.approx([0.0, 1.0, 2.0, 3.0])
    assert not [at_s for at_s in beats_s if 3.25 < at_s < 63.0]


def test_a_journal_that_stalls_ends_the_run() -> None:
    def stall(bench: Bench) -> None:
        bench.journal_age_s = 2.1

    bench = Bench(script={1.0: stall})
    assert bench.run() == ExitCode.REFUSED
    last = bench.seen[-1][1]
    assert isinstance(last, ev.StopRequested)
    assert last.reason is StopReason.LATE_JOURNAL
    assert last.at_s == pytest.approx(1.25)


def test_a_journal_within_its_limit_is_no_matter() -> None:
    bench = unarmed(journal_age_s=2.0, end_s=2.0)
    assert bench.run() == ExitCode.INTERRUPTED


def test_i8_each_effect_is_handed_to_the_journal_before_it_acts() -> None:
    bench = Bench(end_s=1.0)
    bench.run()
    armed = bench.order.index("perform ArmGuards")
    assert bench.order[armed - 1] == "write effect.ArmGuards"
    finish = bench.order.index("perform Finish")
    assert bench.order[finish - 1] == "write effect.Finish"
    assert "write effect.Beat" not in bench.order
