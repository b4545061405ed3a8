"""A run in the log: a line for each thing that happened, with run, phase and node bound to it.

The narrator tells the operator, the journal is the record; this is for grep and for whoever ships
logs. Called by the loop between two ticks: it makes lines and waits for nothing.
"""

from collections.abc import Callable

from stressor.core import effects as fx
from stressor.core import events as ev
from stressor.core.state import RunState, Stage
from stressor.log import Log
from stressor.model import PROVEN, Breach

Watch = Callable[[RunState, ev.Event, tuple[fx.Effect, ...]], None]
_BEFORE_LOAD = frozenset({Stage.ARMING, Stage.BASELINE})


def logged(log: Log, run: str, watch: Watch) -> Watch:
    """`watch`, and after it the same event in the log, whose lines carry `run`."""
    bound = log.bind(run=run)

    def both(state: RunState, event: ev.Event, effects: tuple[fx.Effect, ...]) -> None:
        watch(state, event, effects)
        here = bound if state.stage in _BEFORE_LOAD else bound.bind(phase=state.step.phase)
        say_event(here, event)
        for effect in effects:
            say_effect(here, effect)

    return both


def say_event(log: Log, event: ev.Event) -> None:
    """Ticks and acknowledged beats are the journal's; each sample is a line of the DEBUG level."""
    match event:
        case ev.SampleTaken():
            sample = event.sample
            log.debug("sample", node=sample.source, signal=sample.signal, value=sample.value)
        case ev.GuardArmed() | ev.GuardRefused() | ev.GuardLost() | ev.GuardTripped():
            _say_guard(log.bind(node=event.host), event)
        case ev.LoadCreated() | ev.LoadSeen() | ev.LoadFinished() | ev.StartDropped():
            _say_load(log, event)
        case ev.HostProven():
            _say_proof(log, event)
        case ev.StopRequested():
            log.warning("stop requested", reason=event.reason, detail=event.detail)
        case ev.CleanupDone():
            say = log.info if event.ok else log.warning
            say("api cleaned" if event.ok else "api not cleaned", detail=event.detail)
        case ev.Tick() | ev.GuardAcknowledged():
            pass


_Guard = ev.GuardArmed | ev.GuardRefused | ev.GuardLost | ev.GuardTripped
_Load = ev.LoadCreated | ev.LoadSeen | ev.LoadFinished | ev.StartDropped


def _say_guard(log: Log, event: _Guard) -> None:
    match event:
        case ev.GuardArmed():
            log.info("guard armed", facts=event.facts)
        case ev.GuardRefused():
            log.error("guard refused", reason=event.reason)
        case ev.GuardLost():
            log.error("guard lost", reason=event.reason)
        case ev.GuardTripped():
            log.error("guard tripped", reason=event.reason)


def _say_load(log: Log, event: _Load) -> None:
    match event:
        case ev.LoadCreated():
            log.info("jobs created", step=event.step)
        case ev.LoadSeen():
            log.debug("load seen", node=event.host, processes=event.processes)
        case ev.LoadFinished():
            result = event.result
            log.info("load finished", node=result.node, step=event.step, verdict=result.verdict)
        case ev.StartDropped():
            made = event.created
            log.error("start dropped", step=event.step, created=made, reason=event.reason)


def _say_proof(log: Log, event: ev.HostProven) -> None:
    proof = event.proof
    proven = proof.state in PROVEN
    say = log.info if proven else log.error
    say(
        "host proven" if proven else "host not proven",
        node=proof.host,
        state=proof.state,
        stopped=proof.stopped,
        took_s=proof.took_s,
        cold=event.cold,
        detail=proof.detail,
    )


def say_effect(log: Log, effect: fx.Effect) -> None:
    """Orders that change what goes on; beats and looks are the journal's."""
    match effect:
        case fx.StartLoad():
            step = effect.step
            log.info("load ordered", step=step.index, kind=step.kind, nodes=step.nodes)
        case fx.WarnOperator():
            log.warning("gate warns", **_breach(effect.breach))
        case fx.StopLoad():
            cause = {} if effect.breach is None else _breach(effect.breach)
            log.error("load is stopped", reason=effect.reason, detail=effect.detail, **cause)
        case fx.ColdKill():
            log.warning("cold kill", node=effect.host)
        case fx.Finish():
            log.info("run ended", exit_code=effect.exit_code, summary=effect.summary)
        case _:
            pass


def _breach(breach: Breach) -> dict[str, object]:
    gate = breach.gate
    limit = f"{gate.comparison} {gate.limit:g}"
    return {"node": breach.source, "signal": gate.signal, "value": breach.value, "limit": limit}
