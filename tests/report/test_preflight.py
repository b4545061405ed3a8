"""What preflight shows: the worst last, remedies beside it, the same for every reader."""

import json
from xml.etree import ElementTree

from stressor.checks.base import Finding, Level, unknown
from stressor.report.lines import WIDTH
from stressor.report.preflight import Preflight, as_json, as_junit, ending, host_line

FINDINGS = (
    Finding("psi", "n2", Level.PASS, "cpu, io and memory read"),
    Finding("clock", "n1", Level.FAIL, "3.1 s ahead", "chronyc makestep"),
    Finding("psi", "n1", Level.WARN, "pressure is off", "boot with psi=1"),
    unknown("nodes", "", Level.FAIL, "the API names no node", "kubectl get nodes"),
    Finding("sshd", "n1", Level.SKIP, "this machine"),
)
ALL = Preflight("c", ("n1", "n2"), FINDINGS, 1.25)
GOOD = Preflight("c", ("n2",), FINDINGS[:1], 0.5)


def test_failures_come_last_with_their_remedies_and_the_next_command() -> None:
    lines = ending(ALL).splitlines()
    marks = [line.split()[0] for line in lines if line[:1].isupper()]
    assert marks == ["WARN", "FAIL", "FAIL", "FAIL", "NEXT"]
    assert lines[-2] == "FAIL      cluster c: 1 pass, 1 warn, 2 fail, 1 skip"
    assert lines[-1] == "NEXT      stressor preflight"
    after = lines.index("FAIL      n1: clock: 3.1 s ahead") + 1
    assert lines[after].strip() == "-> chronyc makestep"
    assert max(map(len, lines)) <= WIDTH


def test_all_good_leads_to_the_run() -> None:
    assert ending(GOOD).splitlines()[-1] == "NEXT      stressor run PHASEFILE"
    assert (GOOD.exit_code, ALL.exit_code) == (0, 3)


def test_i4_nothing_checked_is_no_pass() -> None:
    assert Preflight("c", (), (), 0.1).exit_code == 3


def test_json_has_the_verdict_and_an_order_of_its_own() -> None:
    document = json.loads(as_json(ALL))
    assert (document["verdict"], document["exit_code"]) == ("fail", 3)
    shuffled = Preflight("c", ("n1", "n2"), FINDINGS[::-1], 1.25)
    assert json.loads(as_json(shuffled)) == document
    assert [one["host"] for one in document["findings"]] == ["", "n1", "n1", "n1", "n2"]


def test_junit_tells_failures_from_what_could_not_be_read() -> None:
    root = ElementTree.fromstring(as_junit(ALL))
    cluster, n1, n2 = root
    assert (cluster.get("errors"), cluster.get("failures")) == ("1", "0")
    assert [child.tag for case in cluster for child in case] == ["error"]
    assert (n1.get("failures"), n1.get("skipped"), n1.get("tests")) == ("1", "1", "3")
    assert [case.find("failure") is None for case in n2] == [True]


def test_what_a_host_said_moves_no_cursor() -> None:
    odd = Finding("psi", "n1", Level.FAIL, "\x1b[2Jgood", "look")
    shown = ending(Preflight("c", ("n1",), (odd,), 0.1))
    assert "\x1b" not in shown
    assert "\x1b" not in as_junit(Preflight("c", ("n1",), (odd,), 0.1))


def test_a_hosts_line_counts_by_level() -> None:
    assert host_line("n1", FINDINGS[1:3], 0.84) == (
        "   0.8s n1                0 pass   1 warn   1 fail   0 skip"
    )
