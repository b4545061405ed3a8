"""What the verbs do when the API errs, stays silent, pages, or is slow to settle."""

import math

import pytest

from stressor.errors import KubeError, LockHeld
from stressor.kube.base import KubeRefused, Lease
from stressor.kube.transport import Request, Response, document
from stressor.model import Step
from stressor.testing.kube import FakeKube, Fault, MemoryApi
from stressor.workloads.job import job_manifest, namespace_manifests
from stressor.workloads.needs import Needs

RUN = "r1"


def job(index: int = 0) -> dict[str, object]:
    return job_manifest(
        run=RUN,
        namespace="n",
        image="i",
        step=Step(index, "p", "cpu", ("w-1",), {}, 0.0, 5.0, 0.0, 30.0, ()),
        node="w-1",
        argv=("true",),
        start_by_unix_s=1,
        end_by_unix_s=2,
        deadline_s=30.0,
        needs=Needs(),
    )


@pytest.fixture
def kube(api: MemoryApi) -> FakeKube:
    fake = FakeKube(api)
    manifests = namespace_manifests(run=RUN, namespace="n", jobs=5, host_path=False)
    fake.apply_namespace(manifests, deadline_s=1.0)
    return fake


def take(kube: FakeKube, holder: str = "ann", run: str = RUN) -> Lease:
    return kube.acquire_lease(
        holder=holder, run=run, abort_command="a", expires_s=30, deadline_s=1.0
    )


def test_an_error_names_verb_object_status_and_deadline(kube: FakeKube) -> None:
    kube.api.fail(Fault("POST", "jobs", status=403))
    with pytest.raises(KubeRefused) as refused:
        kube.create_job(job(), deadline_s=7.0)
    assert refused.value.status == 403
    assert str(refused.value) == (
        "POST /apis/batch/v1/namespaces/n/jobs: 403 scripted (deadline 7 s)"
    )


def test_silence_is_an_error_and_never_an_empty_answer(kube: FakeKube) -> None:
    for verb in (kube.pods, kube.jobs, kube.leftovers, kube.delete_run):
        kube.api.fail(Fault("GET", "/"))
        with pytest.raises(KubeError, match="no answer"):
            verb(RUN, deadline_s=1.0)


def test_a_creation_whose_answer_got_lost_can_be_repeated(kube: FakeKube) -> None:
    kube.api.fail(Fault("POST", "jobs", lands=True))
    with pytest.raises(KubeError):
        kube.create_job(job(), deadline_s=1.0)
    again = kube.create_job(job(), deadline_s=1.0)
    assert [one.uid for one in kube.jobs(RUN, deadline_s=1.0)] == [again.uid]


def test_a_job_of_another_run_under_the_same_name_is_refused(kube: FakeKube) -> None:
    kube.create_job(job(), deadline_s=1.0)
    (theirs,) = [o for o in kube.api.objects.values() if o["kind"] == "Job"]
    theirs["metadata"]["labels"] = {"stressor.dev/run": "r2"}
    with pytest.raises(KubeRefused) as refused:
        kube.create_job(job(), deadline_s=1.0)
    assert refused.value.status == 409


def test_lists_are_read_to_their_last_page(kube: FakeKube, api: MemoryApi) -> None:
    for number in range(1100):
        api.add_node(f"n-{number:04}")
    assert len(kube.nodes(deadline_s=5.0)) == 1101
    assert [r.query["limit"] for r in api.requests if r.path == "/api/v1/nodes"] == ["500"] * 3


def test_a_list_that_expired_half_way_is_read_again(kube: FakeKube, api: MemoryApi) -> None:
    for number in range(600):
        api.add_node(f"n-{number:04}")
    seen = len(api.requests)
    api.fail(Fault("GET", "/api/v1/nodes", status=410))
    assert len(kube.nodes(deadline_s=5.0)) == 601
    assert len(api.requests) - seen == 3
    api.fail(Fault("GET", "/api/v1/nodes", status=410, times=2))
    with pytest.raises(KubeRefused):
        kube.nodes(deadline_s=5.0)


def test_a_finished_pod_tells_its_exit_code_and_log(kube: FakeKube, api: MemoryApi) -> None:
    name = kube.create_job(job(), deadline_s=1.0).name
    (running,) = kube.pods(RUN, deadline_s=1.0)
    assert (running.container_state, running.exit_code, running.node) == ("running", None, "w-1")
    api.finish(name, exit_code=137, log="some words", reason="OOMKilled")
    (pod,) = kube.pods(RUN, deadline_s=1.0)
    assert (pod.phase, pod.container_state, pod.exit_code) == ("Failed", "terminated", 137)
    assert pod.reason == "OOMKilled"
    assert kube.pod_log("n", pod.name, limit_bytes=4, deadline_s=1.0) == "some"
    (ended,) = kube.jobs(RUN, deadline_s=1.0)
    assert (ended.condition, ended.failed, ended.active) == ("Failed", 1, 0)


def test_one_job_that_cannot_be_suspended_keeps_no_other(kube: FakeKube, api: MemoryApi) -> None:
    for index in range(3):
        kube.create_job(job(index), deadline_s=1.0)
    api.fail(Fault("PATCH", "jobs", status=500))
    with pytest.raises(KubeError, match="suspended 2, failed 1"):
        kube.suspend_jobs(RUN, deadline_s=1.0)
    assert sorted(j.suspended for j in kube.jobs(RUN, deadline_s=1.0)) == [False, True, True]


def test_a_finished_job_is_not_suspended(kube: FakeKube, api: MemoryApi) -> None:
    api.finish(kube.create_job(job(), deadline_s=1.0).name, exit_code=0)
    assert kube.suspend_jobs(RUN, deadline_s=1.0) == ()


@pytest.mark.slow
def test_what_does_not_go_away_is_named_with_its_cause(kube: FakeKube, api: MemoryApi) -> None:
    kube.create_job(job(), deadline_s=1.0)
    api.keep("Namespace")
    api.fail(Fault("DELETE", "/jobs/", status=403, times=9))
    deletion = kube.delete_run(RUN, deadline_s=0.5)
    assert deletion.found == 3
    details = {one.kind: one.detail for one in deletion.left}
    assert set(details) == {"Job", "Namespace"}
    assert "403 scripted" in details["Job"]
    assert "terminating since" in details["Namespace"]


def test_deletion_is_bound_to_what_was_listed(kube: FakeKube, api: MemoryApi) -> None:
    kube.create_job(job(), deadline_s=1.0)
    kube.delete_run(RUN, deadline_s=1.0)
    bodies = [r.body or {} for r in api.requests if r.method == "DELETE"]
    assert len(bodies) == 3
    assert all(str(body["preconditions"]).startswith("{'uid': 'uid-") for body in bodies)
    pods = [r.body or {} for r in api.requests if r.method == "DELETE" and "/pods/" in r.path]
    assert [body["gracePeriodSeconds"] for body in pods] == [0]


@pytest.mark.slow
def test_a_namespace_is_ready_when_pods_can_start_in_it(api: MemoryApi) -> None:
    api.fail(Fault("GET", "serviceaccounts", status=404, times=2))
    FakeKube(api).apply_namespace(
        namespace_manifests(run=RUN, namespace="n", jobs=1, host_path=False), deadline_s=2.0
    )
    assert len([r for r in api.requests if "serviceaccounts" in r.path]) == 3
    api.fail(Fault("GET", "serviceaccounts", status=404, times=99))
    with pytest.raises(KubeError, match=r"not ready in 0\.3 s"):
        FakeKube(api).apply_namespace(
            namespace_manifests(run=RUN, namespace="m", jobs=1, host_path=False), deadline_s=0.3
        )


def test_an_expired_lock_is_free_by_the_servers_clock(kube: FakeKube, api: MemoryApi) -> None:
    first = take(kube)
    assert first.expires_unix_s == api.unix_s + 30
    api.unix_s += 29
    with pytest.raises(LockHeld):
        take(kube, "bob", "r2")
    api.unix_s += 1
    assert take(kube, "bob", "r2").holder == "bob"
    with pytest.raises(LockHeld, match="bob"):
        kube.renew_lease(first, expires_s=30, deadline_s=1.0)


@pytest.mark.parametrize("field", ["renewTime", "leaseDurationSeconds"])
def test_a_lock_without_a_readable_end_never_expires(
    kube: FakeKube, api: MemoryApi, field: str
) -> None:
    take(kube)
    (lease,) = [o for o in api.objects.values() if o["kind"] == "Lease"]
    lease["spec"][field] = None
    api.unix_s += 1e6
    with pytest.raises(LockHeld, match="for ever"):
        take(kube, "bob", "r2")


def test_a_lock_whose_taking_lost_its_answer_is_still_ours(kube: FakeKube, api: MemoryApi) -> None:
    api.fail(Fault("POST", "leases", lands=True))
    with pytest.raises(KubeError):
        take(kube)
    assert take(kube).holder == "ann"


def test_who_loses_the_race_is_told_the_winner(kube: FakeKube, api: MemoryApi) -> None:
    take(kube, "bob", "r2")
    # The loser saw no lock: its own creation meets the winner's.
    api.fail(Fault("GET", "leases", status=404))
    with pytest.raises(LockHeld, match="bob for run r2"):
        take(kube)


def test_who_loses_an_expired_lock_to_another_is_told(kube: FakeKube, api: MemoryApi) -> None:
    class Overtaken(MemoryApi):
        def send(self, request: Request, *, deadline_s: float) -> Response:
            if request.method == "PUT":
                take(FakeKube(api), "carl", "r3")
            return api.send(request, deadline_s=deadline_s)

    take(kube, "bob", "r2")
    api.unix_s += 60
    with pytest.raises(LockHeld, match="carl for run r3"):
        take(FakeKube(Overtaken()))
    lease = kube.read_lease(deadline_s=1.0)
    assert lease is not None
    assert lease.holder == "carl"


def test_release_leaves_what_was_taken_over(kube: FakeKube, api: MemoryApi) -> None:
    lease = take(kube)
    api.fail(Fault("DELETE", "leases", status=409))
    kube.release_lease(lease, deadline_s=1.0)
    api.fail(Fault("DELETE", "leases", status=403))
    with pytest.raises(KubeRefused):
        kube.release_lease(lease, deadline_s=1.0)


def test_an_unknown_kind_is_never_created(kube: FakeKube) -> None:
    with pytest.raises(ValueError, match="not a kind"):
        kube.create_job({"kind": "Deployment", "metadata": {"name": "x"}}, deadline_s=1.0)


@pytest.mark.parametrize("body", [b"<html>", b"", b"[]", b'{"items": [1'])
def test_an_answer_that_is_no_object_is_an_error(body: bytes) -> None:
    with pytest.raises(KubeError, match="the answer is not"):
        document(Request("GET", "/x"), Response(200, body), deadline_s=1.0)


def test_a_budget_that_is_spent_is_an_error(kube: FakeKube) -> None:
    with pytest.raises(KubeError, match="not done within 0 s"):
        kube.pods(RUN, deadline_s=0.0)


def test_an_unknown_node_state_is_unknown(kube: FakeKube, api: MemoryApi) -> None:
    api.add_node("lost", ready="Unknown")
    api.add_node("sick", ready="False", control_plane=True)
    ready = {node.name: node.ready for node in kube.nodes(deadline_s=1.0)}
    assert ready == {"w-1": True, "lost": None, "sick": False}
    cores = {node.cpu_cores for node in kube.nodes(deadline_s=1.0)}
    assert cores == {1.9}
    assert math.isclose(kube.nodes(deadline_s=1.0)[0].memory_bytes or 0, 4 * 2**30)
    assert [n.name for n in kube.nodes(deadline_s=1.0) if n.control_plane] == ["sick"]


def test_a_fault_happens_as_often_as_it_says() -> None:
    fault = Fault("GET", "x", 500, times=3)
    api = MemoryApi()
    api.fail(fault)
    request = Request("GET", "/x/y/z/x")
    statuses = [api.send(request, deadline_s=1.0).status for _ in range(4)]
    assert statuses[:3] == [500] * 3
    assert statuses[3] != 500


@pytest.mark.slow
def test_a_quota_that_does_not_count_yet_is_waited_for() -> None:
    class Late(MemoryApi):
        def send(self, request: Request, *, deadline_s: float) -> Response:
            asked = [r for r in self.requests if "resourcequotas/" in r.path]
            if "resourcequotas/" in request.path and len(asked) < 2:
                self.requests.append(request)
                return Response(200, b'{"kind": "ResourceQuota", "status": {}}')
            return super().send(request, deadline_s=deadline_s)

    api = Late()
    manifests = namespace_manifests(run=RUN, namespace="n", jobs=1, host_path=False)
    FakeKube(api).apply_namespace(manifests, deadline_s=2.0)
    assert len([r for r in api.requests if "resourcequotas/" in r.path]) == 3
