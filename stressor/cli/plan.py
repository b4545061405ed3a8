"""`stressor plan`: what `stressor run` would do, from the files alone, or with the API's word."""

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import click

from stressor.checks.base import Finding, Level, unknown
from stressor.cli import server_checks
from stressor.cli.plan_source import Asked, Source, open_source
from stressor.cli.planning import storage_kinds
from stressor.config.layers import ELECTION_TIMEOUT_S
from stressor.config.planfile import PlanFile, write_plan
from stressor.core import placement, schedule
from stressor.core.drift import ClusterFooting, cluster_drift
from stressor.errors import ConfigError, KubeError
from stressor.report import plan as planned


@click.command()
@click.argument("phasefile", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--inventory", help="An Ansible inventory (YAML). Also $STRESSOR_INVENTORY.")
@click.option("--image", help="The load image. Default: stressor_load_image of the inventory.")
@click.option("--election-timeout", type=float, help=f"etcd's, s. Default: {ELECTION_TIMEOUT_S:g}.")
@click.option("--phases", metavar="NAME,NAME", help="Only these phases, in the file's order.")
@click.option("--max-duration", metavar="2h", help="Refuse when the worst-case end is later.")
@click.option(
    "--dry-run", type=click.Choice(["server"]), help="server: ask the API, change nothing."
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write the plan file that `run` carries out."
)
@click.option("--force", is_flag=True, help="Let --out replace a file.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def plan(
    phasefile: Path,
    inventory: str | None,
    image: str | None,
    election_timeout: float | None,
    phases: str | None,
    max_duration: str | None,
    dry_run: str | None,
    out: Path | None,
    force: bool,
    output: str,
) -> None:
    """Show what PHASEFILE, or a plan file, would do: every object, node, ceiling, privilege, gate
    and end.

    Touches neither hosts nor the API, except that --dry-run=server reads the API. Exit 3 when a run
    of this plan would be refused for what is known; then no plan file is written. Where storage
    lies is asked of the hosts by `run`.
    """
    asked = Asked(inventory, image, election_timeout, phases, max_duration)
    source = open_source(phasefile, asked, os.environ)
    found: tuple[Finding, ...] = ()
    cluster = source.agreed
    if dry_run is not None:
        found, cluster = _server(source)
    outlook = _outlook(source, asked, found, cluster)
    if out is not None and not outlook.refused:
        write_plan(out, _plan_file(source, cluster), force=force)
        outlook = replace(outlook, written_to=str(out))
    render = planned.as_json if output == "json" else planned.as_text
    click.echo(render(outlook), nl=False)
    sys.exit(int(outlook.exit_code))


def _server(source: Source) -> tuple[tuple[Finding, ...], ClusterFooting | None]:
    """What the API says; without an answer that is the one finding, and a failure."""
    # Imported here: urllib3 opens a socket when it is imported, and a plan opens none unasked.
    from stressor.cli.clusters import open_cluster

    try:
        kube = open_cluster(source.inventory)
        cluster = server_checks.cluster_footing(kube)
    except (ConfigError, KubeError) as error:
        remedy = "check stressor_kubeconfig, the context and the server"
        return (unknown(server_checks.CLUSTER, "", Level.FAIL, str(error), remedy),), None
    return server_checks.server_findings(source.plan, source.inventory, kube), cluster


def _outlook(
    source: Source, asked: Asked, found: tuple[Finding, ...], cluster: ClusterFooting | None
) -> planned.Outlook:
    storage = placement.touches_storage(source.suite, storage_kinds())
    unanswered = placement.bystander_flaws(source.inventory) if storage else ()
    moved = cluster_drift(source.agreed, cluster) if cluster is not None else ()
    flaws = (*schedule.flaws(source.plan), *source.late, *unanswered, *map(str, moved))
    return planned.Outlook(
        plan=source.plan,
        inventory=source.inventory,
        source=source.path,
        flaws=flaws,
        storage=storage,
        words=asked.words(),
        findings=found,
        cluster=cluster,
        notes=source.notes,
    )


def _plan_file(source: Source, cluster: ClusterFooting | None) -> PlanFile:
    return PlanFile(
        written_unix_s=time.time(),
        phasefile=source.phasefile,
        inventory_path=source.inventory_path,
        phases=source.phases,
        max_duration_s=source.max_duration_s,
        footing=replace(source.footing, cluster=cluster),
    )
