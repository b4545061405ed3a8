"""`stressor status`: where a run stands, from its journal alone: with the API down, and after the
run's process was killed."""

import time

import click

from stressor.cli.runs import journal_of
from stressor.journal import read
from stressor.report import status as live
from stressor.report.fold import fold


@click.command()
@click.argument("run", required=False)
def status(run: str | None) -> None:
    """Where RUN (default: the newest) stands."""
    journal = read(journal_of(run))
    anchor_s = 0.0 if journal.header is None else journal.header.anchor_boot_s
    now_s = time.clock_gettime(time.CLOCK_BOOTTIME) - anchor_s
    click.echo(live.render(fold(journal), now_s), nl=False)
