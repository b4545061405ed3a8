"""The StorageClass that a phase asks for."""

from dataclasses import replace

import pytest

from stressor.checks.base import Level
from stressor.checks.storage_class import StorageClass, judge

FAST = StorageClass("fast", "csi.example", "WaitForFirstConsumer", "Delete", default=False)
USUAL = replace(FAST, name="usual", default=True)


def test_a_plan_without_volumes_asks_for_none() -> None:
    (found,) = judge((), None, "no answer")
    assert found.level is Level.SKIP


def test_a_class_that_binds_with_its_pod_passes_once() -> None:
    (found,) = judge(("fast", "fast"), (FAST, USUAL))
    assert (found.level, "csi.example" in found.text) == (Level.PASS, True)


def test_a_missing_class_is_a_failure_that_names_what_there_is() -> None:
    (found,) = judge(("fats",), (FAST, USUAL))
    assert (found.level, found.text) == (Level.FAIL, "no StorageClass fats")
    assert "fast, usual" in found.remedy


def test_no_class_at_all_is_a_failure() -> None:
    (found,) = judge(("fast",), ())
    assert (found.level, "there are: none" in found.remedy) == (Level.FAIL, True)


def test_the_default_is_the_one_that_is_marked() -> None:
    assert "usual" in judge((None,), (FAST, USUAL))[0].text
    (found,) = judge((None,), (FAST,))
    assert (found.level, found.text) == (Level.FAIL, "no StorageClass is the default")
    (found,) = judge((None,), (USUAL, replace(USUAL, name="other")))
    assert (found.level, "usual, other" in found.text) == (Level.WARN, True)


@pytest.mark.parametrize(
    ("changed", "words", "unknown"),
    [
        (replace(FAST, binding="Immediate"), "binds at once", False),
        (replace(FAST, binding=""), "unknown: when fast binds", True),
        (replace(FAST, reclaim="Retain"), "keeps its volumes", False),
        (replace(FAST, provisioner="kubernetes.io/no-provisioner"), "makes no volumes", False),
        (replace(FAST, provisioner="rancher.io/local-path"), "the node's own disk", False),
    ],
)
def test_what_speaks_against_a_class_is_a_warning(
    changed: StorageClass, words: str, unknown: bool
) -> None:
    (found,) = judge(("fast",), (changed,))
    assert (found.level, found.unknown) == (Level.WARN, unknown)
    assert words in found.text


def test_i4_classes_that_could_not_be_read_are_unknown() -> None:
    (found,) = judge(("fast",), None, "403 forbidden")
    assert (found.level, found.unknown) == (Level.FAIL, True)
    assert "403 forbidden" in found.text
