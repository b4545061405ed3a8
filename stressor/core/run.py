"""The decider: `step(state, event) -> (state, effects)`, pure (I9).

A run goes arming → baseline → for each step: starting → appearing → loading → proving → cooling →
cleaning → ended. Anything wrong leads to `core.stopping`, and no way leads back to load (I3).
Times are seconds of the run's clock and come in with the events.
"""

from dataclasses import replace
from typing import assert_never

from stressor.core import effects as fx
from stressor.core import events as ev
from stressor.core import stopping
from stressor.core.schedule import flaws
from stressor.core.state import STOPPED, RunState, Stage
from stressor.core.thresholds import breach, observe, watches
from stressor.core.verdict import merge
from stressor.model import (
    PROVEN,
    Gate,
    GateAction,
    HostProof,
    HostState,
    LoadResult,
    Plan,
    Sample,
    StopReason,
    Verdict,
)

Decision = tuple[RunState, tuple[fx.Effect, ...]]

ARMING_LIMIT_S = 45.0
"""Two tries of a 15 s handshake and a round trip each: more is an unreachable host."""
STARTING_LIMIT_S = 30.0
"""A start is void after 2 s; then each of its API requests is given up within its own time-out.
Longer without a word, and whoever carries it out is lost."""
APPEARING_LIMIT_S = 45.0
"""Jobs that show no process on their host this long after creation have failed to start. Image
pulls do not count: images are present before a run. A late kubelet took up to 30 s."""
SILENCE_LIMIT_S = 3.0
"""Three unanswered 1 Hz beats: a frozen peer was seen after 3.9 s by TCP keepalives at best."""
LATENESS_LIMIT_S = 1.0
"""A decider that is later than one tick may be a suspended laptop (design.md, Beat)."""
PROVING_LIMIT_S = 10.0
"""A container that ended by itself is torn down in well under this; what is left then is killed."""
LOOK_PERIOD_S = 1.0


def begin(plan: Plan) -> Decision:
    """The first state of a run at its time 0, and the order to arm; a plan that could not be
    watched or stopped ends there."""
    state = RunState(plan, Stage.ARMING, 0.0)
    found = flaws(plan)
    if found:
        return stopping.refuse(state, 0.0, "; ".join(found))
    return state, (fx.ArmGuards(plan.guarded),)


def step(state: RunState, event: ev.Event) -> Decision:
    """What changes and what is to be done when `event` arrives. Total: no event raises."""
    if state.stage is Stage.ENDED:
        return state, ()
    if state.stage in STOPPED:
        return stopping.step(state, event)
    return _running(state, event)


def _running(state: RunState, event: ev.Event) -> Decision:
    match event:
        case ev.Tick():
            return _tick(state, event)
        case ev.SampleTaken():
            return _sample(state, event.sample, event.at_s)
        case ev.GuardArmed() | ev.GuardRefused() | ev.GuardLost() | ev.GuardTripped():
            return _guard(state, event)
        case ev.GuardAcknowledged():
            return _acknowledged(state, event.host, event.at_s), ()
        case ev.LoadCreated() | ev.StartDropped() | ev.LoadSeen() | ev.LoadFinished():
            return _load(state, event)
        case ev.HostProven():
            return _proven(state, event.proof, event.at_s)
        case ev.StopRequested():
            return stopping.stop(state, event.at_s, event.reason, event.detail)
        case ev.CleanupDone():
            return state, ()
        case _:
            assert_never(event)


def _acknowledged(state: RunState, host: str, at_s: float) -> RunState:
    return replace(state, last_ack_s={**state.last_ack_s, host: at_s})


def _enter(state: RunState, stage: Stage, at_s: float) -> RunState:
    return replace(state, stage=stage, stage_since_s=at_s)


# --- guards


def _guard(
    state: RunState, event: ev.GuardArmed | ev.GuardRefused | ev.GuardLost | ev.GuardTripped
) -> Decision:
    match event:
        case ev.GuardArmed():
            return _armed(state, event)
        case ev.GuardRefused():
            why = f"{event.host} could not be armed: {event.reason}"
            if event.lock_holder is not None:
                return stopping.lock_held(state, event.at_s, why)
            return stopping.stop(state, event.at_s, StopReason.GUARD_LOST, why)
        case ev.GuardLost():
            why = f"lost the guard of {event.host}: {event.reason}"
            return stopping.stop(state, event.at_s, StopReason.GUARD_LOST, why)
        case ev.GuardTripped():
            reason = StopReason.GUARD_TRIPPED
            if event.reason == "tombstone":
                reason = StopReason.ABORTED_ELSEWHERE
            why = f"the guard of {event.host} killed the load: {event.reason}"
            return stopping.stop(state, event.at_s, reason, why)
        case _:
            assert_never(event)


def _armed(state: RunState, event: ev.GuardArmed) -> Decision:
    state = _acknowledged(state, event.host, event.at_s)
    state = replace(state, armed=state.armed | {event.host})
    if state.stage is not Stage.ARMING or not state.armed >= frozenset(state.plan.guarded):
        return state, ()
    state = _enter(state, Stage.BASELINE, event.at_s)
    return _watch(state, state.step.gates, event.at_s), ()


def _watch(state: RunState, gates: tuple[Gate, ...], at_s: float) -> RunState:
    sources, periods_s = dict(state.plan.sources), dict(state.plan.periods_s)
    return replace(state, watches=watches(gates, sources, periods_s, at_s, state.watches))


# --- samples and gates


def _sample(state: RunState, sample: Sample, at_s: float) -> Decision:
    state = replace(state, watches=tuple(observe(w, sample) for w in state.watches))
    return _judge(state, at_s)


def _judge(state: RunState, at_s: float) -> Decision:
    breaches = [b for b in (breach(w, at_s) for w in state.watches) if b is not None]
    stops = [b for b in breaches if b.gate.action is GateAction.STOP]
    if stops:
        return stopping.breached(state, at_s, min(stops, key=lambda b: b.stale))
    fresh = [b for b in breaches if (b.gate.signal, b.source) not in state.warned]
    warned = state.warned | {(b.gate.signal, b.source) for b in fresh}
    return replace(state, warned=warned), tuple(fx.WarnOperator(b) for b in fresh)


# --- the pulse


def _tick(state: RunState, event: ev.Tick) -> Decision:
    if event.lateness_s > LATENESS_LIMIT_S and state.stage is not Stage.ARMING:
        why = f"this process was {event.lateness_s:.1f} s late"
        return stopping.stop(state, event.at_s, StopReason.LATE_TICK, why)
    silent = _silent(state, event.at_s)
    if silent:
        why = f"no answer from the guard of {', '.join(silent)} for {SILENCE_LIMIT_S:.0f} s"
        return stopping.stop(state, event.at_s, StopReason.GUARD_LOST, why)
    state, warnings = _judge(state, event.at_s)
    if state.stage in STOPPED:
        return state, warnings
    state, effects = _advance(state, event.at_s)
    beat = () if state.stage in STOPPED else (fx.Beat(),)
    return state, (*warnings, *effects, *beat)


def _silent(state: RunState, at_s: float) -> tuple[str, ...]:
    if state.stage is Stage.ARMING:
        return ()
    return tuple(
        h for h in state.plan.guarded if at_s - state.last_ack_s.get(h, 0.0) > SILENCE_LIMIT_S
    )


def _advance(state: RunState, at_s: float) -> Decision:
    elapsed_s = at_s - state.stage_since_s
    match state.stage:
        case Stage.ARMING if elapsed_s > ARMING_LIMIT_S:
            missing = ", ".join(sorted(frozenset(state.plan.guarded) - state.armed))
            why = f"{missing} did not arm within {ARMING_LIMIT_S:.0f} s"
            return stopping.stop(state, at_s, StopReason.GUARD_LOST, why)
        case Stage.BASELINE if elapsed_s >= state.plan.baseline_s and _all_measured(state):
            return _start(state, at_s)
        case Stage.STARTING | Stage.APPEARING | Stage.LOADING:
            return _supervise(state, at_s)
        case Stage.PROVING:
            return _prove_again(state, at_s)
        case Stage.COOLING if elapsed_s >= state.step.cool_down_s and _all_measured(state):
            return _next(state, at_s)
        case _:
            return state, ()


def _all_measured(state: RunState) -> bool:
    """No load before each stopping gate has seen a good value at each of its sources."""
    stops = (w for w in state.watches if w.gate.action is GateAction.STOP)
    return all(w.last_good_s is not None for w in stops)


# --- load


def _start(state: RunState, at_s: float) -> Decision:
    state = replace(_enter(state, Stage.STARTING, at_s), started=True, seen=frozenset())
    state = replace(state, finished=(), proofs={}, load_since_s=at_s, looked_s=None)
    state = replace(state, arrivals_until_s=at_s + stopping.START_BY_S)
    return _watch(state, state.step.gates, at_s), (fx.StartLoad(state.step, at_s),)


def _supervise(state: RunState, at_s: float) -> Decision:
    elapsed_s = at_s - state.stage_since_s
    if state.load_since_s is not None and at_s - state.load_since_s > state.step.deadline_s:
        why = f"phase {state.step.phase} is past its deadline of {state.step.deadline_s:g} s"
        return stopping.stop(state, at_s, StopReason.DEADLINE, why)
    if state.stage is Stage.STARTING and elapsed_s > STARTING_LIMIT_S:
        why = f"nobody said within {STARTING_LIMIT_S:.0f} s whether Jobs were created"
        return stopping.stop(state, at_s, StopReason.START_FAILED, why)
    if state.stage is Stage.APPEARING and elapsed_s > APPEARING_LIMIT_S:
        missing = frozenset(state.step.nodes) - state.seen
        why = f"no load process appeared on {', '.join(sorted(missing))}"
        return stopping.stop(state, at_s, StopReason.START_FAILED, why)
    if state.stage is Stage.STARTING:
        return state, ()
    if state.looked_s is not None and at_s - state.looked_s < LOOK_PERIOD_S:
        return state, ()
    return replace(state, looked_s=at_s), (fx.WatchLoad(state.step.nodes),)


def _load(
    state: RunState, event: ev.LoadCreated | ev.StartDropped | ev.LoadSeen | ev.LoadFinished
) -> Decision:
    ours = isinstance(event, ev.LoadSeen) or event.step == state.step.index
    match event:
        case ev.LoadCreated() if state.stage is Stage.STARTING and ours:
            return _conclude(_enter(state, Stage.APPEARING, event.at_s), event.at_s)
        case ev.StartDropped() if state.stage is Stage.STARTING and ours:
            return stopping.dropped(state, event)
        case ev.LoadSeen() if state.stage is Stage.APPEARING and event.processes > 0:
            return _seen(state, event)
        case ev.LoadFinished() if ours:
            return _conclude(_finished(state, event.result), event.at_s)
        case _:
            return state, ()


def _seen(state: RunState, event: ev.LoadSeen) -> Decision:
    state = replace(state, seen=state.seen | {event.host})
    if state.seen >= frozenset(state.step.nodes):
        state = replace(_enter(state, Stage.LOADING, event.at_s), arrivals_until_s=None)
    return state, ()


def _finished(state: RunState, result: LoadResult) -> RunState:
    """Of two results of a node, the worse one stands."""
    others = tuple(r for r in state.finished if r.node != result.node)
    for old in state.finished:
        if old.node == result.node and merge((old.verdict, result.verdict)) is old.verdict:
            result = old
    return replace(state, finished=(*others, result))


def _conclude(state: RunState, at_s: float) -> Decision:
    """On to the proof when the load of all nodes has ended by itself."""
    if not {r.node for r in state.finished} >= set(state.step.nodes):
        return state, ()
    if state.stage not in (Stage.APPEARING, Stage.LOADING):
        return state, ()
    verdicts = tuple(_seen_verdict(state, r.node, r.verdict) for r in state.finished)
    state = replace(state, verdicts=(*state.verdicts, merge(verdicts)), looked_s=at_s)
    state = replace(state, proofs_since_s=at_s, arrivals_until_s=None)
    return _enter(state, Stage.PROVING, at_s), (fx.ProveClean(state.plan.guarded),)


def _seen_verdict(state: RunState, node: str, verdict: Verdict) -> Verdict:
    """A load that no guard ever saw proves nothing, whatever its output says (I4)."""
    return verdict if node in state.seen or verdict is Verdict.FAIL else Verdict.UNKNOWN


def _proven(state: RunState, proof: HostProof, at_s: float) -> Decision:
    if state.stage is Stage.COOLING and proof.state is HostState.SURVIVORS:
        why = f"load was found on {proof.host} after its proof of death"
        return stopping.stop(state, at_s, StopReason.LEFTOVERS, why)
    if state.stage is not Stage.PROVING or not state.counts(proof, at_s):
        return state, ()
    state = replace(state, proofs={**state.proofs, proof.host: proof})
    if state.unproven(state.plan.guarded):
        return state, ()
    return _cool(state, at_s), ()


def _cool(state: RunState, at_s: float) -> RunState:
    """The next step's gates are watched from here on, so that they have good values before it."""
    upcoming = state.plan.steps[state.step_index + 1 : state.step_index + 2]
    gates = dict.fromkeys((*state.step.gates, *(g for step in upcoming for g in step.gates)))
    return _watch(_enter(state, Stage.COOLING, at_s), tuple(gates), at_s)


def _prove_again(state: RunState, at_s: float) -> Decision:
    if at_s - state.stage_since_s > PROVING_LIMIT_S:
        hosts = ", ".join(state.unproven(state.plan.guarded))
        why = f"load ended, but {hosts} could not be proven clean"
        return stopping.stop(state, at_s, StopReason.LEFTOVERS, why)
    if at_s - (state.looked_s or 0.0) < LOOK_PERIOD_S:
        return state, ()
    doubtful = tuple(h for h, p in state.proofs.items() if p.state not in PROVEN)
    again = (fx.ProveClean(doubtful),) if doubtful else ()
    return replace(state, looked_s=at_s), again


def _next(state: RunState, at_s: float) -> Decision:
    if state.step_index + 1 < len(state.plan.steps):
        return _start(replace(state, step_index=state.step_index + 1), at_s)
    return _enter(state, Stage.CLEANING, at_s), (fx.CleanUp(suspend_only=False),)
