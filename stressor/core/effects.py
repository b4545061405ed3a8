"""What the decider wants done. Effects are values: `engine.perform` carries them out, the journal
stores them before they act, and tests read them without any I/O."""

from dataclasses import dataclass

from stressor.model import Breach, Step, StopReason


@dataclass(frozen=True, slots=True)
class ArmGuards:
    """Open a channel to each host, start the guard there, arm it for the run."""

    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Beat:
    """Tell all guards that this decider is alive. Only a finished step emits it."""


@dataclass(frozen=True, slots=True)
class WatchLoad:
    """Have guards look for the run's marked processes."""

    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StartLoad:
    """Start a step's Jobs, after a round trip to all guards; void 2 s after `issued_at_s`."""

    step: Step
    issued_at_s: float


@dataclass(frozen=True, slots=True)
class ProveClean:
    """Have guards prove that no load of the run is left, killing nothing."""

    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WarnOperator:
    """Say that a warning gate fired."""

    breach: Breach


@dataclass(frozen=True, slots=True)
class StopLoad:
    """Kill through all armed guards. `breach` is the cause where a gate fired."""

    reason: StopReason
    detail: str
    breach: Breach | None = None


@dataclass(frozen=True, slots=True)
class ColdKill:
    """Kill on one host through a new connection: its guard has not acknowledged, or no proof."""

    host: str


@dataclass(frozen=True, slots=True)
class CleanUp:
    """Remove the run's objects from the API in a child process. `suspend_only` after an abort."""

    suspend_only: bool


@dataclass(frozen=True, slots=True)
class Disarm:
    """Tell all guards to quit; their host timers are stopped, tombstones stay."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The run is over; `exit_code` is final."""

    exit_code: int
    summary: str


Effect = (
    ArmGuards
    | Beat
    | WatchLoad
    | StartLoad
    | ProveClean
    | WarnOperator
    | StopLoad
    | ColdKill
    | CleanUp
    | Disarm
    | Finish
)
