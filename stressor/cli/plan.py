"""`stressor plan`: what `stressor run` would do, from the files alone."""

import os
import sys
from pathlib import Path

import click

from stressor.cli.inventories import open_inventory
from stressor.cli.planning import ELECTION_TIMEOUT_S, make_plan, storage_kinds
from stressor.config.phases import load_suite
from stressor.config.settings import settings
from stressor.core import placement, schedule
from stressor.report import plan as planned

RUN_NAME = "planned"
"""Stands for the name that `run` will draw."""


@click.command()
@click.argument("phasefile", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--inventory", help="An Ansible inventory (YAML). Also $STRESSOR_INVENTORY.")
@click.option("--image", help="The load image. Default: stressor_load_image of the inventory.")
@click.option(
    "--election-timeout", default=ELECTION_TIMEOUT_S, show_default=True, help="etcd's, s."
)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def plan(
    phasefile: Path,
    inventory: str | None,
    image: str | None,
    election_timeout: float,
    output: str,
) -> None:
    """Show what PHASEFILE would do: every object, node, ceiling, privilege, gate and end.

    Touches neither hosts nor the API. Exit 3 when a run of this plan would be refused for what the
    files say; where storage lies is asked of the hosts by `run`.
    """
    chosen = settings(os.environ, inventory_flag=inventory)
    hosts = open_inventory(chosen.inventory_path)
    suite = load_suite(phasefile, inventory=hosts)
    made = make_plan(suite, hosts, run=RUN_NAME, image=image, election_timeout_s=election_timeout)
    storage = placement.touches_storage(suite, storage_kinds())
    unanswered = placement.bystander_flaws(hosts) if storage else ()
    flaws = (*schedule.flaws(made), *unanswered)
    outlook = planned.Outlook(made, str(phasefile), flaws, storage)
    render = planned.as_json if output == "json" else planned.as_text
    click.echo(render(outlook), nl=False)
    sys.exit(int(outlook.exit_code))
