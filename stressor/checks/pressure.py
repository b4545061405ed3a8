"""Whether the kernel's stall totals (PSI) can be read: by reading, because some kernels show the
files and answer the read with EOPNOTSUPP (docs/signals.md)."""

import re

from stressor.checks.base import Finding, Level, Reading, script_argv, unknown
from stressor.model import Host

NAME = "psi"
_RESOURCES = ("cpu", "io", "memory")
_SCRIPT = """\
for what in cpu io memory; do
    cat "/proc/pressure/$what" 2>&1 </dev/null | while IFS= read -r line; do
        echo "$what=$line"
    done
done
"""
_SOME = re.compile(r"some avg10=\S+ avg60=\S+ avg300=\S+ total=\d+")


def argv(host: Host) -> tuple[str, ...]:
    """The texts of /proc/pressure, or what the read answered."""
    return script_argv(NAME, _SCRIPT)


def judge(reading: Reading) -> tuple[Finding, ...]:
    """WARN where one cannot be read: the gates on it stay without a value."""
    lines = {what: reading.facts.all(what) for what in _RESOURCES}
    if not any(lines.values()):
        why = "nothing was read of /proc/pressure"
        return (unknown(NAME, reading.host, Level.WARN, why, "cat /proc/pressure/io as root"),)
    unread = [what for what in _RESOURCES if not any(map(_SOME.fullmatch, lines[what]))]
    if not unread:
        return (Finding(NAME, reading.host, Level.PASS, "cpu, io, memory can be read"),)
    why = _reason((*lines[unread[0]], "no total")[0])
    text = f"{', '.join(unread)} cannot be read ({why})"
    remedy = "boot with psi=1 (kernel: CONFIG_PSI=y)"
    return (Finding(NAME, reading.host, Level.WARN, text, remedy),)


def _reason(line: str) -> str:
    """The system's words at the end of `cat: FILE: words`."""
    return line.rpartition(": ")[2][:30]
