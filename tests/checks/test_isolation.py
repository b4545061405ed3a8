"""What preflight says of storage that load and an etcd may share."""

from dataclasses import replace

from stressor.checks import isolation
from stressor.checks.base import Level
from stressor.core.placement import Finding, Isolation
from stressor.model import Inventory

HOME = Inventory("c", (), bystanders_none_reason="alone in the rack")
SHARED = tuple(
    Finding(load, etcd, Isolation.SHARED, "same source spindle on both hosts")
    for load in ("n1", "n2", "n3", "n4")
    for etcd in ("n1", "n2")
)
UNKNOWN = (Finding("n1", "n2", Isolation.UNKNOWN, "different guest devices"),)


def test_pairs_with_one_cause_share_a_line() -> None:
    (found,) = isolation.judge(SHARED, HOME, needed=True, unknown_reason=None)
    assert found.level is Level.FAIL
    assert found.text.startswith("load on n1, n2, n3 and 1 more, etcd on n1, n2: shared (same")


def test_a_plan_without_storage_load_is_warned_only() -> None:
    levels = [
        f.level for f in isolation.judge(SHARED + UNKNOWN, HOME, needed=False, unknown_reason=None)
    ]
    assert levels == [Level.WARN, Level.WARN]


def test_a_written_reason_lifts_unknown_and_never_shared() -> None:
    found = isolation.judge(SHARED + UNKNOWN, HOME, needed=True, unknown_reason="own SAN")
    assert [f.level for f in found] == [Level.FAIL, Level.WARN]
    assert "allowed: own SAN" in found[1].text
    assert found[1].unknown


def test_a_disposable_cluster_is_allowed_and_told() -> None:
    lab = replace(HOME, disposable=True)
    (found,) = isolation.judge(SHARED, lab, needed=True, unknown_reason=None)
    assert found.level is Level.WARN
    assert "disposable: true" in found.text


def test_nobody_answered_the_question_of_bystanders() -> None:
    found = isolation.judge(UNKNOWN, Inventory("c", ()), needed=True, unknown_reason="own SAN")
    assert found[0].level is Level.FAIL
    assert "no bystanders are listed" in found[0].text


def test_nothing_to_compare_is_no_pass() -> None:
    (found,) = isolation.judge((), HOME, needed=True, unknown_reason=None)
    assert found.level is Level.SKIP
