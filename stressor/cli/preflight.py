"""`stressor preflight`: may load start here, and could it be stopped? Starts nothing."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping

import click

from stressor.checks import CHECKS, cluster, login, routes, sshd
from stressor.checks.base import Finding, Level, unknown
from stressor.cli.clusters import login_for, open_cluster
from stressor.cli.inventories import open_inventory
from stressor.config.settings import settings
from stressor.engine.preflight import Inspector
from stressor.errors import ConfigError, KubeError
from stressor.kube.readyz import Credentials, credentials, readyz
from stressor.model import Inventory
from stressor.remote.connect import connect
from stressor.report import preflight as shown

API_DEADLINE_S = 5.0
NAMES = (
    *(check.NAME for check in CHECKS),
    login.NAME,
    sshd.NAME,
    routes.NAME,
    cluster.NODES,
    cluster.API,
    cluster.BYSTANDERS,
)


@click.command()
@click.option("--inventory", help="An Ansible inventory (YAML). Also $STRESSOR_INVENTORY.")
@click.option("--only", multiple=True, metavar="NAME", help="Only this check; may be repeated.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "junit"]),
    default="text",
    show_default=True,
)
def preflight(inventory: str | None, only: tuple[str, ...], output: str) -> None:
    """Ask hosts and API whether load may start, and whether it could be stopped.

    Nothing is started or changed. Exit 3 with any failure; warnings do not count.
    """
    unknown_names = sorted(set(only) - set(NAMES))
    if unknown_names:
        known = ", ".join(sorted(NAMES))
        raise ConfigError((f"no check is called {', '.join(unknown_names)}; there are: {known}",))
    hosts = open_inventory(settings(os.environ, inventory_flag=inventory).inventory_path)
    began_s = time.monotonic()
    findings: list[Finding] = []
    for name, found in _found(hosts, frozenset(only)):
        findings += found
        if found:
            line = shown.host_line(name, found, time.monotonic() - began_s)
            click.echo(line, err=output != "text")
    took_s = time.monotonic() - began_s
    names = tuple(host.name for host in hosts.hosts)
    result = shown.Preflight(hosts.cluster, names, tuple(findings), took_s)
    render = {"text": shown.ending, "json": shown.as_json, "junit": shown.as_junit}[output]
    click.echo(render(result), nl=False)
    sys.exit(int(result.exit_code))


def _found(hosts: Inventory, only: frozenset[str]) -> Iterator[tuple[str, tuple[Finding, ...]]]:
    inspector = Inspector(lambda host, route: connect(host, route=route), only)
    for host, findings in inspector.inspect(hosts.hosts):
        yield host.name, findings
    yield "", tuple(_cluster(hosts, only))


def _cluster(hosts: Inventory, only: frozenset[str]) -> Iterator[Finding]:
    checks: Mapping[str, Callable[[], tuple[Finding, ...]]] = {
        routes.NAME: lambda: routes.judge_shared(hosts.hosts),
        cluster.BYSTANDERS: lambda: cluster.judge_bystanders(hosts),
        cluster.NODES: lambda: _nodes(hosts),
        cluster.API: lambda: cluster.judge_endpoints(_endpoints(hosts)),
    }
    for name, check in checks.items():
        if not only or name in only:
            yield from check()


def _nodes(hosts: Inventory) -> tuple[Finding, ...]:
    try:
        nodes = open_cluster(hosts).nodes(deadline_s=API_DEADLINE_S)
    except (ConfigError, KubeError) as error:
        remedy = "check stressor_kubeconfig, the context and the server"
        return (unknown(cluster.NODES, "", Level.FAIL, str(error), remedy),)
    members = (cluster.Member(n.name, n.addresses, n.control_plane, n.ready) for n in nodes)
    return cluster.judge_nodes(hosts, tuple(members))


def _endpoints(hosts: Inventory) -> tuple[cluster.Endpoint, ...]:
    urls = {host.name: host.apiserver_url for host in hosts.hosts if host.apiserver_url}
    try:
        login = credentials(login_for(hosts))
    except (ConfigError, KubeError) as error:
        return tuple(cluster.Endpoint(name, None, problem=str(error)) for name in urls)
    return tuple(_endpoint(name, url, login) for name, url in urls.items())


def _endpoint(name: str, url: str, login: Credentials) -> cluster.Endpoint:
    try:
        answer = readyz(url, login, API_DEADLINE_S)
    except KubeError as error:
        return cluster.Endpoint(name, None, problem=str(error))
    return cluster.Endpoint(name, answer.status, answer.took_s)
