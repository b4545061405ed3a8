"""What falls together with the control plane: hypervisors under it, and workloads on it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stressor.checks.base import Finding, Level, unknown
from stressor.model import Inventory, Role

NAME = "failure-domain"
_KEEPS_OFF = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class ControlPlaneNode:
    """A control-plane node of the API. `taints` are `key:effect`; `unschedulable`: cordoned."""

    name: str
    taints: tuple[str, ...] = ()
    unschedulable: bool = False


def judge(inventory: Inventory, nodes: Sequence[ControlPlaneNode]) -> tuple[Finding, ...]:
    """The findings on hypervisors (from the inventory) and on taints (from the API). Never FAIL:
    both are the operator's to choose, but a report must say what its figures stood on."""
    return (*_hypervisors(inventory), *_taints(nodes))


def _hypervisors(inventory: Inventory) -> Iterator[Finding]:
    """WARN where the loss of one hypervisor costs etcd its quorum, or takes everything.

    Of n members, etcd survives the loss of (n-1)//2 (etcd FAQ, "What is failure tolerance?").
    """
    hosts = inventory.with_role(Role.CONTROL_PLANE)
    silent = [host.name for host in hosts if not host.hypervisor]
    carried = Counter(host.hypervisor for host in hosts if host.hypervisor)
    heavy = [(name, many) for name, many in carried.items() if _too_many(many, len(hosts))]
    for name, many in heavy:
        which = "all" if many == len(hosts) else f"{many} of"
        text = f"{which} {len(hosts)} control-plane hosts stand on {name}"
        yield Finding(NAME, "", Level.WARN, text, "spread them; else one failure stops etcd")
    if heavy:
        return
    if silent or not hosts:
        who = ", ".join(silent) or "any control-plane host"
        yield Finding(NAME, "", Level.SKIP, f"hypervisor not said (stressor_hypervisor): {who}")
        return
    text = f"{len(hosts)} control-plane hosts on {len(carried)} hypervisors"
    yield Finding(NAME, "", Level.PASS, text)


def _too_many(many: int, hosts: int) -> bool:
    # Of two members neither may be lost, wherever they stand: that is no hypervisor's fault.
    return many == hosts or (many > 1 and many > (hosts - 1) // 2)


def _taints(nodes: Sequence[ControlPlaneNode]) -> Iterator[Finding]:
    if not nodes:
        remedy = "kubectl get nodes -L node-role.kubernetes.io/control-plane"
        yield unknown(NAME, "", Level.WARN, "the API names no control-plane node", remedy)
        return
    taking = tuple(node.name for node in nodes if _takes_workloads(node))
    for name in taking:
        text = f"control-plane node {name} takes workloads, load too"
        key = "node-role.kubernetes.io/control-plane"
        yield Finding(NAME, "", Level.WARN, text, f"kubectl taint node {name} {key}=:NoSchedule")
    if not taking:
        yield Finding(NAME, "", Level.PASS, _kept_free(node.name for node in nodes))


def _takes_workloads(node: ControlPlaneNode) -> bool:
    return not node.unschedulable and not any(
        taint.rpartition(":")[2] in _KEEPS_OFF for taint in node.taints
    )


def _kept_free(names: Iterable[str]) -> str:
    return f"no workloads on {', '.join(names)}"
