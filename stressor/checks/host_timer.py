"""The host timer: whether PID 1 can run the kill at the deadline, whatever became of the guard."""

from stressor.checks.base import Finding, Level, Reading, script_argv, unknown
from stressor.model import Host

NAME = "host-timer"
_SCRIPT = """\
command -v systemd-run >/dev/null 2>&1 && echo systemd_run=found
[ -d /run/systemd/system ] && echo pid1=systemd
limit=''
command -v timeout >/dev/null 2>&1 && limit='timeout -s KILL 3'
echo "state=$($limit systemctl is-system-running 2>/dev/null </dev/null)"
"""
_READY = ("running", "degraded")


def argv(host: Host) -> tuple[str, ...]:
    """Whether systemd-run exists, systemd is PID 1, and PID 1 answers within 3 s."""
    return script_argv(NAME, _SCRIPT)


def judge(reading: Reading) -> tuple[Finding, ...]:
    """WARN at worst: the timer is one of four deadlines that each suffice alone (I2)."""
    facts, host = reading.facts, reading.host
    if facts.one("systemd_run") is None:
        return (_missing(host, "no systemd-run", "install systemd, or watch the deadline"),)
    if facts.one("pid1") is None:
        return (_missing(host, "PID 1 is not systemd", "watch the deadline yourself"),)
    state = facts.one("state")
    if state is None:
        why = "PID 1 did not answer within 3 s"
        return (unknown(NAME, host, Level.WARN, why, "systemctl is-system-running"),)
    if state not in _READY:
        return (_missing(host, f"systemd is {state[:20]}", "wait until it is running"),)
    return (Finding(NAME, host, Level.PASS, f"systemd-run, systemd is {state}"),)


def _missing(host: str, why: str, remedy: str) -> Finding:
    return Finding(NAME, host, Level.WARN, f"{why}: no timer at the deadline", remedy)
