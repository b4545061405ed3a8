"""The real decider in simulated clusters: `STRESSOR_SIM_SEEDS=0:5000` runs other or more seeds."""

import os
from collections import Counter

import pytest

from stressor.core import effects as fx
from stressor.core import events as ev
from stressor.errors import ExitCode
from stressor.testing.sim import SimCluster, Violation
from stressor.testing.simhost import Fault

FIRST, LAST = (int(n) for n in os.environ.get("STRESSOR_SIM_SEEDS", "0:200").split(":"))
BATCH = 20


@pytest.mark.parametrize("first", range(FIRST, LAST, BATCH))
def test_no_seed_breaks_an_invariant(first: int) -> None:
    for seed in range(first, min(first + BATCH, LAST)):
        SimCluster.seeded(seed).run()


def test_same_seed_same_run() -> None:
    one, other = SimCluster.seeded(11), SimCluster.seeded(11)
    assert (one.run(), one.history) == (other.run(), other.history)
    assert len(one.history) > 20


def test_seeds_reach_every_kind_of_end() -> None:
    codes = Counter(SimCluster.seeded(seed).run() for seed in range(150))
    assert {None, 0, 3, 6, 98, 99, 130} <= set(codes)


def test_a_run_without_faults_passes() -> None:
    sim = SimCluster.seeded(0)
    sim.faults = {}
    assert sim.run() == ExitCode.PASS
    starts = [e for _, e in sim.history if isinstance(e, fx.StartLoad)]
    assert [s.step.index for s in starts] == [0, 1]


@pytest.mark.parametrize("fault", Fault)
def test_each_fault_alone_under_load(fault: Fault) -> None:
    for seed in range(4):
        sim = SimCluster.seeded(seed)
        sim.faults = {fault: 7.0}
        sim.run()


def test_a_slow_disk_is_stopped_within_two_seconds() -> None:
    sim = SimCluster.seeded(1)
    sim.faults = {Fault.SLOW_FSYNC: 7.0}
    assert sim.run() == ExitCode.BREACH
    at_s = [i for i, (_, e) in enumerate(sim.history) if isinstance(e, fx.StopLoad)]
    before = [e for _, e in sim.history[: at_s[0]] if isinstance(e, ev.SampleTaken)]
    assert before[-1].at_s <= 8.5


def test_a_violation_names_its_seed_and_how_to_replay_it() -> None:
    sim = SimCluster.seeded(3)
    sim.stop_sent = True
    with pytest.raises(
        Violation, match=r"after the stop .*\n.*seed 3(.|\n)*STRESSOR_SIM_SEEDS=3:4"
    ):
        sim.run()
