"""Accesses that a run needs, judged from the API's answers."""

from stressor.checks.base import Level
from stressor.checks.rbac import Grant, Permission, judge, looked_at, needed, question

PASS, WARN, FAIL = Level.PASS, Level.WARN, Level.FAIL
LOGS = Permission("get", "pods/log", namespace="stressor-r1")
QUOTAS = Permission("list", "resourcequotas", looks=True)
NODES = Permission("list", "nodes")


def test_everything_allowed_passes_in_one_line() -> None:
    (found,) = judge([Grant(one, True) for one in needed("stressor-r1")])
    assert found.level is PASS
    assert str(len(needed("stressor-r1"))) in found.text


def test_one_verb_short_fails_and_is_named_with_its_question() -> None:
    (found,) = judge([Grant(NODES, True), Grant(LOGS, False, "no role binds it")])
    assert (found.level, found.unknown) == (FAIL, False)
    assert found.text == "may not get pods/log in stressor-r1: no role binds it"
    assert found.remedy == "kubectl auth can-i get pods --subresource=log -n stressor-r1"


def test_each_verb_short_has_a_line() -> None:
    assert [f.level for f in judge([Grant(NODES, False), Grant(LOGS, False)])] == [FAIL, FAIL]


def test_i4_no_answer_is_not_allowed() -> None:
    (found,) = judge([Grant(NODES, None, "webhook down")])
    assert (found.level, found.unknown) == (FAIL, True)
    assert "list nodes: webhook down" in found.text


def test_i4_nothing_asked_is_not_allowed() -> None:
    (found,) = judge([])
    assert (found.level, found.unknown) == (FAIL, True)


def test_what_only_preflight_reads_is_a_warning() -> None:
    found = judge([Grant(QUOTAS, False), Grant(QUOTAS, None)])
    assert [(f.level, f.unknown) for f in found] == [(WARN, False), (WARN, True)]


def test_a_question_can_be_typed() -> None:
    lease = Permission("get", "leases", "coordination.k8s.io", "kube-system", "stressor")
    assert question(lease) == (
        "kubectl auth can-i get leases.coordination.k8s.io/stressor -n kube-system"
    )
    assert question(NODES) == "kubectl auth can-i list nodes -A"


def test_nothing_is_asked_twice() -> None:
    every = (*needed("stressor-r1"), *looked_at())
    assert len(set(every)) == len(every)
