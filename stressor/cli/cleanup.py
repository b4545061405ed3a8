"""`stressor cleanup`: what a run left in the cluster and on its hosts."""

import json
import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import click

from stressor.cli import wiring_ssh
from stressor.cli.clusters import open_cluster_of
from stressor.cli.logs import start_anyway
from stressor.cli.runs import entry_of
from stressor.engine.tidy import tidy
from stressor.errors import ConfigError, ExitCode, KubeError
from stressor.kube.base import Kube
from stressor.lifeline import RunEntry, close_run, path_of, read, state_dir
from stressor.log import Log
from stressor.model import PROVEN, Host
from stressor.remote.connect import connect
from stressor.report.lines import ascii_only

API_DEADLINE_S = 5.0
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a clean-up found and what it could not take away. `troubles` are the remains of each
    host, None: tidied; `deleted` counts objects of the API, None: it did not say; `left` are its
    objects that would not go."""

    cluster: str
    run: str
    troubles: Mapping[str, str | None]
    deleted: int | None
    left: tuple[str, ...]

    @property
    def remains(self) -> tuple[str, ...]:
        """A line for each thing that is left or may be."""
        return (*(text for text in self.troubles.values() if text is not None), *self.left)

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.UNVERIFIED_HOSTS if self.remains else ExitCode.PASS

    @property
    def next_command(self) -> str:
        verb = "cleanup --run" if self.remains else "report"
        return f"stressor {verb} {self.run}"


@click.command()
@click.option("--run", "run_name", required=True, help="The run whose remains are to go.")
@click.option("--suspend", is_flag=True, help="Only suspend its Jobs in the API; touch no host.")
@click.option("--timeout", default=60.0, show_default=True, help="Seconds for the API's part.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def cleanup(run_name: str, suspend: bool, timeout: float, output: str) -> None:
    """Remove what a run left in the cluster and on its hosts.

    Hosts are killed and proven first, and only proven ones are tidied. Exit 0: nothing is left.
    """
    cluster, entry = entry_of(run_name)
    if suspend:
        _suspend(cluster, entry, timeout, output)
        return
    with start_anyway() as log:
        outcome = _clean(cluster, entry, timeout, log.bind(run=run_name))
    if not outcome.remains:
        close_run(state_dir(os.environ), cluster, run_name, time.time())
    click.echo(as_json(outcome) if output == "json" else as_text(outcome), nl=False)
    raise SystemExit(int(outcome.exit_code))


def _suspend(cluster: str, entry: RunEntry, timeout: float, output: str) -> None:
    """Suspended Jobs start no other pod, and their controller ends the ones they have. Nothing
    here is evidence of death, so the verdict says what the API did and nothing of the load. An
    abort calls this: no config file is read and no log opened."""
    kube = open_cluster_of(entry)
    names = kube.suspend_jobs(entry.run, deadline_s=timeout)
    if output == "text":
        click.echo(f"{len(names)} jobs suspended")
        return
    next_command = f"stressor abort --cluster {cluster} --run {entry.run}"
    data = {"cluster": cluster, "run": entry.run, "suspended": list(names)}
    click.echo(_document("unknown", ExitCode.PASS, next_command, data), nl=False)


def _clean(cluster: str, entry: RunEntry, timeout: float, log: Log) -> Outcome:
    troubles = _tidy_hosts(cluster, entry, log)
    deleted, left = _delete(entry, timeout)
    log.info("api cleaned", deleted=deleted, left=left)
    return Outcome(cluster, entry.run, troubles, deleted, left)


def _tidy_hosts(cluster: str, entry: RunEntry, log: Log) -> dict[str, str | None]:
    """For each host of the run what is wrong there; None where it was proven and tidied."""
    lifeline = read(path_of(state_dir(os.environ), cluster))
    hosts = tuple(host for host in lifeline.hosts if host.name in entry.hosts)
    lost = sorted(set(entry.hosts) - {host.name for host in hosts})
    with ThreadPoolExecutor(max_workers=max(1, min(len(hosts), 32))) as pool:
        said = tuple(pool.map(lambda host: _tidy_host(host, entry.run, log), hosts))
    told = {host.name: text for host, text in zip(hosts, said, strict=True)}
    return told | {name: f"{name}: no route in the lifeline file; not tidied" for name in lost}


def _tidy_host(host: Host, run: str, log: Log) -> str | None:
    here = log.bind(node=host.name)
    proof = wiring_ssh.cold_killer().kill(host, run, "cleanup", 0.0)
    here.info("host asked", state=proof.state, stopped=proof.stopped, took_s=proof.took_s)
    if proof.state not in PROVEN:
        return f"{host.name} {proof.state}: {proof.detail}; not tidied"
    remote = connect(host)
    try:
        trouble = tidy(remote, host, run)
    finally:
        remote.close()
    here.info("host tidied" if trouble is None else "host not tidied", detail=trouble or "")
    return trouble


def _unlock(kube: Kube, run: str) -> None:
    """Give back the cluster's lock where a killed process of this run still holds it."""
    lease = kube.read_lease(deadline_s=API_DEADLINE_S)
    if lease is not None and lease.run == run:
        kube.release_lease(lease, deadline_s=API_DEADLINE_S)


def _delete(entry: RunEntry, timeout: float) -> tuple[int | None, tuple[str, ...]]:
    """How many objects the API had of the run, and what would not go."""
    try:
        kube = open_cluster_of(entry)
        deletion = kube.delete_run(entry.run, deadline_s=timeout)
        _unlock(kube, entry.run)
    except (ConfigError, KubeError) as error:
        return None, (f"API objects: {error}",)
    left = tuple(f"{o.kind} {o.namespace}/{o.name} {o.detail}" for o in deletion.left)
    return deletion.found, left


def as_text(outcome: Outcome) -> str:
    """Plain lines. The last is what a run that cleans up after itself keeps in its journal."""
    lines = []
    if outcome.deleted is not None:
        found = f"{outcome.deleted} objects deleted" if outcome.deleted else "nothing found"
        lines.append(f"api    {found}")
    lines += [f"LEFT   {ascii_only(trouble)}" for trouble in outcome.remains]
    ending = f"CLEAN  nothing of run {outcome.run} is left"
    lines.append(f"NEXT   {outcome.next_command}" if outcome.remains else ending)
    return "\n".join(lines) + "\n"


def as_json(outcome: Outcome) -> str:
    """One JSON object, ending in a newline."""
    data = {
        "cluster": outcome.cluster,
        "run": outcome.run,
        "hosts": [
            {"host": host, "tidied": text is None, "detail": text}
            for host, text in outcome.troubles.items()
        ],
        "objects_deleted": outcome.deleted,
        "objects_left": list(outcome.left),
    }
    verdict = "fail" if outcome.remains else "pass"
    return _document(verdict, outcome.exit_code, outcome.next_command, data)


def _document(verdict: str, code: ExitCode, next_command: str, data: Mapping[str, object]) -> str:
    head = {
        "schema_version": SCHEMA_VERSION,
        "verdict": verdict,
        "exit_code": int(code),
        "next_command": next_command,
    }
    return json.dumps({**head, **data}, indent=2, allow_nan=False) + "\n"
