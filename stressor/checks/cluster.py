"""The cluster as its API shows it, against the inventory: nobody missing, no stranger."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stressor.checks.base import Finding, Level, unknown
from stressor.core.nodes import is_node
from stressor.model import Inventory, Role

NODES = "nodes"
API = "api"
BYSTANDERS = "bystanders"


@dataclass(frozen=True, slots=True)
class Member:
    """A node of the cluster. `ready` None: its own word is missing."""

    name: str
    addresses: tuple[str, ...]
    control_plane: bool
    ready: bool | None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What one API server answered to /readyz. `status` None: nothing, and `problem` says why."""

    host: str
    status: int | None
    took_s: float | None = None
    problem: str = ""


def judge_nodes(inventory: Inventory, members: Sequence[Member]) -> tuple[Finding, ...]:
    """Every control-plane node must be in the inventory: one that is not is watched by nobody and
    reached by no abort. A host that claims to be a node and is none: FAIL, for load on it would
    never appear. A worker that the inventory leaves out carries no load: WARN."""
    if not members:
        return (unknown(NODES, "", Level.FAIL, "the API names no node", "kubectl get nodes"),)
    found = (*_missing(inventory, members), *_strangers(inventory, members), *_unready(members))
    text = f"all {len(members)} nodes are in the inventory, and ready"
    return found or (Finding(NODES, "", Level.PASS, text),)


def _missing(inventory: Inventory, members: Sequence[Member]) -> Iterator[Finding]:
    for member in members:
        hosts = [host for host in inventory.hosts if is_node(host, member.name, member.addresses)]
        if member.control_plane and not any(Role.CONTROL_PLANE in h.roles for h in hosts):
            text = f"control-plane node {member.name} is not in the inventory"
            remedy = f"add {member.name} to the group control_plane"
            yield Finding(NODES, "", Level.FAIL, text, remedy)
        elif not hosts:
            text = f"node {member.name} is not in the inventory"
            yield Finding(NODES, "", Level.WARN, text, f"add {member.name} to the group workers")


def _strangers(inventory: Inventory, members: Sequence[Member]) -> Iterator[Finding]:
    for host in inventory.hosts:
        claims = host.roles & {Role.CONTROL_PLANE, Role.WORKER}
        if claims and not any(is_node(host, m.name, m.addresses) for m in members):
            text = "no node of this cluster has its name or address"
            remedy = "another cluster's? then: group bystanders"
            yield Finding(NODES, host.name, Level.FAIL, text, remedy)


def _unready(members: Sequence[Member]) -> Iterator[Finding]:
    for member in members:
        remedy = f"kubectl describe node {member.name}"
        if member.ready is None:
            yield unknown(NODES, "", Level.FAIL, f"is {member.name} ready?", remedy)
        elif not member.ready:
            yield Finding(NODES, "", Level.FAIL, f"node {member.name} is not ready", remedy)


def judge_endpoints(endpoints: Iterable[Endpoint]) -> tuple[Finding, ...]:
    """Each API server that a gate watches must answer and be ready before load starts."""
    found = tuple(map(_endpoint, endpoints))
    why = "no host of the inventory names its API server"
    return found or (unknown(API, "", Level.FAIL, why, "apiserver_url: https://ADDRESS:6443"),)


def _endpoint(endpoint: Endpoint) -> Finding:
    remedy = "crictl ps -a | grep kube-apiserver; its log"
    if endpoint.status is None:
        return unknown(API, endpoint.host, Level.FAIL, f"/readyz: {endpoint.problem}", remedy)
    if endpoint.status != 200:
        text = f"/readyz answered {endpoint.status}"
        return Finding(API, endpoint.host, Level.FAIL, text, remedy)
    return Finding(API, endpoint.host, Level.PASS, f"ready in {endpoint.took_s or 0.0:.2f} s")


def judge_bystanders(inventory: Inventory) -> tuple[Finding, ...]:
    """Whether somebody has answered which other clusters may share disks or hosts with this one."""
    named = inventory.with_role(Role.BYSTANDER)
    if named:
        text = f"watched: {', '.join(host.name for host in named)}"
        return (Finding(BYSTANDERS, "", Level.PASS, text),)
    if inventory.bystanders_none_reason:
        text = f"none: {inventory.bystanders_none_reason}"
        return (Finding(BYSTANDERS, "", Level.PASS, text),)
    text = "nobody has said which neighbours may share storage"
    remedy = "group bystanders, or stressor_bystanders_none: WHY"
    return (Finding(BYSTANDERS, "", Level.WARN, text, remedy),)
