"""The accesses that preflight asks about are exactly those that the adapter's requests need."""

from collections.abc import Callable, Mapping

import pytest

from stressor.checks.rbac import Permission, looked_at, needed
from stressor.errors import KubeError, LockHeld
from stressor.kube.base import AccessQuestion, Kube
from stressor.kube.survey import ACCESS_REVIEWS
from stressor.kube.transport import Request
from stressor.model import Step
from stressor.testing.kube import FakeKube, Fault, MemoryApi
from stressor.workloads.job import job_manifest, namespace_manifests
from stressor.workloads.needs import Needs

RUN, NAMESPACE = "r1", "stressor-r1"
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}


def access_of(request: Request) -> Permission:
    """What an API server authorizes a request as (apiserver's RequestInfoFactory)."""
    parts = request.path.strip("/").split("/")
    group, parts = (parts[1], parts[3:]) if parts[0] == "apis" else ("", parts[2:])
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        parts = parts[2:] if len(parts) > 2 else parts
    resource, name, sub = (*parts, "", "")[:3]
    verb = VERBS[request.method]
    if request.method == "GET" and not name:
        verb = "list"
    return Permission(verb, f"{resource}/{sub}" if sub else resource, group, namespace, name)


def covers(allowed: Permission, wanted: Permission) -> bool:
    """Whether whoever has `allowed` may do `wanted`."""
    same = (allowed.verb, allowed.resource, allowed.group) == (
        wanted.verb,
        wanted.resource,
        wanted.group,
    )
    inside = allowed.namespace in ("", wanted.namespace)
    return same and inside and allowed.name in ("", wanted.name)


def a_job() -> dict[str, object]:
    return job_manifest(
        run=RUN,
        namespace=NAMESPACE,
        image="i",
        step=Step(0, "p", "cpu", ("w-1",), {}, 0.0, 5.0, 0.0, 30.0, ()),
        node="w-1",
        argv=("true",),
        start_by_unix_s=1,
        end_by_unix_s=2,
        deadline_s=30.0,
        needs=Needs(),
    )


def make_twice(kube: Kube) -> None:
    """What exists already is read."""
    manifests = namespace_manifests(run=RUN, namespace=NAMESPACE, jobs=1, host_path=False)
    for _ in range(2):
        kube.apply_namespace(manifests, deadline_s=1.0)


def create_twice(kube: Kube) -> None:
    kube.create_job(a_job(), deadline_s=1.0)
    kube.create_job(a_job(), deadline_s=1.0)


def lock_twice(kube: Kube) -> None:
    """The second time it is there, and is replaced."""
    for _ in range(2):
        lease = kube.acquire_lease(
            holder="ann", run=RUN, abort_command="a", expires_s=30, deadline_s=1.0
        )
    kube.renew_lease(lease, expires_s=30, deadline_s=1.0)
    with pytest.raises(LockHeld):
        kube.acquire_lease(holder="bob", run="r2", abort_command="", expires_s=1, deadline_s=1.0)
    kube.release_lease(lease, deadline_s=1.0)


def logs(kube: Kube) -> None:
    (pod,) = kube.pods(RUN, deadline_s=1.0)
    kube.pod_log(pod.namespace, pod.name, limit_bytes=9, deadline_s=1.0)


def delete(kube: Kube) -> None:
    create_twice(kube)
    kube.delete_run(RUN, deadline_s=1.0)


# Each verb of `Kube`, under its name, in an order in which it finds something to do.
SCRIPT: Mapping[str, Callable[[Kube], object]] = {
    "cluster_uid": lambda kube: kube.cluster_uid(deadline_s=1.0),
    "may": lambda kube: kube.may([AccessQuestion("get", "pods")], deadline_s=1.0),
    "nodes": lambda kube: kube.nodes(deadline_s=1.0),
    "acquire_lease renew_lease release_lease": lock_twice,
    "read_lease": lambda kube: kube.read_lease(deadline_s=1.0),
    "apply_namespace": make_twice,
    "create_job": create_twice,
    "jobs": lambda kube: kube.jobs(RUN, deadline_s=1.0),
    "pods pod_log": logs,
    "suspend_jobs": lambda kube: kube.suspend_jobs(RUN, deadline_s=1.0),
    "leftovers": lambda kube: kube.leftovers(RUN, deadline_s=1.0),
    "delete_run": delete,
}


def recorded() -> dict[Permission, str]:
    """Every access that the script takes, with a request that needs it."""
    api = MemoryApi()
    api.add_node("w-1")
    kube = FakeKube(api)
    for act in SCRIPT.values():
        act(kube)
        # A Job of the same name may not be suspended when it is to have a pod.
        api.objects = {p: o for p, o in api.objects.items() if not _suspended(o)}
    # Everybody who is logged in may ask for himself (the role system:basic-user).
    requests = [one for one in api.requests if one.path != ACCESS_REVIEWS]
    return {access_of(one): str(one) for one in requests}


def _suspended(thing: Mapping[str, object]) -> bool:
    spec = thing.get("spec")
    return isinstance(spec, dict) and bool(spec.get("suspend"))


def test_every_verb_of_the_seam_is_recorded() -> None:
    played = {name for names in SCRIPT for name in names.split()}
    assert played == {name for name in vars(Kube) if not name.startswith("_")}


def test_every_request_is_covered_by_what_preflight_asks() -> None:
    asked = (*needed(NAMESPACE), *looked_at())
    bare = {
        told for access, told in recorded().items() if not any(covers(p, access) for p in asked)
    }
    assert bare == set()


def test_nothing_is_asked_that_no_request_needs() -> None:
    taken = recorded()
    asked = (*needed(NAMESPACE), *looked_at())
    assert [p for p in asked if not any(covers(p, access) for access in taken)] == []


@pytest.mark.parametrize("short", range(len(needed(NAMESPACE))))
def test_one_access_less_would_be_seen(short: int) -> None:
    asked = [p for at, p in enumerate(needed(NAMESPACE)) if at != short]
    missed = [a for a in recorded() if not any(covers(p, a) for p in (*asked, *looked_at()))]
    assert missed, needed(NAMESPACE)[short]


# The verb itself


def test_the_api_answers_each_question_in_order(api: MemoryApi) -> None:
    api.forbid("get", "pods/log")
    api.forbid("list", "nodes", allowed=False, reason="no role binds it")
    questions = (
        AccessQuestion("list", "pods"),
        AccessQuestion("get", "pods", subresource="log", namespace="n"),
        AccessQuestion("list", "nodes"),
    )
    found = FakeKube(api).may(questions, deadline_s=1.0)
    assert [one.question for one in found] == list(questions)
    assert [one.allowed for one in found] == [True, False, False]
    assert found[2].reason == "no role binds it"


def test_a_question_reaches_the_api_whole(api: MemoryApi) -> None:
    FakeKube(api).may(
        [AccessQuestion("get", "leases", "coordination.k8s.io", "", "kube-system", "stressor")],
        deadline_s=1.0,
    )
    (request,) = api.requests
    assert (request.method, request.path) == (
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    )
    assert request.body == {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {
                "verb": "get",
                "group": "coordination.k8s.io",
                "resource": "leases",
                "subresource": "",
                "namespace": "kube-system",
                "name": "stressor",
            }
        },
    }


@pytest.mark.parametrize(
    ("status", "allowed"),
    [
        ({"allowed": True, "evaluationError": "one role is missing"}, True),
        ({"allowed": False, "denied": True, "evaluationError": "webhook down"}, False),
        ({"allowed": False, "evaluationError": "webhook down"}, None),
        ({"allowed": None}, None),
        ({"allowed": "true"}, None),
        ({"denied": False}, None),
    ],
)
def test_i4_a_review_without_a_clear_answer_has_none(
    api: MemoryApi, status: dict[str, object], allowed: bool | None
) -> None:
    api.forbid("get", "pods", **status)
    (found,) = FakeKube(api).may([AccessQuestion("get", "pods")], deadline_s=1.0)
    assert found.allowed is allowed
    assert found.reason or allowed is not None


@pytest.mark.parametrize("status", [0, 403, 404, 500])
def test_i4_an_api_that_does_not_answer_one_question_answers_the_others(
    api: MemoryApi, status: int
) -> None:
    api.fail(Fault("POST", "selfsubjectaccessreviews", status=status))
    found = FakeKube(api).may([AccessQuestion("get", "pods")] * 3, deadline_s=1.0)
    assert sorted(one.allowed is None for one in found) == [False, False, True]
    (silent,) = [one for one in found if one.allowed is None]
    assert "selfsubjectaccessreviews" in silent.reason


def test_i4_questions_beyond_the_deadline_have_no_answer(api: MemoryApi) -> None:
    found = FakeKube(api).may([AccessQuestion("get", "pods")] * 3, deadline_s=0.0)
    assert [one.allowed for one in found] == [None] * 3
    assert "not done within 0 s" in found[0].reason
    with pytest.raises(KubeError):
        FakeKube(api).nodes(deadline_s=0.0)
