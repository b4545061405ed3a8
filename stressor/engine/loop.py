"""The one deciding loop: events in, `core.run.step`, journal, effects out.

Beats are effects of a finished step, so a loop that hangs anywhere stops beating and the hosts'
guards kill the load on their own. The loop never waits for a disk, a host or the API: everything
slow happens in `engine.perform`'s threads, which answer with events.
"""

import queue
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from stressor.core import effects as fx
from stressor.core import events as ev
from stressor.core.run import begin, step
from stressor.core.state import RunState
from stressor.engine.clock import Clock
from stressor.model import Plan, StopReason

TICK_S = 0.25
"""Four decisions a second: half of COLD_AFTER_S, so that no limit is noticed late by more than
that. Beats go out once a second."""
BEAT_S = 1.0
JOURNAL_LIMIT_S = 2.0
"""A journal write older than this is a breach (design.md)."""

EventQueue = queue.SimpleQueue[ev.Event]


class Performer(Protocol):
    """Carries out effects without blocking."""

    def perform(self, effect: fx.Effect) -> None: ...


class Recorder(Protocol):
    """What the loop needs of the journal."""

    def append(self, kind: str, t: float, data: object) -> None: ...

    def oldest_unwritten_age_s(self, now_s: float) -> float: ...


@dataclass(slots=True)
class Loop:
    """Drives one run to its end. `watch` is shown every state and event, for narration only;
    `hang_after_s` is a debug hook: the loop stops deciding then, as a hung decider would."""

    plan: Plan
    clock: Clock
    events: EventQueue
    performer: Performer
    journal: Recorder
    watch: Callable[[RunState, ev.Event, tuple[fx.Effect, ...]], None]
    hang_after_s: float | None = None
    sleep: Callable[[float], None] = time.sleep
    _due_s: float = field(default=0.0, init=False)
    _beat_s: float = field(default=-BEAT_S, init=False)
    _ticked: bool = field(default=False, init=False)
    _journal_late: bool = field(default=False, init=False)

    def run(self) -> int:
        """Run to the end; the exit code of the run's Finish effect."""
        self._due_s = self.clock.now_s()
        state, effects = begin(self.plan)
        code = self._carry_out(effects)
        while code is None:
            event = self._next_event()
            state, effects = step(state, event)
            self._record(event)
            code = self._carry_out(effects)
            self.watch(state, event, effects)
            self._maybe_hang()
        return code

    def _next_event(self) -> ev.Event:
        """A tick when one is due, else what comes first. After a tick one waiting event is taken
        before the next: passes that take longer than a tick must not starve the queue."""
        wait_s = self._due_s - self.clock.now_s()
        if wait_s > 0 or self._ticked:
            self._ticked = False
            try:
                return self.events.get(timeout=max(0.0, wait_s))
            except queue.Empty:
                pass
        self._ticked = True
        return self._tick()

    def _tick(self) -> ev.Event:
        now_s = self.clock.now_s()
        lateness_s = max(0.0, now_s - self._due_s)
        self._due_s = (self._due_s if lateness_s < TICK_S else now_s) + TICK_S
        late = self.journal.oldest_unwritten_age_s(now_s) > JOURNAL_LIMIT_S
        if late and not self._journal_late:
            self._journal_late = True
            why = f"the journal could not be written for {JOURNAL_LIMIT_S:g} s"
            return ev.StopRequested(now_s, StopReason.LATE_JOURNAL, why)
        return ev.Tick(now_s, lateness_s)

    def _carry_out(self, effects: tuple[fx.Effect, ...]) -> int | None:
        code = None
        for effect in effects:
            if isinstance(effect, fx.Beat) and not self._beat_due():
                continue
            self._record(effect)
            self.performer.perform(effect)
            if isinstance(effect, fx.Finish):
                code = effect.exit_code
        return code

    def _beat_due(self) -> bool:
        now_s = self.clock.now_s()
        if now_s - self._beat_s < BEAT_S:
            return False
        self._beat_s = now_s
        return True

    def _record(self, item: ev.Event | fx.Effect) -> None:
        if isinstance(item, fx.Beat) or (isinstance(item, ev.Tick) and item.lateness_s < TICK_S):
            return
        at_s = item.at_s if not isinstance(item, fx.Effect) else self.clock.now_s()
        family = "effect" if isinstance(item, fx.Effect) else "event"
        self.journal.append(f"{family}.{type(item).__name__}", at_s, item)

    def _maybe_hang(self) -> None:
        if self.hang_after_s is not None and self.clock.now_s() > self.hang_after_s:
            self.sleep(60.0)
