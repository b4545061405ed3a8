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
CLEANING_LIMIT_S = 40.0
"""The clean-up child has its own, shorter budget; this only bounds a child that cannot be ended."""


def stop(
    state: RunState, at_s: float, reason: StopReason, detail: str, breach: Breach | None = None
) -> Decision:
    """Stop the run for `reason`. Before any start effect: refuse. Afterwards: kill and prove."""
    if state.stop is not None:
        return state, ()
    state = replace(state, stop=Stop(at_s, reason, detail))
    if not state.started:
        return _refuse(state, at_s, int(refusal_code(reason)), detail)
    state = replace(state, stage=Stage.ABORTING, stage_since_s=at_s, proofs={})
    return state, (fx.StopLoad(reason, detail, breach),)


def breached(state: RunState, at_s: float, breach: Breach) -> Decision:
    """Stop because a gate fired or went stale."""
    reason = StopReason.STALE if breach.stale else StopReason.THRESHOLD
    return stop(state, at_s, reason, _describe(breach, at_s), breach)


def dropped(state: RunState, event: ev.StartDropped) -> Decision:
    """A start was not carried out. If no Job of this run ever existed, that is a refusal."""
    first = state.step_index == 0 and event.created == 0
    state = replace(state, started=not first)
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
            return replace(state, kill_acked=state.kill_acked | {event.host}), ()
        case ev.HostProven():
            return _settle(_note(state, event.proof), event.at_s)
        case ev.Tick() if state.stage is Stage.ABORTING:
            return _press(state, event.at_s)
        case ev.Tick() if event.at_s - state.stage_since_s > CLEANING_LIMIT_S:
            return finish(state, event.at_s)
        case ev.Tick() if state.stop is None:
            return state, (fx.Beat(),)
        case ev.CleanupDone() if state.stage is Stage.CLEANING:
            return finish(state, event.at_s)
        case _:
            return state, ()


def finish(state: RunState, at_s: float) -> Decision:
    """The end, with the exit code that the evidence allows (I5)."""
    code, summary = _verdict(state)
    ended = replace(state, stage=Stage.ENDED, stage_since_s=at_s)
    return ended, (fx.Disarm(), fx.Finish(code, summary))


def _refuse(state: RunState, at_s: float, code: int, detail: str) -> Decision:
    ended = replace(state, stage=Stage.ENDED, stage_since_s=at_s)
    return ended, (fx.Disarm(), fx.Finish(code, f"nothing was started: {detail}"))


def _note(state: RunState, proof: HostProof) -> RunState:
    """Newer evidence replaces older; silence never replaces proof, nor does "nothing here" replace
    what the first kill counted."""
    old = state.proofs.get(proof.host)
    if old is not None and old.state in PROVEN:
        silent = proof.state in (HostState.UNREACHABLE, HostState.UNVERIFIED, HostState.KEY_CHANGED)
        again = proof.state in PROVEN and proof.stopped == 0
        if silent or again:
            return state
    return replace(state, proofs={**state.proofs, proof.host: proof})


def _settle(state: RunState, at_s: float) -> Decision:
    if state.stage is not Stage.ABORTING or state.unproven(state.plan.guarded):
        return state, ()
    return _clean(state, at_s)


def _clean(state: RunState, at_s: float) -> Decision:
    cleaning = replace(state, stage=Stage.CLEANING, stage_since_s=at_s)
    return cleaning, (fx.CleanUp(suspend_only=True),)


def _press(state: RunState, at_s: float) -> Decision:
    if at_s - state.stage_since_s > BUDGET_S:
        return _clean(state, at_s)
    hosts = tuple(h for h in state.unproven(state.plan.guarded) if _needs_cold(state, h, at_s))
    cold_s = {**state.cold_s, **dict.fromkeys(hosts, at_s)}
    return replace(state, cold_s=cold_s), tuple(fx.ColdKill(h) for h in hosts)


def _needs_cold(state: RunState, host: str, at_s: float) -> bool:
    asked_s = state.cold_s.get(host)
    if asked_s is not None:
        return at_s - asked_s > COLD_AGAIN_S
    patience_s = PROOF_AFTER_S if host in state.kill_acked else COLD_AFTER_S
    return at_s - state.stage_since_s > patience_s


def _verdict(state: RunState) -> tuple[int, str]:
    if state.stop is None:
        verdict = merge(state.verdicts)
        return int(exit_code(verdict)), f"all steps ended by themselves: {verdict}"
    missing = state.unproven(state.plan.guarded)
    code = int(stop_code(state.stop.reason, proven=not missing))
    if missing:
        return code, f"NOT PROVEN DEAD on {', '.join(missing)}: {state.stop.detail}"
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
