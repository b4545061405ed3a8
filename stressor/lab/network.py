"""The lab's wiring: a bridge in a namespace of its own, a cable to each host, one to this side.

Addresses exist only inside these namespaces and on the controlling end of one cable.  Pods of
different hosts reach each other by static routes between the hosts.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from stressor.lab import places as p
from stressor.lab.errors import LabError, LabRefused
from stressor.lab.ledger import Ledger
from stressor.lab.shell import attempt, run

_NAMESPACES = Path("/run/netns")
_BRIDGE = "br0"


def require_free(hosts: tuple[p.Host, ...]) -> None:
    """Raise LabRefused when another lab holds the names that this one needs."""
    names = [p.SWITCH_NAMESPACE, *(host.namespace for host in hosts)]
    taken = [name for name in names if (_NAMESPACES / name).exists()]
    if Path("/sys/class/net", p.CONTROL_INTERFACE).exists():
        taken.append(p.CONTROL_INTERFACE)
    if taken:
        raise LabRefused(
            f"another lab holds {', '.join(taken)}: only one can run on a machine; "
            "end it with `stressor lab down` under its own STRESSOR_STATE"
        )


def _batch(namespace: str | None, commands: list[str]) -> None:
    where = ["-n", namespace] if namespace else []
    run(["ip", *where, "-batch", "-"], stdin="\n".join(commands) + "\n", timeout_s=30)


def host_commands(host: p.Host, others: tuple[p.Host, ...]) -> list[str]:
    """`ip` lines that give `host` its address and the routes to the others' pods."""
    routes = [
        f"route add {other.pod_subnet} via {other.address}"
        for other in others
        if other.kubernetes and other != host
    ]
    return [
        "link set lo up",
        f"addr add {host.address}/{p.PREFIX_LENGTH} dev eth0",
        "link set eth0 up",
        f"route add default via {p.CONTROL_ADDRESS}",
        *routes,
    ]


def wire(ledger: Ledger, hosts: tuple[p.Host, ...]) -> None:
    """Make all namespaces and cables; each is in the ledger before it exists."""
    names = [p.SWITCH_NAMESPACE, *(host.namespace for host in hosts)]
    ledger.append("namespaces", *names)
    ledger.append("interfaces", p.CONTROL_INTERFACE)
    _batch(None, [f"netns add {name}" for name in names])
    switch = [f"link add name {_BRIDGE} type bridge", f"link set {_BRIDGE} up"]
    for host in hosts:
        peer = f"peer name eth0 netns {host.namespace}"
        switch += [
            f"link add name {host.port_name} type veth {peer}",
            f"link set {host.port_name} master {_BRIDGE} up",
        ]
    _batch(p.SWITCH_NAMESPACE, switch)
    uplink = f"peer name uplink netns {p.SWITCH_NAMESPACE}"
    _batch(
        None,
        [
            f"link add name {p.CONTROL_INTERFACE} type veth {uplink}",
            f"addr add {p.CONTROL_ADDRESS}/{p.PREFIX_LENGTH} dev {p.CONTROL_INTERFACE}",
            f"link set {p.CONTROL_INTERFACE} up",
        ],
    )
    _batch(p.SWITCH_NAMESPACE, [f"link set uplink master {_BRIDGE} up"])
    for host in hosts:
        _batch(host.namespace, host_commands(host, hosts))


def set_cable(host: p.Host, connected: bool) -> None:
    """Pull or plug the cable of `host` at the switch."""
    state = "up" if connected else "down"
    run(["ip", "-n", p.SWITCH_NAMESPACE, "link", "set", host.port_name, state], timeout_s=10)


def remove_interface(name: str) -> None:
    if Path("/sys/class/net", name).exists():
        attempt(["ip", "link", "del", name], timeout_s=10)


def remove_namespace(name: str) -> None:
    """Delete a namespace by its name; raises LabError when it stays."""
    if not (_NAMESPACES / name).exists():
        return
    attempt(["ip", "netns", "del", name], timeout_s=10)
    with suppress(FileNotFoundError):
        # A cut-off `ip netns add` leaves the plain file without the mount on it.
        (_NAMESPACES / name).unlink()
    if (_NAMESPACES / name).exists():
        raise LabError(f"network namespace {name} cannot be deleted")
