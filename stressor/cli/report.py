"""`stressor report`: a run's journal, folded. Works for runs that were killed, and with no API."""

import click

from stressor.cli.runs import journal_of
from stressor.journal import read
from stressor.report import json as as_json
from stressor.report import text as as_text
from stressor.report.fold import fold


@click.command()
@click.argument("run", required=False)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def report(run: str | None, output: str) -> None:
    """What RUN (default: the newest) did and found, and what to do next."""
    folded = fold(read(journal_of(run)))
    click.echo(as_json.render(folded) if output == "json" else as_text.render(folded), nl=False)
