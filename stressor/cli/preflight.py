"""`stressor preflight`: may load start here, and could it be stopped? Starts nothing."""

import os
import sys
import time

import click

from stressor.checks.base import Finding
from stressor.cli.inspection import NAMES, Inspection, inspect
from stressor.cli.inventories import open_inventory
from stressor.cli.planning import ELECTION_TIMEOUT_S
from stressor.config.settings import settings
from stressor.engine.abort_script import by_hand, publish
from stressor.errors import ConfigError
from stressor.lifeline import read
from stressor.report import preflight as shown
from stressor.workloads.gates import slow_fsync_s


@click.command()
@click.option("--inventory", help="An Ansible inventory (YAML). Also $STRESSOR_INVENTORY.")
@click.option("--only", multiple=True, metavar="NAME", help="Only this check; may be repeated.")
@click.option(
    "--election-timeout", default=ELECTION_TIMEOUT_S, show_default=True, help="etcd's, s."
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "junit"]),
    default="text",
    show_default=True,
)
def preflight(
    inventory: str | None, only: tuple[str, ...], election_timeout: float, output: str
) -> None:
    """Ask hosts and API whether load may start, and whether it could be stopped.

    Nothing is started, and nothing changed but the lifeline file and the abort script of this
    machine. Exit 3 with any failure; warnings do not count.
    """
    unknown_names = sorted(set(only) - set(NAMES))
    if unknown_names:
        known = ", ".join(sorted(NAMES))
        raise ConfigError((f"no check is called {', '.join(unknown_names)}; there are: {known}",))
    chosen = settings(os.environ, inventory_flag=inventory)
    hosts = open_inventory(chosen.inventory_path)
    # From here on `stressor abort` works for this cluster, whatever preflight finds.
    path = publish(chosen.state_dir, hosts.cluster, hosts.hosts, time.time())
    inspection = Inspection(hosts, read(path), slow_fsync_s(election_timeout), frozenset(only))
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
    result = shown.Preflight(hosts.cluster, names, tuple(findings), took_s, commands)
    render = {"text": shown.ending, "json": shown.as_json, "junit": shown.as_junit}[output]
    click.echo(render(result), nl=False)
    sys.exit(int(result.exit_code))
