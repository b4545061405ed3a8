"""A run in the log: what is said of each event, and to which run, phase and node it belongs."""

import io

import pytest

from stressor import log
from stressor.cli.run_log import logged
from stressor.core import effects as fx
from stressor.core import events as ev
from stressor.core.state import RunState, Stage
from stressor.log import Level
from stressor.model import (
    Breach,
    HostProof,
    HostState,
    LoadResult,
    Sample,
    StopReason,
    Verdict,
)
from tests.report.journals import PLAN, SLOW, STEP

NOTHING: tuple[fx.Effect, ...] = ()


def _said(
    stage: Stage, event: ev.Event, *effects: fx.Effect, level: Level = Level.INFO
) -> list[str]:
    """The lines without their time, and without the run, which each must carry."""
    screen = io.StringIO()
    with log.start(level, stderr=screen) as base:
        watch = logged(base, "r1", lambda *_: None)
        watch(RunState(PLAN, stage, 0.0), event, effects)
    lines = screen.getvalue().splitlines()
    assert all(" run=r1" in line for line in lines)
    return [line.split(" ", 1)[1].replace(" run=r1", "") for line in lines]


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (ev.GuardLost(1.0, "n1", "eof"), 'error event="guard lost" node=n1 reason=eof'),
        (ev.GuardTripped(1.0, "n1", "beat"), 'error event="guard tripped" node=n1 reason=beat'),
        (ev.GuardRefused(1.0, "n1", "no"), 'error event="guard refused" node=n1 reason=no'),
        (ev.GuardArmed(1.0, "n1", ("a", "b")), 'info event="guard armed" node=n1 facts=a,b'),
        (ev.LoadCreated(1.0, 0), 'info event="jobs created" step=0'),
        (
            ev.LoadFinished(1.0, 0, LoadResult("n1", Verdict.PASS, {})),
            'info event="load finished" node=n1 step=0 verdict=pass',
        ),
        (
            ev.StartDropped(1.0, 0, "late", 0),
            'error event="start dropped" step=0 created=0 reason=late',
        ),
        (
            ev.StopRequested(1.0, StopReason.OPERATOR, "Ctrl-C"),
            'warning event="stop requested" reason=operator detail=Ctrl-C',
        ),
        (ev.CleanupDone(1.0, False, "down"), 'warning event="api not cleaned" detail=down'),
        (ev.CleanupDone(1.0, True, "gone"), 'info event="api cleaned" detail=gone'),
        (
            ev.HostProven(1.0, HostProof("n1", HostState.CLEAN, took_s=0.25)),
            'info event="host proven" node=n1 state=CLEAN stopped=0 took_s=0.25 cold=false detail=',
        ),
        (
            ev.HostProven(1.0, HostProof("n1", HostState.UNREACHABLE, detail="gone"), cold=True),
            'error event="host not proven" node=n1 state=UNREACHABLE stopped=0 took_s=? '
            "cold=true detail=gone",
        ),
    ],
)
def test_an_event_is_one_line_with_its_node(event: ev.Event, line: str) -> None:
    (said,) = _said(Stage.ARMING, event)
    assert said == f"level={line}"


def test_the_phase_is_bound_from_its_start_on() -> None:
    event = ev.GuardLost(1.0, "n1", "eof")
    for stage in Stage:
        (line,) = _said(stage, event)
        assert (" phase=disk node=n1" in line) is (stage not in (Stage.ARMING, Stage.BASELINE))


def test_effects_that_change_what_goes_on_are_lines_too() -> None:
    breach = Breach(1.0, SLOW, "n1", None, 1.5)
    effects = (
        fx.StartLoad(STEP, 1.0),
        fx.WarnOperator(breach),
        fx.StopLoad(StopReason.STALE, "no value", breach),
        fx.StopLoad(StopReason.OPERATOR, "asked"),
        fx.ColdKill("n2"),
        fx.Beat(),
        fx.Finish(99, "stopped"),
    )
    gate = 'node=n1 {}signal=etcd_wal_fsync_slow_count value=? limit="above 0"'
    assert _said(Stage.ARMING, ev.Tick(1.0, 0.0), *effects) == [
        'level=info event="load ordered" step=0 kind=disk nodes=node1,node2',
        f'level=warning event="gate warns" {gate.format("")}',
        'level=error event="load is stopped" ' + gate.format('reason=stale detail="no value" '),
        'level=error event="load is stopped" reason=operator detail=asked',
        'level=warning event="cold kill" node=n2',
        'level=info event="run ended" exit_code=99 summary=stopped',
    ]


def test_samples_and_looks_are_for_debugging_and_ticks_for_nobody() -> None:
    sample = ev.SampleTaken(1.0, Sample(1.0, "etcd_has_leader", "n1", 1.0))
    looked = ev.LoadSeen(1.0, "n1", 33, ("fio",))
    for event in (sample, looked):
        assert _said(Stage.LOADING, event) == []
        assert len(_said(Stage.LOADING, event, level=Level.DEBUG)) == 1
    for silent in (ev.Tick(1.0, 0.0), ev.GuardAcknowledged(1.0, "n1", "beat", 0.01)):
        assert _said(Stage.LOADING, silent, level=Level.DEBUG) == []


def test_who_watched_before_still_does_and_does_first() -> None:
    seen: list[ev.Event] = []
    tick = ev.Tick(1.0, 0.0)
    with log.start(Level.ERROR) as base:
        watch = logged(base, "r1", lambda _state, event, _effects: seen.append(event))
        watch(RunState(PLAN, Stage.LOADING, 0.0), tick, NOTHING)
    assert seen == [tick]
