"""`stressor unlock RUN`: give back the cluster's lock of a run that is proven over.

The hosts decide: while a guard of the run lives there, or nobody has proven its load dead, the lock
stays, for it is true. The Lease expires by itself; this is for those who cannot wait.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import click

from stressor.checks.leftovers import Hold
from stressor.cli.clusters import open_cluster, open_cluster_of
from stressor.cli.inventories import open_inventory
from stressor.cli.runs import entry_of
from stressor.config.settings import settings
from stressor.engine.lock import API_DEADLINE_S, EXPIRES_S, holds
from stressor.errors import ConfigError, ExitCode, KubeError
from stressor.kube.base import Kube, Lease
from stressor.lifeline import path_of, read, state_dir
from stressor.model import Host
from stressor.remote.connect import connect
from stressor.report.lines import RULE, ascii_only, moment, row

SCHEMA_VERSION = 1
CLOCKS_APART_S = 60.0
"""A Lease expires by the API server's clock, which this machine's may be ahead of by as much."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the lock, and why. `lease`: as it was found; None where it was not looked at,
    or is not there."""

    code: ExitCode
    text: str
    next_command: str
    lease: Lease | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """The hosts of a run, those of them that nobody here has a route to, and the API."""

    hosts: tuple[Host, ...]
    lost: tuple[str, ...]
    kube: Kube | KubeError


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--inventory", help="The cluster, where this machine does not know the run.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def unlock(run: str, inventory: str | None, output: str) -> None:
    """Give back the lock that RUN has left in the cluster, once it is proven over.

    Exit 0: free. 4: some host or the API did not answer, or load is not proven dead. 5: RUN still
    lives, or another run holds the lock.
    """
    site = _site(run, inventory)
    found = holds(site.hosts, run, connect) | dict.fromkeys(site.lost)
    outcome = _hosts_say(run, found) or _lease(run, site.kube, time.time())
    if output == "json":
        click.echo(_json(run, found, outcome))
    else:
        click.echo("\n".join(_lines(run, found, outcome)))
    sys.exit(int(outcome.code))


def _site(run: str, inventory: str | None) -> Site:
    """The hosts and the API of the run's cluster; what keeps the API from being used is a value,
    for the hosts can be asked without it."""
    if inventory is not None:
        site = open_inventory(settings(os.environ, inventory_flag=inventory).inventory_path)
        return Site(site.hosts, (), _opened(lambda: open_cluster(site)))
    cluster, entry = entry_of(run)
    known = read(path_of(state_dir(os.environ), cluster)).hosts
    hosts = tuple(host for host in known if host.name in entry.hosts)
    lost = tuple(sorted(set(entry.hosts) - {host.name for host in hosts}))
    return Site(hosts, lost, _opened(lambda: open_cluster_of(entry)))


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


def _lease(run: str, kube: Kube | KubeError, now_unix_s: float) -> Outcome:
    try:
        if isinstance(kube, KubeError):
            raise kube
        lease = kube.read_lease(deadline_s=API_DEADLINE_S)
        if lease is None:
            return Outcome(ExitCode.PASS, "free: nobody holds the cluster", "stressor preflight")
        if lease.run != run:
            return _of_another(lease, now_unix_s)
        kube.release_lease(lease, deadline_s=API_DEADLINE_S)
        # Renewed between reading and deleting, it stays: only its absence says that it is gone.
        left = kube.read_lease(deadline_s=API_DEADLINE_S)
    except KubeError as error:
        end = f"it expires by itself, at {moment(now_unix_s + EXPIRES_S)} if its holder is gone"
        text = f"hosts are free, the Lease is unknown; {end}: {error}"
        return Outcome(ExitCode.UNVERIFIED_HOSTS, text, f"stressor unlock {run}")
    if left is not None and left.run == run:
        text = f"{_holder(left)} is still there and has renewed it"
        return Outcome(ExitCode.LOCK_HELD, text, f"stressor unlock {run}", left)
    return Outcome(
        ExitCode.PASS, f"unlocked: was held by {lease.holder}", "stressor preflight", lease
    )


def _of_another(lease: Lease, now_unix_s: float) -> Outcome:
    end = moment(lease.expires_unix_s)
    if lease.expires_unix_s + CLOCKS_APART_S < now_unix_s:
        text = f"free: the Lease of run {lease.run} expired at {end}; a new run takes it over"
        return Outcome(ExitCode.PASS, text, "stressor preflight", lease)
    since = moment(lease.acquired_unix_s)
    text = f"{_holder(lease)} holds it since {since}, until {end} if it is not renewed"
    abort = lease.abort_command or f"stressor unlock {lease.run}"
    return Outcome(ExitCode.LOCK_HELD, text, abort, lease)


def _holder(lease: Lease) -> str:
    return f"run {lease.run or '(unnamed)'} of {lease.holder or 'somebody'}"


def _lines(run: str, found: Mapping[str, Hold | None], outcome: Outcome) -> Iterator[str]:
    for name, hold in found.items():
        yield f"  {ascii_only(name):<16} {hold or 'unknown'}"
    yield RULE
    yield from row(
        "UNLOCK" if outcome.code is ExitCode.PASS else "LOCKED", f"{run}: {outcome.text}"
    )
    yield from row("NEXT", outcome.next_command)


_VERDICTS: Mapping[ExitCode, str] = MappingProxyType(
    {ExitCode.PASS: "pass", ExitCode.LOCK_HELD: "fail", ExitCode.UNVERIFIED_HOSTS: "unknown"}
)


def _lease_json(lease: Lease) -> dict[str, str]:
    """Times as UTC; `?` for one that is not known."""
    return {
        "holder": lease.holder,
        "run": lease.run,
        "since": moment(lease.acquired_unix_s),
        "until": moment(lease.expires_unix_s),
    }


def _json(run: str, found: Mapping[str, Hold | None], outcome: Outcome) -> str:
    document = {
        "schema_version": SCHEMA_VERSION,
        "verdict": _VERDICTS[outcome.code],
        "exit_code": int(outcome.code),
        "next_command": outcome.next_command,
        "run": run,
        "hosts": {name: str(hold or "unknown") for name, hold in found.items()},
        "detail": outcome.text,
        "lease": None if outcome.lease is None else _lease_json(outcome.lease),
    }
    return json.dumps(document, indent=2)
