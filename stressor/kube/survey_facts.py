"""API objects (parsed JSON) to the facts that preflight judges. Pure, like `facts`: anything
missing is empty or None, never a guess."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stressor.kube.base import (
    Access,
    AccessQuestion,
    LimitFacts,
    LimitRangeFacts,
    NodeImages,
    NodeRequests,
    QuotaFacts,
    RunNamespace,
    StorageClassFacts,
)
from stressor.kube.facts import Object, annotations, job_facts, labels, metadata, quantity
from stressor.workloads.job import RUN_LABEL

_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
ENDED = ("Succeeded", "Failed")


def access(question: AccessQuestion, review: Object) -> Access:
    """A SelfSubjectAccessReview. A no that came with an error of the authorizer is unknown: it may
    not have looked everywhere."""
    status = review.get("status") or {}
    allowed, error = status.get("allowed"), str(status.get("evaluationError") or "")
    reason = str(status.get("reason") or "")
    if not isinstance(allowed, bool):
        return Access(question, None, error or "the review has no answer")
    if not allowed and error:
        return Access(question, None, error)
    return Access(question, allowed, reason)


def node_images(node: Object) -> NodeImages:
    """A Node's images."""
    images = (node.get("status") or {}).get("images") or []
    names = (name for image in images for name in image.get("names") or [])
    return NodeImages(metadata(node).get("name", ""), tuple(names), len(images))


def storage_class(thing: Object) -> StorageClassFacts:
    """A StorageClass. The API fills in binding and reclaim policy."""
    marks = annotations(thing)
    return StorageClassFacts(
        name=metadata(thing).get("name", ""),
        provisioner=thing.get("provisioner") or "",
        binding=thing.get("volumeBindingMode") or "",
        reclaim=thing.get("reclaimPolicy") or "",
        default=any(marks.get(mark) == "true" for mark in _DEFAULT_CLASS),
    )


def quota(thing: Object) -> QuotaFacts:
    """A ResourceQuota. What is in force is in its status; the spec, where that is not filled in."""
    spec, status = thing.get("spec") or {}, thing.get("status") or {}
    return QuotaFacts(
        namespace=metadata(thing).get("namespace", ""),
        name=metadata(thing).get("name", ""),
        hard=_figures(status.get("hard") or spec.get("hard")),
        used=_figures(status.get("used")),
        scopes=_scopes(spec),
    )


def cluster_quota(thing: Object) -> QuotaFacts:
    """A ClusterResourceQuota (quota.openshift.io/v1): what all its namespaces use together."""
    spec = (thing.get("spec") or {}).get("quota") or {}
    total = (thing.get("status") or {}).get("total") or {}
    return QuotaFacts(
        namespace="",
        name=metadata(thing).get("name", ""),
        hard=_figures(total.get("hard") or spec.get("hard")),
        used=_figures(total.get("used")),
        scopes=_scopes(spec),
    )


def selects(thing: Object, own: Mapping[str, str]) -> bool:
    """Whether a ClusterResourceQuota selects a namespace with labels `own` and no annotation.

    Its two selectors must both match; one that is left out matches everything. An operator that is
    not known matches: a quota too many is asked about, one too few would refuse the load.
    """
    selector = (thing.get("spec") or {}).get("selector") or {}
    wanted = selector.get("labels") or {}
    equal = (wanted.get("matchLabels") or {}).items()
    return (
        not selector.get("annotations")
        and all(own.get(key) == value for key, value in equal)
        and all(_expression(one, own) for one in wanted.get("matchExpressions") or [])
    )


def _expression(one: Mapping[str, Any], own: Mapping[str, str]) -> bool:
    """As the API documents LabelSelectorRequirement: NotIn holds for a missing label, too."""
    value, values = own.get(one.get("key", "")), one.get("values") or []
    verdicts = {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }
    return verdicts.get(one.get("operator", ""), True)


def limit_range(thing: Object) -> LimitRangeFacts:
    """A LimitRange."""
    items = (thing.get("spec") or {}).get("limits") or []
    return LimitRangeFacts(
        namespace=metadata(thing).get("namespace", ""),
        name=metadata(thing).get("name", ""),
        limits=tuple(
            LimitFacts(
                kind=item.get("type", ""),
                most=_figures(item.get("max")),
                least=_figures(item.get("min")),
                most_ratio=_figures(item.get("maxLimitRequestRatio")),
            )
            for item in items
        ),
    )


def run_namespace(thing: Object, jobs: Iterable[Object]) -> RunNamespace:
    """A namespace of a run, with the Jobs that have a run's label, wherever they are."""
    meta, status = metadata(thing), thing.get("status") or {}
    name = meta.get("name", "")
    held = [*((thing.get("spec") or {}).get("finalizers") or []), *(meta.get("finalizers") or [])]
    own = (job for job in jobs if metadata(job).get("namespace") == name)
    return RunNamespace(
        name=name,
        run=labels(thing).get(RUN_LABEL, ""),
        phase=status.get("phase", ""),
        live_jobs=sum(1 for job in own if _lives(job)),
        terminating_since=meta.get("deletionTimestamp") or "",
        finalizers=tuple(held),
        conditions=tuple(
            one["message"]
            for one in status.get("conditions") or []
            if one.get("status") == "True" and one.get("message")
        ),
    )


def _lives(job: Object) -> bool:
    facts = job_facts(job)
    ended = facts.condition in ("Complete", "Failed")
    return not ended and (not facts.suspended or facts.active > 0)


def node_requests(node: str, pods: Sequence[Object]) -> NodeRequests:
    """The sum over pods of one node."""
    return NodeRequests(
        node=node,
        cpu_cores=_total(pods, "cpu"),
        memory_bytes=_total(pods, "memory"),
        pods=len(pods),
    )


def _total(pods: Sequence[Object], resource: str) -> float | None:
    return _sum(_pod_request(pod.get("spec") or {}, resource) for pod in pods)


def _pod_request(spec: Mapping[str, Any], resource: str) -> float | None:
    """As the scheduler counts (k8s.io/component-helpers/resource): containers and side-cars
    together, or the largest init container with the side-cars before it; the pod's own figure
    where it has one; its overhead in any case."""
    own = ((spec.get("resources") or {}).get("requests") or {}).get(resource)
    overhead = (spec.get("overhead") or {}).get(resource, "0")
    asked = quantity(own) if own is not None else _containers_request(spec, resource)
    return _sum((asked, quantity(overhead)))


def _containers_request(spec: Mapping[str, Any], resource: str) -> float | None:
    beside: float | None = 0.0
    peaks: list[float | None] = []
    for container in spec.get("initContainers") or []:
        asked = _container_request(container, resource)
        if container.get("restartPolicy") == "Always":
            beside = _sum((beside, asked))
        else:
            peaks.append(_sum((beside, asked)))
    main = (_container_request(one, resource) for one in spec.get("containers") or [])
    known = [peak for peak in (*peaks, _sum((beside, *main))) if peak is not None]
    return max(known) if len(known) == len(peaks) + 1 else None


def _container_request(container: Mapping[str, Any], resource: str) -> float | None:
    requests = (container.get("resources") or {}).get("requests") or {}
    return quantity(requests.get(resource, "0"))


def _sum(figures: Iterable[float | None]) -> float | None:
    """None when one of them is."""
    total = 0.0
    for figure in figures:
        if figure is None:
            return None
        total += figure
    return total


def _figures(found: object) -> Mapping[str, float | None]:
    if not isinstance(found, Mapping):
        return {}
    return {str(name): quantity(text) for name, text in found.items()}


def _scopes(spec: Mapping[str, Any]) -> tuple[str, ...]:
    selector = spec.get("scopeSelector") or {}
    named = (
        " ".join((one.get("scopeName", ""), one.get("operator", ""), *(one.get("values") or [])))
        for one in selector.get("matchExpressions") or []
    )
    return (*(spec.get("scopes") or []), *named)
