"""Merging verdicts: fail beats unknown beats pass, and nothing at all is unknown (I4)."""

from collections.abc import Iterable

from stressor.errors import ExitCode
from stressor.model import StopReason, Verdict


def merge(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict for many; UNKNOWN for none (the order is Jepsen's checker merge)."""
    found = set(verdicts)
    if Verdict.FAIL in found:
        return Verdict.FAIL
    if Verdict.UNKNOWN in found or not found:
        return Verdict.UNKNOWN
    return Verdict.PASS


def exit_code(verdict: Verdict) -> ExitCode:
    """The code of a run that ended by itself with all hosts proven clean."""
    return {
        Verdict.PASS: ExitCode.PASS,
        Verdict.FAIL: ExitCode.FAILED,
        Verdict.UNKNOWN: ExitCode.INCONCLUSIVE,
    }[verdict]


def stop_code(reason: StopReason, *, proven: bool) -> ExitCode:
    """The code of a run that was stopped: 98 without proof, whatever the cause."""
    if not proven:
        return ExitCode.NOT_PROVEN_DEAD
    if reason is StopReason.OPERATOR:
        return ExitCode.INTERRUPTED
    if reason is StopReason.TERMINATED:
        return ExitCode.TERMINATED
    return ExitCode.BREACH


def refusal_code(reason: StopReason) -> ExitCode:
    """The code of a run that was stopped before any load was started."""
    if reason is StopReason.OPERATOR:
        return ExitCode.INTERRUPTED
    if reason is StopReason.TERMINATED:
        return ExitCode.TERMINATED
    return ExitCode.REFUSED
