"""The verbs by which preflight asks a cluster whether it would take a plan. They change nothing:
reviews and dry runs are posted, and not stored."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from stressor.errors import KubeError
from stressor.kube import facts
from stressor.kube import survey_facts as found
from stressor.kube.base import (
    Access,
    AccessQuestion,
    DryRun,
    KubeRefused,
    LimitRangeFacts,
    NodeImages,
    NodeRequests,
    QuotaFacts,
    RunNamespace,
    StorageClassFacts,
)
from stressor.kube.calls import NOT_FOUND, Budget, Calls
from stressor.kube.paths import JOBS, NAMESPACES, NODES, PODS, collection_of
from stressor.kube.transport import Request, document
from stressor.workloads.job import RUN_LABEL

AT_ONCE = 4
"""Access reviews under way at once: they are asked of a cluster that may be in use."""
CLUSTER_QUOTAS = "quota.openshift.io"

_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_UNENDED = ",".join(f"status.phase!={phase}" for phase in found.ENDED)
_REQUEST_TIMEOUT, _TOO_MANY, _SERVER_ERROR = 408, 429, 500
_NO_DRY_RUN = "does not support dry run"
"""What the API server says (400) of a webhook with side effects: it was not asked at all."""

T = TypeVar("T")


class Survey(Calls):
    """The reading verbs of `Kube` that only preflight and plan need."""

    def api_groups(self, *, deadline_s: float) -> frozenset[str]:
        return self._groups(Budget("list API groups", deadline_s))

    def may(self, questions: Sequence[AccessQuestion], *, deadline_s: float) -> tuple[Access, ...]:
        budget = Budget("review access", deadline_s)
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="review") as pool:
            return tuple(pool.map(partial(self._may, budget), questions))

    def dry_run(
        self, manifests: Sequence[Mapping[str, object]], *, deadline_s: float
    ) -> tuple[DryRun, ...]:
        budget = Budget("dry run", deadline_s)
        return tuple(self._dry_run(manifest, budget) for manifest in manifests)

    def node_images(self, *, deadline_s: float) -> tuple[NodeImages, ...]:
        nodes = self._list(NODES, "", Budget("list images", deadline_s))
        return tuple(sorted(map(found.node_images, nodes), key=lambda node: node.node))

    def node_requests(self, *, deadline_s: float) -> tuple[NodeRequests, ...]:
        pods = self._list(PODS, "", Budget("list requests", deadline_s), fields=_UNENDED)
        placed: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for pod in pods:
            placed[(pod.get("spec") or {}).get("nodeName") or ""].append(pod)
        # Pods without a node wait for one; where they will go is not known.
        placed.pop("", None)
        return tuple(found.node_requests(node, placed[node]) for node in sorted(placed))

    def storage_classes(self, *, deadline_s: float) -> tuple[StorageClassFacts, ...]:
        path, budget = "/apis/storage.k8s.io/v1/storageclasses", "list storage classes"
        classes = self._facts(path, found.storage_class, Budget(budget, deadline_s))
        return tuple(sorted(classes, key=lambda one: one.name))

    def quotas(self, *, deadline_s: float) -> tuple[QuotaFacts, ...]:
        budget = Budget("list quotas", deadline_s)
        quotas = self._facts("/api/v1/resourcequotas", found.quota, budget)
        return tuple(sorted(quotas, key=lambda one: (one.namespace, one.name)))

    def cluster_quotas(
        self, labels: Mapping[str, str], *, deadline_s: float
    ) -> tuple[QuotaFacts, ...]:
        budget = Budget("list cluster quotas", deadline_s)
        # Asked first: who may not list them is refused, whether the API has them or not.
        if CLUSTER_QUOTAS not in self._groups(budget):
            return ()
        things = self._list(f"/apis/{CLUSTER_QUOTAS}/v1/clusterresourcequotas", "", budget)
        own = (found.cluster_quota(thing) for thing in things if found.selects(thing, labels))
        return tuple(sorted(own, key=lambda one: one.name))

    def limit_ranges(self, *, deadline_s: float) -> tuple[LimitRangeFacts, ...]:
        budget = Budget("list limit ranges", deadline_s)
        ranges = self._facts("/api/v1/limitranges", found.limit_range, budget)
        return tuple(sorted(ranges, key=lambda one: (one.namespace, one.name)))

    def run_namespaces(self, *, deadline_s: float) -> tuple[RunNamespace, ...]:
        budget = Budget("list namespaces of runs", deadline_s)
        spaces = self._list(NAMESPACES, RUN_LABEL, budget)
        jobs = self._list(JOBS, RUN_LABEL, budget) if spaces else []
        return tuple(
            sorted((found.run_namespace(s, jobs) for s in spaces), key=lambda one: one.name)
        )

    def _facts(self, path: str, read: Callable[[Mapping[str, Any]], T], budget: Budget) -> list[T]:
        return [read(thing) for thing in self._list(path, "", budget)]

    def _groups(self, budget: Budget) -> frozenset[str]:
        groups = self._read(Request("GET", "/apis"), budget).get("groups")
        if not isinstance(groups, list):
            raise KubeError(f"{budget.what}: /apis names no groups")
        return frozenset(str(group.get("name")) for group in groups)

    def _may(self, budget: Budget, question: AccessQuestion) -> Access:
        asked = {
            "verb": question.verb,
            "group": question.group,
            "resource": question.resource,
            "subresource": question.subresource,
            "namespace": question.namespace,
            "name": question.name,
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {key: value for key, value in asked.items() if value}},
        }
        try:
            answer = self._read(Request("POST", _REVIEW, {}, review), budget)
        except KubeError as error:
            return Access(question, None, str(error))
        return found.access(question, answer)

    def _dry_run(self, manifest: Mapping[str, Any], budget: Budget) -> DryRun:
        request = Request("POST", collection_of(manifest), {"dryRun": "All"}, manifest)
        meta = facts.metadata(manifest)
        kind, namespace, name = manifest["kind"], meta.get("namespace", ""), meta.get("name", "")
        try:
            response = self._transport.send(request, deadline_s=budget.left_s())
            thing = document(request, response, deadline_s=budget.deadline_s)
        except KubeRefused as error:
            decided = None if _undecided(error) else False
            return DryRun(kind, namespace, name, decided, str(error))
        except KubeError as error:
            return DryRun(kind, namespace, name, None, str(error))
        told, labels = response.warnings, dict(facts.labels(thing))
        return DryRun(kind, namespace, name, True, "", told, labels)


def _undecided(error: KubeRefused) -> bool:
    """Whether the API did not come to judge the object: its namespace is missing, a webhook was not
    asked, or the server has other troubles."""
    return (
        error.status in (NOT_FOUND, _REQUEST_TIMEOUT, _TOO_MANY)
        or error.status >= _SERVER_ERROR
        or _NO_DRY_RUN in str(error)
    )
