"""The security level, and what dry runs said."""

from dataclasses import replace

import pytest

from stressor.checks.admission import Trial, judge
from stressor.checks.base import Finding, Level

NAMESPACE = Trial("Namespace", "", "stressor-r1", True, security_level="restricted")
JOB = Trial("Job", "stressor-r1", "stressor-r1-0-0a", True)
STAND_IN = Trial("Job", "default", "stressor-r1-0-0a", True, stand_in=True)
KYVERNO = (
    'POST /api/v1/namespaces: 400 admission webhook "validate.kyverno.svc-fail" denied the request:'
    " \n\nresource Namespace/stressor-r1 was blocked\n"
)


def after_level(*trials: Trial, level: str = "restricted") -> tuple[Finding, ...]:
    first, *rest = judge(level, trials)
    assert f"enforces pod security level {level}" in first.text
    return tuple(rest)


def test_accepted_passes_with_the_level() -> None:
    found = judge("restricted", (NAMESPACE, JOB))
    assert [one.level for one in found] == [Level.PASS] * 3
    assert found[0].text == "the run's namespace enforces pod security level restricted"
    assert found[2].text == "Job stressor-r1-0-0a in stressor-r1 is accepted"


def test_a_level_that_a_host_path_costs_is_a_warning() -> None:
    found = judge("privileged", (replace(NAMESPACE, security_level="privileged"),))
    assert [one.level for one in found] == [Level.WARN, Level.PASS]
    assert "storage_class" in found[0].remedy


def test_a_refusal_is_a_failure_in_the_apis_words_on_one_line() -> None:
    (found,) = after_level(replace(NAMESPACE, accepted=False, message=KYVERNO))
    assert found.level is Level.FAIL
    assert "denied the request: resource Namespace/stressor-r1 was blocked" in found.text
    assert "\n" not in found.text


def test_a_long_refusal_is_cut() -> None:
    (found,) = after_level(replace(NAMESPACE, accepted=False, message="x" * 5000))
    assert len(found.text) < 500


def test_i4_what_was_not_decided_is_unknown() -> None:
    message = 'namespaces "stressor-r1" not found'
    (found,) = after_level(replace(JOB, accepted=None, message=message))
    assert (found.level, found.unknown) == (Level.WARN, True)
    assert message in found.text


def test_acceptance_in_another_namespace_is_told_as_such() -> None:
    (found,) = after_level(STAND_IN)
    assert found.level is Level.PASS
    assert "in the stead of the run's namespace" in found.text


def test_i4_a_refusal_in_another_namespace_may_be_its_own() -> None:
    message = "admission webhook denied the request: do not use the default namespace"
    (found,) = after_level(replace(STAND_IN, accepted=False, message=message))
    assert (found.level, found.unknown) == (Level.WARN, True)
    assert message in found.text


def test_warnings_are_repeated_once() -> None:
    told = 'would violate PodSecurity "restricted:latest": hostPath volumes'
    (found,) = after_level(replace(JOB, warnings=(told, told)))
    assert (found.level, told in found.text) == (Level.WARN, True)


@pytest.mark.parametrize(
    ("asked", "stored", "level"),
    [
        ("privileged", "restricted", Level.FAIL),
        ("privileged", "baseline", Level.FAIL),
        ("restricted", "baseline", Level.WARN),
        ("restricted", None, Level.WARN),
        ("restricted", "strict", Level.WARN),
        ("restricted", "restricted", Level.PASS),
    ],
)
def test_a_level_that_something_changes_is_said(
    asked: str, stored: str | None, level: Level
) -> None:
    (found,) = after_level(replace(NAMESPACE, security_level=stored), level=asked)
    assert found.level is level


def test_i4_no_trial_is_a_failure() -> None:
    (found,) = judge("restricted", ())
    assert (found.level, found.unknown) == (Level.FAIL, True)
