"""Faults on real parts, and their healing from a list that is written before each is made."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from stressor.lab import cgroups, network, spindle
from stressor.lab import host as hosting
from stressor.lab import places as p
from stressor.lab.errors import LabError, LabRefused
from stressor.lab.launch import signal_process
from stressor.lab.ledger import Ledger, Process, start_time, write_atomic
from stressor.lab.shell import attempt, run

_MANIFEST = "etc/kubernetes/manifests/kube-apiserver.yaml"
_ASIDE = "etc/kubernetes/stressor-broken/kube-apiserver.yaml"


class Fault(StrEnum):
    """What can be broken; each has exactly one healing."""

    SPINDLE = "spindle"
    APISERVER = "apiserver"
    KUBELET = "kubelet"
    SSHD = "sshd"
    FREEZE = "freeze"
    CUT = "cut"
    FSFREEZE = "fsfreeze"


@dataclass(frozen=True, slots=True)
class Break:
    """One fault in force. `process` is the one stopped, where healing has to find it again."""

    fault: Fault
    host: str = ""
    process: Process | None = None


@dataclass(frozen=True, slots=True)
class Bench:
    """What breaking and healing work on."""

    ledger: Ledger
    places: p.Places

    def host(self, name: str) -> p.Host:
        """Raises LabRefused for a name that the lab does not have."""
        known = {host.name: host for host in p.hosts(self.ledger.record.nodes)}
        if name not in known:
            raise LabRefused(f"no host {name!r} in the lab: it has {', '.join(known)}")
        return known[name]


def load(path: Path) -> tuple[Break, ...]:
    """The faults in force, oldest first; none when there is no list."""
    try:
        entries = json.loads(path.read_text())
    except FileNotFoundError:
        return ()
    return tuple(
        Break(
            Fault(entry["fault"]),
            entry["host"],
            Process(**entry["process"]) if entry["process"] else None,
        )
        for entry in entries
    )


def _store(path: Path, breaks: tuple[Break, ...]) -> None:
    if breaks:
        write_atomic(path, json.dumps([asdict(entry) for entry in breaks], indent=1) + "\n")
    else:
        path.unlink(missing_ok=True)


def targets(bench: Bench, fault: Fault, name: str | None) -> tuple[p.Host, ...]:
    """The hosts meant by `name`; `all` means the Kubernetes nodes.  Raises LabRefused."""
    if fault is Fault.SPINDLE:
        return ()
    if name is None:
        raise LabRefused(f"{fault} needs the name of a host, or `all`")
    every = p.hosts(bench.ledger.record.nodes)
    chosen = (
        tuple(host for host in every if host.kubernetes) if name == "all" else (bench.host(name),)
    )
    if fault in (Fault.APISERVER, Fault.KUBELET, Fault.FSFREEZE):
        wrong = [host.name for host in chosen if not host.kubernetes]
        if wrong:
            raise LabRefused(f"{wrong[0]} has no {fault}: it runs no Kubernetes")
    return chosen


def _sshd(bench: Bench, host: p.Host) -> Process:
    """sshd's listener: connections are still accepted by the kernel, nobody answers them."""
    argv = ["systemctl", "show", "--property=MainPID", "--value", "ssh.service"]
    inner = int(hosting.inside(bench.ledger, host, argv, timeout_s=10).strip() or 0)
    return hosting.find(bench.ledger, host, inner)


def _apiservers(bench: Bench, host: p.Host) -> tuple[Process, ...]:
    """Processes of this host whose executable is kube-apiserver, never by their title."""
    found = []
    for pid in hosting.pids(bench.ledger, host):
        try:
            name = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
        except OSError:
            continue
        started = start_time(pid)
        if name == "kube-apiserver" and started is not None:
            found.append(Process(f"{host.name} kube-apiserver", pid, started))
    return tuple(found)


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.exists():
        source.replace(target)


def _break_apiserver(bench: Bench, host: p.Host) -> None:
    root = bench.places.root(host)
    _move(root / _MANIFEST, root / _ASIDE)
    for process in _apiservers(bench, host):
        signal_process(process, signal.SIGKILL)


def _freeze(bench: Bench, host: p.Host, frozen: bool) -> None:
    tree = cgroups.freezer_of(hosting.trees(bench.ledger, host))
    if tree is None:
        raise LabError(f"{host.name} has no freezer cgroup")
    cgroups.freeze(tree, frozen)


def _fsfreeze(bench: Bench, host: p.Host) -> None:
    point = bench.places.frozen(host)
    if not os.path.ismount(point):
        raise LabRefused(f"{host.name} has no filesystem to freeze: loop devices do not work here")
    run(["fsfreeze", "--freeze", str(point)], timeout_s=10)


def _systemctl(bench: Bench, host: p.Host, verb: str, unit: str) -> None:
    hosting.inside(bench.ledger, host, ["systemctl", verb, unit], timeout_s=60)


def _act(bench: Bench, entry: Break) -> None:
    host = bench.host(entry.host)
    acts: dict[Fault, Callable[[], object]] = {
        Fault.APISERVER: lambda: _break_apiserver(bench, host),
        Fault.KUBELET: lambda: _systemctl(bench, host, "stop", "kubelet.service"),
        Fault.SSHD: lambda: entry.process and signal_process(entry.process, signal.SIGSTOP),
        Fault.FREEZE: lambda: _freeze(bench, host, True),
        Fault.CUT: lambda: network.set_cable(host, False),
        Fault.FSFREEZE: lambda: _fsfreeze(bench, host),
    }
    acts[entry.fault]()


def _undo(bench: Bench, entry: Break) -> None:
    """The healing of one fault; safe to repeat."""
    if entry.fault is Fault.SPINDLE:
        spindle.set_delay_ms(bench.places.spindle_delay, spindle.DEFAULT_DELAY_MS)
        return
    host = bench.host(entry.host)
    root = bench.places.root(host)
    undoes: dict[Fault, Callable[[], object]] = {
        Fault.APISERVER: lambda: _move(root / _ASIDE, root / _MANIFEST),
        Fault.KUBELET: lambda: _systemctl(bench, host, "start", "kubelet.service"),
        Fault.SSHD: lambda: entry.process and signal_process(entry.process, signal.SIGCONT),
        Fault.FREEZE: lambda: _freeze(bench, host, False),
        Fault.CUT: lambda: network.set_cable(host, True),
        Fault.FSFREEZE: lambda: attempt(
            ["fsfreeze", "--unfreeze", str(bench.places.frozen(host))], timeout_s=10
        ),
    }
    undoes[entry.fault]()


def break_(bench: Bench, fault: Fault, name: str | None, delay_ms: float | None) -> None:
    """Put `fault` in force on the hosts meant by `name`; already broken ones stay as they are.

    Raises LabRefused (no such host, value missing) or LabError (the fault did not take).
    """
    path = bench.places.breaks
    breaks = load(path)
    if fault is Fault.SPINDLE:
        if delay_ms is None:
            raise LabRefused("spindle needs --ms, the milliseconds that each flush takes")
        others = tuple(entry for entry in breaks if entry.fault is not fault)
        slow = delay_ms != spindle.DEFAULT_DELAY_MS
        _store(path, (*others, Break(fault)) if slow else breaks)
        spindle.set_delay_ms(bench.places.spindle_delay, delay_ms)
        if not slow:
            _store(path, others)
        return
    for host in targets(bench, fault, name):
        if any(entry.fault is fault and entry.host == host.name for entry in breaks):
            continue
        process = _sshd(bench, host) if fault is Fault.SSHD else None
        entry = Break(fault, host.name, process)
        breaks = (*breaks, entry)
        _store(path, breaks)
        _act(bench, entry)


def _urgency(entry: Break) -> int:
    """Thaws first: nothing else on a frozen host can be healed."""
    order = (Fault.FSFREEZE, Fault.FREEZE, Fault.CUT, Fault.SPINDLE)
    return order.index(entry.fault) if entry.fault in order else len(order)


def heal(bench: Bench) -> tuple[Break, ...]:
    """Undo every fault on the list; returns those undone.

    A fault leaves the list only after its healing.  When one cannot be healed the others still
    are, and LabError names it at the end.
    """
    path = bench.places.breaks
    breaks = load(path)
    left: list[Break] = []
    trouble: list[str] = []
    for entry in sorted(breaks, key=_urgency):
        try:
            _undo(bench, entry)
        except LabError as failed:
            left.append(entry)
            trouble.append(f"{entry.fault} {entry.host}: {failed}")
    _store(path, tuple(left))
    if trouble:
        raise LabError("not healed: " + "; ".join(trouble))
    return breaks
