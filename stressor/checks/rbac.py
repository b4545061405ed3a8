"""Whether the login may do what a run will ask of the API, before load depends on it.

The lists below are the whole of it: a test records every request that stressor's API adapter makes
and finds each in them, and each of them in the requests.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stressor.checks.base import Finding, Level, unknown

NAME = "rbac"
LOCK_NAMESPACE, LOCK_NAME = "kube-system", "stressor"


@dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one resource. `resource` is written as in a role: `pods/log`. `namespace` empty:
    in all, or for what is in none. `name` empty: any object. `looks`: only preflight needs it."""

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""
    name: str = ""
    looks: bool = False


@dataclass(frozen=True, slots=True)
class Grant:
    """The API's answer. `allowed` None: it could not say, and `reason` says why."""

    permission: Permission
    allowed: bool | None
    reason: str = ""


def needed(namespace: str) -> tuple[Permission, ...]:
    """What a run in `namespace` asks of the API from its lock to its clean-up."""
    return (*_cluster_wide(namespace), *_in_run(namespace), *_lock())


def looked_at() -> tuple[Permission, ...]:
    """What preflight alone reads. Without it a run works, but nobody has looked before."""
    return ()


def _cluster_wide(namespace: str) -> Iterator[Permission]:
    # For its own objects, a namespace is the namespace of the request, too.
    yield Permission("get", "namespaces", namespace=LOCK_NAMESPACE, name=LOCK_NAMESPACE)
    yield Permission("get", "namespaces", namespace=namespace, name=namespace)
    yield Permission("list", "namespaces")
    yield Permission("create", "namespaces")
    yield Permission("delete", "namespaces", namespace=namespace, name=namespace)
    yield Permission("list", "nodes")
    yield Permission("list", "pods")
    yield Permission("list", "jobs", "batch")


def _in_run(namespace: str) -> Iterator[Permission]:
    yield Permission("get", "serviceaccounts", namespace=namespace)
    yield Permission("create", "resourcequotas", namespace=namespace)
    yield Permission("get", "resourcequotas", namespace=namespace)
    yield Permission("delete", "pods", namespace=namespace)
    yield Permission("get", "pods/log", namespace=namespace)
    for verb in ("create", "get", "patch", "delete"):
        yield Permission(verb, "jobs", "batch", namespace)


def _lock() -> Iterator[Permission]:
    group = "coordination.k8s.io"
    # No object has a name yet when it is created, so no role can allow just this one.
    yield Permission("create", "leases", group, LOCK_NAMESPACE)
    for verb in ("get", "update", "delete"):
        yield Permission(verb, "leases", group, LOCK_NAMESPACE, LOCK_NAME)


def judge(grants: Sequence[Grant]) -> tuple[Finding, ...]:
    """FAIL for each verb that a run lacks, and for each that the API says nothing about: it would
    be missed at a stop or a clean-up, too. WARN for what only preflight reads."""
    if not grants:
        return (unknown(NAME, "", Level.FAIL, "nothing was asked", "stressor preflight"),)
    text = f"all {len(grants)} accesses that a run needs are allowed"
    return tuple(_found(grants)) or (Finding(NAME, "", Level.PASS, text),)


def _found(grants: Sequence[Grant]) -> Iterator[Finding]:
    for grant in grants:
        wanted = grant.permission
        level = Level.WARN if wanted.looks else Level.FAIL
        if grant.allowed is None:
            why = f"{_words(wanted)}: {grant.reason or 'no answer'}"
            yield unknown(NAME, "", level, why, question(wanted))
        elif not grant.allowed:
            because = f": {grant.reason}" if grant.reason else ""
            text = f"may not {_words(wanted)}{because}"
            yield Finding(NAME, "", level, text, question(wanted))


def question(wanted: Permission) -> str:
    """The same question for a shell."""
    resource, _, subresource = wanted.resource.partition("/")
    full = f"{resource}.{wanted.group}" if wanted.group else resource
    named = f"{full}/{wanted.name}" if wanted.name else full
    words = ["kubectl auth can-i", wanted.verb, named]
    words += [f"--subresource={subresource}"] if subresource else []
    words += [f"-n {wanted.namespace}"] if wanted.namespace else ["-A"]
    return " ".join(words)


def _words(wanted: Permission) -> str:
    full = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    where = f" in {wanted.namespace}" if wanted.namespace else ""
    return f"{wanted.verb} {full}{f' {wanted.name}' if wanted.name else ''}{where}"
