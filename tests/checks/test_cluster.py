"""The API's word against the inventory."""

import pytest

from stressor.checks.base import Finding, Level
from stressor.checks.cluster import (
    Endpoint,
    Member,
    judge_bystanders,
    judge_endpoints,
    judge_nodes,
)
from stressor.model import Host, Inventory, Role, Route


def host(name: str, address: str, *roles: Role) -> Host:
    return Host(name, (Route(address),), frozenset(roles))


CP = host("cp-1", "10.0.0.1", Role.CONTROL_PLANE)
W = host("w-1", "10.0.0.2", Role.WORKER)
CP_NODE = Member("ip-10-0-0-1", ("10.0.0.1",), control_plane=True, ready=True)
W_NODE = Member("w-1", ("192.168.0.2",), control_plane=False, ready=True)


def said(found: tuple[Finding, ...]) -> list[tuple[Level, str, str]]:
    return [(one.level, one.host, one.text) for one in found]


def test_a_node_is_known_by_address_or_by_name() -> None:
    found = judge_nodes(Inventory("c", (CP, W)), (CP_NODE, W_NODE))
    assert said(found) == [(Level.PASS, "", "all 2 nodes are in the inventory, and ready")]


def test_a_control_plane_node_that_nobody_watches_is_a_failure() -> None:
    text = "control-plane node ip-10-0-0-1 is not in the inventory"
    assert said(judge_nodes(Inventory("c", (W,)), (CP_NODE, W_NODE))) == [(Level.FAIL, "", text)]


def test_a_control_plane_node_listed_as_a_worker_only_is_a_failure() -> None:
    worker = host("cp-1", "10.0.0.1", Role.WORKER)
    found = judge_nodes(Inventory("c", (worker, W)), (CP_NODE, W_NODE))
    assert [one.level for one in found] == [Level.FAIL]


def test_a_worker_left_out_is_a_warning() -> None:
    found = judge_nodes(Inventory("c", (CP,)), (CP_NODE, W_NODE))
    assert said(found) == [(Level.WARN, "", "node w-1 is not in the inventory")]


def test_a_stranger_is_a_failure_and_a_bystander_is_none() -> None:
    stranger = host("x-1", "10.9.9.9", Role.WORKER)
    beside = host("b-1", "10.9.9.8", Role.BYSTANDER)
    found = judge_nodes(Inventory("c", (CP, W, stranger, beside)), (CP_NODE, W_NODE))
    text = "no node of this cluster has its name or address"
    assert said(found) == [(Level.FAIL, "x-1", text)]


@pytest.mark.parametrize("ready", [False, None])
def test_i4_a_node_that_does_not_say_ready_is_a_failure(*, ready: bool | None) -> None:
    silent = Member("w-1", (), control_plane=False, ready=ready)
    (found,) = judge_nodes(Inventory("c", (CP, W)), (CP_NODE, silent))
    assert (found.level, found.unknown) == (Level.FAIL, ready is None)


def test_i4_no_nodes_at_all_are_unknown() -> None:
    (found,) = judge_nodes(Inventory("c", (CP,)), ())
    assert (found.level, found.unknown) == (Level.FAIL, True)


def test_each_api_server_speaks_for_itself() -> None:
    found = judge_endpoints(
        (
            Endpoint("cp-1", 200, 0.02),
            Endpoint("cp-2", 500, 0.02),
            Endpoint("cp-3", None, problem="refused"),
        )
    )
    assert said(found) == [
        (Level.PASS, "cp-1", "ready in 0.02 s"),
        (Level.FAIL, "cp-2", "/readyz answered 500"),
        (Level.FAIL, "cp-3", "unknown: /readyz: refused"),
    ]


def test_i4_no_api_server_named_is_unknown() -> None:
    assert [one.unknown for one in judge_endpoints(())] == [True]


def test_the_question_of_bystanders_wants_an_answer() -> None:
    beside = host("b-1", "10.9.9.8", Role.BYSTANDER)
    reason = Inventory("c", (CP,), bystanders_none_reason="own disks")
    assert [one.level for one in judge_bystanders(Inventory("c", (CP,)))] == [Level.WARN]
    assert said(judge_bystanders(Inventory("c", (beside,)))) == [(Level.PASS, "", "watched: b-1")]
    assert said(judge_bystanders(reason)) == [(Level.PASS, "", "none: own disks")]
