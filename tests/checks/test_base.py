"""Findings, their order, and the frame of facts."""

from itertools import pairwise

import pytest

from stressor.checks import CHECKS, check
from stressor.checks.base import (
    Answer,
    Check,
    Finding,
    Level,
    by_host,
    judge,
    parse_facts,
    repeated,
    script_argv,
    unknown,
    worst,
)
from stressor.model import Host, Route
from tests.checks.readings import framed, recorded

HOST = Host("cp-1", (Route("10.0.0.1"),), scratch_dir="/srv/a b", etcd_data_dir="/var/lib/etcd")


def finding(level: Level, host: str = "cp-1", name: str = "x") -> Finding:
    return Finding(name, host, level, f"{level} here", "do it")


@pytest.mark.parametrize("level", [Level.WARN, Level.FAIL])
def test_what_is_bad_has_a_remedy(level: Level) -> None:
    with pytest.raises(ValueError, match="without a remedy"):
        Finding("x", "cp-1", level, "bad", "  ")
    assert Finding("x", "cp-1", level, "bad", "do it").level is level


@pytest.mark.parametrize("level", [Level.PASS, Level.SKIP])
def test_i4_unknown_never_passes(level: Level) -> None:
    with pytest.raises(ValueError, match="unknown is said"):
        unknown("x", "cp-1", level, "no file", "look")
    with pytest.raises(ValueError, match="unknown is said"):
        Finding("x", "cp-1", Level.WARN, "no file", "look", unknown=True)


def test_the_worst_of_findings() -> None:
    order = [Level.PASS, Level.SKIP, Level.WARN, Level.FAIL]
    for better, worse in pairwise(order):
        assert worst([finding(worse), finding(better)]) is worse
        assert worst([finding(better), finding(worse)]) is worse


def test_i4_nothing_checked_is_no_pass() -> None:
    assert worst([]) is Level.FAIL


def test_failures_are_repeated_last() -> None:
    levels = [Level.FAIL, Level.PASS, Level.WARN, Level.SKIP, Level.FAIL]
    found = [finding(level, f"h{at}") for at, level in enumerate(levels)]
    assert repeated(found) == (found[2], found[0], found[4])


def test_findings_are_in_the_order_of_the_hosts() -> None:
    found = [finding(Level.PASS, "b"), finding(Level.PASS, "a", "y"), finding(Level.PASS, "a")]
    cluster = finding(Level.PASS, "")
    assert by_host([*found, cluster], ["a", "b"]) == (cluster, found[2], found[1], found[0])


def test_facts_are_read_behind_the_noise_of_a_login() -> None:
    noise = "Welcome!\nkey=noise\nstressor-facts other\nend x\n"
    facts = parse_facts("x", noise + framed("x", "key=a=b", "key= c", "no fact", "none="))
    assert facts is not None
    assert facts.all("key") == ("a=b", "c")
    assert (facts.one("key"), facts.one("none"), facts.one("else")) == ("c", None, None)


@pytest.mark.parametrize(
    "text", ["", "stressor-facts x\nkey=a\n", "key=a\nend x\n", "end x\nstressor-facts x\n"]
)
def test_i4_an_answer_without_its_frame_is_none(text: str) -> None:
    assert parse_facts("x", text) is None


@pytest.mark.parametrize("name", [each.NAME for each in CHECKS])
def test_i4_no_answer_and_half_an_answer_are_unknown(name: str) -> None:
    (silent,) = judge(check(name), Answer("cp-1", None, 1.0, 9.0, "no answer in 8 s"))
    assert (silent.level, silent.text) == (Level.FAIL, "unknown: no answer in 8 s")
    (cut,) = judge(check(name), Answer("cp-1", f"stressor-facts {name}\n", 1.0, 2.0))
    assert (cut.level, cut.text) == (Level.FAIL, "unknown: the answer was cut off")
    assert cut.remedy == f"stressor preflight --only {name}"


@pytest.mark.parametrize("name", [each.NAME for each in CHECKS])
def test_i4_an_answer_without_facts_never_passes(name: str) -> None:
    found = judge(check(name), Answer("cp-1", framed(name), 100.0, 100.1))
    assert all(each.level in (Level.WARN, Level.FAIL) for each in found)


def test_each_check_has_a_name_of_its_own() -> None:
    names = [each.NAME for each in CHECKS]
    assert len(set(names)) == len(names)
    assert [check(name) for name in names] == list(CHECKS)
    with pytest.raises(KeyError):
        check("no-such")


@pytest.mark.parametrize("each", CHECKS, ids=lambda each: each.NAME)
def test_data_is_an_argument_and_never_script(each: Check) -> None:
    shell, option, script, _, *given = each.argv(HOST)
    assert (shell, option) == ("sh", "-c")
    assert script == each.argv(Host("w", (Route("10.0.0.2"),)))[2]
    assert f"stressor-facts {each.NAME}'\n" in script
    if each.NAME == "free-disk":
        assert given == ["/run", "/var/lib", "/srv/a b", "/var/lib/etcd"]


def test_the_frame_starts_on_a_line_of_its_own() -> None:
    assert "\necho\necho 'stressor-facts x'\n" in script_argv("x", "true")[2]
    assert recorded("clock-root").startswith("\nstressor-facts clock\n")
