"""Small plans, and runs of the decider told event by event: values only, no clock, no I/O."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from stressor.core import effects as fx
from stressor.core import events as ev
from stressor.core.run import begin, step
from stressor.core.state import RunState, Stage
from stressor.model import (
    Comparison,
    Gate,
    GateAction,
    HostProof,
    HostState,
    LoadResult,
    Plan,
    Sample,
    Step,
    StopReason,
    Verdict,
)

FSYNC = Gate("fsync_p99_s", Comparison.ABOVE, 0.1)
LOAD = Gate("load_1m", Comparison.ABOVE, 8.0)
WARN = Gate("fsync_p99_s", Comparison.ABOVE, 0.01, action=GateAction.WARN)
HOSTS = ("cp", "n1", "n2")
NODES = ("n1", "n2")


def one_step(index: int = 0, **changes: object) -> Step:
    """A step of 60 s at most on two nodes, with one stopping gate."""
    plain = Step(index, "disk", "disk", NODES, {}, 0.0, 30.0, 2.0, 60.0, (FSYNC,))
    return replace(plain, **changes)  # type: ignore[arg-type]


def a_plan(*steps: Step, **changes: object) -> Plan:
    """Three guarded hosts, fsyncs of the first each second."""
    plain = Plan(
        run="r1",
        cluster="c",
        suite="s",
        baseline_s=2.0,
        steps=steps or (one_step(),),
        guarded=HOSTS,
        sources={"fsync_p99_s": ("cp",), "load_1m": ("n1",)},
        periods_s={"fsync_p99_s": 1.0, "load_1m": 1.0},
        deadline_s=400.0,
        namespace="stressor-r1",
        image="load:1",
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


@dataclass(slots=True)
class Story:
    """A run told event by event: `said` holds all effects, `last` those of the last event."""

    plan: Plan = field(default_factory=a_plan)
    at_s: float = 0.0
    state: RunState = field(init=False)
    said: list[fx.Effect] = field(init=False)
    last: tuple[fx.Effect, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.state, self.last = begin(self.plan)
        self.said = list(self.last)

    def tell(self, *events: ev.Event) -> "Story":
        for event in events:
            self.state, self.last = step(self.state, event)
            self.said.extend(self.last)
        return self

    def tick(self, after_s: float = 0.25, lateness_s: float = 0.0) -> "Story":
        self.at_s += after_s
        return self.tell(ev.Tick(self.at_s, lateness_s))

    def quiet(self, span_s: float, silent: Iterable[str] = (), fsync_s: float = 0.005) -> "Story":
        """Ticks for `span_s`, with answers of all guards but `silent`, and good samples."""
        for _ in range(round(span_s / 0.25)):
            for host in self.plan.guarded:
                if host not in silent:
                    self.tell(ev.GuardAcknowledged(self.at_s, host, "beat", 0.01))
            for signal, sources in self.plan.sources.items():
                for source in sources:
                    self.sample(fsync_s, signal, source)
            self.tick()
        return self

    def sample(
        self, value: float | None, signal: str = "fsync_p99_s", source: str = "cp"
    ) -> "Story":
        return self.tell(ev.SampleTaken(self.at_s, Sample(self.at_s, signal, source, value)))

    def arm(self, *hosts: str) -> "Story":
        return self.tell(*(ev.GuardArmed(self.at_s, h, ()) for h in hosts or self.plan.guarded))

    def to_starting(self) -> "Story":
        return self.arm().quiet(2.25)

    def created(self, index: int = 0) -> "Story":
        return self.tell(ev.LoadCreated(self.at_s, index))

    def seen(self, *nodes: str) -> "Story":
        return self.tell(*(ev.LoadSeen(self.at_s, n, 4, ("fio",)) for n in nodes or NODES))

    def to_loading(self) -> "Story":
        return self.to_starting().created().seen()

    def finished(self, *nodes: str, index: int = 0, verdict: Verdict = Verdict.PASS) -> "Story":
        results = (LoadResult(n, verdict) for n in nodes or NODES)
        return self.tell(*(ev.LoadFinished(self.at_s, index, r) for r in results))

    def proven(
        self, *hosts: str, state: HostState = HostState.CLEAN, took_s: float | None = 0.0
    ) -> "Story":
        proofs = (HostProof(h, state, took_s=took_s) for h in hosts or self.plan.guarded)
        return self.tell(*(ev.HostProven(self.at_s, p) for p in proofs))

    def stop(self, reason: StopReason = StopReason.OPERATOR) -> "Story":
        return self.tell(ev.StopRequested(self.at_s, reason, "by hand"))

    def cleaned(self) -> "Story":
        return self.tell(ev.CleanupDone(self.at_s, True, ""))

    @property
    def stage(self) -> Stage:
        return self.state.stage

    def is_at(self, stage: Stage) -> bool:
        return self.state.stage is stage

    @property
    def exit_code(self) -> int | None:
        codes = [e.exit_code for e in self.said if isinstance(e, fx.Finish)]
        return codes[0] if codes else None

    def count(self, kind: type[fx.Effect]) -> int:
        return sum(isinstance(e, kind) for e in self.said)
