"""Preflight's findings as a screen, as JSON and as JUnit: a line a host as it answers, what is bad
again at the end with its remedy, the verdict and the next command last."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from stressor.checks.base import Finding, Level, by_host, repeated, worst
from stressor.errors import ExitCode
from stressor.journal import encode
from stressor.report.lines import RULE, ascii_only, command, item, row

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Preflight:
    """All that was found, for the hosts in inventory order."""

    cluster: str
    hosts: tuple[str, ...]
    findings: tuple[Finding, ...]
    took_s: float
    load: str = "PHASEFILE"
    """The phase file or plan that was asked about, as a shell wants it."""
    by_hand: tuple[str, ...] = ()
    """For each route with a known host key, the abort that needs no file of this machine."""

    @property
    def verdict(self) -> Level:
        return worst(self.findings)

    @property
    def exit_code(self) -> ExitCode:
        """3 with any FAIL: a run would be refused, or could not be stopped."""
        return ExitCode.REFUSED if self.verdict is Level.FAIL else ExitCode.PASS

    @property
    def next_command(self) -> str:
        return "stressor preflight" if self.verdict is Level.FAIL else f"stressor run {self.load}"

    def ordered(self) -> tuple[Finding, ...]:
        """The findings in an order that does not change with who answered first."""
        return by_host(self.findings, self.hosts)


def host_line(host: str, findings: Iterable[Finding], at_s: float) -> str:
    """One line for a host that has answered; `host` empty: the cluster."""
    counts = Counter(finding.level for finding in findings)
    words = "  ".join(f"{counts[level]:>2} {level}" for level in Level)
    return f"{at_s:6.1f}s {ascii_only(host or '(cluster)')[:16]:<16} {words}"


def ending(preflight: Preflight) -> str:
    """What is bad again, the verdict, the next command."""
    return "\n".join(_ending(preflight)) + "\n"


def _ending(preflight: Preflight) -> Iterator[str]:
    if preflight.by_hand:
        yield from row("BY HAND", "from any machine, with the key and without any file:")
        for line in preflight.by_hand:
            yield from command(line)
    bad = repeated(preflight.ordered())
    if bad:
        yield RULE
    for finding in bad:
        yield from finding_lines(finding)
    yield RULE
    counts = Counter(finding.level for finding in preflight.findings)
    said = ", ".join(f"{counts[level]} {level}" for level in Level)
    yield from row(preflight.verdict.upper(), f"cluster {preflight.cluster}: {said}")
    yield from row("NEXT", preflight.next_command)


def finding_lines(finding: Finding) -> Iterator[str]:
    """A finding and its remedy."""
    where = f"{finding.host}: " if finding.host else ""
    yield from row(finding.level.upper(), f"{where}{finding.check}: {finding.text}")
    yield from item(f"-> {finding.remedy}", 10)


def as_json(preflight: Preflight) -> str:
    """One JSON object, ending in a newline."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "verdict": preflight.verdict.value,
        "exit_code": int(preflight.exit_code),
        "next_command": preflight.next_command,
        "cluster": preflight.cluster,
        "took_s": round(preflight.took_s, 3),
        "by_hand": list(preflight.by_hand),
        "findings": [encode(finding) for finding in preflight.ordered()],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def as_junit(preflight: Preflight) -> str:
    """A suite a host, a case a finding: FAIL is a failure, what could not be read an error, and a
    warning passes with its words in the output (JUnit knows no warning)."""
    root = ElementTree.Element("testsuites", name=f"stressor preflight {preflight.cluster}")
    ordered = preflight.ordered()
    for host in ("", *preflight.hosts):
        own = [finding for finding in ordered if finding.host == host]
        if own:
            root.append(_suite(host, own))
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(host: str, findings: Sequence[Finding]) -> ElementTree.Element:
    failed = [f for f in findings if f.level is Level.FAIL]
    errors = len([f for f in failed if f.unknown])
    suite = ElementTree.Element(
        "testsuite",
        name=host or "cluster",
        tests=str(len(findings)),
        failures=str(len(failed) - errors),
        errors=str(errors),
        skipped=str(len([f for f in findings if f.level is Level.SKIP])),
    )
    for finding in findings:
        suite.append(_case(host, finding))
    return suite


def _case(host: str, finding: Finding) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname=host or "cluster", name=finding.check)
    text = ascii_only(finding.text)
    match finding.level:
        case Level.FAIL:
            kind = "error" if finding.unknown else "failure"
            ElementTree.SubElement(case, kind, message=text).text = ascii_only(finding.remedy)
        case Level.SKIP:
            ElementTree.SubElement(case, "skipped", message=text)
        case Level.WARN:
            words = f"WARN {text} -> {ascii_only(finding.remedy)}"
            ElementTree.SubElement(case, "system-out").text = words
        case Level.PASS:
            ElementTree.SubElement(case, "system-out").text = text
    return case
