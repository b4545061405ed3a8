"""`stressor cleanup`: what a run left in the cluster and on its hosts."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import click

from stressor.cli import wiring_ssh
from stressor.cli.clusters import open_cluster_of
from stressor.cli.runs import entry_of
from stressor.engine.tidy import tidy
from stressor.errors import ConfigError, ExitCode, KubeError
from stressor.kube.base import Kube
from stressor.lifeline import RunEntry, close_run, path_of, read, state_dir
from stressor.model import PROVEN, Host
from stressor.remote.connect import connect

API_DEADLINE_S = 5.0


@click.command()
@click.option("--run", "run_name", required=True, help="The run whose remains are to go.")
@click.option("--suspend", is_flag=True, help="Only suspend its Jobs in the API; touch no host.")
@click.option("--timeout", default=60.0, show_default=True, help="Seconds for the API's part.")
def cleanup(run_name: str, suspend: bool, timeout: float) -> None:
    """Remove what a run left in the cluster and on its hosts.

    Hosts are killed and proven first, and only proven ones are tidied. Exit 0: nothing is left.
    """
    cluster, entry = entry_of(run_name)
    if suspend:
        _suspend(entry, timeout)
        return
    troubles = _tidy_hosts(cluster, entry) + _delete(entry, timeout)
    for trouble in troubles:
        click.echo(f"LEFT   {trouble}")
    if troubles:
        click.echo(f"NEXT   stressor cleanup --run {run_name}")
        raise SystemExit(int(ExitCode.UNVERIFIED_HOSTS))
    close_run(state_dir(os.environ), cluster, run_name, time.time())
    click.echo(f"CLEAN  nothing of run {run_name} is left")


def _suspend(entry: RunEntry, timeout: float) -> None:
    """Suspended Jobs start no other pod, and their controller ends the ones they have. Nothing
    here is evidence of death."""
    kube = open_cluster_of(entry)
    names = kube.suspend_jobs(entry.run, deadline_s=timeout)
    click.echo(f"{len(names)} jobs suspended")


def _tidy_hosts(cluster: str, entry: RunEntry) -> tuple[str, ...]:
    lifeline = read(path_of(state_dir(os.environ), cluster))
    hosts = tuple(host for host in lifeline.hosts if host.name in entry.hosts)
    lost = sorted(set(entry.hosts) - {host.name for host in hosts})
    with ThreadPoolExecutor(max_workers=max(1, min(len(hosts), 32))) as pool:
        said = pool.map(lambda host: _tidy_host(host, entry.run), hosts)
        told = tuple(text for text in said if text is not None)
    return (*told, *(f"{name}: no route in the lifeline file; not tidied" for name in lost))


def _tidy_host(host: Host, run: str) -> str | None:
    proof = wiring_ssh.cold_killer().kill(host, run, "cleanup", 0.0)
    if proof.state not in PROVEN:
        return f"{host.name} {proof.state}: {proof.detail}; not tidied"
    remote = connect(host)
    try:
        return tidy(remote, host, run)
    finally:
        remote.close()


def _unlock(kube: Kube, run: str) -> None:
    """Give back the cluster's lock where a killed process of this run still holds it."""
    lease = kube.read_lease(deadline_s=API_DEADLINE_S)
    if lease is not None and lease.run == run:
        kube.release_lease(lease, deadline_s=API_DEADLINE_S)


def _delete(entry: RunEntry, timeout: float) -> tuple[str, ...]:
    try:
        kube = open_cluster_of(entry)
        deletion = kube.delete_run(entry.run, deadline_s=timeout)
        _unlock(kube, entry.run)
    except (ConfigError, KubeError) as error:
        return (f"API objects: {error}",)
    found = "nothing found" if deletion.found == 0 else f"{deletion.found} objects deleted"
    click.echo(f"api    {found}")
    return tuple(f"{o.kind} {o.namespace}/{o.name} {o.detail}" for o in deletion.left)
