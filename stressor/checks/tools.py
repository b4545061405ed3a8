"""The programs that guard and scrapes call on the host."""

from stressor.checks.base import Finding, Level, Reading, script_argv, unknown
from stressor.model import Host

NAME = "tools"
_MUST = ("sh", "mkfifo", "mkdir", "chmod", "rm", "rmdir")
"""Without one of them arming fails (stressor/guard/arm.sh)."""
_SHOULD = {
    "grep": "the scan is slow and may block",
    "timeout": "a stuck scan is not ended",
    "setsid": "late-comers may not be killed",
    "sleep": "dash has no dead-man timer",
}
_SCRAPERS = ("curl", "wget", "bash")
_SCRIPT = """\
for tool; do command -v "$tool" >/dev/null 2>&1 && echo "have=$tool" || echo "lack=$tool"; done
"""


def argv(host: Host) -> tuple[str, ...]:
    """Which of the programs are on the PATH of a check."""
    return script_argv(NAME, _SCRIPT, *_MUST, *_SHOULD, *_SCRAPERS)


def judge(reading: Reading) -> tuple[Finding, ...]:
    """FAIL for what arming needs, WARN for what makes it better, PASS when nothing is missing."""
    have = set(reading.facts.all("have"))
    asked = have | set(reading.facts.all("lack"))
    unread = [tool for tool in (*_MUST, *_SHOULD, *_SCRAPERS) if tool not in asked]
    if unread:
        why = f"{', '.join(unread)[:40]}"
        return (unknown(NAME, reading.host, Level.FAIL, why, "run `command -v` there"),)
    found = (*_needed(reading.host, have), *_useful(reading.host, have))
    return found or (Finding(NAME, reading.host, Level.PASS, "all programs found"),)


def _needed(host: str, have: set[str]) -> tuple[Finding, ...]:
    lacking = ", ".join(tool for tool in _MUST if tool not in have)
    if not lacking:
        return ()
    return (Finding(NAME, host, Level.FAIL, f"no {lacking}: no guard", "install coreutils"),)


def _useful(host: str, have: set[str]) -> tuple[Finding, ...]:
    found = [
        Finding(NAME, host, Level.WARN, f"no {tool}: {cost}", f"install {_package(tool)}")
        for tool, cost in _SHOULD.items()
        if tool not in have
    ]
    if not have & set(_SCRAPERS):
        text = "no curl, wget, bash: scrapes by forward only"
        found.append(Finding(NAME, host, Level.WARN, text, "install curl"))
    return tuple(found)


def _package(tool: str) -> str:
    return {"grep": "grep", "setsid": "util-linux"}.get(tool, "coreutils")
