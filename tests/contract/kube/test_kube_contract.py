"""What every Kube must do: the fake, the real client against HTTP, the real client against the lab.

Each test makes what it needs under a run id of its own.
"""

import concurrent.futures
import time
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from stressor.errors import LockHeld
from stressor.kube.base import Kube, KubeRefused, Lease
from stressor.model import Step
from stressor.workloads.job import job_manifest, job_name, namespace_manifests
from stressor.workloads.needs import Needs

from .conftest import Cluster

BUDGET_S = 20.0
T = TypeVar("T")


def namespace_of(cluster: Cluster) -> str:
    return f"stressor-{cluster.run}"


def job_of(cluster: Cluster, index: int = 0) -> dict[str, object]:
    now_s = int(time.time())
    return job_manifest(
        run=cluster.run,
        namespace=namespace_of(cluster),
        image="stressor.invalid/nothing:0",
        step=Step(index, "p", "cpu", (cluster.node,), {}, 0.0, 5.0, 0.0, 30.0, ()),
        node=cluster.node,
        argv=("true",),
        start_by_unix_s=now_s + 20,
        end_by_unix_s=now_s + 30,
        deadline_s=30.0,
        needs=Needs(),
    )


def prepare(cluster: Cluster) -> None:
    manifests = namespace_manifests(
        run=cluster.run, namespace=namespace_of(cluster), jobs=5, host_path=False
    )
    cluster.kube.apply_namespace(manifests, deadline_s=BUDGET_S)


def eventually(ask: Callable[[], T], good: Callable[[T], bool]) -> T:
    end_s = time.monotonic() + BUDGET_S
    while True:
        answer = ask()
        if good(answer) or time.monotonic() > end_s:
            return answer
        time.sleep(0.1)


def take(kube: Kube, who: str, run: str, expires_s: int = 30) -> Lease:
    return kube.acquire_lease(
        holder=who,
        run=run,
        abort_command=f"stressor abort --run {run}",
        expires_s=expires_s,
        deadline_s=BUDGET_S,
    )


def test_a_cluster_has_one_uid(cluster: Cluster) -> None:
    uid = cluster.kube.cluster_uid(deadline_s=BUDGET_S)
    assert uid
    assert cluster.other.cluster_uid(deadline_s=BUDGET_S) == uid


def test_nodes_are_described(cluster: Cluster) -> None:
    (node,) = [n for n in cluster.kube.nodes(deadline_s=BUDGET_S) if n.hostname == cluster.node]
    assert node.ready is True
    assert node.addresses
    assert node.cpu_cores is not None
    assert node.cpu_cores > 0
    assert node.memory_bytes is not None
    assert node.memory_bytes > 1 << 20


def test_a_job_makes_a_pod_on_its_node(cluster: Cluster) -> None:
    prepare(cluster)
    made = cluster.kube.create_job(job_of(cluster, 4), deadline_s=BUDGET_S)
    assert (made.run, made.step, made.node) == (cluster.run, "4", cluster.node)
    assert made.name == job_name(cluster.run, 4, cluster.node)
    pods = eventually(lambda: cluster.kube.pods(cluster.run, deadline_s=BUDGET_S), bool)
    (pod,) = pods
    assert (pod.job, pod.step, pod.namespace) == (made.name, "4", namespace_of(cluster))
    (job,) = cluster.kube.jobs(cluster.run, deadline_s=BUDGET_S)
    assert job.uid == made.uid
    assert (job.suspended, job.condition) == (False, "")


def test_repeating_a_creation_is_safe(cluster: Cluster) -> None:
    prepare(cluster)
    prepare(cluster)
    manifest = job_of(cluster)
    first = cluster.kube.create_job(manifest, deadline_s=BUDGET_S)
    again = cluster.other.create_job(manifest, deadline_s=BUDGET_S)
    assert again.uid == first.uid
    assert len(cluster.kube.jobs(cluster.run, deadline_s=BUDGET_S)) == 1


def test_a_namespace_of_somebody_else_is_refused(cluster: Cluster) -> None:
    manifests = namespace_manifests(run=cluster.run, namespace="default", jobs=1, host_path=False)
    with pytest.raises(KubeRefused) as refused:
        cluster.kube.apply_namespace(manifests, deadline_s=BUDGET_S)
    assert refused.value.status == 409


def test_a_job_without_its_namespace_is_refused(cluster: Cluster) -> None:
    with pytest.raises(KubeRefused) as refused:
        cluster.kube.create_job(job_of(cluster), deadline_s=BUDGET_S)
    assert refused.value.status == 404


def test_suspended_jobs_lose_their_pods(cluster: Cluster) -> None:
    prepare(cluster)
    name = cluster.kube.create_job(job_of(cluster), deadline_s=BUDGET_S).name
    eventually(lambda: cluster.kube.pods(cluster.run, deadline_s=BUDGET_S), bool)
    assert cluster.kube.suspend_jobs(cluster.run, deadline_s=BUDGET_S) == (name,)
    assert cluster.kube.jobs(cluster.run, deadline_s=BUDGET_S)[0].suspended is True
    gone = eventually(lambda: cluster.kube.pods(cluster.run, deadline_s=BUDGET_S), lambda p: not p)
    assert gone == ()


def test_deleting_a_run_takes_everything_of_it(cluster: Cluster) -> None:
    prepare(cluster)
    cluster.kube.create_job(job_of(cluster), deadline_s=BUDGET_S)
    eventually(lambda: cluster.kube.pods(cluster.run, deadline_s=BUDGET_S), bool)
    kinds = {one.kind for one in cluster.kube.leftovers(cluster.run, deadline_s=BUDGET_S)}
    assert kinds == {"Job", "Pod", "Namespace"}
    deletion = cluster.kube.delete_run(cluster.run, deadline_s=40.0)
    assert (deletion.found, deletion.left) == (3, ())
    assert cluster.kube.leftovers(cluster.run, deadline_s=BUDGET_S) == ()


def test_deleting_what_is_not_there_says_so(cluster: Cluster) -> None:
    deletion = cluster.kube.delete_run(cluster.run, deadline_s=BUDGET_S)
    assert (deletion.found, deletion.left) == (0, ())


def test_another_run_is_left_alone(cluster: Cluster) -> None:
    prepare(cluster)
    cluster.kube.create_job(job_of(cluster), deadline_s=BUDGET_S)
    assert cluster.kube.jobs(cluster.run + "0", deadline_s=BUDGET_S) == ()
    assert cluster.kube.delete_run(cluster.run + "0", deadline_s=BUDGET_S).found == 0
    assert len(cluster.kube.jobs(cluster.run, deadline_s=BUDGET_S)) == 1


@pytest.mark.parametrize("run", ["", "a,b", "a=b", "A", "!x"])
def test_what_is_no_run_id_selects_nothing(cluster: Cluster, run: str) -> None:
    for verb in (cluster.kube.delete_run, cluster.kube.suspend_jobs, cluster.kube.pods):
        call: Any = verb
        with pytest.raises(ValueError, match="not a run id"):
            call(run, deadline_s=BUDGET_S)


def test_a_missing_pod_has_no_log(cluster: Cluster) -> None:
    with pytest.raises(KubeRefused) as refused:
        cluster.kube.pod_log("default", "no-such-pod", limit_bytes=10, deadline_s=BUDGET_S)
    assert refused.value.status == 404


def test_the_lock_names_its_holder_to_others(cluster: Cluster) -> None:
    lease = take(cluster.kube, "ann@desk", cluster.run)
    try:
        with pytest.raises(LockHeld) as held:
            take(cluster.other, "bob@desk", "r2")
        assert "ann@desk" in str(held.value)
        assert cluster.run in str(held.value)
        assert f"stressor abort --run {cluster.run}" in str(held.value)
    finally:
        cluster.kube.release_lease(lease, deadline_s=BUDGET_S)


def test_the_lock_can_be_taken_again_by_its_holder(cluster: Cluster) -> None:
    first = take(cluster.kube, "ann@desk", cluster.run)
    again = take(cluster.other, "ann@desk", cluster.run)
    assert again.uid == first.uid
    assert again.expires_unix_s >= first.expires_unix_s
    cluster.kube.release_lease(again, deadline_s=BUDGET_S)


def test_a_renewed_lock_lasts_longer(cluster: Cluster) -> None:
    lease = take(cluster.kube, "ann@desk", cluster.run)
    renewed = cluster.kube.renew_lease(lease, expires_s=900, deadline_s=BUDGET_S)
    assert renewed.expires_unix_s > lease.expires_unix_s + 800
    assert (renewed.holder, renewed.run) == (lease.holder, lease.run)
    # An old record renews too: an answer that got lost must not lose the lock.
    cluster.kube.renew_lease(lease, expires_s=30, deadline_s=BUDGET_S)
    cluster.kube.release_lease(lease, deadline_s=BUDGET_S)


def test_a_released_lock_is_free(cluster: Cluster) -> None:
    lease = take(cluster.kube, "ann@desk", cluster.run)
    cluster.kube.release_lease(lease, deadline_s=BUDGET_S)
    assert cluster.kube.read_lease(deadline_s=BUDGET_S) is None
    with pytest.raises(KubeRefused):
        cluster.kube.renew_lease(lease, expires_s=30, deadline_s=BUDGET_S)
    taken = take(cluster.other, "bob@desk", "r2")
    # The former holder gives back nothing that is another's now.
    cluster.kube.release_lease(lease, deadline_s=BUDGET_S)
    assert cluster.kube.read_lease(deadline_s=BUDGET_S) == taken
    with pytest.raises(LockHeld):
        cluster.kube.renew_lease(lease, expires_s=30, deadline_s=BUDGET_S)
    cluster.other.release_lease(taken, deadline_s=BUDGET_S)


def test_of_many_that_race_for_the_lock_one_wins(cluster: Cluster) -> None:
    def race(number: int) -> Lease | None:
        try:
            return take(cluster.kube, f"racer-{number}", f"r{number}")
        except LockHeld:
            return None

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        won = [lease for lease in pool.map(race, range(8)) if lease is not None]
    (winner,) = won
    assert cluster.kube.read_lease(deadline_s=BUDGET_S) == winner
    cluster.kube.release_lease(winner, deadline_s=BUDGET_S)
