"""The guard's line protocol (docs/guard-protocol.md): pure parsing into frozen records.

Lines come from a shell on a host in trouble, through a login that may print anything. What does not
fit a line's form exactly is Noise, and noise is never evidence (I5): no default stands in for a
field that is missing.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stressor.model import HostProof, HostState, Survivor

PROOF_STATES = frozenset(
    {HostState.CLEAN, HostState.STOPPED, HostState.SURVIVORS, HostState.UNVERIFIED}
)
_ANSWER = re.compile(r"(\d{1,9}) (ok|err) ([a-z-]+)(?: (.*))?")
_REPORT = re.compile(r"! (watch|survivor|proof) (\d{1,9}) (.+)")
_TRIPPED = re.compile(r"! tripped ([\w.:+/-]+)", re.ASCII)
_LATE = re.compile(r"! late n=(\d{1,9})")
_FACT = re.compile(r"([a-z0-9_]+)=(\S+)")


@dataclass(frozen=True, slots=True)
class Ack:
    """The guard did, or began, what was ordered. `facts` are words of the form key=value."""

    sequence: int
    verb: str
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """The guard did not do what was ordered."""

    sequence: int
    verb: str
    reason: str


@dataclass(frozen=True, slots=True)
class GuardSample:
    """An acknowledged `sample`: the host's boot time in seconds and stall totals in microseconds;
    None where the kernel gave none."""

    sequence: int
    boot_s: float
    cpu_some_us: int | None
    io_some_us: int | None
    io_full_us: int | None
    memory_some_us: int | None
    memory_full_us: int | None


@dataclass(frozen=True, slots=True)
class WatchReport:
    """A look for the run's load. None: the look itself gave no answer."""

    sequence: int
    processes: int | None
    cgroups: int | None
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SurvivorLine:
    """A marked process that outlived the kill; a proof line of the same sequence follows."""

    sequence: int
    survivor: Survivor


@dataclass(frozen=True, slots=True)
class ProofLine:
    """What the guard can prove. `took_s` is from the order to this word, by the host's clock."""

    sequence: int
    state: HostState
    stopped: int
    took_s: float
    detail: str


@dataclass(frozen=True, slots=True)
class Tripped:
    """The guard killed on its own."""

    reason: str


@dataclass(frozen=True, slots=True)
class LateComers:
    """Load that turned up after the kill was killed too."""

    processes: int


@dataclass(frozen=True, slots=True)
class Noise:
    """Anything else."""

    text: str


Message = (
    Ack
    | Refusal
    | GuardSample
    | WatchReport
    | SurvivorLine
    | ProofLine
    | Tripped
    | LateComers
    | Noise
)


def parse(line: str) -> Message:
    """One line of the guard or of the kill script. Never raises."""
    if match := _ANSWER.fullmatch(line):
        return _answer(int(match[1]), match[2], match[3], match[4] or "") or Noise(line)
    if match := _REPORT.fullmatch(line):
        return _report(match[1], int(match[2]), _facts(match[3])) or Noise(line)
    if match := _TRIPPED.fullmatch(line):
        return Tripped(match[1])
    if match := _LATE.fullmatch(line):
        return LateComers(int(match[1]))
    return Noise(line)


def proof_of(host: str, lines: Iterable[str]) -> HostProof | None:
    """The last word of the kill script's output; None when it gave no proof line at all."""
    survivors: list[Survivor] = []
    proof = None
    for message in map(parse, lines):
        if isinstance(message, SurvivorLine):
            survivors.append(message.survivor)
        if isinstance(message, ProofLine):
            proof = host_proof(host, message, tuple(survivors))
            survivors = []
    return proof


def host_proof(host: str, line: ProofLine, survivors: tuple[Survivor, ...]) -> HostProof:
    """A proof line and the survivors named before it, as the model has them. A host that names
    survivors beside good news contradicts itself: that is no proof."""
    state, detail = line.state, line.detail
    if survivors and state in (HostState.CLEAN, HostState.STOPPED):
        state, detail = HostState.UNVERIFIED, f"{state} beside {len(survivors)} survivors"
    return HostProof(host, state, line.stopped, survivors, line.took_s, detail)


def _answer(sequence: int, word: str, verb: str, rest: str) -> Message | None:
    if word == "err":
        return Refusal(sequence, verb, rest)
    if verb == "sample":
        return _sample(sequence, _facts(rest))
    return Ack(sequence, verb, tuple(rest.split()))


def _sample(sequence: int, facts: Mapping[str, str]) -> Message | None:
    boot_s = _seconds(facts.get("boot"))
    if boot_s is None:
        return None
    return GuardSample(
        sequence,
        boot_s,
        cpu_some_us=_count(facts.get("psi_cpu_some_us")),
        io_some_us=_count(facts.get("psi_io_some_us")),
        io_full_us=_count(facts.get("psi_io_full_us")),
        memory_some_us=_count(facts.get("psi_memory_some_us")),
        memory_full_us=_count(facts.get("psi_memory_full_us")),
    )


def _report(kind: str, sequence: int, facts: Mapping[str, str]) -> Message | None:
    if kind == "watch":
        commands = facts.get("comms", "-")
        names = () if commands == "-" else tuple(commands.split(","))
        processes, cgroups = _count(facts.get("processes")), _count(facts.get("cgroups"))
        return WatchReport(sequence, processes, cgroups, names)
    return _survivor(sequence, facts) if kind == "survivor" else _proof(sequence, facts)


def _survivor(sequence: int, facts: Mapping[str, str]) -> Message | None:
    pid = _count(facts.get("pid"))
    if pid is None:
        return None
    words = (facts.get("comm", "-"), facts.get("state", "-"), facts.get("wchan", "-"))
    age_s = _seconds(facts.get("age_s"))
    return SurvivorLine(sequence, Survivor(pid, *words, 0.0 if age_s is None else age_s))


def _proof(sequence: int, facts: Mapping[str, str]) -> Message | None:
    stopped, took_ms = _count(facts.get("stopped")), _count(facts.get("took_ms"))
    known = {str(state): state for state in PROOF_STATES}
    state = known.get(facts.get("state", ""))
    if state is None or stopped is None or took_ms is None:
        return None
    detail = facts.get("detail", "-")
    return ProofLine(sequence, state, stopped, took_ms / 1000, "" if detail == "-" else detail)


def _facts(text: str) -> Mapping[str, str]:
    matches = (_FACT.fullmatch(word) for word in text.split(" "))
    return {match[1]: match[2] for match in matches if match is not None}


def _count(text: str | None) -> int | None:
    plain = text is not None and text.isascii() and text.isdigit() and len(text) <= 18
    return int(text) if plain and text is not None else None


def _seconds(text: str | None) -> float | None:
    if text is None or not re.fullmatch(r"\d{1,12}(\.\d{1,6})?", text, re.ASCII):
        return None
    value = float(text)
    return value if math.isfinite(value) else None
