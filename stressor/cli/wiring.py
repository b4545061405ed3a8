"""The run side's parts, put together: the only place that picks adapters for `stressor run`."""

import getpass
import os
import queue
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stressor.cli.narrate import Narrator
from stressor.cli.run_log import logged
from stressor.cli.wiring_ssh import cold_killer
from stressor.core import events as ev
from stressor.core.nodes import is_node
from stressor.engine.abort_script import by_hand
from stressor.engine.clock import BootClock
from stressor.engine.fleet import Fleet
from stressor.engine.lock import ClusterLock
from stressor.engine.loop import EventQueue, Loop
from stressor.engine.perform import Performer
from stressor.engine.results import Results
from stressor.engine.sampler import ApiReader, EtcdReader, Sampler
from stressor.engine.start import Starter
from stressor.errors import ExitCode, RemoteError
from stressor.guard.script import guard_argv
from stressor.journal import Header, JournalWriter
from stressor.kube.base import Kube
from stressor.kube.login import Login
from stressor.kube.readyz import Credentials, credentials, readyz
from stressor.lifeline import RunEntry, close_run, journal_path, record_run, state_dir
from stressor.log import Log, Silent
from stressor.model import Host, Inventory, Plan, Role, StopReason
from stressor.remote import scrape
from stressor.remote.connect import connect, preload

JOURNAL_CLOSE_S = 5.0


@dataclass(frozen=True, slots=True)
class Api:
    """The cluster's API, how it is logged in to, and the files and context that said so."""

    kube: Kube
    login: Login
    kubeconfig_paths: str
    context: str


@dataclass(frozen=True, slots=True)
class Request:
    """What the operator asked for, read and planned. `hostnames` maps an inventory name to the
    node's kubernetes.io/hostname label. `log` gets a line for what the narrator tells."""

    plan: Plan
    inventory: Inventory
    api: Api
    hostnames: Mapping[str, str]
    slow_fsync_s: float
    reason: str
    hang_after_s: float | None = None
    log: Log = field(default_factory=Silent)


def new_run() -> str:
    """A run's name: short enough for a phone at night."""
    return f"r{secrets.token_hex(3)}"


def holder() -> str:
    """Who holds the locks of this process, for somebody whom they refuse."""
    return f"{getpass.getuser()}@{socket.gethostname()}:{os.getpid()}"


def execute(request: Request) -> int:
    """Run to the end; the exit code."""
    state = state_dir(os.environ)
    clock = BootClock.start()
    started_unix_s = clock.unix_s()
    plan = request.plan
    path = journal_path(state, plan.run)
    path.parent.mkdir(parents=True, mode=0o700)
    journal = JournalWriter(path, _header(request, clock), clock=clock.now_s)

    def note(topic: str, text: str) -> None:
        journal.append("note.Text", clock.now_s(), {"topic": topic, "text": text})

    journal.append("note.Plan", clock.now_s(), plan)
    commands = [line for host in request.inventory.hosts for line in by_hand(host)]
    journal.append("note.ByHand", clock.now_s(), {"commands": commands})
    try:
        lock = ClusterLock.take(request.api.kube, holder(), plan.run, note)
        try:
            record_run(state, plan.cluster, _entry(request, path, started_unix_s))
            code = _drive(request, clock, journal, note)
        finally:
            lock.release()
    finally:
        journal.close(JOURNAL_CLOSE_S)
    if code != ExitCode.NOT_PROVEN_DEAD:
        close_run(state, plan.cluster, plan.run, time.time())
    return code


def _header(request: Request, clock: BootClock) -> Header:
    return Header(
        run=request.plan.run,
        cluster=request.plan.cluster,
        suite=request.plan.suite,
        anchor_unix_s=clock.unix_s(),
        anchor_boot_s=clock.anchor_s,
        who=getpass.getuser(),
        host=socket.gethostname(),
        argv=tuple(sys.argv),
        reason=request.reason,
        pid=os.getpid(),
    )


def _entry(request: Request, journal: Path, started_unix_s: float) -> RunEntry:
    return RunEntry(
        run=request.plan.run,
        started_unix_s=started_unix_s,
        deadline_unix_s=started_unix_s + request.plan.deadline_s,
        journal_path=str(journal),
        namespace=request.plan.namespace,
        kubeconfig_path=request.api.kubeconfig_paths,
        context=request.api.context,
        hosts=request.plan.guarded,
    )


def _drive(
    request: Request,
    clock: BootClock,
    journal: JournalWriter,
    note: Callable[[str, str], None],
) -> int:
    preload()
    plan = request.plan
    events: EventQueue = queue.SimpleQueue()
    narrator = Narrator(clock.unix_s() - clock.now_s(), fold=sys.stderr.isatty())
    killer = cold_killer()
    fleet = Fleet(plan.run, clock, events, connect, killer.rehearse, guard_argv(), holder())
    hostname = request.hostnames.__getitem__
    starter = Starter(plan, clock, events, journal, fleet, request.api.kube, hostname)
    results = Results(plan, clock, events, request.api.kube, hostname, note)
    hosts = {host.name: host for host in request.inventory.hosts}
    performer = Performer(
        plan,
        hosts,
        clock,
        events,
        fleet,
        starter,
        killer,
        lambda suspend_only: _cleanup_argv(plan.run, suspend_only),
        narrator.warn,
    )
    watch = logged(request.log, plan.run, narrator.watch)
    loop = Loop(plan, clock, events, performer, journal, watch, request.hang_after_s)
    sampler = Sampler(clock, events)
    _on_signals(clock, events, narrator)
    fleet.start()
    _start_readers(request, sampler)
    results.start()
    try:
        return loop.run()
    finally:
        sampler.stop()
        results.stop()
        fleet.close()


def _cleanup_argv(run: str, suspend_only: bool) -> tuple[str, ...]:
    argv = (sys.executable, "-m", "stressor", "cleanup", "--run", run)
    return (*argv, "--suspend", "--timeout", "20") if suspend_only else (*argv, "--timeout", "30")


def _on_signals(clock: BootClock, events: EventQueue, narrator: Narrator) -> None:
    """Ctrl-C and SIGTERM stop the run and verify; a second Ctrl-C leaves the screen only. A
    terminal that hangs up changes nothing."""
    asked = threading.Event()

    def interrupt(_signal: int, _frame: object) -> None:
        if asked.is_set():
            narrator.leave()
            return
        asked.set()
        why = "Ctrl-C (once more leaves the screen only)"
        events.put(ev.StopRequested(clock.now_s(), StopReason.OPERATOR, why))

    def terminate(_signal: int, _frame: object) -> None:
        events.put(ev.StopRequested(clock.now_s(), StopReason.TERMINATED, "SIGTERM"))

    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _start_readers(request: Request, sampler: Sampler) -> None:
    login = credentials(request.api.login)
    for host in request.inventory.hosts:
        if host.name not in request.plan.guarded:
            continue
        if host.etcd_metrics_url is not None:
            reader = EtcdReader(host.name, scrape_of(host), request.slow_fsync_s)
            sampler.start(f"etcd-{host.name}", reader.read)
        if host.apiserver_url is not None:
            api = ApiReader(host.name, _ask(host.apiserver_url, login))
            sampler.start(f"api-{host.name}", api.read)


def scrape_of(host: Host) -> Callable[[float], bytes]:
    """Reads the metrics of this host's etcd, by whatever way works: a call takes a deadline in
    seconds, gives the page, and raises RemoteError."""
    assert host.etcd_metrics_url is not None
    scraper = scrape.Scraper(connect(host), host.etcd_metrics_url)

    def fetch(deadline_s: float) -> bytes:
        fetched = scraper.fetch(deadline_s=deadline_s)
        if isinstance(fetched, scrape.Page) and fetched.status == 200:
            return fetched.body
        if isinstance(fetched, scrape.Page):
            raise RemoteError(f"{host.etcd_metrics_url} answered {fetched.status}")
        raise RemoteError(f"{host.name}: {fetched}")

    return fetch


def _ask(url: str, login: Credentials) -> Callable[[float], tuple[int, bytes, float]]:
    def ask(deadline_s: float) -> tuple[int, bytes, float]:
        answer = readyz(url, login, deadline_s)
        return answer.status, answer.body, answer.took_s

    return ask


def hostnames(inventory: Inventory, kube: Kube, deadline_s: float) -> dict[str, str]:
    """The kubernetes.io/hostname label of each host that is a node, matched by address or name."""
    nodes = kube.nodes(deadline_s=deadline_s)
    found: dict[str, str] = {}
    for host in inventory.hosts:
        if not host.roles & {Role.CONTROL_PLANE, Role.WORKER}:
            continue
        for node in nodes:
            if is_node(host, node.name, node.addresses):
                found[host.name] = node.hostname
    return found
