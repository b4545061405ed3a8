"""Whole objects, in the shape in which API servers send them, put into memory and read as facts."""

import json
from pathlib import Path
from typing import Any

import pytest

from stressor.kube.base import AccessQuestion, LimitFacts, RunNamespace, StorageClassFacts
from stressor.kube.survey_facts import access
from stressor.testing.kube import FakeKube, MemoryApi

FIXTURES = Path(__file__).parent / "fixtures"
GIB = float(1 << 30)
QUESTION = AccessQuestion("delete", "pods", namespace="stressor-r1")


def written(name: str) -> Any:
    return json.loads((FIXTURES / f"{name}.json").read_text())


def holding(path: str, name: str) -> FakeKube:
    api = MemoryApi()
    api.groups.add("quota.openshift.io")
    api.add(path, written(name))
    return FakeKube(api)


def test_a_node_names_its_images() -> None:
    (node,) = holding("/api/v1/nodes", "node").node_images(deadline_s=1.0)
    assert (node.node, node.listed) == ("worker-2", 5)
    assert "registry.example/team/stressor-load:1" in node.names
    assert len(node.names) == 8


def test_a_terminating_namespace_is_a_run_that_left_something() -> None:
    kube = holding("/api/v1/namespaces", "namespace-terminating")
    assert kube.run_namespaces(deadline_s=1.0) == (
        RunNamespace(
            name="stressor-r4f21c9",
            run="r4f21c9",
            phase="Terminating",
            live_jobs=0,
            terminating_since="2026-11-30T21:31:07Z",
            finalizers=("kubernetes",),
            conditions=("Some resources are remaining: pods. has 1 resource instances",),
        ),
    )


def test_a_quota_has_limits_and_use() -> None:
    api = MemoryApi()
    api.objects["/api/v1/namespaces/team-a/resourcequotas/compute"] = written("resourcequota")
    (found,) = FakeKube(api).quotas(deadline_s=1.0)
    assert (found.namespace, found.name) == ("team-a", "compute")
    assert (found.hard["requests.cpu"], found.used["requests.cpu"]) == (7.5, 4.15)
    assert (found.hard["limits.memory"], found.used["limits.memory"]) == (32 * GIB, 18 * GIB)
    assert set(found.hard) == set(found.used)


def test_a_limit_range_has_bounds_for_containers_and_claims() -> None:
    (found,) = holding("/api/v1/namespaces/team-a/limitranges", "limitrange").limit_ranges(
        deadline_s=1.0
    )
    assert found.limits == (
        LimitFacts(
            "Container",
            {"cpu": 2.0, "memory": 4 * GIB},
            {"cpu": 0.01, "memory": float(16 << 20)},
            {"cpu": 10.0},
        ),
        LimitFacts("PersistentVolumeClaim", {"storage": 50 * GIB}, {"storage": GIB}, {}),
    )


def test_a_cluster_quota_binds_the_namespaces_that_it_selects() -> None:
    path = "/apis/quota.openshift.io/v1/clusterresourcequotas"
    kube = holding(path, "clusterresourcequota")
    (found,) = kube.cluster_quotas({"app.kubernetes.io/name": "stressor"}, deadline_s=1.0)
    assert (found.name, found.namespace) == ("load-tests", "")
    assert (found.hard, found.used) == (
        {"limits.cpu": 8.0, "pods": 20.0},
        {"limits.cpu": 2.0, "pods": 1.0},
    )
    assert kube.cluster_quotas({"app.kubernetes.io/name": "other"}, deadline_s=1.0) == ()


def test_a_storage_class_tells_when_it_binds() -> None:
    kube = holding("/apis/storage.k8s.io/v1/storageclasses", "storageclass")
    assert kube.storage_classes(deadline_s=1.0) == (
        StorageClassFacts(
            name="ceph-block",
            provisioner="rook-ceph.rbd.csi.ceph.com",
            binding="Immediate",
            reclaim="Delete",
            default=True,
        ),
    )


@pytest.mark.parametrize(
    ("name", "allowed", "words"),
    [
        ("review-yes", True, "RBAC: allowed by"),
        ("review-no", False, ""),
        ("review-error", None, '"team-admin" not found'),
    ],
)
def test_a_review_is_yes_no_or_unknown(name: str, *, allowed: bool | None, words: str) -> None:
    answer = access(QUESTION, written(name))
    assert answer.allowed is allowed
    assert words in answer.reason


@pytest.mark.parametrize("review", [{}, {"status": {}}, {"status": {"allowed": "yes"}}])
def test_i4_a_review_without_an_answer_in_it_is_unknown(review: dict[str, Any]) -> None:
    assert access(QUESTION, review).allowed is None
