"""The one stop path: threshold, hand, deadline, lost guard, late tick all go through `stop`.

ABORTING never leads back to load (I3). Before the first start effect a stop is a refusal: guards
are told to quit, and nothing was started. After it, load may exist whatever anybody believes, so
hosts are killed and proven first; only then the API side is cleaned, which never changes the
verdict.
"""

from dataclasses import replace

from stressor.core import effects as fx
from stressor.core import events as ev
from stressor.core.state import RunState, Stage, Stop
from stressor.core.verdict import exit_code, merge, refusal_code, stop_code
from stressor.errors import ExitCode
from stressor.model import PROVEN, Breach, HostProof, HostState, StopReason

Decision = tuple[RunState, tuple[fx.Effect, ...]]

COLD_AFTER_S = 0.5
"""A host whose guard has not acknowledged the kill by then is also reached by a new connection
(an armed guard answered within 0.1 s on 200 hosts; notes/ssh-abort)."""
PROOF_AFTER_S = 3.0
"""An acknowledged kill without proof by then: the guard's two scans take under a second."""
COLD_AGAIN_S = 8.0
"""Between two cold tries: a try has 7 s of its own."""
BUDGET_S = 30.0
"""After this the verdict is given with what is known; `stressor abort` may be repeated."""
START_BY_S = 62.0
"""A start is void 2 s after its order, and the entry point refuses to start load 60 s after the
creation of its Job (design.md): until then, a host that is clean may still receive load."""
CLEANING_LIMIT_S = 40.0
"""The clean-up child has its own, shorter budget; this only bounds a child that cannot be ended."""


def stop(
    state: RunState, at_s: float, reason: StopReason, detail: str, breach: Breach | None = None
) -> Decision:
    """Stop the run for `reason`. Before any start effect: refuse. Afterwards: kill and prove.

    Where load may still arrive, the API side is asked at once to hold it back; the proof waits
    for its last possible moment all the same, because the API may be dead.
    """
    if state.stop is not None:
        return state, ()
    state = replace(state, stop=Stop(at_s, reason, detail))
    if not state.started:
        return _refuse(state, at_s, int(refusal_code(reason)), detail)
    state = replace(state, stage=Stage.ABORTING, stage_since_s=at_s)
    state = replace(state, proofs={}, proofs_since_s=at_s)
    early = state.arrivals_until_s is not None
    hold_back = (fx.CleanUp(suspend_only=True),) if early else ()
    return state, (fx.StopLoad(reason, detail, breach), *hold_back)


def breached(state: RunState, at_s: float, breach: Breach) -> Decision:
    """Stop because a gate fired or went stale."""
    reason = StopReason.STALE if breach.stale else StopReason.THRESHOLD
    return stop(state, at_s, reason, _describe(breach, at_s), breach)


def dropped(state: RunState, event: ev.StartDropped) -> Decision:
    """A start was not carried out. If no Job of this run ever existed, that is a refusal."""
    first = state.step_index == 0 and event.created == 0
    state = replace(_none_created(state, event), started=not first)
    return stop(state, event.at_s, StopReason.START_FAILED, f"load not started: {event.reason}")


def lock_held(state: RunState, at_s: float, detail: str) -> Decision:
    """Another run's guard lives on a host."""
    if state.started or state.stop is not None:
        return stop(state, at_s, StopReason.GUARD_LOST, detail)
    state = replace(state, stop=Stop(at_s, StopReason.GUARD_LOST, detail))
    return _refuse(state, at_s, int(ExitCode.LOCK_HELD), detail)


def step(state: RunState, event: ev.Event) -> Decision:
    """What happens from the stop on: proofs are collected, cold kills pressed, the end found.

    A run whose steps all ended by themselves comes here too, to be cleaned up: its load is gone and
    proven so, and a guard lost now or an operator who stops now finds nothing left to kill.
    """
    match event:
        case ev.GuardAcknowledged(verb="kill"):
            state = replace(state, kill_acked=state.kill_acked | {event.host})
        case ev.HostProven():
            state = _note(state, event.proof, event.at_s)
        case ev.StartDropped():
            state = _none_created(state, event)
        case ev.CleanupDone() if state.stage is Stage.CLEANING:
            return finish(state, event.at_s)
        case _:
            pass
    return _onward(state, event)


def finish(state: RunState, at_s: float) -> Decision:
    """The end, with the exit code that the evidence allows (I5). Guards stay on the watch where
    anything is unproven: without a word from here they kill again, until the run's deadline."""
    code, summary = _verdict(state)
    ended = replace(state, stage=Stage.ENDED, stage_since_s=at_s)
    disarm = () if state.unproven(state.plan.guarded) else (fx.Disarm(),)
    return ended, (*disarm, fx.Finish(code, summary))


def refuse(state: RunState, at_s: float, detail: str) -> Decision:
    """The end of a run that must not begin."""
    return _refuse(state, at_s, int(ExitCode.REFUSED), detail)


def _onward(state: RunState, event: ev.Event) -> Decision:
    """Every event carries the time, so that a want of ticks cannot hold up an abort."""
    if state.stage is Stage.ABORTING:
        return _press(state, event.at_s)
    if event.at_s - state.stage_since_s > CLEANING_LIMIT_S:
        return finish(state, event.at_s)
    beat = isinstance(event, ev.Tick) and state.stop is None
    return state, (fx.Beat(),) if beat else ()


def _refuse(state: RunState, at_s: float, code: int, detail: str) -> Decision:
    ended = replace(state, stage=Stage.ENDED, stage_since_s=at_s)
    return ended, (fx.Disarm(), fx.Finish(code, f"nothing was started: {detail}"))


def _none_created(state: RunState, event: ev.StartDropped) -> RunState:
    none = event.step == state.step.index and event.created == 0
    return replace(state, arrivals_until_s=None) if none else state


def _note(state: RunState, proof: HostProof, at_s: float) -> RunState:
    """Newer evidence replaces older; silence never replaces proof, nor does "nothing here" replace
    what the first kill counted."""
    if not state.counts(proof, at_s):
        return state
    old = state.proofs.get(proof.host)
    if old is not None and old.state in PROVEN:
        silent = proof.state in (HostState.UNREACHABLE, HostState.UNVERIFIED, HostState.KEY_CHANGED)
        again = proof.state in PROVEN and proof.stopped == 0
        if silent or again:
            return state
    return replace(state, proofs={**state.proofs, proof.host: proof})


def _clean(state: RunState, at_s: float) -> Decision:
    cleaning = replace(state, stage=Stage.CLEANING, stage_since_s=at_s)
    return cleaning, (fx.CleanUp(suspend_only=True),)


def _press(state: RunState, at_s: float) -> Decision:
    if state.arrivals_until_s is not None:
        if at_s >= state.arrivals_until_s:
            return _prove_again(state, at_s)
    elif not state.unproven(state.plan.guarded) or at_s - state.stage_since_s > BUDGET_S:
        return _clean(state, at_s)
    hosts = tuple(h for h in state.unproven(state.plan.guarded) if _needs_cold(state, h, at_s))
    cold_s = {**state.cold_s, **dict.fromkeys(hosts, at_s)}
    return replace(state, cold_s=cold_s), tuple(fx.ColdKill(h) for h in hosts)


def _prove_again(state: RunState, at_s: float) -> Decision:
    """No load can arrive any more: what was clean before says nothing where it could have."""
    hosts = tuple(h for h in state.step.nodes if h not in state.seen)
    kept = {h: proof for h, proof in state.proofs.items() if h not in hosts}
    state = replace(state, arrivals_until_s=None, stage_since_s=at_s)
    return replace(state, proofs=kept, proofs_since_s=at_s), (fx.ProveClean(hosts),)


def _needs_cold(state: RunState, host: str, at_s: float) -> bool:
    asked_s = state.cold_s.get(host)
    if asked_s is not None:
        return at_s - asked_s > COLD_AGAIN_S
    patience_s = PROOF_AFTER_S if host in state.kill_acked else COLD_AFTER_S
    return at_s - state.stage_since_s > patience_s


def _verdict(state: RunState) -> tuple[int, str]:
    missing = state.unproven(state.plan.guarded)
    if missing:
        why = (
            "load showed up after all steps had ended" if state.stop is None else state.stop.detail
        )
        return int(ExitCode.NOT_PROVEN_DEAD), f"NOT PROVEN DEAD on {', '.join(missing)}: {why}"
    if state.stop is None:
        verdict = merge(state.verdicts)
        return int(exit_code(verdict)), f"all steps ended by themselves: {verdict}"
    code = int(stop_code(state.stop.reason, proven=True))
    return code, f"stopped, every host proven clean: {state.stop.detail}"


def _describe(breach: Breach, at_s: float) -> str:
    gate = breach.gate
    if breach.value is None:
        return f"{gate.signal} at {breach.source}: no good value for {at_s - breach.since_s:.1f} s"
    held = f" for {gate.hold_s:g} s" if gate.hold_s else ""
    return (
        f"{gate.signal} at {breach.source} is {breach.value:g}, {gate.comparison} "
        f"the limit of {gate.limit:g}{held}"
    )
