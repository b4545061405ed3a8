"""`stressor preflight`: may load start here, and could it be stopped? Starts nothing."""

import os
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import click

from stressor.checks.base import Finding
from stressor.cli.inspection import NAMES, Inspection, inspect
from stressor.cli.inventories import open_inventory
from stressor.cli.plan_source import Asked, open_source
from stressor.config.layers import ELECTION_TIMEOUT_S
from stressor.config.settings import settings
from stressor.engine.abort_script import by_hand, publish
from stressor.errors import ConfigError
from stressor.lifeline import read, state_dir
from stressor.model import Inventory, Plan, Suite
from stressor.report import preflight as shown
from stressor.workloads.gates import slow_fsync_s


@click.command()
@click.argument(
    "phasefile", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--inventory", help="An Ansible inventory (YAML). Also $STRESSOR_INVENTORY.")
@click.option("--only", multiple=True, metavar="NAME", help="Only this check; may be repeated.")
@click.option("--election-timeout", type=float, help=f"etcd's, s. Default: {ELECTION_TIMEOUT_S:g}.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "junit"]),
    default="text",
    show_default=True,
)
def preflight(
    phasefile: Path | None,
    inventory: str | None,
    only: tuple[str, ...],
    election_timeout: float | None,
    output: str,
) -> None:
    """Ask hosts and API whether load may start, and whether it could be stopped.

    With PHASEFILE (or a plan file) also what only its load needs: storage, quotas, images.
    Nothing is started, and nothing changed but the lifeline file and the abort script of this
    machine. Exit 3 with any failure; warnings do not count.
    """
    unknown_names = sorted(set(only) - set(NAMES))
    if unknown_names:
        known = ", ".join(sorted(NAMES))
        raise ConfigError((f"no check is called {', '.join(unknown_names)}; there are: {known}",))
    site = _site(phasefile, inventory, election_timeout)
    hosts = site.hosts
    for text in site.notes:
        click.echo(f"NOTE  {text}", err=True)
    # From here on `stressor abort` works for this cluster, whatever preflight finds.
    path = publish(state_dir(os.environ), hosts.cluster, hosts.hosts, time.time())
    slow_s = slow_fsync_s(site.election_timeout_s)
    inspection = Inspection(hosts, read(path), slow_s, frozenset(only), site.suite, site.plan)
    began_s = time.monotonic()
    findings: list[Finding] = []
    for name, found in inspect(inspection):
        findings += found
        if found:
            line = shown.host_line(name, found, time.monotonic() - began_s)
            click.echo(line, err=output != "text")
    took_s = time.monotonic() - began_s
    named = (*(host.name for host in hosts.hosts), *(f.host for f in findings if f.host))
    names = tuple(dict.fromkeys(named))
    commands = tuple(line for host in hosts.hosts for line in by_hand(host))
    load = "PHASEFILE" if phasefile is None else shlex.quote(str(phasefile))
    result = shown.Preflight(hosts.cluster, names, tuple(findings), took_s, load, commands)
    render = {"text": shown.ending, "json": shown.as_json, "junit": shown.as_junit}[output]
    click.echo(render(result), nl=False)
    sys.exit(int(result.exit_code))


@dataclass(frozen=True, slots=True)
class _Site:
    """What is inspected: the hosts, and the load where a file names it."""

    hosts: Inventory
    election_timeout_s: float
    suite: Suite | None = None
    plan: Plan | None = None
    notes: tuple[str, ...] = ()


def _site(path: Path | None, inventory: str | None, election_timeout: float | None) -> _Site:
    if path is None:
        given = {"election_timeout": election_timeout}
        chosen = settings(os.environ, inventory_flag=inventory, flags=given)
        hosts = open_inventory(chosen.inventory_path)
        return _Site(hosts, chosen.election_timeout_s, notes=chosen.notes)
    asked = Asked(inventory, election_timeout_s=election_timeout)
    found = open_source(path, asked, os.environ)
    return _Site(found.inventory, found.election_timeout_s, found.suite, found.plan, found.notes)
