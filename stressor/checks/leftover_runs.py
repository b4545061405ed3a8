"""What earlier runs left in the API: their namespaces, also those that do not finish to end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stressor.checks.base import Finding, Level, unknown

NAME = "leftover-runs"


@dataclass(frozen=True, slots=True)
class RunNamespace:
    """A namespace that bears the label of a run. `deleting_since` is the API's time of the order to
    delete it, empty where there was none. `held_by` are finalizers and the messages of conditions
    that say what keeps it."""

    name: str
    run: str
    phase: str = ""
    deleting_since: str = ""
    held_by: tuple[str, ...] = ()


def judge(found: Sequence[RunNamespace] | None, problem: str = "") -> tuple[Finding, ...]:
    """FAIL for a namespace that is stuck in its deletion: something in the cluster does not do its
    work, and this run's clean-up would meet it, too. WARN for one that was left, or that another
    run is using. `found` None: the API did not answer, and `problem` says why."""
    if found is None:
        remedy = "kubectl get ns -l stressor.dev/run"
        return (unknown(NAME, "", Level.FAIL, f"earlier runs: {problem}", remedy),)
    none = Finding(NAME, "", Level.PASS, "no namespace of an earlier run")
    return tuple(_found(found)) or (none,)


def _found(namespaces: Sequence[RunNamespace]) -> Iterator[Finding]:
    for one in namespaces:
        if one.deleting_since or one.phase == "Terminating":
            yield Finding(NAME, "", Level.FAIL, _stuck(one), _remedy(one))
        else:
            text = f"namespace {one.name} of an earlier run is {one.phase or 'there'}"
            yield Finding(NAME, "", Level.WARN, text, _remedy(one))


def _stuck(one: RunNamespace) -> str:
    since = f" since {one.deleting_since}" if one.deleting_since else ""
    why = "; ".join(one.held_by) or "the API does not say what holds it"
    return f"namespace {one.name} is terminating{since}: {why}"


def _remedy(one: RunNamespace) -> str:
    if one.run:
        return f"stressor cleanup --run {one.run}"
    return f"kubectl get ns {one.name} -o yaml; kubectl delete ns {one.name}"
