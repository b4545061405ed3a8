"""`stressor run`: read, plan, check, and hand over to the engine."""

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import click

from stressor.cli import isolation, logs, wiring
from stressor.cli.clusters import kubeconfig_for
from stressor.cli.inspection import (
    ASKED_BY_RUN,
    NAMES,
    Inspection,
    accepted,
    refuse_unfit,
)
from stressor.cli.plan_source import Asked, open_source, refuse_late, refuse_moved_cluster
from stressor.cli.planning import make_plan, storage_kinds
from stressor.config.layers import ELECTION_TIMEOUT_S
from stressor.config.login import login_of
from stressor.config.settings import resolve
from stressor.core import placement
from stressor.engine.abort_script import publish
from stressor.engine.lock import refuse_held_hosts
from stressor.errors import Refused
from stressor.journal import read as read_journal
from stressor.kube.base import Kube
from stressor.kube.client import connect as connect_kube
from stressor.lifeline import journal_path, path_of, permission_warning, read, state_dir
from stressor.model import Inventory, Plan, Suite
from stressor.remote.connect import connect
from stressor.report import json as as_json
from stressor.report.fold import fold
from stressor.report.lines import row
from stressor.workloads.gates import slow_fsync_s

API_DEADLINE_S = 10.0


@click.command()
@click.argument("phasefile", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--inventory", help="An Ansible inventory (YAML). Also $STRESSOR_INVENTORY.")
@click.option("--image", help="The load image. Default: stressor_load_image of the inventory.")
@click.option("--reason", default="", help="Why you run this; kept in the journal.")
@click.option(
    "--accept-unknown-storage", metavar="REASON", help="Why unknown storage is not shared."
)
@click.option(
    "--accept",
    multiple=True,
    metavar="CHECK=REASON",
    help="Start in spite of this failure of preflight.",
)
@click.option("--election-timeout", type=float, help=f"etcd's, s. Default: {ELECTION_TIMEOUT_S:g}.")
@click.option("--phases", metavar="NAME,NAME", help="Only these phases, in the file's order.")
@click.option("--max-duration", metavar="2h", help="Refuse when the worst-case end is later.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="json: the report."
)
@click.option("--debug-hang-after", type=float, hidden=True)
def run(
    phasefile: Path,
    inventory: str | None,
    image: str | None,
    reason: str,
    accept_unknown_storage: str | None,
    accept: tuple[str, ...],
    election_timeout: float | None,
    phases: str | None,
    max_duration: str | None,
    output: str,
    debug_hang_after: float | None,
) -> None:
    """Run PHASEFILE, or a plan file: guards armed first, load as Jobs, stopped over SSH when a
    limit breaks. A plan is refused when what it stands on has changed.

    Ctrl-C aborts and verifies; from any other terminal: stressor abort.
    """
    reasons = accepted(accept)
    asked = Asked(inventory, image, election_timeout, phases, max_duration)
    state = state_dir(os.environ)
    source = open_source(
        phasefile, asked, os.environ, lambda i: _warn_of_lifeline(path_of(state, i.cluster))
    )
    refuse_late(source)
    for text in source.notes:
        _say(f"NOTE  {text}")
    hosts, suite = source.inventory, source.suite
    # From here on `stressor abort` works from here too, also against somebody else's run.
    path = publish(state, hosts.cluster, hosts.hosts, time.time())
    refuse_held_hosts(hosts.hosts, connect)
    slow_s = slow_fsync_s(source.election_timeout_s)
    checks = frozenset(NAMES) - ASKED_BY_RUN
    inspection = Inspection(hosts, read(path), slow_s, checks, suite, source.plan)
    kept = refuse_unfit(inspection, reasons, _say)
    judgement = _storage(suite, hosts, accept_unknown_storage)
    kubeconfig = kubeconfig_for(hosts)
    login = login_of(kubeconfig)
    kube = connect_kube(login)
    refuse_moved_cluster(source, kube, API_DEADLINE_S)
    names = _nodes(suite, hosts, kube)
    plan = make_plan(
        suite,
        hosts,
        run=wiring.new_run(),
        image=source.image,
        election_timeout_s=source.election_timeout_s,
        storage_notes=judgement.notes,
    )
    plan = replace(plan, accepted=kept)
    _announce(plan)
    api = wiring.Api(kube, login, os.pathsep.join(kubeconfig.paths), kubeconfig.context.name)
    with logs.start(resolve(os.environ, flags=logs.given()), narrated=True) as log:
        code = wiring.execute(
            wiring.Request(plan, hosts, api, names, slow_s, reason, debug_hang_after, log)
        )
    if output == "json":
        click.echo(as_json.render(fold(read_journal(journal_path(state, plan.run)))), nl=False)
    _say(f"report      stressor report {plan.run}")
    _say(f"exit {code}")
    sys.exit(code)


def _warn_of_lifeline(path: Path) -> None:
    """Before the run writes the file anew, with its own mode: what others put in may be kept."""
    warning = permission_warning(path)
    if warning is not None:
        _say(f"WARNING  {path} {warning}")


def _storage(suite: Suite, hosts: Inventory, unknown_reason: str | None) -> placement.Judgement:
    """Raises Refused unless storage load may start (design rule 1). Without storage load there is
    nothing to judge."""
    kinds = storage_kinds()
    if not placement.touches_storage(suite, kinds):
        return placement.Judgement((), ())
    judgement = isolation.ask(isolation.storage_load(suite), hosts, unknown_reason).judgement
    for note in judgement.notes:
        _say("\n".join(row("STORAGE", note)))
    if judgement.refusals:
        lines = "\n".join(f"  {refusal}" for refusal in judgement.refusals)
        raise Refused(f"REFUSED: storage load beside an etcd. Nothing was started.\n{lines}")
    return judgement


def _nodes(suite: Suite, hosts: Inventory, kube: Kube) -> dict[str, str]:
    names = wiring.hostnames(hosts, kube, API_DEADLINE_S)
    wanted = {node for phase in suite.phases for node in phase.nodes}
    missing = sorted(wanted - names.keys())
    if missing:
        raise Refused(f"REFUSED: not nodes of the cluster: {', '.join(missing)}")
    ready = {node.hostname: node.ready for node in kube.nodes(deadline_s=API_DEADLINE_S)}
    unready = sorted(node for node in wanted if ready.get(names[node]) is not True)
    if unready:
        raise Refused(f"REFUSED: not ready: {', '.join(unready)}")
    return names


def _announce(plan: Plan) -> None:
    _say(f"RUN {plan.run}  suite {plan.suite}  cluster {plan.cluster}")
    for step in plan.steps:
        _say(
            f"  step {step.index}: {step.phase} ({step.kind}) on {', '.join(step.nodes)}, "
            f"{step.hold_s:g} s, deadline {step.deadline_s:g} s, {len(step.gates)} gates"
        )
    _say(f"  guarded: {', '.join(plan.guarded)}; all load ends within {plan.deadline_s:.0f} s")
    _say(f"  abort from any terminal: stressor abort --run {plan.run}")


def _say(text: str) -> None:
    click.echo(text, err=True)
