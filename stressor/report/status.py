"""The short live view of a run from its journal: works with the API down and from any terminal."""

from collections.abc import Iterator

from stressor.report.facts import GateFact, RunReport, SignalFact
from stressor.report.lines import RULE, item, number, row, seconds
from stressor.report.text import CUT_OFF

SILENCE_S = 5.0
"""A run that lives writes samples and acknowledgements every second; guards kill after as much
silence from it (the beat time-out), so its load ends about now."""


def render(report: RunReport, now_s: float) -> str:
    """The view at `now_s`, seconds since the run's anchor on CLOCK_BOOTTIME; ends in a newline."""
    return "\n".join(_lines(report, now_s)) + "\n"


def silent(report: RunReport, now_s: float) -> bool:
    """Whether a run that has not ended has stopped writing. A last word from the future is of an
    earlier boot."""
    if report.exit_code is not None:
        return False
    return report.last_s is None or abs(now_s - report.last_s) > SILENCE_S


def _lines(report: RunReport, now_s: float) -> Iterator[str]:
    yield from row("RUN", f"{report.run or '?'}  cluster {report.cluster or '?'}")
    yield from row("stage", f"{report.stage}  elapsed {seconds(now_s)}")
    if report.steps:
        step = report.steps[-1]
        of = f" of {report.plan.steps}" if report.plan else ""
        since = None if step.ordered_s is None else now_s - step.ordered_s
        yield from row("step", f"{step.index + 1}{of} {step.phase}, ordered {seconds(since)} ago")
    for gate in report.plan.gates if report.plan else ():
        yield from _gate(gate, report.signals, now_s)
    for guard in report.guards:
        ago = None if guard.last_ack_s is None else now_s - guard.last_ack_s
        trouble = guard.lost or guard.tripped or guard.refused
        yield from row("guard", f"{guard.host} answered {seconds(ago)} ago {trouble or ''}")
    yield RULE
    yield from _end(report, now_s)


def _gate(gate: GateFact, signals: tuple[SignalFact, ...], now_s: float) -> Iterator[str]:
    yield from row("gate", f"{gate.signal} {gate.action} {gate.comparison} {number(gate.limit)}")
    found = [one for one in signals if one.signal == gate.signal]
    for one in found:
        yield from item(f"{one.source} {number(one.last)}, {now_s - one.last_s:.1f} s ago", 10)
    if not found:
        yield from item("no sample yet", 10)


def _end(report: RunReport, now_s: float) -> Iterator[str]:
    if report.exit_code is not None:
        yield from row("ENDED", report.summary)
        yield from row("VERDICT", f"{report.verdict.upper()}  exit code {report.exit_code}")
        yield from row("NEXT", report.next_command)
    elif silent(report, now_s):
        ago = None if report.last_s is None else now_s - report.last_s
        yield from row("SILENT", f"the process is gone or stopped: last word {seconds(ago)} ago")
        yield from row("", CUT_OFF)
        yield from row("NEXT", report.next_command)
    else:
        yield from row("RUNNING", f"last word {seconds(now_s - (report.last_s or 0.0))} ago")
        yield from row("NEXT", "stressor abort   (stops it; safe to repeat)")
