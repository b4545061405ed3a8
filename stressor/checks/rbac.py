"""Whether this login may do what a run does, asked before anything is started.

`needed` is the whole list: what a run, its clean-up and preflight itself ask of the API, and
nothing more. It names objects where stressor names them, because a role may be bound to names. A
right that is missing in the middle of a run leaves Jobs that nobody may delete.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stressor.checks.base import Finding, Level, unknown

NAME = "rbac"
_LOCK_NAMESPACE, _LOCK = "kube-system", "stressor"


@dataclass(frozen=True, slots=True)
class Need:
    """`verb` on `resource`. `namespace` empty: in all, or of a resource without one; `name` empty:
    any. `looks`: only preflight asks for it; without it a check stays unknown, and load can run."""

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    looks: bool = False


@dataclass(frozen=True, slots=True)
class Answered:
    """The API's answer to a need. `allowed` None: unknown, and `reason` says why."""

    need: Need
    allowed: bool | None
    reason: str = ""


def needed(namespace: str, *, storage_class: bool, cluster_quotas: bool) -> tuple[Need, ...]:
    """Every access that a run in `namespace` needs (empty: not chosen yet, so in any).

    `storage_class`: a phase asks for a volume. `cluster_quotas`: the API has the group
    quota.openshift.io.
    """
    return (
        *_of_cluster(),
        *_of_namespace(namespace),
        *_of_load(namespace),
        *_of_lock(),
        *_looks(storage_class=storage_class, cluster_quotas=cluster_quotas),
    )


def _of_cluster() -> Iterator[Need]:
    yield Need("get", "namespaces", namespace="kube-system", name="kube-system")
    yield Need("list", "nodes")
    yield Need("list", "namespaces")
    yield Need("list", "jobs", "batch")
    yield Need("list", "pods")


def _of_namespace(namespace: str) -> Iterator[Need]:
    """A namespace's own object counts as inside of it, but its creation does not."""
    yield Need("create", "namespaces")
    yield Need("get", "namespaces", namespace=namespace, name=namespace)
    yield Need("delete", "namespaces", namespace=namespace, name=namespace)
    yield Need("get", "serviceaccounts", namespace=namespace, name="default")
    yield Need("create", "resourcequotas", namespace=namespace)
    yield Need("get", "resourcequotas", namespace=namespace, name="stressor")


def _of_load(namespace: str) -> Iterator[Need]:
    for verb in ("create", "get", "patch", "delete"):
        yield Need(verb, "jobs", "batch", namespace=namespace)
    yield Need("delete", "pods", namespace=namespace)
    yield Need("get", "pods", subresource="log", namespace=namespace)


def _of_lock() -> Iterator[Need]:
    group = "coordination.k8s.io"
    # A role cannot bind a creation to a name.
    yield Need("create", "leases", group, namespace=_LOCK_NAMESPACE)
    for verb in ("get", "update", "delete"):
        yield Need(verb, "leases", group, namespace=_LOCK_NAMESPACE, name=_LOCK)


def _looks(*, storage_class: bool, cluster_quotas: bool) -> Iterator[Need]:
    yield Need("create", "selfsubjectaccessreviews", "authorization.k8s.io", looks=True)
    yield Need("list", "resourcequotas", looks=True)
    yield Need("list", "limitranges", looks=True)
    if storage_class:
        yield Need("list", "storageclasses", "storage.k8s.io", looks=True)
    if cluster_quotas:
        yield Need("list", "clusterresourcequotas", "quota.openshift.io", looks=True)


def judge(answers: Sequence[Answered]) -> tuple[Finding, ...]:
    """A need that is not granted: FAIL, one line a resource. An unknown one: FAIL that says so.
    What only preflight looks at is a WARN. No answers at all are unknown."""
    if not answers:
        return (unknown(NAME, "", Level.FAIL, "nothing was asked", "kubectl auth can-i --list"),)
    found = (*_short(answers), *_unsure(answers))
    text = f"all {len(answers)} accesses that a run needs are granted"
    return found or (Finding(NAME, "", Level.PASS, text),)


def _short(answers: Sequence[Answered]) -> Iterator[Finding]:
    groups: dict[tuple[str, str, Level], list[str]] = defaultdict(list)
    for answer in answers:
        if answer.allowed is False:
            need = answer.need
            groups[_resource(need), _where(need), _level(need)].append(need.verb)
    for (resource, where, level), verbs in groups.items():
        words, name = ",".join(verbs), resource.replace("/", "-").split(".")[0]
        remedy = f"kubectl create clusterrole stressor-{name} --verb={words} --resource={resource}"
        text = f"may not {', '.join(verbs)} {resource}{where}"
        yield Finding(NAME, "", level, text, f"{remedy}, and bind it to this login")


def _unsure(answers: Sequence[Answered]) -> Iterator[Finding]:
    groups: dict[tuple[str, Level], list[Need]] = defaultdict(list)
    for answer in answers:
        if answer.allowed is None:
            groups[answer.reason, _level(answer.need)].append(answer.need)
    for (reason, level), needs in groups.items():
        first = needs[0]
        more = f" and {len(needs) - 1} more" if len(needs) > 1 else ""
        why = f"{first.verb} {_resource(first)}{_where(first)}{more}: {reason or 'no answer'}"
        yield unknown(NAME, "", level, f"may this login {why}", _ask(first))


def _level(need: Need) -> Level:
    return Level.WARN if need.looks else Level.FAIL


def _resource(need: Need) -> str:
    """As kubectl writes it: `jobs.batch`, `pods/log`."""
    dotted = f"{need.resource}.{need.group}" if need.group else need.resource
    return f"{dotted}/{need.subresource}" if need.subresource else dotted


def _where(need: Need) -> str:
    return f" in namespace {need.namespace}" if need.namespace else ""


def _ask(need: Need) -> str:
    where = f" --namespace {need.namespace}" if need.namespace else " --all-namespaces"
    return f"kubectl auth can-i {need.verb} {_resource(need)}{where}"
