"""Everything that preflight asks, for `stressor preflight` and before every `stressor run`.

Hosts and API are asked at the same time; a host's findings come as it answers, those of the cluster
last. What is found is judged in `checks`; here are only the questions and who is asked.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from stressor.checks import (
    CHECKS,
    baseline,
    blast_radius,
    cluster,
    drill,
    free_disk,
    guard_trip,
    isolation,
    login,
    routes,
    sshd,
)
from stressor.checks.base import Finding, Level, by_host, unknown
from stressor.cli import cluster_asks
from stressor.cli.cluster_asks import ClusterAsks
from stressor.cli.clusters import login_for
from stressor.cli.isolation import ask, possible_load, storage_load
from stressor.cli.wiring import scrape_of
from stressor.engine.baseline import Baseline
from stressor.engine.keys import lives
from stressor.engine.orchestrator import own
from stressor.engine.preflight import Inspector
from stressor.errors import ConfigError, KubeError, Refused
from stressor.kube.readyz import Credentials, credentials, readyz
from stressor.lifeline import Lifeline, access_of, state_dir
from stressor.model import Inventory, Plan, Suite, Transport
from stressor.remote.connect import connect
from stressor.report.lines import row
from stressor.report.preflight import finding_lines

API_DEADLINE_S = 5.0
AT_ONCE = 16
OF_HOSTS = (*(check.NAME for check in CHECKS), guard_trip.NAME, login.NAME, sshd.NAME)
OF_CLUSTER = (
    routes.NAME,
    blast_radius.NAME,
    drill.NAME,
    cluster.BYSTANDERS,
    isolation.NAME,
    baseline.NAME,
    cluster.API,
    *cluster_asks.NAMES,
)
NAMES = (*OF_HOSTS, *OF_CLUSTER)
ASKED_BY_RUN = frozenset({baseline.NAME, isolation.NAME})
"""What `run` asks by itself in any case: storage before it, etcd in its own baseline."""

Ask = Callable[[], tuple[Finding, ...]]


@dataclass(frozen=True, slots=True)
class Inspection:
    """What is inspected. Without a plan, only what holds for every load is asked. `only`: the names
    of the checks; empty for all. `slow_fsync_s`: an fsync above it is slow. `lifeline` is the file
    as it is now."""

    inventory: Inventory
    lifeline: Lifeline
    slow_fsync_s: float
    only: frozenset[str] = frozenset()
    suite: Suite | None = None
    plan: Plan | None = None

    def wants(self, name: str) -> bool:
        """Whether this check was asked for."""
        return not self.only or name in self.only


def inspect(inspection: Inspection) -> Iterator[tuple[str, tuple[Finding, ...]]]:
    """Each host's name with its findings as they come; last the cluster's, under an empty name."""
    machine = own(state_dir(os.environ), os.environ)
    inspector = Inspector(
        lambda host, route: connect(host, route=route),
        inspection.only,
        machine,
        inspection.inventory.disposable,
    )
    with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="cluster") as pool:
        asked = [
            pool.submit(ask) for name, ask in _asks(inspection).items() if inspection.wants(name)
        ]
        if any(map(inspection.wants, cluster_asks.NAMES)):
            asks = ClusterAsks(inspection.inventory, inspection.plan, inspection.wants)
            asked.append(pool.submit(asks.findings))
        for host, findings in inspector.inspect(inspection.inventory.hosts):
            yield host.name, findings
        yield "", tuple(_answers(asked))


def _answers(asked: Iterable[Future[tuple[Finding, ...]]]) -> Iterator[Finding]:
    for future in asked:
        yield from future.result()


ACCEPTABLE = (free_disk.NAME, blast_radius.NAME)
"""Checks whose failure somebody may accept with a written reason: neither the abort nor a guard
stands on them. Everything else is a way to lose control of load."""


def accepted(options: Sequence[str]) -> Mapping[str, str]:
    """`--accept CHECK=REASON` as names and reasons. Raises ConfigError."""
    found = dict(option.partition("=")[::2] for option in options)
    for name, reason in found.items():
        if name not in ACCEPTABLE:
            can = ", ".join(ACCEPTABLE)
            raise ConfigError((f"--accept {name}: not one that may be accepted; those are: {can}",))
        if not reason.strip():
            raise ConfigError((f"--accept {name}: write why: --accept '{name}=REASON'",))
    return found


def refuse_unfit(
    inspection: Inspection, reasons: Mapping[str, str], say: Callable[[str], None]
) -> tuple[str, ...]:
    """Say how many findings there are; what was accepted, for the report. Raises Refused with all
    failures when there is one without a reason."""
    findings = [finding for _, found in inspect(inspection) for finding in found]
    counts = Counter(finding.level for finding in findings)
    told = ", ".join(f"{counts[level]} {level}" for level in Level)
    say("\n".join(row("preflight", f"{told}; stressor preflight shows them")))
    failed = by_host((f for f in findings if f.level is Level.FAIL), ())
    bad = [finding for finding in failed if finding.check not in reasons]
    if bad:
        lines = [line for finding in bad for line in finding_lines(finding)]
        head = "REFUSED: preflight. No load was started."
        raise Refused("\n".join((head, *lines, *row("NEXT", "stressor preflight"))))
    return tuple(
        f"{f.host or 'cluster'}: {f.check}: {f.text}; accepted: {reasons[f.check]}" for f in failed
    )


def _asks(inspection: Inspection) -> Mapping[str, Ask]:
    hosts = inspection.inventory
    return {
        routes.NAME: lambda: _routes(inspection),
        blast_radius.NAME: lambda: _orchestrator(hosts),
        drill.NAME: lambda: _drill(inspection),
        cluster.BYSTANDERS: lambda: cluster.judge_bystanders(hosts),
        isolation.NAME: lambda: _storage(inspection),
        baseline.NAME: lambda: _baseline(inspection),
        cluster.API: lambda: cluster.judge_endpoints(_endpoints(hosts)),
    }


def _routes(inspection: Inspection) -> tuple[Finding, ...]:
    """Every route must last until the end of the load and a day longer; without a plan, from now
    on. On this machine there is no route."""
    hosts = [h for h in inspection.inventory.hosts if h.transport is not Transport.LOCAL]
    load_s = 0.0 if inspection.plan is None else inspection.plan.deadline_s
    end_unix_s = time.time() + load_s
    found = [
        finding
        for host in hosts
        for finding in routes.judge_lifetimes(
            host.name, lives(host), worst_case_end_unix_s=end_unix_s
        )
    ]
    return (*routes.judge_shared(hosts), *found)


def _orchestrator(hosts: Inventory) -> tuple[Finding, ...]:
    machine = own(state_dir(os.environ), os.environ)
    return (*blast_radius.judge_own(machine), *blast_radius.judge_jumps(hosts.hosts))


def _drill(inspection: Inspection) -> tuple[Finding, ...]:
    now = tuple(drill.Now(host.name, access_of(host)) for host in inspection.inventory.hosts)
    known = tuple(
        drill.Drilled(one.host, one.at_unix_s, one.ways, one.access)
        for one in inspection.lifeline.drills
    )
    return drill.judge(now, known, now_unix_s=time.time())


def _storage(inspection: Inspection) -> tuple[Finding, ...]:
    suite, hosts = inspection.suite, inspection.inventory
    load = possible_load(hosts) if suite is None else storage_load(suite)
    needed = suite is not None and bool(load)
    found = ask(load, hosts, None)
    return isolation.judge(found.pairs, hosts, needed=needed, unknown_reason=None)


def _baseline(inspection: Inspection) -> tuple[Finding, ...]:
    members = [host for host in inspection.inventory.hosts if host.etcd_metrics_url]
    look = Baseline(inspection.slow_fsync_s)
    read = look.read({host.name: scrape_of(host) for host in members})
    found = (f for name, windows in read.items() for f in baseline.judge(name, windows))
    why = "no host of the inventory names its etcd's metrics"
    remedy = "etcd_metrics_url: http://127.0.0.1:2381/metrics"
    return tuple(found) or (unknown(baseline.NAME, "", Level.FAIL, why, remedy),)


def _endpoints(hosts: Inventory) -> tuple[cluster.Endpoint, ...]:
    """All API servers at once: one that is silent delays no other."""
    urls = {host.name: host.apiserver_url for host in hosts.hosts if host.apiserver_url}
    try:
        login = credentials(login_for(hosts))
    except (ConfigError, KubeError) as error:
        return tuple(cluster.Endpoint(name, None, problem=str(error)) for name in urls)
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        return tuple(pool.map(lambda name: _endpoint(name, urls[name], login), urls))


def _endpoint(name: str, url: str, login: Credentials) -> cluster.Endpoint:
    try:
        answer = readyz(url, login, API_DEADLINE_S)
    except KubeError as error:
        return cluster.Endpoint(name, None, problem=str(error))
    return cluster.Endpoint(name, answer.status, answer.took_s)
