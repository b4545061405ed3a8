"""`stressor status`: where a run stands, from its journal alone: with the API down, and after the
run's process was killed. Reads no config file: it is asked in emergencies."""

import json
import time

import click

from stressor.cli.runs import journal_of
from stressor.journal import Journal, encode, read
from stressor.report import status as live
from stressor.report.facts import RunReport
from stressor.report.fold import fold

SCHEMA_VERSION = 1


@click.command()
@click.argument("run", required=False)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def status(run: str | None, output: str) -> None:
    """Where RUN (default: the newest) stands."""
    journal = read(journal_of(run))
    now_s = time.clock_gettime(time.CLOCK_BOOTTIME) - _anchor_s(journal)
    report = fold(journal)
    if output == "json":
        click.echo(as_json(report, now_s, known=journal.header is not None), nl=False)
    else:
        click.echo(live.render(report, now_s), nl=False)


def _anchor_s(journal: Journal) -> float:
    return 0.0 if journal.header is None else journal.header.anchor_boot_s


def as_json(report: RunReport, now_s: float, *, known: bool = True) -> str:
    """The facts at `now_s`, seconds since the run's anchor, as one JSON object that ends in a
    newline; `known`: the journal says when that was.

    `state` is `running`, `silent` (the process is gone or stopped) or `ended`; `exit_code` is the
    run's own, null while there is none. `elapsed_s` and `silent_s` (since its last word) are null
    where nobody can say: without an anchor, and for a run of an earlier boot of this machine.
    """
    state = _state(report, now_s)
    ago_s = None if report.last_s is None else now_s - report.last_s
    document = {
        "schema_version": SCHEMA_VERSION,
        "verdict": report.verdict.value,
        "exit_code": report.exit_code,
        "next_command": "stressor abort" if state == "running" else report.next_command,
        "state": state,
        "run": report.run or None,
        "cluster": report.cluster or None,
        "stage": report.stage,
        "summary": report.summary or None,
        "elapsed_s": _since(now_s, known),
        "silent_s": None if ago_s is None else _since(ago_s, known),
        "steps_planned": None if report.plan is None else report.plan.steps,
        "steps": [encode(step) for step in report.steps],
        "signals": [encode(signal) for signal in report.signals],
        "guards": [encode(guard) for guard in report.guards],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _state(report: RunReport, now_s: float) -> str:
    if report.exit_code is not None:
        return "ended"
    return "silent" if live.silent(report, now_s) else "running"


def _since(span_s: float, known: bool) -> float | None:
    return round(span_s, 3) if known and span_s >= 0 else None
