"""What admission makes of the run's objects: the pod security level, and dry runs of creation.

A dry run passes every webhook and policy that the creation would pass. But it needs the namespace:
a Job cannot be tried in one that does not exist. Tried in another (a stand-in), its acceptance
shows that nothing forbids it everywhere, and its refusal may be that namespace's own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stressor.checks.base import Finding, Level, unknown

NAME = "admission"
LEVELS = ("privileged", "baseline", "restricted")
"""The levels of Pod Security Admission, each stricter than the one before it."""
_SHOWN_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class Trial:
    """A dry run. `accepted` None: not decided, and `message` says why; False: `message` is the
    refusal. `security_level` is, of a namespace, its label pod-security.kubernetes.io/enforce as it
    would be stored. `stand_in`: tried in another namespace than the run's."""

    kind: str
    namespace: str
    name: str
    accepted: bool | None
    message: str = ""
    warnings: tuple[str, ...] = ()
    security_level: str | None = None
    stand_in: bool = False


def judge(security_level: str, trials: Sequence[Trial]) -> tuple[Finding, ...]:
    """`security_level`: the one that the run's namespace asks for. A refusal: FAIL, in the API's
    words. What was not decided is unknown: WARN, for a webhook that knows no dry run, or a missing
    namespace, has no remedy before the run, and load that is refused later does not start."""
    if not trials:
        remedy = "stressor preflight --only admission"
        return (unknown(NAME, "", Level.FAIL, "nothing was tried", remedy),)
    findings = (finding for trial in trials for finding in _trial(security_level, trial))
    return (*_level(security_level), *findings)


def _level(wanted: str) -> Iterator[Finding]:
    text = f"the run's namespace enforces pod security level {wanted}"
    if wanted == LEVELS[-1]:
        yield Finding(NAME, "", Level.PASS, text)
    else:
        remedy = "params without host_path: an emptyDir or a storage_class needs no such level"
        yield Finding(NAME, "", Level.WARN, f"{text}, for a host path", remedy)


def _trial(wanted: str, trial: Trial) -> Iterator[Finding]:
    what = f"{trial.kind} {trial.name}" + (f" in {trial.namespace}" if trial.namespace else "")
    said = _one_line(trial.message)
    ask = f"kubectl create --dry-run=server of such a {trial.kind}"
    if trial.accepted is None:
        yield unknown(NAME, "", Level.WARN, f"would {what} be accepted? {said}", ask)
    elif not trial.accepted and trial.stand_in:
        why = f"would the run's namespace refuse it, too? {what}, in its stead: {said}"
        yield unknown(NAME, "", Level.WARN, why, ask)
    elif not trial.accepted:
        remedy = f"meet or exempt: {ask}"
        yield Finding(NAME, "", Level.FAIL, f"{what} is refused: {said}", remedy)
    else:
        yield from _accepted(wanted, trial, what)


def _accepted(wanted: str, trial: Trial, what: str) -> Iterator[Finding]:
    stead = ", in the stead of the run's namespace" if trial.stand_in else ""
    found = (*_changed(wanted, trial), *_warned(trial, what))
    yield from found or (Finding(NAME, "", Level.PASS, f"{what} is accepted{stead}"),)


def _changed(wanted: str, trial: Trial) -> Iterator[Finding]:
    """A webhook may put another level on the namespace than the one that it asks for."""
    stored = trial.security_level
    if trial.kind != "Namespace" or stored == wanted:
        return
    remedy = "kubectl get mutatingwebhookconfigurations"
    if stored not in LEVELS:
        text = f"the namespace would have no level of its own ({stored or 'the label is gone'})"
        yield Finding(NAME, "", Level.WARN, text, remedy)
        return
    stricter = LEVELS.index(stored) > LEVELS.index(wanted)
    text = f"something sets the level to {stored}, asked is {wanted}"
    text = f"{text}: its pods would be refused" if stricter else text
    yield Finding(NAME, "", Level.FAIL if stricter else Level.WARN, text, remedy)


def _warned(trial: Trial, what: str) -> Iterator[Finding]:
    for warning in dict.fromkeys(trial.warnings):
        remedy = f"kubectl explain {trial.kind.lower()}; policies of the cluster"
        yield Finding(NAME, "", Level.WARN, f"{what}: {_one_line(warning)}", remedy)


def _one_line(text: str) -> str:
    """Webhooks answer in paragraphs."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}..."
