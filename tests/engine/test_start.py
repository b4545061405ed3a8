"""Starting load: nothing is created unless the journal is on disk and every guard answers."""

import queue
from dataclasses import dataclass, field, replace

import pytest

from stressor.core import effects as fx
from stressor.core import events as ev
from stressor.engine.start import Starter
from stressor.model import Plan
from stressor.testing.clock import ManualClock
from stressor.testing.kube import FakeKube, Fault
from stressor.testing.story import NODES, a_plan, one_step

STEP = one_step(params={"workers": 1, "load": "10%"}, kind="cpu")


@dataclass(slots=True)
class Bench:
    """A starter over an API in memory. `silent` guards do not answer, `slow_s` is what asking
    them costs, `synced` says whether the journal reaches the disk."""

    synced: bool = True
    silent: tuple[str, ...] = ()
    slow_s: float = 0.0
    plan: Plan = field(default_factory=lambda: a_plan(STEP))
    kube: FakeKube = field(default_factory=FakeKube)
    clock: ManualClock = field(default_factory=ManualClock)
    events: queue.SimpleQueue[ev.Event] = field(default_factory=queue.SimpleQueue)

    def sync(self, timeout_s: float) -> bool:
        return self.synced

    def round_trip(self, hosts: tuple[str, ...], deadline_s: float) -> tuple[str, ...]:
        assert hosts == self.plan.guarded
        self.clock.advance(self.slow_s)
        return self.silent

    def start(self, *, halted: bool = False) -> ev.Event:
        for node in NODES:
            self.kube.api.add_node(node)
        starter = Starter(self.plan, self.clock, self.events, self, self, self.kube, str)
        if halted:
            starter.halted.set()
        starter.start(fx.StartLoad(self.plan.steps[0], self.clock.now_s()))
        event = self.events.get(timeout=5.0)
        assert starter.idle.wait(5.0)
        return event

    def jobs(self) -> int:
        return len(self.kube.jobs(self.plan.run, deadline_s=1.0))


def test_a_job_for_each_node() -> None:
    bench = Bench()
    assert bench.start() == ev.LoadCreated(0.0, 0)
    assert bench.jobs() == len(NODES)


def test_i8_no_job_before_the_journal_is_on_disk() -> None:
    bench = Bench(synced=False)
    assert isinstance(dropped := bench.start(), ev.StartDropped)
    assert (dropped.created, bench.jobs()) == (0, 0)


def test_i1_no_job_when_a_guard_does_not_answer() -> None:
    bench = Bench(silent=("n1",))
    assert isinstance(dropped := bench.start(), ev.StartDropped)
    assert "n1" in dropped.reason
    assert (dropped.created, bench.jobs()) == (0, 0)


def test_an_order_older_than_two_seconds_is_void() -> None:
    bench = Bench(slow_s=2.1)
    assert isinstance(dropped := bench.start(), ev.StartDropped)
    assert (dropped.created, bench.jobs()) == (0, 0)


def test_i3_a_stopped_run_creates_nothing() -> None:
    bench = Bench()
    assert isinstance(dropped := bench.start(halted=True), ev.StartDropped)
    assert (dropped.created, bench.jobs()) == (0, 0)


@pytest.mark.parametrize(("status", "created"), [(403, 0), (0, 1)])
def test_i4_a_job_that_may_exist_is_counted(status: int, created: int) -> None:
    """The API refuses the first Job: it does not exist. It does not answer: it may."""
    bench = Bench()
    bench.kube.api.fail(Fault("POST", "/jobs", status, lands=status == 0))
    assert isinstance(dropped := bench.start(), ev.StartDropped)
    assert (dropped.created, bench.jobs()) == (created, created)


def test_start_by_never_passes_the_end() -> None:
    """A deadline shorter than the margin: the entry point needs a start before its end."""
    bench = Bench(plan=a_plan(replace(STEP, deadline_s=40.0, hold_s=10.0)))
    assert isinstance(bench.start(), ev.LoadCreated)
