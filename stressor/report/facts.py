"""What a journal says about a run, as frozen records: the one source of every report format.

All times are seconds since the run's anchor. None means unknown, here as everywhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from stressor.model import PROVEN, HostState, Verdict

Data = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class BreachFact:
    """A gate that fired. `value` None: the signal was stale."""

    at_s: float | None
    signal: str
    source: str
    value: float | None
    comparison: str
    limit: float | None
    since_s: float | None
    stale: bool
    action: str


@dataclass(frozen=True, slots=True)
class ResultFact:
    """What a load tool reported from one node."""

    node: str
    verdict: Verdict
    metrics: Mapping[str, float]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepFact:
    """One step, from the order to start on. `breaches` are the gates that fired while it was on;
    `dropped` says why a start was not carried out, or only in part: `created` Jobs exist then."""

    index: int
    phase: str
    kind: str
    nodes: tuple[str, ...]
    params: Data
    verdict: Verdict
    ordered_s: float | None = None
    created_s: float | None = None
    results: tuple[ResultFact, ...] = ()
    breaches: tuple[BreachFact, ...] = ()
    dropped: str | None = None
    created: int | None = None

    @property
    def never_was(self) -> bool:
        """Whether it is known that no load of this step ever existed."""
        return self.dropped is not None and self.created == 0


@dataclass(frozen=True, slots=True)
class HostTiming:
    """When one host acknowledged the kill and when its death was proven."""

    host: str
    acknowledged_s: float | None
    proven_s: float | None


@dataclass(frozen=True, slots=True)
class StopFact:
    """An abort: sample, order, acknowledgements, proofs. `sample_s` is when the sample that broke
    the gate arrived; None when no sample was the cause."""

    ordered_s: float
    reason: str
    detail: str
    breach: BreachFact | None
    sample_s: float | None
    hosts: tuple[HostTiming, ...]

    @property
    def last_proven_s(self) -> float | None:
        """When the last host was proven; None while one is not."""
        times = [host.proven_s for host in self.hosts]
        known = [time for time in times if time is not None]
        return max(known) if known and len(known) == len(times) else None


@dataclass(frozen=True, slots=True)
class ProofFact:
    """A host's last word. `at_s` None: there never was one."""

    host: str
    state: HostState
    at_s: float | None
    stopped: int
    survivors: tuple[str, ...]
    detail: str
    cold: bool

    @property
    def proven(self) -> bool:
        """Whether this is evidence that no load of the run is left on the host (I5)."""
        return self.state in PROVEN


@dataclass(frozen=True, slots=True)
class GuardFact:
    """One host's guard."""

    host: str
    armed_s: float | None = None
    facts: tuple[str, ...] = ()
    last_ack_s: float | None = None
    refused: str | None = None
    lost: str | None = None
    tripped: str | None = None


@dataclass(frozen=True, slots=True)
class SignalFact:
    """The samples of one signal at one source. `unknown` are samples without a value."""

    signal: str
    source: str
    count: int
    unknown: int
    low: float | None
    high: float | None
    last: float | None
    last_s: float


@dataclass(frozen=True, slots=True)
class GateFact:
    """A gate of the plan, as far as a reader needs it."""

    signal: str
    comparison: str
    limit: float | None
    action: str


@dataclass(frozen=True, slots=True)
class PlanFact:
    """The plan as it was recorded before anything started."""

    guarded: tuple[str, ...]
    steps: int
    deadline_s: float | None
    namespace: str
    storage_notes: tuple[str, ...]
    accepted: tuple[str, ...]
    gates: tuple[GateFact, ...]


@dataclass(frozen=True, slots=True)
class CleanupFact:
    """Whether the API side was cleaned; never part of the proof of death."""

    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run as its journal tells it. `exit_code` None: the journal ends without the run's end, for
    its process was killed or still runs. `stage` is the last one that the journal shows. `by_hand`:
    for each route, the abort that needs no file."""

    run: str
    cluster: str
    suite: str
    who: str
    host: str
    argv: tuple[str, ...]
    reason: str
    started_unix_s: float | None
    stage: str
    verdict: Verdict
    exit_code: int | None
    summary: str
    next_command: str
    cut: bool
    last_s: float | None
    plan: PlanFact | None
    steps: tuple[StepFact, ...]
    stop: StopFact | None
    warnings: tuple[BreachFact, ...]
    proofs: tuple[ProofFact, ...]
    guards: tuple[GuardFact, ...]
    signals: tuple[SignalFact, ...]
    cleanup: CleanupFact | None
    by_hand: tuple[str, ...]
    unknown_kinds: tuple[str, ...]
