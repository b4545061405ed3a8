"""What preflight asks of the API, and which check judges the answer.

One question comes first: which cluster is this? Where that has no answer, nothing else is asked, so
that one silent API makes one line and not ten; where it is another cluster than the pinned one,
nothing else matters.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus

from stressor.checks import access_path, cluster, failure_domain, images, pin, rbac
from stressor.checks.base import Finding, Level, unknown
from stressor.cli.clusters import login_for
from stressor.core.nodes import is_node
from stressor.errors import ConfigError, KubeError
from stressor.kube.base import AccessQuestion, Kube, KubeRefused, NodeFacts
from stressor.kube.client import connect
from stressor.model import Inventory, Plan
from stressor.workloads.job import PULL_POLICY

API_DEADLINE_S = 5.0
AT_ONCE = 8
NAMESPACE = "stressor-preflight"
"""Stands for a run's namespace, whose name nobody knows before the run."""
NAMES = (
    access_path.NAME,
    pin.NAME,
    cluster.NODES,
    rbac.NAME,
    failure_domain.NAME,
    images.NAME,
)
_REMEDY = "check stressor_kubeconfig, the context and the server"


@dataclass(frozen=True, slots=True)
class ClusterAsks:
    """The questions about one cluster. `wants` says which checks are to be made."""

    inventory: Inventory
    plan: Plan | None
    wants: Callable[[str], bool]

    def findings(self) -> tuple[Finding, ...]:
        """The findings of every wanted check. Never raises for what the API does."""
        try:
            login = login_for(self.inventory)
            server = str(login.cluster.get("server", ""))
            kube = connect(login)
        except (ConfigError, KubeError) as error:
            return (unknown(pin.NAME, "", Level.FAIL, str(error), _REMEDY),)
        return (*self._by_name(access_path.NAME, server), *self.of(kube))

    def of(self, kube: Kube) -> tuple[Finding, ...]:
        """The findings that `kube` is asked for."""
        try:
            uid = kube.cluster_uid(deadline_s=API_DEADLINE_S)
        except KubeError as error:
            return (_no_answer(error), *self._unasked())
        pinned = pin.judge(self.inventory.cluster_uid, uid)
        if pinned[0].level is Level.FAIL:
            return (*pinned, *self._unasked())
        return (*(pinned if self.wants(pin.NAME) else ()), *self._rest(kube))

    def _by_name(self, name: str, server: str) -> tuple[Finding, ...]:
        return access_path.judge(server) if self.wants(name) else ()

    def _unasked(self) -> tuple[Finding, ...]:
        text = f"nothing else was asked of the API: see {pin.NAME}"
        return (Finding("api", "", Level.SKIP, text),)

    def _rest(self, kube: Kube) -> tuple[Finding, ...]:
        """Every other question, side by side."""
        asks: Mapping[str, Callable[[Kube], tuple[Finding, ...]]] = {
            cluster.NODES: self._nodes,
            rbac.NAME: self._access,
            failure_domain.NAME: self._domains,
            images.NAME: self._images,
        }
        wanted = [name for name in asks if self.wants(name)]
        with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="api") as pool:
            found = pool.map(lambda name: _guarded(name, asks[name], kube), wanted)
            return tuple(finding for findings in found for finding in findings)

    def _nodes(self, kube: Kube) -> tuple[Finding, ...]:
        nodes = kube.nodes(deadline_s=API_DEADLINE_S)
        members = (cluster.Member(n.name, n.addresses, n.control_plane, n.ready) for n in nodes)
        return cluster.judge_nodes(self.inventory, tuple(members))

    def _access(self, kube: Kube) -> tuple[Finding, ...]:
        namespace = NAMESPACE if self.plan is None else self.plan.namespace
        wanted = (*rbac.needed(namespace), *rbac.looked_at())
        answers = kube.may(tuple(map(_question, wanted)), deadline_s=API_DEADLINE_S)
        return rbac.judge(
            tuple(
                rbac.Grant(permission, answer.allowed, answer.reason)
                for permission, answer in zip(wanted, answers, strict=True)
            )
        )

    def _domains(self, kube: Kube) -> tuple[Finding, ...]:
        nodes = tuple(
            failure_domain.ControlPlaneNode(node.name, node.taints, node.unschedulable)
            for node in kube.nodes(deadline_s=API_DEADLINE_S)
            if node.control_plane
        )
        return failure_domain.judge(self.inventory, nodes)

    def _images(self, kube: Kube) -> tuple[Finding, ...]:
        image = self.inventory.load_image if self.plan is None else self.plan.image
        if image is None:
            text = "no load image is named yet"
            return (Finding(images.NAME, "", Level.SKIP, text),)
        nodes = self._load_nodes(kube.nodes(deadline_s=API_DEADLINE_S))
        listed = tuple(images.NodeImages(host, n.name, n.images) for host, n in nodes)
        return images.judge(image, PULL_POLICY, listed)

    def _load_nodes(self, nodes: Sequence[NodeFacts]) -> tuple[tuple[str, NodeFacts], ...]:
        """The nodes that are to carry load, by inventory name; without a plan, all that may."""
        steps = () if self.plan is None else self.plan.steps
        wanted = {name for step in steps for name in step.nodes}
        return tuple(
            (host.name, node)
            for host in self.inventory.hosts
            for node in nodes
            if is_node(host, node.name, node.addresses) and (not wanted or host.name in wanted)
        )


def _no_answer(error: KubeError) -> Finding:
    """Why nobody knows which cluster it is. A login that is refused has a remedy of its own."""
    refused = isinstance(error, KubeRefused) and error.status == HTTPStatus.UNAUTHORIZED
    remedy = "token or certificate has ended: log in again" if refused else _REMEDY
    return unknown(pin.NAME, "", Level.FAIL, f"which cluster is it? {error}", remedy)


def _guarded(
    name: str, ask: Callable[[Kube], tuple[Finding, ...]], kube: Kube
) -> tuple[Finding, ...]:
    try:
        return ask(kube)
    except KubeError as error:
        return (unknown(name, "", Level.FAIL, str(error), _REMEDY),)


def _question(wanted: rbac.Permission) -> AccessQuestion:
    resource, _, subresource = wanted.resource.partition("/")
    return AccessQuestion(
        verb=wanted.verb,
        resource=resource,
        group=wanted.group,
        subresource=subresource,
        namespace=wanted.namespace,
        name=wanted.name,
    )
