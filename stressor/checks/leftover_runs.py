"""What earlier runs left in the API: namespaces with the label of a run, also those that end.

A namespace with Jobs that live may hold load, which would be measured as the next run's, and which
the next run's abort does not know. One that is Terminating stands in nobody's way, but something
keeps it, and that is a fault to know of before load is added.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stressor.checks.base import Finding, Level, unknown

NAME = "leftover-runs"
_RUN = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Left:
    """A namespace of a run. `live_jobs`: its Jobs that are neither ended nor suspended.
    `terminating_since` is the API's time stamp, empty when nobody deleted it; `finalizers` and
    `conditions` say what keeps it."""

    namespace: str
    run: str
    live_jobs: int
    terminating_since: str = ""
    finalizers: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()


def judge(left: Sequence[Left] | None, problem: str = "") -> tuple[Finding, ...]:
    """None: the API did not say, and `problem` tells why. Live Jobs: FAIL, whether the namespace
    ends or not. Without: WARN."""
    if left is None:
        remedy = "kubectl get namespaces --selector stressor.dev/run"
        return (unknown(NAME, "", Level.FAIL, problem or "no answer", remedy),)
    found = tuple(_finding(one) for one in left)
    return found or (Finding(NAME, "", Level.PASS, "no namespace of an earlier run"),)


def _finding(left: Left) -> Finding:
    level = Level.FAIL if left.live_jobs else Level.WARN
    return Finding(NAME, "", level, "; ".join(_words(left)), _remedy(left))


def _words(left: Left) -> Iterator[str]:
    jobs = f"{left.live_jobs} live Jobs" if left.live_jobs else "no live Jobs"
    yield f"namespace {left.namespace} of run {left.run or '(unnamed)'}, {jobs}"
    if not left.terminating_since:
        return
    yield f"Terminating since {left.terminating_since}"
    if left.finalizers:
        yield f"kept by finalizer {', '.join(left.finalizers)}"
    yield from left.conditions


def _remedy(left: Left) -> str:
    """The label comes from the API: only what can be a run's name goes into a command."""
    if _RUN.fullmatch(left.run):
        return f"stressor cleanup --run {left.run}"
    return f"kubectl get namespace {left.namespace} --output yaml"
