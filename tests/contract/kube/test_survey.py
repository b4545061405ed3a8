"""What preflight's questions make of errors, silence, warnings, and of objects as servers send
them."""

from typing import Any

import pytest

from stressor.errors import KubeError
from stressor.kube.base import AccessQuestion, KubeRefused, NodeRequests, RunNamespace
from stressor.kube.client import connect
from stressor.kube.survey_facts import (
    limit_range,
    node_requests,
    quota,
    run_namespace,
    selects,
)
from stressor.kube.transport import Request
from stressor.testing.kube import FakeKube, Fault, MemoryApi
from stressor.workloads.job import namespace_manifests

from .conftest import login

LIST_PODS = AccessQuestion("list", "pods")
NAMESPACE = namespace_manifests(run="r1", namespace="n", jobs=1, host_path=False)[0]
LABEL = "stressor.dev/run"


@pytest.fixture
def kube(api: MemoryApi) -> FakeKube:
    return FakeKube(api)


def allowed(kube: FakeKube, question: AccessQuestion = LIST_PODS) -> tuple[bool | None, str]:
    (answer,) = kube.may((question,), deadline_s=1.0)
    return answer.allowed, answer.reason


def test_a_review_asks_for_what_the_question_says(kube: FakeKube, api: MemoryApi) -> None:
    question = AccessQuestion("get", "pods", "", "log", "n", "p")
    kube.may((question,), deadline_s=1.0)
    body: Any = api.requests[-1].body
    assert body["spec"]["resourceAttributes"] == {
        "verb": "get",
        "resource": "pods",
        "subresource": "log",
        "namespace": "n",
        "name": "p",
    }


def test_a_no_is_a_no(kube: FakeKube, api: MemoryApi) -> None:
    api.denied.add(("list", "pods"))
    assert allowed(kube)[0] is False
    with pytest.raises(KubeRefused):
        kube.pods("r1", deadline_s=1.0)


def test_i4_a_no_of_an_authorizer_that_erred_is_unknown(kube: FakeKube, api: MemoryApi) -> None:
    api.unsure.add(("list", "pods"))
    assert allowed(kube) == (None, "webhook authorizer: connection refused")


@pytest.mark.parametrize("status", [0, 403, 500])
def test_i4_a_review_without_an_answer_is_unknown(
    kube: FakeKube, api: MemoryApi, status: int
) -> None:
    api.fail(Fault("POST", "selfsubjectaccessreviews", status=status))
    answer, why = allowed(kube)
    assert (answer, "selfsubjectaccessreviews" in why) == (None, True)


def test_i4_what_the_deadline_cuts_off_is_unknown(kube: FakeKube) -> None:
    answers = kube.may((LIST_PODS, LIST_PODS), deadline_s=0.0)
    assert [answer.allowed for answer in answers] == [None, None]


def test_a_refusal_is_told_in_the_servers_words(kube: FakeKube, api: MemoryApi) -> None:
    api.refusals["Namespace"] = (403, 'admission webhook "validate.kyverno.svc" denied the request')
    (said,) = kube.dry_run((NAMESPACE,), deadline_s=1.0)
    assert said.accepted is False
    assert "denied the request" in said.message


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, 'admission webhook "w" does not support dry run'),
        (404, 'namespaces "n" not found'),
        (429, "slow down"),
        (500, 'failed calling webhook "w"'),
    ],
)
def test_i4_what_did_not_judge_the_object_leaves_it_undecided(
    kube: FakeKube, api: MemoryApi, status: int, message: str
) -> None:
    api.refusals["Namespace"] = (status, message)
    (said,) = kube.dry_run((NAMESPACE,), deadline_s=1.0)
    assert (said.accepted, message in said.message) == (None, True)


def test_i4_silence_leaves_one_object_undecided_and_the_next_is_asked(
    kube: FakeKube, api: MemoryApi
) -> None:
    api.fail(Fault("POST", "namespaces"))
    said = kube.dry_run((NAMESPACE, NAMESPACE), deadline_s=1.0)
    assert [one.accepted for one in said] == [None, True]


def test_every_dry_run_says_so_to_the_server(kube: FakeKube, api: MemoryApi) -> None:
    kube.dry_run((NAMESPACE,), deadline_s=1.0)
    assert [r.query for r in api.requests if r.method == "POST"] == [{"dryRun": "All"}]


def test_warnings_arrive_through_the_real_client(api: MemoryApi, http_url: str) -> None:
    told = ('would violate PodSecurity "restricted:latest": unrestricted', 'a "quoted\\" one')
    api.warnings["Namespace"] = told
    (said,) = connect(login(http_url)).dry_run((NAMESPACE,), deadline_s=5.0)
    assert said.warnings == told


def test_names_of_images_are_counted_by_image(kube: FakeKube, api: MemoryApi) -> None:
    both = ("docker.io/library/stressor-load:1", "docker.io/library/stressor-load@sha256:0a")
    api.add_node("w-2", images=(both, ("registry.k8s.io/pause:3.9",)))
    first, second = kube.node_images(deadline_s=1.0)
    assert (first.node, first.listed) == ("w-1", 0)
    assert (second.names, second.listed) == ((*both, "registry.k8s.io/pause:3.9"), 2)


def test_storage_classes_are_described(kube: FakeKube, api: MemoryApi) -> None:
    path = "/apis/storage.k8s.io/v1/storageclasses"
    mark = {"storageclass.kubernetes.io/is-default-class": "true"}
    fast: dict[str, Any] = {
        "kind": "StorageClass",
        "metadata": {"name": "fast", "annotations": mark},
        "provisioner": "csi.example",
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    api.add(path, fast)
    api.add(path, {**fast, "metadata": {"name": "bare"}, "volumeBindingMode": None})
    bare, found = kube.storage_classes(deadline_s=1.0)
    assert (bare.name, bare.binding, bare.default) == ("bare", "", False)
    assert (found.name, found.provisioner, found.binding, found.reclaim, found.default) == (
        "fast",
        "csi.example",
        "WaitForFirstConsumer",
        "Delete",
        True,
    )


def cluster_quota(**selector: object) -> dict[str, Any]:
    return {
        "kind": "ClusterResourceQuota",
        "metadata": {"name": "team"},
        "spec": {"selector": selector, "quota": {"hard": {"limits.cpu": "1500m"}}},
        "status": {"total": {"hard": {"limits.cpu": "1500m"}, "used": {"limits.cpu": "1"}}},
    }


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ({}, True),
        ({"labels": None, "annotations": None}, True),
        ({"labels": {"matchLabels": {LABEL: "r1"}}}, True),
        ({"labels": {"matchLabels": {LABEL: "r2"}}}, False),
        ({"annotations": {"openshift.io/requester": "ann"}}, False),
        ({"labels": {"matchExpressions": [{"key": LABEL, "operator": "Exists"}]}}, True),
        ({"labels": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}}, False),
        ({"labels": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}}, True),
        (
            {"labels": {"matchExpressions": [{"key": LABEL, "operator": "In", "values": ["r1"]}]}},
            True,
        ),
        (
            {"labels": {"matchExpressions": [{"key": "t", "operator": "NotIn", "values": ["r1"]}]}},
            True,
        ),
        ({"labels": {"matchExpressions": [{"key": "t", "operator": "Near"}]}}, True),
    ],
)
def test_a_cluster_quota_counts_where_it_selects_the_namespace(
    selector: dict[str, object], *, chosen: bool
) -> None:
    assert selects(cluster_quota(**selector), {LABEL: "r1"}) is chosen


def test_cluster_quotas_are_asked_for_where_the_api_has_them(
    kube: FakeKube, api: MemoryApi
) -> None:
    api.denied.add(("list", "clusterresourcequotas"))
    assert kube.cluster_quotas({}, deadline_s=1.0) == ()
    api.groups.add("quota.openshift.io")
    with pytest.raises(KubeRefused):
        kube.cluster_quotas({}, deadline_s=1.0)
    api.denied.clear()
    api.add("/apis/quota.openshift.io/v1/clusterresourcequotas", cluster_quota())
    (found,) = kube.cluster_quotas({}, deadline_s=1.0)
    assert (found.namespace, found.hard, found.used) == (
        "",
        {"limits.cpu": 1.5},
        {"limits.cpu": 1.0},
    )


def test_i4_an_api_that_names_no_groups_is_an_error(kube: FakeKube, api: MemoryApi) -> None:
    api.objects["/apis"] = {"kind": "Status"}
    with pytest.raises(KubeError, match="names no groups"):
        kube.cluster_quotas({}, deadline_s=1.0)


def test_a_quota_tells_scopes_and_what_it_cannot_read() -> None:
    found = quota(
        {
            "metadata": {"namespace": "n", "name": "q"},
            "spec": {
                "hard": {"pods": "4"},
                "scopes": ["NotTerminating"],
                "scopeSelector": {
                    "matchExpressions": [
                        {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
                    ]
                },
            },
            "status": {"hard": {"pods": "3", "requests.memory": "lots"}, "used": {"pods": "1"}},
        }
    )
    assert found.hard == {"pods": 3.0, "requests.memory": None}
    assert found.used == {"pods": 1.0}
    assert found.scopes == ("NotTerminating", "PriorityClass In high")


def test_a_limit_range_tells_its_bounds() -> None:
    (limit,) = limit_range(
        {
            "metadata": {"namespace": "n", "name": "l"},
            "spec": {
                "limits": [
                    {
                        "type": "Container",
                        "max": {"cpu": "500m", "memory": "1Gi"},
                        "min": {"cpu": "10m"},
                        "default": {"cpu": "250m"},
                        "maxLimitRequestRatio": {"cpu": "4"},
                    }
                ]
            },
        }
    ).limits
    assert limit.kind == "Container"
    assert limit.most == {"cpu": 0.5, "memory": float(1 << 30)}
    assert (limit.least, limit.most_ratio) == ({"cpu": 0.01}, {"cpu": 4.0})


def test_a_terminating_namespace_says_what_keeps_it(kube: FakeKube, api: MemoryApi) -> None:
    kube.apply_namespace((NAMESPACE,), deadline_s=1.0)
    api.objects["/api/v1/namespaces/n"] |= {
        "spec": {"finalizers": ["kubernetes"]},
        "status": {
            "phase": "Terminating",
            "conditions": [
                {"type": "NamespaceContentRemaining", "status": "True", "message": "1 pod left"},
                {"type": "NamespaceDeletionDiscoveryFailure", "status": "False", "message": "ok"},
            ],
        },
    }
    api.keep("Namespace")
    api.send(Request("DELETE", "/api/v1/namespaces/n"), deadline_s=1.0)
    assert kube.run_namespaces(deadline_s=1.0) == (
        RunNamespace(
            name="n",
            run="r1",
            phase="Terminating",
            live_jobs=0,
            terminating_since="2027-01-15T08:00:00Z",
            finalizers=("kubernetes",),
            conditions=("1 pod left",),
        ),
    )


@pytest.mark.parametrize(
    ("status", "suspend", "live"),
    [
        ({"active": 1}, False, 1),
        ({}, False, 1),
        ({"active": 1}, True, 1),
        ({"active": 0, "conditions": [{"type": "Suspended", "status": "True"}]}, True, 0),
        ({"conditions": [{"type": "Complete", "status": "True"}]}, False, 0),
        ({"conditions": [{"type": "Failed", "status": "True"}]}, False, 0),
    ],
)
def test_a_job_lives_until_it_ended_or_is_suspended_without_pods(
    status: dict[str, Any], *, suspend: bool, live: int
) -> None:
    job = {"metadata": {"namespace": "n"}, "spec": {"suspend": suspend}, "status": status}
    elsewhere = {"metadata": {"namespace": "m"}, "status": {"active": 1}}
    space = {"metadata": {"name": "n", "labels": {LABEL: "r1"}}}
    assert run_namespace(space, [job, elsewhere]).live_jobs == live


def pod(*containers: object, **spec: object) -> dict[str, Any]:
    return {"spec": {"containers": list(containers), **spec}}


def asks(cpu: str, memory: str = "1Mi", **more: str) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu, "memory": memory}}, **more}


@pytest.mark.parametrize(
    ("one", "cpu_cores"),
    [
        (pod(asks("100m"), asks("200m")), 0.3),
        (pod({"name": "free"}), 0.0),
        (pod(asks("100m"), initContainers=[asks("700m"), asks("200m")]), 0.7),
        (pod(asks("100m"), initContainers=[asks("50m", restartPolicy="Always")]), 0.15),
        (
            pod(
                asks("100m"),
                initContainers=[asks("50m", restartPolicy="Always"), asks("400m")],
            ),
            0.45,
        ),
        (pod(asks("100m"), overhead={"cpu": "250m"}), 0.35),
        (pod(asks("100m"), resources={"requests": {"cpu": "1"}}), 1.0),
        (pod(asks("some")), None),
        (pod(asks("100m"), initContainers=[asks("some")]), None),
    ],
)
def test_requests_are_counted_as_the_scheduler_does(
    one: dict[str, Any], cpu_cores: float | None
) -> None:
    found = node_requests("n", [one])
    assert found.cpu_cores == (None if cpu_cores is None else pytest.approx(cpu_cores))
    assert found.pods == 1


def test_ended_and_unplaced_pods_ask_for_nothing(kube: FakeKube, api: MemoryApi) -> None:
    for number, (phase, node) in enumerate(
        (("Running", "w-1"), ("Pending", "w-1"), ("Succeeded", "w-1"), ("Pending", ""))
    ):
        meta = {"name": f"p-{number}", "namespace": "default"}
        spec = {"nodeName": node, "containers": [asks("1", "2Mi")]}
        thing = {"kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": phase}}
        api.add("/api/v1/namespaces/default/pods", thing)
    assert kube.node_requests(deadline_s=1.0) == (NodeRequests("w-1", 2.0, float(4 << 20), 2),)
