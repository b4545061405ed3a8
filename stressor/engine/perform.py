"""Carrying out effects. Nothing here blocks the deciding loop: orders to guards are writes without
waiting, everything else runs in threads that answer with events."""

import os
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from stressor.core import effects as fx
from stressor.core import events as ev
from stressor.engine.abort import ColdKiller
from stressor.engine.clock import Clock
from stressor.engine.fleet import Fleet
from stressor.engine.loop import EventQueue
from stressor.engine.start import Starter
from stressor.model import Breach, Host, Plan

DISARM_DEADLINE_S = 1.0
SUSPEND_BUDGET_S = 10.0
"""How long a stopped run waits for its clean-up child. The verdict does not depend on it."""
CLEANUP_BUDGET_S = 35.0


@dataclass(slots=True)
class Performer:
    """Carries out the effects of one run."""

    plan: Plan
    hosts: dict[str, Host]
    clock: Clock
    events: EventQueue
    fleet: Fleet
    starter: Starter
    killer: ColdKiller
    cleanup_argv: Callable[[bool], tuple[str, ...]]
    warn: Callable[[Breach], None]

    def perform(self, effect: fx.Effect) -> None:
        """Carry out one effect without waiting for its outcome."""
        match effect:
            case fx.ArmGuards():
                self._arm(effect.hosts)
            case fx.Beat():
                self.fleet.order("beat")
                self.fleet.order("sample")
            case fx.WatchLoad():
                self.fleet.order("watch", effect.hosts)
            case fx.StartLoad():
                self.starter.start(effect)
            case fx.ProveClean():
                self.fleet.order("prove", effect.hosts)
            case fx.WarnOperator():
                self.warn(effect.breach)
            case fx.StopLoad():
                self._stop(effect)
            case fx.ColdKill():
                self._in_thread(self._cold_kill, effect.host)
            case fx.CleanUp():
                self._in_thread(self._clean_up, effect.suspend_only)
            case fx.Disarm():
                self._disarm()
            case fx.Finish():
                pass
            case _:
                assert_never(effect)

    def _in_thread(self, target: Callable[..., None], *args: object) -> None:
        threading.Thread(target=target, args=args, daemon=True).start()

    def _arm(self, names: tuple[str, ...]) -> None:
        hosts = tuple(self.hosts[name] for name in names)
        left_s = self.plan.deadline_s - self.clock.now_s()
        self.fleet.arm(hosts, left_s=left_s, beat_s=self.plan.beat_timeout_s)

    def _stop(self, effect: fx.StopLoad) -> None:
        self.starter.halted.set()
        self.fleet.order(f"kill {effect.reason}")

    def _cold_kill(self, name: str) -> None:
        left_s = max(0.0, self.plan.deadline_s - self.clock.now_s())
        proof = self.killer.kill(self.hosts[name], self.plan.run, "cold", left_s)
        self.events.put(ev.HostProven(self.clock.now_s(), proof, cold=True))

    def _clean_up(self, suspend_only: bool) -> None:
        self.starter.idle.wait(SUSPEND_BUDGET_S)
        budget_s = SUSPEND_BUDGET_S if suspend_only else CLEANUP_BUDGET_S
        ok, detail = run_child(self.cleanup_argv(suspend_only), budget_s)
        self.events.put(ev.CleanupDone(self.clock.now_s(), ok, detail))

    def _disarm(self) -> None:
        self.fleet.order("quit")
        self.fleet.wait_quit(DISARM_DEADLINE_S)
        self.fleet.close()


def run_child(argv: tuple[str, ...], budget_s: float) -> tuple[bool, str]:
    """Run a child of this program for at most `budget_s`; whether it succeeded, and its last line.

    A child that needs longer is left to its own, shorter-lived deadline: ending it would leave the
    API side as it is, and nothing waits for it.
    """
    child = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    try:
        output, _ = child.communicate(timeout=budget_s)
    except subprocess.TimeoutExpired:
        return False, f"still running after {budget_s:g} s"
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return child.returncode == 0, lines[-1] if lines else ""
