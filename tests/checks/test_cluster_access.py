"""Which cluster it is, how its API is reached, what one broken machine takes along, and what
earlier runs left."""

import pytest

from stressor.checks import access_path, failure_domain, leftover_runs, pin
from stressor.checks.base import Finding, Level
from stressor.checks.failure_domain import Node
from stressor.checks.leftover_runs import Left
from stressor.model import Host

UID = "9d3c5c1e-5a4e-4f0e-9a35-0d4c5c1b7f10"


def said(found: tuple[Finding, ...]) -> list[tuple[Level, str]]:
    return [(one.level, one.text) for one in found]


def test_the_pinned_cluster_passes() -> None:
    assert said(pin.judge(UID, UID)) == [(Level.PASS, f"its UID is the pinned one, {UID}")]


def test_another_cluster_is_a_failure() -> None:
    (found,) = pin.judge("another", UID)
    assert found.level is Level.FAIL
    assert "another cluster" in found.text
    assert UID in found.text


def test_a_cluster_that_is_not_pinned_is_a_warning_with_the_line_to_write() -> None:
    (found,) = pin.judge(UID, None)
    assert (found.level, found.remedy) == (Level.WARN, f"stressor_cluster_uid: {UID}")


@pytest.mark.parametrize("asked", [None, ""])
@pytest.mark.parametrize("pinned", [None, UID])
def test_i4_a_cluster_without_a_uid_is_unknown(asked: str | None, pinned: str | None) -> None:
    (found,) = pin.judge(asked, pinned, "GET /api: no answer within 5 s")
    assert (found.level, found.unknown) == (Level.FAIL, True)
    assert "no answer within 5 s" in found.text


@pytest.mark.parametrize(
    "url", ["https://10.0.0.1:6443", "https://10.0.0.1:6443/", "https://[fd00::1]:6443"]
)
def test_an_address_without_a_path_is_direct(url: str) -> None:
    (found,) = access_path.judge(url)
    assert found.level is Level.PASS
    assert ":6443" in found.text


def test_a_management_proxy_is_a_warning() -> None:
    (found,) = access_path.judge("https://10.0.0.9/k8s/clusters/c-m-x7q2kz")
    assert found.level is Level.WARN
    assert "management proxy (/k8s/clusters/c-m-x7q2kz)" in found.text
    assert "clean-up depend" in found.text


def test_any_other_path_is_a_warning_too() -> None:
    (found,) = access_path.judge("https://10.0.0.9/api/proxy")
    assert found.level is Level.WARN
    assert "a proxy answers at 10.0.0.9" in found.text


def test_a_name_is_a_warning_that_leaves_abort_out() -> None:
    (found,) = access_path.judge("https://api.example:6443")
    assert found.level is Level.WARN
    assert found.text.startswith("api.example is a name")
    assert "abort does not" in found.text


def test_proxy_and_name_are_both_said() -> None:
    found = access_path.judge("https://rancher.example/k8s/clusters/c-1")
    assert [one.level for one in found] == [Level.WARN, Level.WARN]


def test_what_a_url_says_of_a_login_is_not_repeated() -> None:
    for found in access_path.judge("https://ann:secret@rancher.example/k8s/clusters/c-1"):
        assert "secret" not in found.text + found.remedy


@pytest.mark.parametrize("url", ["", "10.0.0.1:6443", "https://", "https://x:port", "https://[::1"])
def test_i4_a_server_that_is_no_url_is_unknown(url: str) -> None:
    (found,) = access_path.judge(url)
    assert (found.level, found.unknown) == (Level.FAIL, True)


def on(*hypervisors: str | None) -> list[Host]:
    return [Host(f"cp-{n}", (), hypervisor=one) for n, one in enumerate(hypervisors, 1)]


@pytest.mark.parametrize(
    ("hypervisors", "level", "unknown", "words"),
    [
        (("a", "a", "a"), Level.WARN, False, "all 3 control-plane nodes are on a"),
        (("a", "a", "b"), Level.WARN, False, "2 of 3 control-plane nodes are on a"),
        (("a", "b", "c"), Level.PASS, False, "no hypervisor carries a majority"),
        (("a", "b", "c", "d", "a"), Level.PASS, False, "no hypervisor carries a majority"),
        (("a", "b"), Level.WARN, False, "1 of 2 control-plane nodes are on a"),
        ((None, None, None), Level.WARN, True, "the hypervisor of cp-1, cp-2, cp-3"),
        (("a", "b", None), Level.WARN, True, "the hypervisor of cp-3"),
        (("a", "b", "c", "d", None), Level.PASS, False, "no hypervisor carries a majority"),
        (("a", "a", None), Level.WARN, False, "2 of 3 control-plane nodes are on a"),
        (("a",), Level.SKIP, False, "nothing to compare"),
        ((None,), Level.SKIP, False, "nothing to compare"),
    ],
)
def test_a_hypervisor_that_takes_the_quorum_along_is_named(
    hypervisors: tuple[str | None, ...], level: Level, unknown: bool, words: str
) -> None:
    found = failure_domain.judge_hypervisors(on(*hypervisors))[0]
    assert (found.level, found.unknown) == (level, unknown)
    assert words in found.text


CLOSED = Node("cp-1", ("node-role.kubernetes.io/control-plane:NoSchedule",), unschedulable=False)


@pytest.mark.parametrize(
    ("node", "level"),
    [
        (CLOSED, Level.PASS),
        (Node("cp-1", ("CriticalAddonsOnly:NoExecute",), unschedulable=False), Level.PASS),
        (Node("cp-1", (), unschedulable=True), Level.PASS),
        (Node("cp-1", (), unschedulable=False), Level.WARN),
        (Node("cp-1", ("busy:PreferNoSchedule",), unschedulable=False), Level.WARN),
    ],
)
def test_a_control_plane_node_that_takes_workloads_is_a_warning(node: Node, level: Level) -> None:
    (found,) = failure_domain.judge_taints([node])
    assert found.level is level


def test_the_open_one_is_named_with_the_taint_to_set() -> None:
    opened = Node("cp-2", (), unschedulable=False)
    (found,) = failure_domain.judge_taints([CLOSED, opened])
    assert found.text == "control-plane node cp-2 takes workloads"
    assert found.remedy == (
        "kubectl taint node cp-2 node-role.kubernetes.io/control-plane:NoSchedule"
    )


def test_i4_an_api_without_control_plane_nodes_is_no_pass() -> None:
    found = failure_domain.judge(on("a", "b", "c"), [])
    assert [one.level for one in found] == [Level.PASS, Level.WARN]
    assert found[1].unknown


def test_nothing_left_passes() -> None:
    assert said(leftover_runs.judge([])) == [(Level.PASS, "no namespace of an earlier run")]


def test_a_namespace_with_live_jobs_is_a_failure() -> None:
    (found,) = leftover_runs.judge([Left("stressor-r1", "r1", 2)])
    assert found.level is Level.FAIL
    assert found.text == "namespace stressor-r1 of run r1, 2 live Jobs"
    assert found.remedy == "stressor cleanup --run r1"


def test_a_namespace_without_live_jobs_is_a_warning() -> None:
    (found,) = leftover_runs.judge([Left("stressor-r1", "r1", 0)])
    assert (found.level, found.remedy) == (Level.WARN, "stressor cleanup --run r1")


def test_a_terminating_namespace_says_what_keeps_it() -> None:
    left = Left(
        "stressor-r1",
        "r1",
        0,
        "2026-11-30T08:00:00Z",
        ("kubernetes",),
        ("Some resources are remaining: pods. has 1 resource instances",),
    )
    (found,) = leftover_runs.judge([left])
    assert found.level is Level.WARN
    assert found.text == (
        "namespace stressor-r1 of run r1, no live Jobs; Terminating since 2026-11-30T08:00:00Z; "
        "kept by finalizer kubernetes; "
        "Some resources are remaining: pods. has 1 resource instances"
    )


def test_a_terminating_namespace_with_live_jobs_is_a_failure() -> None:
    (found,) = leftover_runs.judge([Left("n", "r1", 1, "2026-11-30T08:00:00Z")])
    assert found.level is Level.FAIL


@pytest.mark.parametrize("run", ["", "r1; reboot", "R1", "-x", "x" * 41])
def test_what_is_no_run_goes_into_no_command(run: str) -> None:
    (found,) = leftover_runs.judge([Left("n", run, 0)])
    assert found.remedy == "kubectl get namespace n --output yaml"


def test_i4_an_api_that_does_not_say_is_unknown() -> None:
    (found,) = leftover_runs.judge(None, "GET: no answer")
    assert (found.level, found.unknown) == (Level.FAIL, True)
