"""What preflight's questions must answer: the fake, the real client over HTTP, and the lab."""

from stressor.kube.base import AccessQuestion
from stressor.workloads.job import namespace_manifests

from .conftest import Cluster
from .test_kube_contract import BUDGET_S, job_of, namespace_of, prepare


def test_each_question_gets_its_own_answer(cluster: Cluster) -> None:
    questions = tuple(
        AccessQuestion(verb, "jobs", "batch", namespace="default")
        for verb in ("list", "create", "patch", "delete", "get")
    )
    answers = cluster.kube.may(questions, deadline_s=BUDGET_S)
    assert [answer.question for answer in answers] == list(questions)
    assert {answer.allowed for answer in answers} == {True}


def test_a_dry_run_is_accepted_and_leaves_nothing(cluster: Cluster) -> None:
    namespace, _ = namespace_manifests(
        run=cluster.run, namespace=namespace_of(cluster), jobs=1, host_path=False
    )
    (said,) = cluster.kube.dry_run((namespace,), deadline_s=BUDGET_S)
    assert (said.kind, said.name, said.accepted) == ("Namespace", namespace_of(cluster), True)
    assert said.labels["pod-security.kubernetes.io/enforce"] == "restricted"
    assert cluster.kube.leftovers(cluster.run, deadline_s=BUDGET_S) == ()


def test_a_dry_run_without_its_namespace_is_undecided(cluster: Cluster) -> None:
    (said,) = cluster.kube.dry_run((job_of(cluster),), deadline_s=BUDGET_S)
    assert (said.accepted, said.namespace) == (None, namespace_of(cluster))
    assert "not found" in said.message


def test_a_dry_run_of_a_job_is_decided_where_its_namespace_exists(cluster: Cluster) -> None:
    prepare(cluster)
    (said,) = cluster.kube.dry_run((job_of(cluster),), deadline_s=BUDGET_S)
    assert (said.accepted, said.message) == (True, "")
    assert cluster.kube.jobs(cluster.run, deadline_s=BUDGET_S) == ()


def test_a_dry_run_of_what_exists_is_refused(cluster: Cluster) -> None:
    prepare(cluster)
    namespace, _ = namespace_manifests(
        run=cluster.run, namespace=namespace_of(cluster), jobs=1, host_path=False
    )
    (said,) = cluster.kube.dry_run((namespace,), deadline_s=BUDGET_S)
    assert (said.accepted, "already exists" in said.message) == (False, True)


def test_a_namespace_of_a_run_is_named_with_its_live_jobs(cluster: Cluster) -> None:
    prepare(cluster)
    cluster.kube.create_job(job_of(cluster), deadline_s=BUDGET_S)
    cluster.kube.create_job(job_of(cluster, 1), deadline_s=BUDGET_S)
    (own,) = (o for o in cluster.kube.run_namespaces(deadline_s=BUDGET_S) if o.run == cluster.run)
    assert (own.name, own.live_jobs) == (namespace_of(cluster), 2)
    assert own.terminating_since == ""


def test_the_quota_of_a_run_counts_in_base_units(cluster: Cluster) -> None:
    prepare(cluster)
    found = cluster.kube.quotas(deadline_s=BUDGET_S)
    (own,) = (quota for quota in found if quota.namespace == namespace_of(cluster))
    assert (own.hard["pods"], own.hard["services"], own.scopes) == (5.0, 0.0, ())


def test_what_a_cluster_lacks_is_empty(cluster: Cluster) -> None:
    assert "batch" in cluster.kube.api_groups(deadline_s=BUDGET_S)
    assert cluster.kube.cluster_quotas({}, deadline_s=BUDGET_S) == ()
    ranges = cluster.kube.limit_ranges(deadline_s=BUDGET_S)
    assert [one for one in ranges if one.namespace == namespace_of(cluster)] == []
    cluster.kube.storage_classes(deadline_s=BUDGET_S)


def test_nodes_tell_their_images_and_what_is_asked_of_them(cluster: Cluster) -> None:
    nodes = {node.name for node in cluster.kube.nodes(deadline_s=BUDGET_S)}
    assert {one.node for one in cluster.kube.node_images(deadline_s=BUDGET_S)} == nodes
    assert {one.node for one in cluster.kube.node_requests(deadline_s=BUDGET_S)} <= nodes
