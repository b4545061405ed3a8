"""API server signals."""

from pathlib import Path

import pytest

from stressor.probes.apiserver import SIGNALS, parse, unanswered

FAILED = (Path(__file__).parent / "fixtures" / "apiserver" / "etcd_failed.txt").read_bytes()


def test_ready() -> None:
    ready, took = parse(200, b"ok", 0.012, source="cp-1", at_s=3.0)
    assert (ready.signal, ready.value, ready.source, ready.at_s) == (
        "apiserver_ready",
        1.0,
        "cp-1",
        3.0,
    )
    assert (took.signal, took.value) == ("apiserver_readyz_s", 0.012)


def test_unready_names_the_failed_checks() -> None:
    ready, took = parse(500, FAILED, 0.8, source="cp-1", at_s=3.0)
    assert ready.value == 0.0
    assert ready.detail == (
        "/readyz answered 500: etcd failed: reason withheld; shutdown failed: reason withheld"
    )
    assert took.value == 0.8


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_answer_that_is_not_200_is_unready(status: int) -> None:
    ready, _ = parse(status, "", 0.1, source="cp-1", at_s=3.0)
    assert ready.value == 0.0
    assert str(status) in ready.detail


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refused_question_says_nothing_about_health(status: int) -> None:
    ready, took = parse(status, "", 0.1, source="cp-1", at_s=3.0)
    assert ready.value is None
    assert "not allowed" in ready.detail
    assert took.value == 0.1


def test_no_answer_is_unknown_and_not_unready() -> None:
    samples = unanswered("cp-1", 3.0, "no answer within 1 s")
    assert {s.signal for s in samples} == {spec.name for spec in SIGNALS}
    assert [(s.value, s.detail) for s in samples] == [(None, "no answer within 1 s")] * 2
