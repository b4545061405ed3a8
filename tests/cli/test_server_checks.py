"""What the API says of a plan: unknown is a failure, and nothing is created."""

from dataclasses import replace

from stressor.checks.base import Finding, Level
from stressor.cli.planning import make_plan
from stressor.cli.server_checks import cluster_footing, server_findings
from stressor.core.drift import cluster_drift
from stressor.model import Host, Inventory, Phase, Plan, Role, Route, Suite
from stressor.testing.kube import FakeKube, Fault

BOTH = frozenset({Role.CONTROL_PLANE, Role.WORKER})
INVENTORY = Inventory(
    "c",
    (
        Host("cp1", (Route("10.9.0.1"),), BOTH),
        Host("w1", (Route("10.9.0.2"),), frozenset({Role.WORKER})),
    ),
    load_image="image:1",
)
PHASE = Phase("warm", "cpu", ("w1",), 10.0, 60.0)


def planned(**params: int) -> Plan:
    suite = Suite("s", 0.0, (replace(PHASE, params=params),))
    return make_plan(suite, INVENTORY, run="planned", image=None, election_timeout_s=1.0)


def cluster() -> FakeKube:
    kube = FakeKube()
    kube.api.add_node("cp1", control_plane=True)
    kube.api.add_node("w1")
    return kube


def node(kube: FakeKube, name: str) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = kube.api.objects[f"/api/v1/nodes/{name}"]
    return found


def bad(
    kube: FakeKube, plan: Plan | None = None, inventory: Inventory = INVENTORY
) -> list[Finding]:
    found = server_findings(plan or planned(), inventory, kube)
    assert {request.method for request in kube.api.requests} == {"GET"}
    return [one for one in found if one.level in (Level.WARN, Level.FAIL)]


def pinned(kube: FakeKube) -> Inventory:
    return replace(INVENTORY, cluster_uid=kube.cluster_uid(deadline_s=1.0))


def test_a_sound_cluster_passes_every_check() -> None:
    kube = cluster()
    found = server_findings(planned(), pinned(kube), kube)
    assert {one.level for one in found} == {Level.PASS}
    assert {one.check for one in found} == {"cluster", "nodes", "placement"}


def test_an_unpinned_cluster_is_a_warning_with_the_line_to_write() -> None:
    kube = cluster()
    (warning,) = bad(kube)
    assert warning.level is Level.WARN
    assert warning.remedy == f"stressor_cluster_uid: {kube.cluster_uid(deadline_s=1.0)}"


def test_another_cluster_than_the_pinned_one_fails() -> None:
    (failure,) = bad(cluster(), inventory=replace(INVENTORY, cluster_uid="0" * 8))
    assert failure.level is Level.FAIL
    assert "another cluster" in failure.text


def test_i4_no_answer_is_a_failure_that_says_unknown() -> None:
    kube = cluster()
    kube.api.fail(Fault("GET", "/", times=9))
    found = bad(kube)
    assert [(one.check, one.level, one.unknown) for one in found] == [
        ("cluster", Level.FAIL, True),
        ("placement", Level.FAIL, True),
    ]


def test_a_node_that_keeps_load_off_fails_with_what_lets_it_in() -> None:
    kube = cluster()
    node(kube, "w1")["spec"] = {
        "unschedulable": True,
        "taints": [
            {"key": "dedicated", "value": "db", "effect": "NoExecute"},
            {"key": "soft", "effect": "PreferNoSchedule"},
            {"key": "hard", "effect": "NoSchedule"},
        ],
    }
    found = bad(kube, inventory=pinned(kube))
    assert [(one.level, one.remedy) for one in found] == [
        (Level.FAIL, "kubectl uncordon w1"),
        (Level.FAIL, "kubectl taint node w1 dedicated:NoExecute-"),
        (Level.FAIL, "kubectl taint node w1 hard:NoSchedule-"),
    ]


def test_a_taint_where_no_load_goes_is_nobodys_business() -> None:
    kube = cluster()
    node(kube, "cp1")["spec"] = {"taints": [{"key": "cp", "effect": "NoSchedule"}]}
    assert bad(kube, inventory=pinned(kube)) == []


def test_more_load_than_the_node_has_is_a_warning() -> None:
    kube = cluster()
    (warning,) = bad(kube, planned(workers=8), pinned(kube))
    assert warning.text == "step 0 may use 8 CPU, node w1 has 1.9"


def test_i4_a_size_that_the_api_does_not_say_is_no_zero() -> None:
    kube = cluster()
    node(kube, "w1")["status"]["allocatable"] = {}
    assert bad(kube, planned(workers=8), pinned(kube)) == []
    (footing,) = [one for one in cluster_footing(kube).nodes if one.name == "w1"]
    assert (footing.cpu_cores, footing.memory_bytes) == (None, None)


def test_a_host_that_is_no_node_fails() -> None:
    kube = FakeKube()
    kube.api.add_node("cp1", control_plane=True)
    (failure,) = bad(kube, inventory=pinned(kube))
    assert (failure.host, failure.level) == ("w1", Level.FAIL)


def test_the_footing_sees_another_kubelet() -> None:
    kube = cluster()
    then = cluster_footing(kube)
    assert cluster_drift(then, cluster_footing(kube)) == ()
    node(kube, "w1")["status"]["nodeInfo"] = {"kubeletVersion": "v1.37.0"}
    assert [str(one) for one in cluster_drift(then, cluster_footing(kube))] == [
        "cluster node w1 kubelet_version v1.36.0 -> v1.37.0"
    ]


def test_readiness_comes_and_goes_and_is_no_drift() -> None:
    kube = cluster()
    then = cluster_footing(kube)
    node(kube, "w1")["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    assert cluster_drift(then, cluster_footing(kube)) == ()
