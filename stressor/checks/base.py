"""What a check is: a script for the host that prints facts, and a pure judgement of them.

Facts in, findings out, as in pyinfra. The script is POSIX sh, runs as root through `Remote.run`,
and frames its facts (`key=value` lines) with its name: noise of a login before the frame is
ignored, and output that was cut off is no answer. What could not be read is said to be unknown and
is never PASS (I4).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from stressor.model import Host

_PROLOGUE = """\
unset TMOUT BASH_ENV ENV CDPATH GREP_OPTIONS
LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin:$PATH
export LC_ALL PATH
"""


class Level(StrEnum):
    """How bad a finding is. FAIL: no load is started. SKIP: the check does not apply here."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    SKIP = "skip"


_SEVERITY = (Level.PASS, Level.SKIP, Level.WARN, Level.FAIL)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of preflight. `host` is empty for what concerns the whole cluster. `unknown` marks
    what could not be read: then the level is WARN or FAIL and the text says "unknown".

    Raises ValueError for a WARN or FAIL without a remedy, and for an unknown that passes.
    """

    check: str
    host: str
    level: Level
    text: str
    remedy: str = ""
    unknown: bool = False

    def __post_init__(self) -> None:
        bad = self.level in (Level.WARN, Level.FAIL)
        if bad and not self.remedy.strip():
            raise ValueError(f"{self.check}: {self.level} without a remedy: {self.text}")
        if self.unknown and not (bad and "unknown" in self.text):
            raise ValueError(f"{self.check}: unknown is said, and is WARN or FAIL: {self.text}")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a host answered to a check's script. `text` None: nothing, and `problem` says why. The
    caller's clock gives the Unix times just before sending and just after receiving."""

    host: str
    text: str | None
    sent_unix_s: float
    received_unix_s: float
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts in an answer: each key with its values, in the order in which they came."""

    values: Mapping[str, tuple[str, ...]]

    def one(self, key: str) -> str | None:
        """The last value of `key`; None when there is none or it is empty."""
        return (self.values.get(key) or ("",))[-1] or None

    def all(self, key: str) -> tuple[str, ...]:
        """Every value of `key`."""
        return self.values.get(key, ())


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer whose facts arrived whole."""

    host: str
    facts: Facts
    sent_unix_s: float
    received_unix_s: float


class Check(Protocol):
    """One check of a host; each is a module of this package."""

    NAME: str

    def argv(self, host: Host) -> tuple[str, ...]:
        """What to run on `host`, as root."""
        ...

    def judge(self, reading: Reading) -> tuple[Finding, ...]:
        """The findings, at least one."""
        ...


def script_argv(name: str, body: str, *words: str) -> tuple[str, ...]:
    """An argv that runs the constant `body` in the frame of check `name`. `words` are its "$@":
    data never becomes script."""
    framed = f"{_PROLOGUE}echo\necho 'stressor-facts {name}'\n{body}\necho 'end {name}'\n"
    return ("sh", "-c", framed, "stressor-check", *words)


_JOINED = """\
while [ "$#" -gt 1 ]; do
    count=$1 script=$2 at=0
    shift 2
    (
        total=$#
        while [ "$at" -lt "$total" ]; do
            word=$1
            shift
            [ "$at" -lt "$count" ] && set -- "$@" "$word"
            at=$((at + 1))
        done
        exec sh -c "$script" stressor-check "$@" </dev/null
    )
    shift "$count"
done
"""


def joined(scripts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """One argv that runs the argvs of `script_argv` one after the other, for one session instead
    of many. Each frame of the answer is whole or missing by itself."""
    words: list[str] = []
    for argv in scripts:
        script, data = argv[2], argv[4:]
        words += [str(len(data)), script, *data]
    return ("sh", "-c", _JOINED, "stressor-checks", *words)


def parse_facts(name: str, text: str) -> Facts | None:
    """The facts in the frame of check `name`; None when the frame is missing or was cut off."""
    lines = text.splitlines()
    try:
        start = lines.index(f"stressor-facts {name}")
        end = lines.index(f"end {name}", start)
    except ValueError:
        return None
    values: dict[str, tuple[str, ...]] = {}
    for line in lines[start + 1 : end]:
        key, separator, value = line.partition("=")
        if separator:
            values[key] = (*values.get(key, ()), value.strip())
    return Facts(values)


def read(name: str, answer: Answer) -> Reading | str:
    """The reading of check `name` in `answer`, or why there is none."""
    facts = None if answer.text is None else parse_facts(name, answer.text)
    if facts is None:
        return answer.problem or "the answer was cut off"
    return Reading(answer.host, facts, answer.sent_unix_s, answer.received_unix_s)


def judge(check: Check, answer: Answer) -> tuple[Finding, ...]:
    """What `check` makes of `answer`; a FAIL that says unknown when there is none to judge."""
    reading = read(check.NAME, answer)
    if isinstance(reading, str):
        remedy = f"stressor preflight --only {check.NAME}"
        return (unknown(check.NAME, answer.host, Level.FAIL, reading, remedy),)
    return check.judge(reading)


def unknown(check: str, host: str, level: Level, why: str, remedy: str) -> Finding:
    """A finding about what could not be read. Raises ValueError when `level` is no WARN or FAIL."""
    return Finding(check, host, level, f"unknown: {why}", remedy, unknown=True)


def worst(findings: Iterable[Finding]) -> Level:
    """The worst level: FAIL, then WARN, SKIP, PASS. No finding at all is FAIL: nothing was
    checked."""
    return max((f.level for f in findings), key=_SEVERITY.index, default=Level.FAIL)


def repeated(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """What the screen says again at its end: warnings, then failures, so that the worst is what is
    still in view; each in the order in which they were found."""
    bad = (f for f in findings if f.level in (Level.WARN, Level.FAIL))
    return tuple(sorted(bad, key=lambda f: _SEVERITY.index(f.level)))


def by_host(findings: Iterable[Finding], hosts: Iterable[str]) -> tuple[Finding, ...]:
    """The findings in the order of `hosts`, those of other hosts and of the cluster first. Answers
    arrive in any order; text, JSON and JUnit do not change with it."""
    place = {host: at for at, host in enumerate(hosts)}
    return tuple(sorted(findings, key=lambda f: (place.get(f.host, -1), f.check)))
