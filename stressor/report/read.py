"""From a record's JSON to facts. A field that is missing or of another type is unknown, never an
error: a report must be possible of every journal that can be read at all."""

from collections.abc import Mapping

from stressor.model import HostState, Verdict
from stressor.report.facts import BreachFact, Data, GateFact, PlanFact, ProofFact, ResultFact


def number(data: Data, key: str) -> float | None:
    """A number, or None."""
    value = data.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def whole(data: Data, key: str) -> int | None:
    """A whole number, or None."""
    value = number(data, key)
    return None if value is None else int(value)


def text(data: Data, key: str) -> str:
    """Text; empty when there is none."""
    value = data.get(key)
    return value if isinstance(value, str) else ""


def texts(data: Data, key: str) -> tuple[str, ...]:
    """A list of texts; empty when there is none."""
    value = data.get(key)
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def part(data: Data, key: str) -> Data:
    """A mapping inside; empty when there is none."""
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def parts(data: Data, key: str) -> tuple[Data, ...]:
    """A list of mappings inside; empty when there is none."""
    value = data.get(key)
    return (
        tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()
    )


def breach(data: Data) -> BreachFact | None:
    """A Breach; None when there is none."""
    gate = part(data, "gate")
    if not gate:
        return None
    return BreachFact(
        at_s=number(data, "at_s"),
        signal=text(gate, "signal"),
        source=text(data, "source"),
        value=number(data, "value"),
        comparison=text(gate, "comparison"),
        limit=number(gate, "limit"),
        since_s=number(data, "since_s"),
        stale=data.get("stale") is True,
        action=text(gate, "action"),
    )


def result(data: Data) -> ResultFact:
    """A LoadResult; a verdict that this program does not know is unknown."""
    metrics = part(data, "metrics")
    found = {name: number(metrics, name) for name in metrics}
    return ResultFact(
        node=text(data, "node"),
        verdict=_verdict(text(data, "verdict")),
        metrics={name: value for name, value in found.items() if value is not None},
        problems=texts(data, "problems"),
    )


def proof(data: Data, at_s: float, cold: bool) -> ProofFact:
    """A HostProof; a state that this program does not know proves nothing."""
    state = text(data, "state")
    return ProofFact(
        host=text(data, "host"),
        state=HostState(state) if state in tuple(HostState) else HostState.UNVERIFIED,
        at_s=at_s,
        stopped=whole(data, "stopped") or 0,
        survivors=tuple(_survivor(one) for one in parts(data, "survivors")),
        detail=text(data, "detail"),
        cold=cold,
    )


def plan(data: Data) -> PlanFact:
    """A Plan; each gate once, in the order of the steps."""
    steps = parts(data, "steps")
    gates = dict.fromkeys(_gate(one) for step in steps for one in parts(step, "gates"))
    return PlanFact(
        guarded=texts(data, "guarded"),
        steps=len(steps),
        deadline_s=number(data, "deadline_s"),
        namespace=text(data, "namespace"),
        storage_notes=texts(data, "storage_notes"),
        accepted=texts(data, "accepted"),
        gates=tuple(gates),
    )


def _gate(data: Data) -> GateFact:
    return GateFact(
        signal=text(data, "signal"),
        comparison=text(data, "comparison"),
        limit=number(data, "limit"),
        action=text(data, "action"),
    )


def _survivor(data: Mapping[str, object]) -> str:
    age = number(data, "age_s")
    shown = "age unknown" if age is None else f"{age:.0f} s old"
    what = f"{text(data, 'comm')} pid {whole(data, 'pid')} state {text(data, 'state')}"
    return f"{what} in {text(data, 'wchan') or '?'}, {shown}"


def _verdict(word: str) -> Verdict:
    return Verdict(word) if word in tuple(Verdict) else Verdict.UNKNOWN
