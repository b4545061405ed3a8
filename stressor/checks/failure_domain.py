"""What one broken machine takes along, and whether load may sit beside etcd.

Control-plane nodes are counted by the hypervisor that the inventory names. Kubernetes cannot know
it: an outage of one machine that carries most of them is the loss of etcd's quorum.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stressor.checks.base import Finding, Level, unknown
from stressor.model import Host

NAME = "failure-domain"
_KEEPS_OUT = ("NoSchedule", "NoExecute")
_TAINT = "node-role.kubernetes.io/control-plane:NoSchedule"
_SAY = "stressor_hypervisor: NAME for each of them in the inventory; bare metal: its own name"


@dataclass(frozen=True, slots=True)
class Node:
    """A control-plane node. `taints` are written `key:effect`."""

    name: str
    taints: tuple[str, ...]
    unschedulable: bool


def judge(hosts: Sequence[Host], nodes: Sequence[Node]) -> tuple[Finding, ...]:
    """`hosts` are those of the control plane, `nodes` its nodes by the API's word."""
    return (*judge_hypervisors(hosts), *judge_taints(nodes))


def judge_hypervisors(hosts: Sequence[Host]) -> tuple[Finding, ...]:
    """WARN for each hypervisor whose loss leaves no majority of the control plane; all of it on one
    is the plainest case.

    Where somebody has not said theirs, and that could make a difference: WARN that says unknown,
    not SKIP, for one line in the inventory answers it, and storage isolation asks the same.
    """
    if len(hosts) < 2:
        text = "one control-plane node, one failure domain: nothing to compare"
        return (Finding(NAME, "", Level.SKIP, text),)
    carried = Counter(host.hypervisor for host in hosts if host.hypervisor)
    unsaid = tuple(host.name for host in hosts if not host.hypervisor)
    found = tuple(_heavy(carried, len(hosts)))
    if found:
        return found
    if unsaid and _loses_quorum(max(carried.values(), default=0) + len(unsaid), len(hosts)):
        why = f"the hypervisor of {', '.join(unsaid)}"
        return (unknown(NAME, "", Level.WARN, why, _SAY),)
    text = f"no hypervisor carries a majority of {len(hosts)} control-plane nodes"
    return (Finding(NAME, "", Level.PASS, text),)


def _heavy(carried: Counter[str], total: int) -> Iterator[Finding]:
    for hypervisor, count in carried.items():
        if not _loses_quorum(count, total):
            continue
        part = f"all {total}" if count == total else f"{count} of {total}"
        text = f"{part} control-plane nodes are on {hypervisor}: without it, no quorum"
        remedy = f"move nodes off {hypervisor}, then stressor_hypervisor: NAME"
        yield Finding(NAME, "", Level.WARN, text, remedy)


def _loses_quorum(lost: int, total: int) -> bool:
    """etcd needs more than half of its members."""
    return total - lost <= total // 2


def judge_taints(nodes: Sequence[Node]) -> tuple[Finding, ...]:
    """WARN for each control-plane node that takes workloads: what runs there competes with etcd,
    and what load pushes off a worker moves there."""
    if not nodes:
        remedy = "kubectl get nodes --selector node-role.kubernetes.io/control-plane"
        return (unknown(NAME, "", Level.WARN, "the API names no control-plane node", remedy),)
    found = tuple(
        Finding(
            NAME,
            "",
            Level.WARN,
            f"control-plane node {node.name} takes workloads",
            f"kubectl taint node {node.name} {_TAINT}",
        )
        for node in nodes
        if not node.unschedulable and not any(map(_keeps_out, node.taints))
    )
    return found or (Finding(NAME, "", Level.PASS, "control-plane nodes take no workloads"),)


def _keeps_out(taint: str) -> bool:
    return taint.rpartition(":")[2] in _KEEPS_OUT
