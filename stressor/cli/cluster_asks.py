"""What preflight asks of the API, and which check judges the answer.

One question comes first: which cluster is this? Where that has no answer, nothing else is asked, so
that one silent API makes one line and not ten; where it is another cluster than the pinned one,
nothing else matters.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus

from stressor.checks import (
    access_path,
    admission,
    cluster,
    failure_domain,
    images,
    leftover_runs,
    pin,
    quotas,
    rbac,
    storage_class,
)
from stressor.checks.base import Finding, Level, unknown
from stressor.cli import demand
from stressor.cli.clusters import login_for
from stressor.core.nodes import is_node
from stressor.errors import ConfigError, KubeError
from stressor.kube.base import AccessQuestion, DryRun, Kube, KubeRefused, NodeFacts
from stressor.kube.client import connect
from stressor.model import Inventory, Plan, Role
from stressor.workloads.job import IMAGE_PULL_POLICY

API_DEADLINE_S = 5.0
AT_ONCE = 12
STAND_IN = "default"
"""Where Jobs are tried: their own namespace does not exist before the run."""
OPENSHIFT_QUOTAS = "quota.openshift.io"
NAMES = (
    access_path.NAME,
    pin.NAME,
    cluster.NODES,
    rbac.NAME,
    failure_domain.NAME,
    images.NAME,
    leftover_runs.NAME,
    storage_class.NAME,
    quotas.NAME,
    admission.NAME,
)
_REMEDY = "check stressor_kubeconfig, the context and the server"
_ENFORCED = "pod-security.kubernetes.io/enforce"


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
        pinned = pin.judge(uid, self.inventory.cluster_uid)
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
            leftover_runs.NAME: self._leftovers,
            storage_class.NAME: self._classes,
            quotas.NAME: self._quotas,
            admission.NAME: self._admission,
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
        plan = self.plan
        wanted = rbac.needed(
            "" if plan is None else plan.namespace,
            storage_class=plan is not None and bool(demand.storage_classes(plan)),
            cluster_quotas=OPENSHIFT_QUOTAS in kube.api_groups(deadline_s=API_DEADLINE_S),
        )
        answers = kube.may(tuple(map(_question, wanted)), deadline_s=API_DEADLINE_S)
        return rbac.judge(
            tuple(
                rbac.Answered(need, answer.allowed, answer.reason)
                for need, answer in zip(wanted, answers, strict=True)
            )
        )

    def _domains(self, kube: Kube) -> tuple[Finding, ...]:
        nodes = tuple(
            failure_domain.Node(node.name, node.taints, node.unschedulable)
            for node in kube.nodes(deadline_s=API_DEADLINE_S)
            if node.control_plane
        )
        return failure_domain.judge(self.inventory.with_role(Role.CONTROL_PLANE), nodes)

    def _images(self, kube: Kube) -> tuple[Finding, ...]:
        image = self.inventory.load_image if self.plan is None else self.plan.image
        if image is None:
            return (Finding(images.NAME, "", Level.SKIP, "no load image is named yet"),)
        hosts = {node.name: host for host, node in self._load_nodes(kube)}
        listed = tuple(
            images.NodeImages(hosts[one.node], one.node, one.names, one.listed)
            for one in kube.node_images(deadline_s=API_DEADLINE_S)
            if one.node in hosts
        )
        return images.judge(image, IMAGE_PULL_POLICY, listed)

    def _leftovers(self, kube: Kube) -> tuple[Finding, ...]:
        return leftover_runs.judge(
            tuple(
                leftover_runs.Left(
                    one.name,
                    one.run,
                    one.live_jobs,
                    one.terminating_since,
                    one.finalizers,
                    one.conditions,
                )
                for one in kube.run_namespaces(deadline_s=API_DEADLINE_S)
            )
        )

    def _classes(self, kube: Kube) -> tuple[Finding, ...]:
        wanted = () if self.plan is None else demand.storage_classes(self.plan)
        if not wanted:
            return storage_class.judge((), None)
        classes = tuple(
            storage_class.StorageClass(
                one.name, one.provisioner, one.binding, one.reclaim, one.default
            )
            for one in kube.storage_classes(deadline_s=API_DEADLINE_S)
        )
        return storage_class.judge(wanted, classes)

    def _quotas(self, kube: Kube) -> tuple[Finding, ...]:
        """Quotas, limit ranges, and the room that the nodes have left."""
        if self.plan is None:
            return quotas.judge((), (), (), own="")
        steps = demand.steps_of(self.plan)
        labels = _labels(demand.manifests(self.plan, STAND_IN)[0])
        found = (
            *kube.quotas(deadline_s=API_DEADLINE_S),
            *kube.cluster_quotas(labels, deadline_s=API_DEADLINE_S),
        )
        ranges = tuple(
            quotas.LimitRange(
                one.namespace,
                one.name,
                tuple(quotas.Limit(i.kind, i.most, i.least, i.most_ratio) for i in one.limits),
            )
            for one in kube.limit_ranges(deadline_s=API_DEADLINE_S)
        )
        limits = tuple(quotas.Quota(q.namespace, q.name, q.hard, q.used, q.scopes) for q in found)
        judged = quotas.judge(steps, limits, ranges, own=self.plan.namespace)
        return (*judged, *quotas.judge_room(steps, self._rooms(kube)))

    def _rooms(self, kube: Kube) -> tuple[quotas.Room, ...]:
        asked = {one.node: one for one in kube.node_requests(deadline_s=API_DEADLINE_S)}
        return tuple(
            quotas.Room(
                host,
                node.name,
                node.cpu_cores,
                node.memory_bytes,
                # A node without any unfinished pod is not named: nothing is asked of it.
                asked[node.name].cpu_cores if node.name in asked else 0.0,
                asked[node.name].memory_bytes if node.name in asked else 0.0,
            )
            for host, node in self._load_nodes(kube)
        )

    def _admission(self, kube: Kube) -> tuple[Finding, ...]:
        """The run's namespace and a Job of each step, tried without being made."""
        if self.plan is None:
            text = "no plan: nothing is tried"
            return (Finding(admission.NAME, "", Level.SKIP, text),)
        tried = demand.manifests(self.plan, STAND_IN)
        answers = kube.dry_run(tried, deadline_s=API_DEADLINE_S)
        return admission.judge(_labels(tried[0])[_ENFORCED], tuple(map(_trial, answers)))

    def _load_nodes(self, kube: Kube) -> tuple[tuple[str, NodeFacts], ...]:
        """The nodes that are to carry load, by inventory name; without a plan, all that may."""
        steps = () if self.plan is None else self.plan.steps
        wanted = {name for step in steps for name in step.nodes}
        nodes = kube.nodes(deadline_s=API_DEADLINE_S)
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


def _question(wanted: rbac.Need) -> AccessQuestion:
    return AccessQuestion(
        verb=wanted.verb,
        resource=wanted.resource,
        group=wanted.group,
        subresource=wanted.subresource,
        namespace=wanted.namespace,
        name=wanted.name,
    )


def _labels(manifest: Mapping[str, object]) -> Mapping[str, str]:
    metadata = manifest["metadata"]
    assert isinstance(metadata, Mapping)
    labels: Mapping[str, str] = metadata["labels"]
    return labels


def _trial(answer: DryRun) -> admission.Trial:
    return admission.Trial(
        kind=answer.kind,
        namespace=answer.namespace,
        name=answer.name,
        accepted=answer.accepted,
        message=answer.message,
        warnings=answer.warnings,
        security_level=answer.labels.get(_ENFORCED),
        stand_in=answer.namespace == STAND_IN,
    )
