"""What a run says while it runs: one plain line for each thing that matters, on stderr.

The journal is the record; a terminal that goes away stops nothing. On a terminal long lines are
folded below themselves; in a file each stays whole, for grep.
"""

import sys
import time
from dataclasses import dataclass, field

from stressor.core import effects as fx
from stressor.core import events as ev
from stressor.core.state import RunState, Stage
from stressor.core.thresholds import GateState, judge
from stressor.model import Breach
from stressor.report.lines import ascii_only, folded

PULSE_S = 5.0
_OVER = frozenset({Stage.CLEANING, Stage.ENDED})
INDENT = 27
"""Columns before the text of a line: wall-clock time, run time, and its first word."""


@dataclass(slots=True)
class Narrator:
    """Shown every state and event of the loop. `fold`: the reader is a terminal."""

    anchor_unix_s: float
    fold: bool = False
    muted: bool = False
    _stage: Stage | None = field(default=None, init=False)
    _pulse_s: float = field(default=0.0, init=False)
    _told: set[str] = field(default_factory=set, init=False)

    def say(self, at_s: float, text: str) -> None:
        """One line with the wall-clock time of `at_s`."""
        if self.muted:
            return
        stamp = time.strftime("%H:%M:%SZ", time.gmtime(self.anchor_unix_s + at_s))
        line = f"{stamp} {at_s:7.2f}s  {text}"
        lines = folded(line, INDENT) if self.fold else [ascii_only(line)]
        try:
            print("\n".join(lines), file=sys.stderr, flush=True)
        except OSError:
            self.muted = True

    def leave(self) -> None:
        """Say nothing more: the run goes on, and so does its verification."""
        self.say(0.0, "left the screen; the abort goes on: stressor status")
        self.muted = True

    def warn(self, breach: Breach) -> None:
        value = "no good value" if breach.value is None else f"{breach.value:.4g}"
        limit = f"{breach.gate.comparison} {breach.gate.limit:g}"
        self.say(breach.at_s, f"WARN   {breach.gate.signal} at {breach.source}: {value} ({limit})")

    def watch(self, state: RunState, event: ev.Event, effects: tuple[fx.Effect, ...]) -> None:
        """Say what changed with `event`."""
        text = _event_line(event)
        if text is not None and not self._known(state, event, text):
            self.say(event.at_s, text)
        for effect in effects:
            line = _effect_line(effect)
            if line is not None:
                self.say(event.at_s, line)
        self._stage_line(state, event.at_s)

    def _known(self, state: RunState, event: ev.Event, text: str) -> bool:
        """Whether a line would tell nothing new. A guard refuses every beat after its trip. And a
        clean-up kills once more before it removes anything: its tombstone trips every guard, whose
        word is no news of a load that was proven dead before."""
        if state.stage in _OVER:
            survived = isinstance(event, ev.HostProven) and event.proof.survivors
            return isinstance(event, ev.GuardTripped | ev.HostProven) and not survived
        if not isinstance(event, ev.GuardTripped):
            return False
        told = text in self._told
        self._told.add(text)
        return told

    def _stage_line(self, state: RunState, at_s: float) -> None:
        if state.stage is not self._stage:
            self._stage = state.stage
            self._pulse_s = at_s
            if state.stage is Stage.LOADING:
                self.say(at_s, f"LOAD   phase {state.step.phase} runs on {', '.join(state.seen)}")
            if state.stage is Stage.ABORTING and state.arrivals_until_s is not None:
                wait_s = max(0.0, state.arrivals_until_s - at_s)
                self.say(at_s, f"abort  jobs may still arrive: last proof in {wait_s:.0f} s")
            if state.stage is Stage.BASELINE:
                self.say(at_s, f"ARMED  all guards; baseline {state.plan.baseline_s:g} s")
        elif at_s - self._pulse_s > PULSE_S and state.stop is None and state.stage not in _OVER:
            self._pulse_s = at_s
            self.say(at_s, f"       {state.stage}: {_worst(state, at_s)}")


def _worst(state: RunState, at_s: float) -> str:
    order = (GateState.STALE, GateState.FIRING, GateState.PENDING)
    for wanted in order:
        for watch in state.watches:
            if judge(watch, at_s) is wanted:
                value = "-" if watch.value is None else f"{watch.value:.4g}"
                return f"{watch.gate.signal} at {watch.source} {wanted} ({value})"
    return f"{len(state.watches)} gates quiet"


def _event_line(event: ev.Event) -> str | None:
    match event:
        case ev.GuardArmed():
            return f"guard  {event.host} armed: {' '.join(event.facts)}"
        case ev.GuardRefused():
            return f"guard  {event.host} REFUSED: {event.reason}"
        case ev.GuardLost():
            return f"guard  {event.host} LOST: {event.reason}"
        case ev.GuardTripped():
            return f"guard  {event.host} TRIPPED: {event.reason}"
        case ev.LoadFinished():
            return f"result {event.result.node}: {event.result.verdict} {_figures(event)}"
        case ev.HostProven():
            proof = event.proof
            took = "" if proof.took_s is None else f" in {proof.took_s * 1000:.0f} ms"
            how = " (new connection)" if event.cold else ""
            count = f" {proof.stopped} processes" if proof.stopped else ""
            return f"proof  {proof.host} {proof.state}{count}{took}{how} {proof.detail}".rstrip()
        case ev.StartDropped():
            return f"start  dropped: {event.reason}"
        case ev.CleanupDone():
            return f"api    {'cleaned' if event.ok else 'NOT cleaned'}: {event.detail}"
        case _:
            return None


def _figures(event: ev.LoadFinished) -> str:
    figures = [f"{name}={value:.4g}" for name, value in event.result.metrics.items()]
    return " ".join([*figures[:4], *(f"({problem})" for problem in event.result.problems)])


def _effect_line(effect: fx.Effect) -> str | None:
    match effect:
        case fx.StartLoad():
            step = effect.step
            return f"START  phase {step.phase} ({step.kind}), {len(step.nodes)} jobs"
        case fx.StopLoad():
            return f"ABORT  {effect.reason}: {effect.detail}"
        case fx.ColdKill():
            return f"abort  {effect.host}: no proof yet, going in by a new connection"
        case _:
            return None
