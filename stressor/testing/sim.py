"""A simulated cluster under the real decider, in virtual time, with faults from a seed.

`SimCluster` plays everything around `core.run`: the loop's pulse, guards with dead-man, deadline
and tombstone, hosts that freeze, load processes, fsync samples, and an API that is slow or refuses.
Invariants are checked after every event; `Violation` names the seed. Same seed, same run.
"""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from stressor.core import effects as fx
from stressor.core import events as ev
from stressor.core.run import begin, step
from stressor.core.state import STOPPED, RunState
from stressor.core.stopping import START_BY_S
from stressor.errors import ExitCode
from stressor.model import (
    HostProof,
    HostState,
    LoadResult,
    Plan,
    Sample,
    StopReason,
    Survivor,
    Verdict,
)
from stressor.testing.simhost import Fault, SimHost
from stressor.testing.story import HOSTS, a_plan, one_step

TICK_S = 0.25
BEAT_S = 1.0
END_LIMIT_S = 600.0
"""Far above any way through the simulated plan: a run that is not over by then hangs."""
AFTERMATH_S = 120.0
"""How long hosts are watched after the run's end."""
VOID_S = 2.0
"""A start whose API request is slower than this was sent, and cannot be called back."""
WATCHER_S = 5.0
"""How often a guard looks for late-comers after a kill (design.md, Kill)."""
SURVIVOR = Survivor(4711, "fio", "D", "blk_mq_get_tag", 9.0)


class Violation(AssertionError):
    """An invariant did not hold; the message carries the seed and a command that replays it."""


Record = tuple[str, object]
Action = Callable[[], None]


@dataclass(slots=True)
class SimCluster:
    """One seeded run. `rng` is the only source of chance; `history` lists events and effects."""

    seed: int
    rng: random.Random
    plan: Plan = field(
        default_factory=lambda: a_plan(
            one_step(deadline_s=20.0, hold_s=8.0), one_step(1, deadline_s=20.0, hold_s=8.0)
        )
    )
    faults: dict[Fault, float] = field(default_factory=dict)
    history: list[Record] = field(default_factory=list)
    at_s: float = 0.0
    exit_code: int | None = None
    killed_s: float | None = None
    ended_s: float | None = None
    stop_sent: bool = False
    _state: RunState = field(init=False)
    _hosts: dict[str, SimHost] = field(init=False)
    _due: list[tuple[float, int, Action]] = field(default_factory=list, init=False)
    _serial: int = 0
    _beat_s: float = -BEAT_S
    _tick_s: float = 0.0
    _resume_s: float = 0.0
    _api_suspended: bool = False
    _lame: str = HOSTS[0]

    @classmethod
    def seeded(cls, seed: int) -> "SimCluster":
        """A cluster with up to three faults, all drawn from the seed."""
        rng = random.Random(seed)
        chosen = rng.sample(tuple(Fault), rng.randint(0, 3))
        faults = {fault: round(rng.uniform(0.0, 40.0), 2) for fault in chosen}
        return cls(seed, rng, faults=faults)

    def run(self) -> int | None:
        """To the end of the run and of all load; the exit code, None if the process was killed.
        Raises Violation."""
        self._hosts = {name: SimHost(name) for name in self.plan.guarded}
        self._lame = self.rng.choice(HOSTS)
        for fault, at_s in self.faults.items():
            self._later(at_s, partial(self._break, fault))
        self._state, effects = begin(self.plan)
        self._later(0.0, self._pulse)
        self._later(0.0, self._guards)
        self._later(0.5, self._sample)
        self._perform(effects)
        while self._due and self.at_s <= END_LIMIT_S:
            self.at_s, _, action = heapq.heappop(self._due)
            action()
            self._check()
        if self.exit_code is None and self.killed_s is None:
            self._fail(f"not over after {END_LIMIT_S:g} s, in {self._state.stage}")
        return self.exit_code

    # --- the loop

    def _later(self, after_s: float, action: Action) -> None:
        self._serial += 1
        heapq.heappush(self._due, (self.at_s + after_s, self._serial, action))

    def _running(self) -> bool:
        return self.exit_code is None and self.killed_s is None

    def _pulse(self) -> None:
        if self._running():
            if self.at_s < self._resume_s:
                self._later(self._resume_s - self.at_s, self._pulse)
                return
            lateness_s = max(0.0, self.at_s - self._tick_s)
            self._tick_s = self.at_s + TICK_S
            self._tell(ev.Tick(self.at_s, lateness_s))
            self._later(TICK_S, self._pulse)

    def _tell(self, event: ev.Event) -> None:
        if not self._running():
            return
        if self.at_s < self._resume_s:
            self._later(self._resume_s - self.at_s, partial(self._tell, event))
            return
        was = self._state.stage
        self._state, effects = step(self._state, event)
        self.history.append(("event", event))
        if self._state.stop is not None and self._state.stage not in STOPPED:
            self._fail("a stopped run went on (I3)")
        if was in STOPPED and self._state.stage not in STOPPED:
            self._fail(f"{was} was left for {self._state.stage} (I3)")
        self._perform(effects)

    def _perform(self, effects: tuple[fx.Effect, ...]) -> None:
        for effect in effects:
            if isinstance(effect, fx.Beat) and self.at_s - self._beat_s < BEAT_S:
                continue
            self.history.append(("effect", effect))
            if self.stop_sent and isinstance(effect, fx.StartLoad | fx.ArmGuards | fx.Beat):
                self._fail(f"{type(effect).__name__} after the stop (I3)")
            self._act(effect)

    def _act(self, effect: fx.Effect) -> None:
        match effect:
            case fx.ArmGuards():
                for host in self._hosts.values():
                    self._later(self.rng.uniform(0.05, 2.0), partial(self._arm, host))
            case fx.Beat():
                self._beat_s = self.at_s
                for host in self._hosts.values():
                    self._later(0.01, partial(self._beat, host))
            case fx.WatchLoad():
                for name in effect.hosts:
                    self._later(0.05, partial(self._look, name))
            case fx.StopLoad():
                self.stop_sent = True
                for name in self._hosts:
                    self._order(name, kill=True)
            case fx.ColdKill():
                self._order(effect.host, kill=True, cold=True)
            case _:
                self._act_further(effect)

    def _act_further(self, effect: fx.Effect) -> None:
        match effect:
            case fx.StartLoad():
                self._start(effect)
            case fx.ProveClean():
                for name in effect.hosts:
                    self._order(name, kill=False)
            case fx.Disarm():
                for host in self._hosts.values():
                    host.quit = host.reachable(self.at_s)
            case fx.CleanUp():
                self._later(1.0, self._clean)
            case fx.Finish():
                self._finish(effect.exit_code)
            case _:
                pass

    def _finish(self, code: int) -> None:
        self.exit_code, self.ended_s = code, self.at_s
        alive = [h.name for h in self._hosts.values() if h.loaded(self.at_s)]
        if alive and code != ExitCode.NOT_PROVEN_DEAD:
            self._fail(f"exit {code} while load is alive on {', '.join(alive)} (I5)")

    # --- hosts and guards

    def _arm(self, host: SimHost) -> None:
        if host.frozen(self.at_s) or not host.channel_open or host.tombstone:
            self._tell(ev.GuardRefused(self.at_s, host.name, "unreachable"))
            return
        host.armed, host.beat_s = True, self.at_s
        self._tell(ev.GuardArmed(self.at_s, host.name, ()))

    def _beat(self, host: SimHost) -> None:
        if host.reachable(self.at_s):
            host.beat_s = self.at_s
            self._tell(ev.GuardAcknowledged(self.at_s, host.name, "beat", 0.01))

    def _guards(self) -> None:
        """What guards do on their own, four times a second: dead-man, deadline, late-comers."""
        for host in self._hosts.values():
            if not host.armed or host.quit or host.frozen(self.at_s):
                continue
            silent_s = self.at_s - host.beat_s
            why = "beat" if silent_s > self.plan.beat_timeout_s else "deadline"
            due = why == "beat" or self.at_s > self.plan.deadline_s or not host.channel_open
            if host.tombstone:
                if self.at_s - host.looked_s >= WATCHER_S:
                    host.looked_s = self.at_s
                    host.kill(self.at_s)
            elif due or (not self._running() and host.reachable(self.at_s)):
                host.kill(self.at_s)
                if host.reachable(self.at_s):
                    self._tell(ev.GuardTripped(self.at_s, host.name, why))
        over_s = self.killed_s if self.killed_s is not None else self.ended_s
        if over_s is None or self.at_s < over_s + AFTERMATH_S:
            self._later(TICK_S, self._guards)

    def _order(self, name: str, *, kill: bool, cold: bool = False) -> None:
        host, sent_s = self._hosts[name], self.at_s

        def arrive() -> None:
            if host.frozen(self.at_s) or not (cold or host.reachable(self.at_s)):
                return
            if kill and not cold:
                self._tell(ev.GuardAcknowledged(self.at_s, name, "kill", self.at_s - sent_s))
            had = host.kill(self.at_s) if kill else False
            alive = host.loaded(self.at_s)
            state = HostState.STOPPED if had else HostState.CLEAN
            survivors = (SURVIVOR,) if alive else ()
            state = HostState.SURVIVORS if alive else state
            self._later(
                0.6 + host.proof_delay_s,
                lambda: self._tell(
                    ev.HostProven(
                        self.at_s,
                        HostProof(name, state, int(had), survivors, self.at_s - sent_s),
                        cold,
                    )
                ),
            )

        self._later(1.0 if cold else 0.02, arrive)

    def _look(self, name: str) -> None:
        host = self._hosts[name]
        if host.reachable(self.at_s):
            hidden = Fault.LOAD_NEVER_SEEN in self.faults
            count = 4 if host.loaded(self.at_s) and not hidden else 0
            self._tell(ev.LoadSeen(self.at_s, name, count, ("fio",) if count else ()))

    # --- load and API

    def _start(self, effect: fx.StartLoad) -> None:
        delay_s = self.rng.uniform(0.1, 0.8)
        index, silent = effect.step.index, self._broken(Fault.API_SILENT)
        if silent or self._broken(Fault.API_SLOW):
            delay_s = self.rng.uniform(VOID_S, 20.0)

        def create() -> None:
            in_the_air = delay_s > VOID_S
            if self.killed_s is not None and not in_the_air:
                return
            if self.stop_sent and not in_the_air:
                self._tell(ev.StartDropped(self.at_s, index, "stopped", 0))
                return
            if self._broken(Fault.API_REFUSES):
                self._tell(ev.StartDropped(self.at_s, index, "refused", 0))
                return
            for node in effect.step.nodes:
                last_s = effect.issued_at_s + START_BY_S
                self._later(
                    self.rng.uniform(0.2, 6.0),
                    partial(self._appear, node, effect, last_s),
                )
            if not silent:
                self._tell(ev.LoadCreated(self.at_s, index))

        self._later(delay_s, create)

    def _appear(self, name: str, effect: fx.StartLoad, last_s: float) -> None:
        host = self._hosts[name]
        if host.frozen(self.at_s):
            self._later(
                max(0.1, host.frozen_until_s - self.at_s),
                partial(self._appear, name, effect, last_s),
            )
            return
        if self.at_s > last_s or self._api_suspended:
            return
        if self.exit_code is not None and host.quit:
            self._fail(f"load came to {name} after its guard was told to quit (I5)")
        hold_s = effect.step.hold_s
        if Fault.LOAD_ENDS_EARLY in self.faults:
            hold_s = 0.3
        host.deadline_s = effect.issued_at_s + effect.step.deadline_s
        if Fault.LOAD_OVERRUNS in self.faults:
            hold_s = 1e6
        else:
            hold_s = min(hold_s, host.deadline_s - self.at_s)
        if hold_s <= 0.0:
            return
        host.started_s = self.at_s
        host.load_until_s = self.at_s + hold_s
        self._later(hold_s + 0.5, partial(self._ended, name, effect))

    def _ended(self, name: str, effect: fx.StartLoad) -> None:
        host = self._hosts[name]
        if host.load_until_s is None or host.loaded(self.at_s):
            return
        host.load_until_s = None
        result = LoadResult(name, Verdict.PASS)
        self._tell(ev.LoadFinished(self.at_s, effect.step.index, result))

    def _clean(self) -> None:
        dead = self._broken(Fault.API_REFUSES) or self._broken(Fault.API_SILENT)
        self._api_suspended = self._api_suspended or (self.stop_sent and not dead)
        self._tell(ev.CleanupDone(self.at_s, not dead, ""))

    # --- signals and faults

    def _sample(self) -> None:
        if not self._running():
            return
        value: float | None = 0.6 if self._broken(Fault.SLOW_FSYNC) else 0.005
        if self._broken(Fault.PROBE_NONE):
            value = None
        if not self._broken(Fault.PROBE_DEAD):
            for signal, sources in self.plan.sources.items():
                for source in sources:
                    reading = Sample(self.at_s, signal, source, value)
                    self._tell(ev.SampleTaken(self.at_s, reading))
        self._later(1.0, self._sample)

    def _broken(self, fault: Fault) -> bool:
        return fault in self.faults and self.at_s >= self.faults[fault]

    def _break(self, fault: Fault) -> None:
        host = self._hosts[self._lame]
        match fault:
            case Fault.CHANNEL_FROZEN:
                host.channel_frozen_s = self.at_s
            case Fault.CHANNEL_CLOSED if host.armed:
                host.channel_open = False
                self._tell(ev.GuardLost(self.at_s, host.name, "eof"))
            case Fault.HOST_FROZEN:
                host.frozen_until_s = self.at_s + self.rng.uniform(1.0, 90.0)
            case Fault.D_STATE:
                host.stuck_until_s = self.at_s + self.rng.uniform(1.0, 60.0)
            case Fault.PROOF_LATE:
                host.proof_delay_s = self.rng.uniform(0.5, 15.0)
            case Fault.DECIDER_PAUSED:
                self._resume_s = self.at_s + self.rng.uniform(0.5, 20.0)
            case Fault.ORCHESTRATOR_KILLED:
                self.killed_s = self.killed_s or (self.at_s if self._running() else None)
            case Fault.OPERATOR_STOPS:
                self._tell(ev.StopRequested(self.at_s, StopReason.OPERATOR, "^C"))
            case Fault.ABORTED_ELSEWHERE if host.armed:
                host.kill(self.at_s)
                if host.reachable(self.at_s):
                    self._tell(ev.GuardTripped(self.at_s, host.name, "tombstone"))
            case _:
                pass

    # --- invariants

    def _check(self) -> None:
        for host in self._hosts.values():
            excused = host.frozen(self.at_s) or self.at_s < host.stuck_until_s + TICK_S
            if excused or not host.loaded(self.at_s):
                continue
            gone_s = self.plan.beat_timeout_s + 1.0
            grace_s = gone_s if Fault.LOAD_OVERRUNS in self.faults else 0.0
            limit_s = max(host.deadline_s, host.started_s, host.frozen_until_s)
            if self.at_s > max(limit_s, host.stuck_until_s) + 2.0 + grace_s:
                self._fail(f"load on {host.name} outlived its deadline (I2)")
            thawed_s = max(
                self.killed_s or 0.0, host.frozen_until_s, host.started_s, host.stuck_until_s
            )
            if self.killed_s is not None and self.at_s > thawed_s + gone_s:
                self._fail(f"load on {host.name} outlived its orchestrator")

    def _fail(self, what: str) -> None:
        last = "\n".join(str(item) for item in self.history[-12:])
        raise Violation(
            f"{what}\nat {self.at_s:.2f} s, seed {self.seed}, faults {self.faults}\n{last}\n"
            f"replay: STRESSOR_SIM_SEEDS={self.seed}:{self.seed + 1} python -m pytest tests/sim"
        )
