"""Sequences of events that an unlucky or lying world may produce, and that once led astray."""

import math

import pytest

from stressor.core import effects as fx
from stressor.core import events as ev
from stressor.core.run import STARTING_LIMIT_S
from stressor.core.state import Stage
from stressor.core.stopping import BUDGET_S, START_BY_S
from stressor.errors import ExitCode
from stressor.model import HostState, Plan, StopReason, Verdict
from stressor.testing.story import FSYNC, LOAD, NODES, Story, a_plan, one_step


def test_a_start_that_nobody_answers_does_not_go_on_for_ever() -> None:
    story = Story().to_starting()
    assert story.is_at(Stage.STARTING)
    story.quiet(STARTING_LIMIT_S + 0.5)
    assert story.is_at(Stage.ABORTING)
    assert story.state.stop is not None
    assert story.state.stop.reason is StopReason.START_FAILED


def test_a_start_that_nobody_answers_is_bounded_by_the_deadline_too() -> None:
    story = Story(a_plan(one_step(deadline_s=5.0))).to_starting().quiet(5.5)
    assert story.state.stop is not None
    assert story.state.stop.reason is StopReason.DEADLINE


def test_a_host_that_is_not_in_the_plan_does_not_stand_in_for_one_that_is() -> None:
    story = Story().arm("cp", "stranger").quiet(5.0)
    assert story.is_at(Stage.ARMING)
    assert story.arm("n1", "n2").is_at(Stage.BASELINE)


def test_a_node_that_is_not_in_the_step_does_not_end_it() -> None:
    story = Story().to_loading().finished("n1", "stranger")
    assert story.is_at(Stage.LOADING)
    assert story.finished("n2").is_at(Stage.PROVING)


def test_load_that_ended_before_its_creation_was_told_is_unknown_and_not_waited_for() -> None:
    story = Story().to_starting().finished().created()
    assert story.is_at(Stage.PROVING)
    assert story.state.verdicts == (Verdict.UNKNOWN,)


def test_news_of_another_step_is_not_taken_for_this_one() -> None:
    story = Story().to_starting().created(index=7)
    story.tell(ev.StartDropped(story.at_s, 7, "old", 0))
    assert story.is_at(Stage.STARTING)


def test_ticks_that_never_come_do_not_hold_up_an_abort() -> None:
    """The loop sends StopRequested in place of every tick while the journal's disk stalls."""
    story = Story().to_loading().stop(StopReason.LATE_JOURNAL)
    for _ in range(200):
        story.at_s += 0.25
        story.stop(StopReason.LATE_JOURNAL)
    assert story.count(fx.ColdKill) >= 3
    story.at_s += 50.0
    assert story.stop().exit_code == ExitCode.NOT_PROVEN_DEAD


def test_a_proof_from_before_the_stop_proves_nothing() -> None:
    story = Story().to_loading().stop()
    story.at_s += 0.1
    assert story.proven(took_s=4.0).is_at(Stage.ABORTING)
    assert story.proven(took_s=0.05).is_at(Stage.CLEANING)


def test_a_proof_without_a_last_word_of_the_host_proves_nothing() -> None:
    assert Story().to_loading().stop().proven(took_s=None).is_at(Stage.ABORTING)


def test_a_proof_from_an_earlier_step_does_not_end_this_one() -> None:
    story = Story().to_loading().quiet(5.0).finished()
    story.at_s += 0.1
    assert story.proven(took_s=3.0).is_at(Stage.PROVING)
    assert story.proven(took_s=0.05).is_at(Stage.COOLING)


def test_survivors_that_show_up_after_the_proof_stop_the_run() -> None:
    story = Story().to_loading().finished().proven().proven("n1", state=HostState.SURVIVORS)
    assert story.is_at(Stage.ABORTING)
    assert story.state.stop is not None
    assert story.state.stop.reason is StopReason.LEFTOVERS


def test_survivors_that_show_up_while_cleaning_forbid_a_pass() -> None:
    story = Story().to_loading().finished().proven().quiet(2.5)
    assert story.is_at(Stage.CLEANING)
    story.proven("n2", state=HostState.SURVIVORS).cleaned()
    assert story.exit_code == ExitCode.NOT_PROVEN_DEAD


def test_guards_stay_on_watch_where_death_was_not_proven() -> None:
    story = Story().to_loading().stop().quiet(BUDGET_S + 1.0).cleaned()
    assert story.exit_code == ExitCode.NOT_PROVEN_DEAD
    assert story.count(fx.Disarm) == 0


def test_an_early_stop_waits_for_pods_that_may_still_start() -> None:
    """Clean hosts prove nothing while accepted Jobs may still reach their kubelets."""
    story = Story().to_starting().created().stop()
    assert fx.CleanUp(suspend_only=True) in story.last
    story.proven()
    assert story.is_at(Stage.ABORTING)
    story.quiet(START_BY_S - 1.0)
    assert (story.stage, story.count(fx.ProveClean)) == (Stage.ABORTING, 0)
    story.quiet(2.0)
    assert fx.ProveClean(NODES) in story.said
    assert story.proven(*NODES).cleaned().exit_code == ExitCode.INTERRUPTED


def test_an_early_stop_without_a_second_proof_is_not_proven() -> None:
    story = Story().to_starting().created().stop().proven()
    story.quiet(START_BY_S + BUDGET_S + 2.0).cleaned()
    assert story.exit_code == ExitCode.NOT_PROVEN_DEAD


def test_an_early_stop_need_not_wait_for_a_start_that_was_dropped_whole() -> None:
    story = Story().to_starting().stop().proven()
    assert story.is_at(Stage.ABORTING)
    assert story.tell(ev.StartDropped(story.at_s, 0, "stopped", 0)).is_at(Stage.CLEANING)


def test_an_early_stop_waits_for_a_start_that_was_dropped_in_part() -> None:
    story = Story().to_starting().stop().proven()
    assert story.tell(ev.StartDropped(story.at_s, 0, "stopped", 1)).is_at(Stage.ABORTING)


def test_not_a_number_is_not_a_good_value() -> None:
    story = Story().arm()
    for _ in range(20):
        story.sample(math.nan).tell(*(_beat(story, h) for h in story.plan.guarded)).tick()
    assert story.exit_code == ExitCode.REFUSED
    assert story.count(fx.StartLoad) == 0


def test_a_later_step_waits_for_good_values_of_its_own_gates() -> None:
    plan = a_plan(one_step(), one_step(1, gates=(LOAD,)))
    story = Story(plan).to_loading().finished().proven()
    assert story.is_at(Stage.COOLING)
    for _ in range(10):
        story.tell(*(_beat(story, h) for h in plan.guarded)).sample(0.005).tick()
    assert (story.stage, story.count(fx.StartLoad)) == (Stage.COOLING, 1)
    assert story.sample(1.0, "load_1m", "n1").tick().count(fx.StartLoad) == 2


@pytest.mark.parametrize(
    ("plan", "word"),
    [
        (a_plan(steps=()), "no steps"),
        (a_plan(guarded=("cp", "n1")), "n2"),
        (a_plan(one_step(nodes=())), "no node"),
        (a_plan(sources={"fsync_p99_s": ()}), "fsync_p99_s"),
        (a_plan(sources={}), "fsync_p99_s"),
        (a_plan(periods_s={}), "fsync_p99_s"),
        (a_plan(one_step(), one_step(1, gates=(LOAD,)), sources={"fsync_p99_s": ("cp",)}), "load"),
        (a_plan(one_step(gates=())), "gate"),
        (a_plan(one_step(index=3)), "index"),
    ],
)
def test_a_plan_that_cannot_be_watched_is_refused_before_arming(plan: Plan, word: str) -> None:
    story = Story(plan)
    assert (story.exit_code, story.count(fx.ArmGuards)) == (ExitCode.REFUSED, 0)
    (finish,) = (e for e in story.said if isinstance(e, fx.Finish))
    assert word in finish.summary
    assert story.tick().last == ()


def test_a_deadline_counts_from_a_start_at_time_zero() -> None:
    story = Story(a_plan(baseline_s=0.0)).arm().sample(0.005).tick(0.0).created().seen()
    assert story.state.load_since_s == 0.0
    story.quiet(60.5)
    assert story.state.stop is not None
    assert story.state.stop.reason is StopReason.DEADLINE


def test_a_worse_result_of_a_node_is_not_forgotten() -> None:
    story = Story().to_loading().finished("n1", verdict=Verdict.FAIL).finished("n1", "n2")
    assert story.state.verdicts == (Verdict.FAIL,)


def _beat(story: Story, host: str) -> ev.Event:
    return ev.GuardAcknowledged(story.at_s, host, "beat", 0.01)


def test_the_gate_of_these_stories_is_a_stopping_one() -> None:
    assert Story().to_loading().sample(FSYNC.limit * 2).is_at(Stage.ABORTING)
