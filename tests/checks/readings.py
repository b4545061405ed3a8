"""Recorded answers of hosts, and changes to them."""

from pathlib import Path

from stressor.checks import check
from stressor.checks.base import Answer, Facts, Finding, Level, Reading, judge, parse_facts

FIXTURES = Path(__file__).parent / "fixtures"
COLUMNS = 64


def recorded(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text()


def framed(name: str, *lines: str) -> str:
    return "\n".join((f"stressor-facts {name}", *lines, f"end {name}", ""))


def findings(name: str, text: str) -> tuple[Finding, ...]:
    found = judge(check(name), Answer("cp-1", text, 100.0, 100.1))
    assert found
    for finding in found:
        assert (finding.check, finding.host) == (name, "cp-1")
        assert len(finding.text) <= COLUMNS, finding.text
        assert len(finding.remedy) <= COLUMNS, finding.remedy
    return found


def words(name: str, text: str) -> list[tuple[Level, str]]:
    return [(finding.level, finding.text) for finding in findings(name, text)]


def only(name: str, text: str) -> Finding:
    (finding,) = findings(name, text)
    return finding


def reading(name: str, text: str) -> Reading:
    facts = parse_facts(name, text)
    assert isinstance(facts, Facts)
    return Reading("cp-1", facts, 100.0, 100.1)
