"""What only the API can say of a plan: `stressor plan --dry-run=server`, and what a plan file
remembers of its cluster. Everything here reads; nothing is created."""

from collections.abc import Iterator, Mapping, Sequence

from stressor.checks.base import Finding, Level, unknown
from stressor.checks.cluster import Member, judge_nodes
from stressor.core.drift import ClusterFooting, NodeFooting
from stressor.core.nodes import is_node
from stressor.errors import KubeError
from stressor.kube.base import Kube, NodeFacts
from stressor.model import Inventory, Plan, Role, Step
from stressor.workloads import workload

API_DEADLINE_S = 5.0
CLUSTER = "cluster"
PLACEMENT = "placement"
_KEEPS_OUT = ("NoSchedule", "NoExecute")


def server_findings(plan: Plan, inventory: Inventory, kube: Kube) -> tuple[Finding, ...]:
    """What the API says against `plan`, and for it. No answer is a failure that says unknown."""
    return (*_identity(inventory, kube), *_nodes(plan, inventory, kube))


def cluster_footing(kube: Kube, deadline_s: float = API_DEADLINE_S) -> ClusterFooting:
    """The cluster as its API has it now. Raises KubeError."""
    uid = kube.cluster_uid(deadline_s=deadline_s)
    return ClusterFooting(uid, tuple(map(_node, kube.nodes(deadline_s=deadline_s))))


def _node(node: NodeFacts) -> NodeFooting:
    return NodeFooting(
        name=node.name,
        uid=node.uid,
        hostname=node.hostname,
        control_plane=node.control_plane,
        unschedulable=node.unschedulable,
        addresses=node.addresses,
        taints=node.taints,
        cpu_cores=node.cpu_cores,
        memory_bytes=node.memory_bytes,
        kubelet_version=node.kubelet_version,
        kernel_version=node.kernel_version,
        os_image=node.os_image,
    )


def _identity(inventory: Inventory, kube: Kube) -> Iterator[Finding]:
    """Whether it is the cluster that the inventory pins by its UID."""
    remedy = "check stressor_kubeconfig, the context and the server"
    try:
        uid = kube.cluster_uid(deadline_s=API_DEADLINE_S)
    except KubeError as error:
        yield unknown(CLUSTER, "", Level.FAIL, str(error), remedy)
        return
    if inventory.cluster_uid is None:
        pin = f"stressor_cluster_uid: {uid}"
        yield Finding(CLUSTER, "", Level.WARN, f"its UID {uid} is not pinned", pin)
    elif inventory.cluster_uid != uid:
        text = f"another cluster: its UID is {uid}, pinned is {inventory.cluster_uid}"
        yield Finding(CLUSTER, "", Level.FAIL, text, remedy)
    else:
        yield Finding(CLUSTER, "", Level.PASS, f"its UID is the pinned one, {uid}")


def _nodes(plan: Plan, inventory: Inventory, kube: Kube) -> Iterator[Finding]:
    try:
        nodes = kube.nodes(deadline_s=API_DEADLINE_S)
    except KubeError as error:
        yield unknown(PLACEMENT, "", Level.FAIL, str(error), "kubectl get nodes")
        return
    members = (Member(n.name, n.addresses, n.control_plane, n.ready) for n in nodes)
    yield from judge_nodes(inventory, tuple(members))
    found = node_of(inventory, nodes)
    for name in dict.fromkeys(name for step in plan.steps for name in step.nodes):
        steps = tuple(step for step in plan.steps if name in step.nodes)
        if name in found:
            yield from _placed(name, found[name], steps)


def node_of(inventory: Inventory, nodes: Sequence[NodeFacts]) -> Mapping[str, NodeFacts]:
    """The node that each host of the inventory is; hosts that are none are left out."""
    return {
        host.name: node
        for host in inventory.hosts
        for node in nodes
        if host.roles & {Role.CONTROL_PLANE, Role.WORKER}
        and is_node(host, node.name, node.addresses)
    }


def _placed(host: str, node: NodeFacts, steps: tuple[Step, ...]) -> Iterator[Finding]:
    """Whether the scheduler would put load there, and whether the node can carry it."""
    against = tuple(_keeps_off(node))
    for text, remedy in against:
        yield Finding(PLACEMENT, host, Level.FAIL, text, remedy)
    small = tuple(_too_small(node, steps))
    for text in small:
        remedy = "lower the phase's params, or plan for a throttled load"
        yield Finding(PLACEMENT, host, Level.WARN, text, remedy)
    if not against and not small:
        yield Finding(PLACEMENT, host, Level.PASS, f"node {node.name} takes the load")


def _keeps_off(node: NodeFacts) -> Iterator[tuple[str, str]]:
    if node.unschedulable:
        yield f"node {node.name} is cordoned", f"kubectl uncordon {node.name}"
    for taint in node.taints:
        key, _, effect = taint.rpartition(":")
        if effect in _KEEPS_OUT:
            remedy = f"kubectl taint node {node.name} {key}:{effect}-"
            yield f"the taint {taint} of node {node.name} keeps load off", remedy
    if not node.hostname:
        remedy = f"kubectl label node {node.name} kubernetes.io/hostname={node.name}"
        yield f"node {node.name} lacks the label that load is placed by", remedy


def _too_small(node: NodeFacts, steps: tuple[Step, ...]) -> Iterator[str]:
    """An unknown size says nothing against a node: the scheduler goes by requests, which are
    small."""
    for step in steps:
        needs = workload(step.kind).needs(step.params)
        if node.cpu_cores is not None and needs.cpu_limit_cores > node.cpu_cores:
            yield (
                f"step {step.index} may use {needs.cpu_limit_cores:g} CPU, node {node.name} has "
                f"{node.cpu_cores:g}"
            )
        if node.memory_bytes is not None and needs.memory_limit_bytes > node.memory_bytes:
            yield (
                f"step {step.index} may use {needs.memory_limit_bytes} bytes of memory, node "
                f"{node.name} has {node.memory_bytes}"
            )
