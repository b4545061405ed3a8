"""The run as one value, and the small questions that the decider asks of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from stressor.core.thresholds import Watch
from stressor.model import PROVEN, HostProof, LoadResult, Plan, Step, StopReason, Verdict


class Stage(StrEnum):
    """Where a run stands. ABORTING is absorbing: only CLEANING and ENDED come after it (I3)."""

    ARMING = "arming"
    BASELINE = "baseline"
    STARTING = "starting"
    APPEARING = "appearing"
    LOADING = "loading"
    PROVING = "proving"
    COOLING = "cooling"
    ABORTING = "aborting"
    CLEANING = "cleaning"
    ENDED = "ended"


ORDER_SLACK_S = 0.01
"""Rounding of `took_s` in reports; far below any two orders to one host."""

STOPPED = frozenset({Stage.ABORTING, Stage.CLEANING, Stage.ENDED})


@dataclass(frozen=True, slots=True)
class Stop:
    """Why and when the load was ordered to stop."""

    at_s: float
    reason: StopReason
    detail: str


@dataclass(frozen=True, slots=True)
class RunState:
    """Everything that the decider knows.

    `started` is true from the moment a StartLoad was issued: from then on nobody can know without
    proof that no load exists. `seen` are the nodes of the current step whose guard saw the load,
    `finished` the results of the current step, `verdicts` those of all steps so far. Proofs ordered
    before `proofs_since_s` say nothing of the load in question. Until `arrivals_until_s` (None: all
    of it was seen, or none was created) load that was ordered may still appear on its hosts.
    """

    plan: Plan
    stage: Stage
    stage_since_s: float
    step_index: int = 0
    started: bool = False
    armed: frozenset[str] = frozenset()
    last_ack_s: Mapping[str, float] = field(default_factory=dict)
    watches: tuple[Watch, ...] = ()
    warned: frozenset[tuple[str, str]] = frozenset()
    load_since_s: float | None = None
    looked_s: float | None = None
    seen: frozenset[str] = frozenset()
    finished: tuple[LoadResult, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    proofs: Mapping[str, HostProof] = field(default_factory=dict)
    proofs_since_s: float = 0.0
    arrivals_until_s: float | None = None
    kill_acked: frozenset[str] = frozenset()
    cold_s: Mapping[str, float] = field(default_factory=dict)
    stop: Stop | None = None

    @property
    def step(self) -> Step:
        """The step that is running or comes next."""
        return self.plan.steps[min(self.step_index, len(self.plan.steps) - 1)]

    def counts(self, proof: HostProof, at_s: float) -> bool:
        """Whether a proof that arrived at `at_s` is evidence on the load in question: bad news
        always is, good news only as an answer to an order that was given late enough."""
        if proof.state not in PROVEN:
            return True
        if proof.took_s is None:
            return False
        return at_s - proof.took_s >= self.proofs_since_s - ORDER_SLACK_S

    def unproven(self, hosts: tuple[str, ...]) -> tuple[str, ...]:
        """Those of `hosts` without proof that their load is dead (I5)."""
        return tuple(h for h in hosts if h not in self.proofs or self.proofs[h].state not in PROVEN)
