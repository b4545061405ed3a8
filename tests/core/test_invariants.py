"""The invariants that the decider carries, each under its number in ARCHITECTURE.md."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stressor.core import effects as fx
from stressor.core import events as ev
from stressor.core.run import step
from stressor.core.state import STOPPED, RunState, Stage
from stressor.core.stopping import BUDGET_S, COLD_AFTER_S, COLD_AGAIN_S
from stressor.errors import ExitCode
from stressor.model import PROVEN, HostProof, HostState, LoadResult, Sample, StopReason, Verdict
from stressor.testing.story import HOSTS, NODES, WARN, Story, a_plan, one_step

PLAN = a_plan(one_step(deadline_s=20.0), one_step(1, deadline_s=20.0))
hosts = st.sampled_from((*HOSTS, "stranger"))
indexes = st.integers(0, 2)
tooks = st.sampled_from((None, 0.0, 0.2, 30.0))
proofs = st.builds(HostProof, hosts, st.sampled_from(HostState), took_s=tooks)
values = st.sampled_from((0.005, 0.5, None, float("nan")))
results = st.builds(LoadResult, hosts, st.sampled_from(Verdict))


text = st.just("x")
samples = values.map(lambda v: Sample(4.0, "fsync_p99_s", "cp", v))
happenings = st.one_of(
    st.tuples(st.just(ev.Tick), st.sampled_from((0.0, 0.0, 0.0, 5.0))),
    st.tuples(st.just(ev.SampleTaken), samples),
    st.tuples(st.just(ev.GuardArmed), hosts, st.just(())),
    st.tuples(st.just(ev.GuardRefused), hosts, text, st.sampled_from((None, "r0"))),
    st.tuples(st.just(ev.GuardAcknowledged), hosts, st.just("kill"), st.just(0.1)),
    st.tuples(st.just(ev.GuardLost), hosts, text),
    st.tuples(st.just(ev.GuardTripped), hosts, st.sampled_from(("beat", "tombstone"))),
    st.tuples(st.just(ev.LoadCreated), indexes),
    st.tuples(st.just(ev.StartDropped), indexes, text, st.integers(0, 2)),
    st.tuples(st.just(ev.LoadSeen), hosts, st.integers(0, 2), st.just(())),
    st.tuples(st.just(ev.LoadFinished), indexes, results),
    st.tuples(st.just(ev.HostProven), proofs),
    st.tuples(st.just(ev.StopRequested), st.sampled_from(StopReason), text),
    st.tuples(st.just(ev.CleanupDone), st.booleans(), text),
)
Happening = tuple[float, tuple[Any, ...]]
spans = st.sampled_from((0.0, 0.25, 1.0, 10.0))
courses = st.lists(st.tuples(spans, happenings), max_size=8)
WAYS = 6


def suffer(story: Story, happening: Happening) -> None:
    """Time passes, then something arrives."""
    after_s, (kind, *rest) = happening
    story.at_s += after_s
    story.tell(kind(story.at_s, *rest))


def reached(ways: int, course: list[Happening]) -> Story:
    """A story somewhere on its good way, then anything at all."""
    story = Story(PLAN)
    way = (
        story.to_starting,
        story.created,
        story.seen,
        story.finished,
        story.proven,
        lambda: story.quiet(2.0),
    )
    for go in way[:ways]:
        go()
    for happening in course:
        suffer(story, happening)
    return story


stories = st.builds(reached, st.integers(0, WAYS), courses)


def test_i1_no_start_before_every_guard_is_armed_and_every_gate_has_a_good_value() -> None:
    story = Story().arm("cp", "n1").quiet(10.0)
    assert story.count(fx.StartLoad) == 0
    story.arm("n2")
    for _ in range(10):
        story.sample(None).tick()
    assert story.count(fx.StartLoad) == 0
    assert story.sample(0.005).tick().count(fx.StartLoad) == 1


@settings(max_examples=30, deadline=None)
@given(stories)
def test_i1_holds_after_any_events(story: Story) -> None:
    if story.count(fx.StartLoad):
        assert story.state.armed >= frozenset(HOSTS)


@settings(max_examples=40, deadline=None)
@given(stories, courses)
def test_i3_aborting_is_absorbing(story: Story, course: list[Happening]) -> None:
    story.stop()
    if story.state.stop is None:
        return
    for happening in course:
        suffer(story, happening)
        assert not [e for e in story.last if isinstance(e, fx.StartLoad | fx.ArmGuards | fx.Beat)]
        assert story.stage in STOPPED


def test_i4_stale_fires_like_a_breach() -> None:
    story = Story().to_loading()
    fine_s = story.at_s - 0.25
    while not story.is_at(Stage.ABORTING):
        _answers(story).sample(None).tick()
    assert 3.0 < story.at_s - fine_s <= 3.25
    assert story.state.stop is not None
    assert story.state.stop.reason is StopReason.STALE


def test_i4_nothing_measured_at_all_is_unknown() -> None:
    story = Story().to_starting().created().finished().proven().quiet(2.5).cleaned()
    assert story.exit_code == ExitCode.INCONCLUSIVE


@settings(max_examples=40, deadline=None)
@given(stories)
def test_i5_no_exit_0_or_99_without_proof_of_every_guarded_host(story: Story) -> None:
    if story.exit_code in (ExitCode.PASS, ExitCode.BREACH):
        states = {story.state.proofs[h].state for h in HOSTS}
        assert states <= PROVEN


@settings(max_examples=30, deadline=None)
@given(stories, happenings)
def test_i9_step_is_deterministic(story: Story, happening: tuple[Any, ...]) -> None:
    event = happening[0](story.at_s, *happening[1:])
    before: RunState = replace(story.state)
    assert step(story.state, event) == step(before, event)
    assert story.state == before


@settings(max_examples=30, deadline=None)
@given(stories)
def test_every_state_comes_to_an_end_by_ticks_alone(story: Story) -> None:
    for _ in range(300):
        story.tick(0.5)
    assert story.is_at(Stage.ENDED)


def test_a_pass_needs_load_that_was_seen_and_died() -> None:
    story = Story().to_loading().quiet(5.0).finished().proven().quiet(2.5)
    assert (story.stage, fx.CleanUp(suspend_only=False) in story.said) == (Stage.CLEANING, True)
    assert story.cleaned().exit_code == ExitCode.PASS
    assert story.last[0] == fx.Disarm()


def test_a_lost_guard_before_load_is_a_refusal() -> None:
    story = Story().arm().tell(ev.GuardLost(1.0, "n1", "eof"))
    assert (story.exit_code, story.count(fx.StopLoad)) == (ExitCode.REFUSED, 0)


@pytest.mark.parametrize(("prove", "code"), [(True, 99), (False, 98)])
def test_a_lost_guard_under_load_is_a_kill(prove: bool, code: int) -> None:
    story = Story().to_loading()
    story.tell(ev.GuardLost(story.at_s, "n1", "eof"))
    assert story.count(fx.StopLoad) == 1
    if prove:
        story.proven()
    assert story.quiet(BUDGET_S + 1).cleaned().exit_code == code


def test_a_held_lock_is_a_refusal_of_its_own() -> None:
    story = Story().tell(ev.GuardRefused(1.0, "n1", "busy", lock_holder="r0"))
    assert story.exit_code == ExitCode.LOCK_HELD


def test_a_late_tick_stops_load_but_not_arming() -> None:
    assert Story().tick(lateness_s=30.0).is_at(Stage.ARMING)
    assert Story().to_loading().tick(lateness_s=1.0).is_at(Stage.LOADING)
    story = Story().to_loading().tick(lateness_s=1.01)
    assert story.state.stop is not None
    assert story.state.stop.reason is StopReason.LATE_TICK


@pytest.mark.parametrize(
    ("index", "created", "code"), [(0, 0, ExitCode.REFUSED), (0, 1, None), (1, 0, None)]
)
def test_a_dropped_start_is_a_refusal_only_if_no_job_ever_existed(
    index: int, created: int, code: int | None
) -> None:
    story = Story(PLAN).to_starting()
    if index:
        story.created().seen().finished().proven().quiet(2.5)
    story.tell(ev.StartDropped(story.at_s, index, "late", created))
    assert (story.exit_code, story.is_at(Stage.ABORTING)) == (code, code is None)


def test_ctrl_c_before_load_is_130() -> None:
    assert Story().arm().stop().exit_code == ExitCode.INTERRUPTED


@pytest.mark.parametrize(("prove", "code"), [(True, 130), (False, 98)])
def test_ctrl_c_under_load_is_130_only_with_proof(prove: bool, code: int) -> None:
    story = Story().to_loading().stop()
    if prove:
        story.proven()
    assert story.quiet(BUDGET_S + 1).cleaned().exit_code == code


def test_a_frozen_guard_gets_a_cold_kill_again_and_again_within_the_budget() -> None:
    story = Story().to_loading().stop().proven("cp", "n2")
    stopped_s, cold_s = story.at_s, []
    while story.is_at(Stage.ABORTING):
        story.tick()
        cold_s += [story.at_s - stopped_s for e in story.last if e == fx.ColdKill("n1")]
    assert COLD_AFTER_S < cold_s[0] <= COLD_AFTER_S + 0.25
    assert all(COLD_AGAIN_S < b - a <= COLD_AGAIN_S + 0.5 for a, b in pairwise(cold_s))
    assert len(cold_s) == 4
    assert BUDGET_S < story.at_s - stopped_s <= BUDGET_S + 0.25
    assert story.cleaned().exit_code == ExitCode.NOT_PROVEN_DEAD


def test_silence_never_erases_proof_and_survivors_do() -> None:
    story = Story().to_loading().stop().proven("n1")
    assert "n1" not in story.proven("n1", state=HostState.UNREACHABLE).state.unproven(HOSTS)
    assert "n1" in story.proven("n1", state=HostState.SURVIVORS).state.unproven(HOSTS)


def test_a_warning_is_said_once_and_stops_nothing() -> None:
    story = Story(a_plan(one_step(gates=(*PLAN.steps[0].gates, WARN)))).to_loading()
    story.sample(0.05).sample(0.05)
    assert (story.count(fx.WarnOperator), story.is_at(Stage.LOADING)) == (1, True)


def test_load_past_its_deadline_is_stopped() -> None:
    story = Story().to_loading().quiet(60.5)
    assert story.state.stop is not None
    assert story.state.stop.reason is StopReason.DEADLINE


def test_load_that_never_appears_is_stopped() -> None:
    story = Story().to_starting().created().seen(NODES[0]).quiet(45.5)
    assert story.state.stop is not None
    assert story.state.stop.reason is StopReason.START_FAILED
    assert "n2" in story.state.stop.detail


def _answers(story: Story) -> Story:
    return story.tell(*(ev.GuardAcknowledged(story.at_s, h, "beat", 0.01) for h in HOSTS))
