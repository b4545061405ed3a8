"""The machines of a simulated cluster, and what may go wrong with them. Times are absolute."""

from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """What goes wrong. One run suffers up to three."""

    SLOW_FSYNC = "slow_fsync"
    PROBE_DEAD = "probe_dead"
    PROBE_NONE = "probe_none"
    CHANNEL_FROZEN = "channel_frozen"
    CHANNEL_CLOSED = "channel_closed"
    HOST_FROZEN = "host_frozen"
    D_STATE = "d_state"
    API_REFUSES = "api_refuses"
    API_SLOW = "api_slow"
    API_SILENT = "api_silent"
    DECIDER_PAUSED = "decider_paused"
    ORCHESTRATOR_KILLED = "orchestrator_killed"
    PROOF_LATE = "proof_late"
    LOAD_NEVER_SEEN = "load_never_seen"
    LOAD_ENDS_EARLY = "load_ends_early"
    LOAD_OVERRUNS = "load_overruns"
    OPERATOR_STOPS = "operator_stops"
    ABORTED_ELSEWHERE = "aborted_elsewhere"


@dataclass(slots=True)
class SimHost:
    """One machine: what runs there and what its guard knows. Times are absolute."""

    name: str
    armed: bool = False
    tombstone: bool = False
    quit: bool = False
    beat_s: float = 0.0
    load_until_s: float | None = None
    started_s: float = 0.0
    deadline_s: float = 0.0
    looked_s: float = 0.0
    stuck_until_s: float = 0.0
    frozen_until_s: float = 0.0
    channel_frozen_s: float | None = None
    channel_open: bool = True
    proof_delay_s: float = 0.0

    def loaded(self, at_s: float) -> bool:
        """Whether load is alive, a frozen or a stuck one too."""
        return self.load_until_s is not None and (
            at_s < self.load_until_s or at_s < self.stuck_until_s or self.frozen(at_s)
        )

    def frozen(self, at_s: float) -> bool:
        return at_s < self.frozen_until_s

    def reachable(self, at_s: float) -> bool:
        """Whether a line to the guard is answered over the armed channel."""
        silent = self.channel_frozen_s is not None and at_s >= self.channel_frozen_s
        return self.armed and self.channel_open and not silent and not self.frozen(at_s)

    def kill(self, at_s: float) -> bool:
        """Kill what can be killed; whether there was anything."""
        self.tombstone = True
        had = self.load_until_s is not None
        if had and at_s >= self.stuck_until_s:
            self.load_until_s = None
        elif had:
            self.load_until_s = self.stuck_until_s
        return had
