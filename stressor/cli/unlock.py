"""`stressor unlock RUN`: give back the cluster's lock of a run that is proven over.

The hosts decide: while a guard of the run lives there, or nobody has proven its load dead, the lock
stays, for it is true. The Lease expires by itself; this is for those who cannot wait.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import click

from stressor.checks.leftovers import Hold
from stressor.cli.clusters import open_cluster, open_cluster_of
from stressor.cli.inventories import open_inventory
from stressor.cli.runs import entry_of
from stressor.config.settings import settings
from stressor.engine.lock import API_DEADLINE_S, holds
from stressor.errors import ConfigError, ExitCode, KubeError
from stressor.kube.base import Kube, Lease
from stressor.lifeline import path_of, read, state_dir
from stressor.model import Host
from stressor.remote.connect import connect
from stressor.report.lines import RULE, ascii_only, row

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the lock, and why."""

    code: ExitCode
    text: str
    next_command: str


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--inventory", help="The cluster, where this machine does not know the run.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def unlock(run: str, inventory: str | None, output: str) -> None:
    """Give back the lock that RUN has left in the cluster, once it is proven over.

    Exit 0: free. 4: some host or the API did not answer, or load is not proven dead. 5: RUN still
    lives, or another run holds the lock.
    """
    hosts, kube = _site(run, inventory)
    found = holds(hosts, run, connect)
    outcome = _hosts_say(run, found) or _lease(run, kube)
    if output == "json":
        click.echo(_json(run, found, outcome))
    else:
        click.echo("\n".join(_lines(run, found, outcome)))
    sys.exit(int(outcome.code))


def _site(run: str, inventory: str | None) -> tuple[tuple[Host, ...], Kube | KubeError]:
    """The hosts and the API of the run's cluster; what keeps the API from being used is a value,
    for the hosts can be asked without it."""
    if inventory is not None:
        site = open_inventory(settings(os.environ, inventory_flag=inventory).inventory_path)
        return site.hosts, _opened(lambda: open_cluster(site))
    cluster, entry = entry_of(run)
    known = read(path_of(state_dir(os.environ), cluster)).hosts
    hosts = tuple(host for host in known if host.name in entry.hosts)
    return hosts, _opened(lambda: open_cluster_of(entry))


def _opened(open_: Callable[[], Kube]) -> Kube | KubeError:
    try:
        return open_()
    except KubeError as error:
        return error
    except ConfigError as error:
        return KubeError(str(error))


def _hosts_say(run: str, found: Mapping[str, Hold | None]) -> Outcome | None:
    """Why the lock must stay, by the hosts' own word; None when it may go."""
    abort = f"stressor abort --run {run}"
    for hold, code, text in (
        (Hold.HELD, ExitCode.LOCK_HELD, "the run lives: its guard is on"),
        (Hold.UNPROVEN, ExitCode.UNVERIFIED_HOSTS, "its load is not proven dead on"),
        (None, ExitCode.UNVERIFIED_HOSTS, "unknown: no answer from"),
    ):
        names = [name for name, one in found.items() if one is hold]
        if names:
            return Outcome(code, f"{text} {', '.join(names)}", abort)
    if not found:
        return Outcome(ExitCode.UNVERIFIED_HOSTS, "no host is known: nothing is proven", abort)
    return None


def _lease(run: str, kube: Kube | KubeError) -> Outcome:
    try:
        if isinstance(kube, KubeError):
            raise kube
        lease = kube.read_lease(deadline_s=API_DEADLINE_S)
        if lease is None:
            return Outcome(ExitCode.PASS, "free: nobody holds the cluster", "stressor preflight")
        if lease.run != run:
            return _held_by_another(lease)
        kube.release_lease(lease, deadline_s=API_DEADLINE_S)
    except KubeError as error:
        text = f"hosts are free; the Lease is unknown and expires by itself within 60 s: {error}"
        return Outcome(ExitCode.UNVERIFIED_HOSTS, text, f"stressor unlock {run}")
    return Outcome(ExitCode.PASS, f"unlocked: was held by {lease.holder}", "stressor preflight")


def _held_by_another(lease: Lease) -> Outcome:
    since = datetime.fromtimestamp(lease.renewed_unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = f"run {lease.run} of {lease.holder} holds it, renewed {since}"
    return Outcome(ExitCode.LOCK_HELD, text, lease.abort_command or f"stressor unlock {lease.run}")


def _lines(run: str, found: Mapping[str, Hold | None], outcome: Outcome) -> Iterator[str]:
    for name, hold in found.items():
        yield f"  {ascii_only(name):<16} {hold or 'unknown'}"
    yield RULE
    yield from row(
        "UNLOCK" if outcome.code is ExitCode.PASS else "LOCKED", f"{run}: {outcome.text}"
    )
    yield from row("NEXT", outcome.next_command)


def _json(run: str, found: Mapping[str, Hold | None], outcome: Outcome) -> str:
    document = {
        "schema_version": SCHEMA_VERSION,
        "verdict": "pass" if outcome.code is ExitCode.PASS else "fail",
        "exit_code": int(outcome.code),
        "next_command": outcome.next_command,
        "run": run,
        "hosts": {name: str(hold or "unknown") for name, hold in found.items()},
        "detail": outcome.text,
    }
    return json.dumps(document, indent=2)
