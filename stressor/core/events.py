"""What the decider is told. Each event carries the time it arrived (`at_s`, boot-time seconds since
the run's anchor); the journal stores events as they are, so a run can be decided again later."""

from dataclasses import dataclass

from stressor.model import HostProof, LoadResult, Sample, StopReason


@dataclass(frozen=True, slots=True)
class Tick:
    """The loop's own pulse. `lateness_s`: how much later than due it came."""

    at_s: float
    lateness_s: float


@dataclass(frozen=True, slots=True)
class SampleTaken:
    """A probe's reading arrived."""

    at_s: float
    sample: Sample


@dataclass(frozen=True, slots=True)
class GuardArmed:
    """A host acknowledged arming; `facts` is its list of trips and backstops in force."""

    at_s: float
    host: str
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GuardRefused:
    """A host could not be armed. `lock_holder` names the run that holds the host, if one does."""

    at_s: float
    host: str
    reason: str
    lock_holder: str | None = None


@dataclass(frozen=True, slots=True)
class GuardAcknowledged:
    """A guard answered `verb`; `round_trip_s` is from our send to the arrival of the answer."""

    at_s: float
    host: str
    verb: str
    round_trip_s: float


@dataclass(frozen=True, slots=True)
class GuardLost:
    """A guard's channel broke. The host's dead-man is expected to kill the load there."""

    at_s: float
    host: str
    reason: str


@dataclass(frozen=True, slots=True)
class GuardTripped:
    """A guard killed load on its own: its beat, deadline, or a tombstone laid by somebody."""

    at_s: float
    host: str
    reason: str


@dataclass(frozen=True, slots=True)
class LoadCreated:
    """All Jobs of a step were accepted by the API."""

    at_s: float
    step: int


@dataclass(frozen=True, slots=True)
class StartDropped:
    """A start effect was not carried out, or only in part: `created` Jobs exist of it."""

    at_s: float
    step: int
    reason: str
    created: int


@dataclass(frozen=True, slots=True)
class LoadSeen:
    """A guard looked for the run's load: `processes` marked ones are alive on the host."""

    at_s: float
    host: str
    processes: int
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoadFinished:
    """The load of a step ended on a node by itself, and its output was parsed."""

    at_s: float
    step: int
    result: LoadResult


@dataclass(frozen=True, slots=True)
class HostProven:
    """A host's evidence after a kill or a proof order. `cold`: by a connection of its own."""

    at_s: float
    proof: HostProof
    cold: bool = False


@dataclass(frozen=True, slots=True)
class StopRequested:
    """Somebody or something outside the gates wants the load stopped."""

    at_s: float
    reason: StopReason
    detail: str


@dataclass(frozen=True, slots=True)
class CleanupDone:
    """The API side was cleaned, or could not be: never part of the proof of death."""

    at_s: float
    ok: bool
    detail: str


Event = (
    Tick
    | SampleTaken
    | GuardArmed
    | GuardRefused
    | GuardAcknowledged
    | GuardLost
    | GuardTripped
    | LoadCreated
    | StartDropped
    | LoadSeen
    | LoadFinished
    | HostProven
    | StopRequested
    | CleanupDone
)
