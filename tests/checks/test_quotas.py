"""Quotas, limit ranges and room, against what a plan asks for."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from stressor.checks.base import Finding, Level
from stressor.checks.quotas import (
    Limit,
    LimitRange,
    PodDemand,
    Quota,
    Room,
    StepDemand,
    judge,
    judge_room,
    unread,
)

GIB = 1 << 30
OWN = "stressor-r1"
Rules = Mapping[str, Mapping[str, float | None]]
POD = PodDemand(
    cpu_request_cores=0.05,
    cpu_limit_cores=2.0,
    memory_request_bytes=GIB // 32,
    memory_limit_bytes=GIB // 4,
    ephemeral_limit_bytes=GIB // 8,
)
CLAIM = replace(POD, claim_bytes=2 * GIB, storage_class="fast")
PLAN = (StepDemand(0, ("a", "b", "c"), POD), StepDemand(1, ("a",), POD))
WITH_CLAIMS = (StepDemand(0, ("a", "b"), CLAIM), StepDemand(1, ("a",), CLAIM))


def cluster_quota(
    scopes: tuple[str, ...] = (), **figures: tuple[float | None, float | None]
) -> Quota:
    """Each figure is (hard, used); `limits_cpu` stands for limits.cpu."""
    names = {name: name.replace("_", ".") for name in figures}
    hard = {names[name]: pair[0] for name, pair in figures.items()}
    used = {names[name]: pair[1] for name, pair in figures.items()}
    return Quota("", "team", hard, used, scopes)


def with_quota(*quotas: Quota, steps: tuple[StepDemand, ...] = PLAN) -> tuple[Finding, ...]:
    return judge(steps, quotas, (), own=OWN)


def with_range(*ranges: LimitRange, steps: tuple[StepDemand, ...] = PLAN) -> tuple[Finding, ...]:
    return judge(steps, (), ranges, own=OWN)


def test_nothing_in_the_way_passes() -> None:
    (found,) = judge(PLAN, (), (), own=OWN)
    assert found.level is Level.PASS


def test_without_a_plan_nothing_is_asked() -> None:
    (found,) = judge((), (cluster_quota(pods=(0, 0)),), (), own="")
    assert found.level is Level.SKIP


def test_i4_quotas_that_nobody_may_list_are_unknown() -> None:
    (found,) = unread("403 forbidden")
    assert (found.level, found.unknown) == (Level.WARN, True)
    assert "403 forbidden" in found.text


def test_a_quota_with_too_little_left_is_a_failure() -> None:
    (found,) = with_quota(cluster_quota(limits_cpu=(10.0, 5.0)))
    assert found.level is Level.FAIL
    assert found.text == "cluster quota team: limits.cpu: the plan asks for 6, 5 of 10 are left"


def test_just_enough_is_enough_though_floats_add_up_badly() -> None:
    assert 3 * 0.05 > 0.15
    (found,) = with_quota(cluster_quota(requests_cpu=(0.15, 0.0), limits_cpu=(6.0, 0.0)))
    assert found.level is Level.PASS


def test_what_the_plan_does_not_ask_for_may_be_used_up() -> None:
    (found,) = with_quota(cluster_quota(services=(0.0, 0.0), persistentvolumeclaims=(0.0, 0.0)))
    assert found.level is Level.PASS


def test_pods_run_a_step_at_a_time_and_jobs_stay() -> None:
    assert with_quota(cluster_quota(pods=(3.0, 0.0)))[0].level is Level.PASS
    jobs = Quota("", "team", {"count/jobs.batch": 3.0}, {"count/jobs.batch": 0.0})
    (found,) = with_quota(jobs)
    assert (found.level, "asks for 4, 3 of 3" in found.text) == (Level.FAIL, True)


@pytest.mark.parametrize(
    "name",
    [
        "persistentvolumeclaims",
        "count/persistentvolumeclaims",
        "fast.storageclass.storage.k8s.io/persistentvolumeclaims",
    ],
)
def test_claims_stay_as_long_as_their_pods(name: str) -> None:
    quota = Quota("", "team", {name: 2.0}, {name: 0.0})
    (found,) = with_quota(quota, steps=WITH_CLAIMS)
    assert (found.level, "asks for 3" in found.text) == (Level.FAIL, True)
    assert with_quota(quota)[0].level is Level.PASS


def test_the_size_of_claims_counts_also_by_class() -> None:
    for name in ("requests.storage", "fast.storageclass.storage.k8s.io/requests.storage"):
        quota = Quota("", "team", {name: 5.0 * GIB}, {name: 0.0})
        assert with_quota(quota, steps=WITH_CLAIMS)[0].level is Level.FAIL
    other = "slow.storageclass.storage.k8s.io/requests.storage"
    quota = Quota("", "team", {other: 0.0}, {other: 0.0})
    assert with_quota(quota, steps=WITH_CLAIMS)[0].level is Level.PASS


@pytest.mark.parametrize(
    ("scopes", "level", "unknown"),
    [
        (("Terminating",), Level.FAIL, False),
        (("NotBestEffort", "Terminating"), Level.FAIL, False),
        (("Terminating Exists",), Level.FAIL, False),
        (("NotTerminating",), Level.PASS, False),
        (("BestEffort",), Level.PASS, False),
        (("PriorityClass In high", "NotTerminating"), Level.PASS, False),
        (("PriorityClass In high",), Level.WARN, True),
    ],
)
def test_a_scope_decides_whether_load_counts(
    scopes: tuple[str, ...], level: Level, unknown: bool
) -> None:
    (found,) = with_quota(cluster_quota(scopes, pods=(1.0, 0.0)))
    assert (found.level, found.unknown) == (level, unknown)


@pytest.mark.parametrize("figures", [(None, 0.0), (9.0, None)])
def test_i4_a_quota_that_cannot_be_read_is_unknown(
    figures: tuple[float | None, float | None],
) -> None:
    (found,) = with_quota(cluster_quota(pods=figures))
    assert (found.level, found.unknown) == (Level.WARN, True)


def test_a_quota_of_the_runs_own_namespace_binds() -> None:
    own = replace(cluster_quota(pods=(1.0, 0.0)), namespace=OWN)
    (found,) = with_quota(own)
    assert (found.level, found.text.startswith("quota team")) == (Level.FAIL, True)


def test_a_quota_of_another_namespace_does_not() -> None:
    others = [replace(cluster_quota(pods=(0.0, 0.0)), namespace=name) for name in ("x", "y")]
    assert with_quota(*others)[0].level is Level.PASS


def test_a_quota_that_stands_everywhere_is_a_warning() -> None:
    others = [replace(cluster_quota(pods=(1.0, 1.0)), namespace=name) for name in ("x", "y", "z")]
    (found,) = with_quota(*others)
    assert found.level is Level.WARN
    assert "in 3 namespaces, perhaps soon in the run's: pods: the plan asks for 3" in found.text
    roomy = [replace(one, hard={"pods": 3.0}) for one in others]
    # Their own use is not the new namespace's.
    assert with_quota(*roomy)[0].level is Level.PASS


def test_the_quotas_of_earlier_runs_are_no_rule() -> None:
    left = (Quota(f"stressor-r{n}", "stressor", {"pods": 2.0}, {"pods": 0.0}) for n in (7, 8, 9))
    (found,) = with_quota(*left)
    assert found.level is Level.PASS


def test_i4_a_quota_that_stands_everywhere_and_cannot_be_read_is_unknown() -> None:
    (found,) = with_quota(*(Quota(f"shop-{n}", "all", {"pods": None}, {}) for n in range(3)))
    assert (found.level, found.unknown) == (Level.WARN, True)


def limit_range(rules: Rules, kind: str = "Container", namespace: str = OWN) -> LimitRange:
    limit = Limit(kind, rules.get("most", {}), rules.get("least", {}), rules.get("ratio", {}))
    return LimitRange(namespace, "bounds", (limit,))


@pytest.mark.parametrize("kind", ["Container", "Pod"])
@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"most": {"cpu": 1.0}}, "its limit is 2, at most 1"),
        ({"most": {"memory": 1.0}}, "at most 1"),
        ({"most": {"ephemeral-storage": 1.0}}, "at most 1"),
        ({"least": {"cpu": 0.1}}, "it requests 0.05, at least 0.1"),
        ({"ratio": {"cpu": 4.0}}, "its limit is 40 times its request, at most 4"),
    ],
)
def test_what_a_limit_range_forbids_is_a_failure(kind: str, rules: Rules, words: str) -> None:
    found = with_range(limit_range(rules, kind))
    assert [one.level for one in found] == [Level.FAIL, Level.FAIL]
    assert words in found[0].text
    assert [f"step {n}" in found[n].text for n in (0, 1)] == [True, True]


@pytest.mark.parametrize(
    "rules",
    [
        {"most": {"cpu": 2.0, "memory": float(GIB)}},
        {"least": {"cpu": 0.05}},
        {"ratio": {"cpu": 40.0}},
        {"most": {"nvidia.com/gpu": 0.0}},
    ],
)
def test_what_a_limit_range_allows_passes(rules: Rules) -> None:
    assert with_range(limit_range(rules))[0].level is Level.PASS


def test_claims_have_bounds_of_their_own() -> None:
    claims = limit_range({"most": {"storage": float(GIB)}}, "PersistentVolumeClaim")
    assert with_range(claims)[0].level is Level.PASS
    assert with_range(claims, steps=WITH_CLAIMS)[0].level is Level.FAIL


def test_i4_a_bound_that_cannot_be_read_is_unknown() -> None:
    found = with_range(limit_range({"most": {"cpu": None}}))
    assert {(one.level, one.unknown) for one in found} == {(Level.WARN, True)}


def test_a_limit_range_that_stands_everywhere_is_a_warning() -> None:
    others = [limit_range({"most": {"cpu": 1.0}}, namespace=name) for name in ("x", "y", "z")]
    assert {one.level for one in with_range(*others)} == {Level.WARN}
    assert with_range(*others[:2])[0].level is Level.PASS


FREE = Room("a", "node-a", 4.0, 8.0 * GIB, 1.0, 1.0 * GIB)


def test_a_node_with_room_passes() -> None:
    (found,) = judge_room(PLAN, [FREE])
    assert (found.level, found.host) == (Level.PASS, "a")


def test_a_full_node_is_a_failure_for_each_thing_that_is_short() -> None:
    full = replace(FREE, cpu_asked_cores=4.0, memory_asked_bytes=8.0 * GIB)
    found = judge_room(PLAN, [full])
    assert [one.level for one in found] == [Level.FAIL, Level.FAIL]
    assert found[0].text == "node node-a: 0 CPU left, load requests 0.05"


def test_a_node_that_carries_no_load_is_not_judged() -> None:
    assert judge_room(PLAN, [replace(FREE, host="x", cpu_asked_cores=4.0)]) == ()


@pytest.mark.parametrize("field", ["cpu_cores", "cpu_asked_cores"])
def test_i4_room_that_is_not_known_is_unknown(field: str) -> None:
    room = Room(**{**{name: getattr(FREE, name) for name in FREE.__slots__}, field: None})
    (found,) = judge_room(PLAN, [room])
    assert (found.level, found.unknown) == (Level.WARN, True)
