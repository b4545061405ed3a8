"""Which cluster it is, how it is reached, what falls together, and what earlier runs left."""

import pytest

from stressor.checks import access_path, failure_domain, leftover_runs, pin
from stressor.checks.base import Finding, Level
from stressor.checks.failure_domain import ControlPlaneNode
from stressor.checks.leftover_runs import RunNamespace
from stressor.model import Host, Inventory, Role, Route

PASS, WARN, FAIL, SKIP = Level.PASS, Level.WARN, Level.FAIL, Level.SKIP
UID = "6f5b6b0e-2d3c-4a7e-9a52-0d6f0c1f2a11"
OTHER_UID = "0e6f5b6b-2d3c-4a7e-9a52-0d6f0c1f2a11"
TAINTED = ControlPlaneNode("cp-1", ("node-role.kubernetes.io/control-plane:NoSchedule",))


def only(found: tuple[Finding, ...]) -> Finding:
    (finding,) = found
    assert finding.host == ""
    return finding


# The pin


def test_the_pinned_cluster_passes() -> None:
    assert only(pin.judge(UID, UID)).level is PASS


def test_another_cluster_than_the_pinned_one_fails_with_both_uids() -> None:
    found = only(pin.judge(UID, OTHER_UID))
    assert (found.level, found.unknown) == (FAIL, False)
    assert UID in found.text
    assert OTHER_UID in found.text


def test_an_inventory_that_pins_nothing_is_given_the_line_to_write() -> None:
    found = only(pin.judge(None, UID))
    assert (found.level, found.remedy) == (WARN, f"stressor_cluster_uid: {UID}")


@pytest.mark.parametrize("pinned", [None, UID])
@pytest.mark.parametrize("uid", [None, ""])
def test_i4_a_cluster_that_does_not_say_its_uid_is_unknown(
    pinned: str | None, uid: str | None
) -> None:
    found = only(pin.judge(pinned, uid, "no answer within 5 s"))
    assert (found.level, found.unknown) == (FAIL, True)
    assert "no answer within 5 s" in found.text


# The way to the API


@pytest.mark.parametrize(
    "server",
    ["https://10.0.0.1:6443", "https://api.example:6443/", "10.0.0.1:8080", "https://[::1]"],
)
def test_an_api_server_reached_by_itself_passes(server: str) -> None:
    assert only(access_path.judge(server)).level is PASS


@pytest.mark.parametrize(
    "server",
    [
        "https://rancher.example/k8s/clusters/c-m-1a2b3c4d",
        "https://rancher.example/k8s/clusters/local/",
        "https://edge.example/rancher/k8s/clusters/c-m-1a2b3c4d",
    ],
)
def test_a_management_proxy_is_named_with_what_depends_on_it(server: str) -> None:
    found = only(access_path.judge(server))
    assert found.level is WARN
    assert "management server" in found.text
    assert "clean-up needs it" in found.text
    assert found.remedy.startswith("stressor_kubeconfig: ")


def test_any_other_path_is_a_proxy() -> None:
    found = only(access_path.judge("https://gate.example/prod/k8s"))
    assert found.level is WARN
    assert "a proxy, path /prod/k8s on gate.example" in found.text


def test_what_an_url_carries_beside_host_and_path_is_not_shown() -> None:
    found = only(access_path.judge("https://ann:secret@gate.example/x?token=secret"))
    assert "secret" not in found.text


@pytest.mark.parametrize("server", ["", "https://", "https://[::1"])
def test_i4_an_url_that_cannot_be_read_is_unknown(server: str) -> None:
    found = only(access_path.judge(server))
    assert (found.level, found.unknown) == (FAIL, True)


# Failure domains


def on(*hypervisors: str | None) -> Inventory:
    roles = frozenset({Role.CONTROL_PLANE})
    hosts = (
        Host(f"cp-{at}", (Route(f"10.0.0.{at}"),), roles, hypervisor=hypervisor)
        for at, hypervisor in enumerate(hypervisors, 1)
    )
    worker = Host("w-1", (Route("10.0.0.99"),), frozenset({Role.WORKER}), hypervisor="hv1")
    return Inventory("c", (*hosts, worker))


@pytest.mark.parametrize(
    ("hypervisors", "level", "text"),
    [
        (("hv1", "hv1", "hv1"), WARN, "all 3 control-plane hosts stand on hv1"),
        (("hv1", "hv1", "hv2"), WARN, "2 of 3 control-plane hosts stand on hv1"),
        (("hv1", "hv1", None), WARN, "2 of 3 control-plane hosts stand on hv1"),
        (("hv1", "hv1", "hv2", "hv2", "hv3"), PASS, "5 control-plane hosts on 3 hypervisors"),
        (("hv1", "hv2", "hv3"), PASS, "3 control-plane hosts on 3 hypervisors"),
        (("hv1", "hv2"), PASS, "2 control-plane hosts on 2 hypervisors"),
        (("hv1",), WARN, "all 1 control-plane hosts stand on hv1"),
        (("hv1", "hv2", None), SKIP, "hypervisor not said (stressor_hypervisor): cp-3"),
        ((None, None), SKIP, "hypervisor not said (stressor_hypervisor): cp-1, cp-2"),
        ((), SKIP, "hypervisor not said (stressor_hypervisor): any control-plane host"),
    ],
)
def test_hypervisors_under_the_control_plane(
    hypervisors: tuple[str | None, ...], level: Level, text: str
) -> None:
    first, _ = failure_domain.judge(on(*hypervisors), (TAINTED,))
    assert (first.level, first.text) == (level, text)


@pytest.mark.parametrize(
    ("node", "level"),
    [
        (TAINTED, PASS),
        (ControlPlaneNode("cp-1", ("node-role.kubernetes.io/etcd:NoExecute",)), PASS),
        (ControlPlaneNode("cp-1", unschedulable=True), PASS),
        (ControlPlaneNode("cp-1", ("x:PreferNoSchedule",)), WARN),
        (ControlPlaneNode("cp-1"), WARN),
    ],
)
def test_control_plane_nodes_that_take_workloads(node: ControlPlaneNode, level: Level) -> None:
    _, second = failure_domain.judge(on("hv1", "hv2", "hv3"), (node,))
    assert second.level is level


def test_each_node_that_takes_workloads_is_named_with_its_taint() -> None:
    nodes = (TAINTED, ControlPlaneNode("cp-2"), ControlPlaneNode("cp-3"))
    found = failure_domain.judge(on("hv1", "hv2", "hv3"), nodes)[1:]
    assert [one.text for one in found] == [
        "control-plane node cp-2 takes workloads, load too",
        "control-plane node cp-3 takes workloads, load too",
    ]
    assert found[0].remedy == (
        "kubectl taint node cp-2 node-role.kubernetes.io/control-plane=:NoSchedule"
    )


def test_i4_no_control_plane_node_in_the_api_is_unknown() -> None:
    _, second = failure_domain.judge(on("hv1", "hv2", "hv3"), ())
    assert (second.level, second.unknown) == (WARN, True)


# Earlier runs


def test_nothing_left_passes() -> None:
    assert only(leftover_runs.judge(())).level is PASS


def test_a_namespace_that_was_left_is_a_warning() -> None:
    found = only(leftover_runs.judge((RunNamespace("stressor-r1", "r1", "Active"),)))
    assert (found.level, found.remedy) == (WARN, "stressor cleanup --run r1")
    assert "stressor-r1" in found.text
    assert "Active" in found.text


def test_a_namespace_that_does_not_end_fails_and_says_what_holds_it() -> None:
    held = ("finalizer kubernetes", "Discovery failed for some groups: metrics.k8s.io/v1beta1")
    stuck = RunNamespace("stressor-r1", "r1", "Terminating", "2026-11-30T08:00:00Z", held)
    found = only(leftover_runs.judge((stuck,)))
    assert (found.level, found.remedy) == (FAIL, "stressor cleanup --run r1")
    assert "terminating since 2026-11-30T08:00:00Z" in found.text
    for words in held:
        assert words in found.text


def test_a_namespace_is_stuck_by_either_sign() -> None:
    by_phase = RunNamespace("a", "r1", "Terminating")
    by_time = RunNamespace("b", "r2", "Active", "2026-11-30T08:00:00Z")
    assert [one.level for one in leftover_runs.judge((by_phase, by_time))] == [FAIL, FAIL]


def test_a_namespace_without_a_run_id_still_has_a_remedy() -> None:
    found = only(leftover_runs.judge((RunNamespace("odd", "", "Active"),)))
    assert "kubectl delete ns odd" in found.remedy


def test_i4_an_api_that_does_not_answer_is_unknown_and_not_empty() -> None:
    found = only(leftover_runs.judge(None, "403 namespaces is forbidden"))
    assert (found.level, found.unknown) == (FAIL, True)
    assert "403" in found.text
