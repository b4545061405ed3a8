"""Whether /proc/diskstats counts flushes: without it there is no local disk trip."""

from stressor.checks.base import Finding, Level, Reading, script_argv, unknown
from stressor.model import Host

NAME = "flush-count"
_SCRIPT = """\
while IFS= read -r line; do echo "disk=$line"; done </proc/diskstats
"""
FIELDS_WITH_FLUSH = 20
"""Flush requests and their time are fields 19 and 20 of a line, since Linux 5.5
(Documentation/admin-guide/iostats.rst); 4.18 has 18, older kernels 14."""
_NO_DISK = ("loop", "ram", "zram", "fd", "sr")


def argv(host: Host) -> tuple[str, ...]:
    """The lines of /proc/diskstats."""
    return script_argv(NAME, _SCRIPT)


def judge(reading: Reading) -> tuple[Finding, ...]:
    """PASS when each real disk has the columns."""
    rows = [line.split() for line in reading.facts.all("disk")]
    disks = [row for row in rows if len(row) >= 3 and not row[2].startswith(_NO_DISK)]
    if not disks:
        why = "no disk in /proc/diskstats"
        return (unknown(NAME, reading.host, Level.WARN, why, "cat /proc/diskstats as root"),)
    short = [row[2] for row in disks if len(row) < FIELDS_WITH_FLUSH]
    if short:
        text = f"no flush columns ({short[0][:20]}): no local disk trip"
        return (Finding(NAME, reading.host, Level.WARN, text, "needs Linux 5.5 or newer"),)
    text = f"flushes of {len(disks)} disks are counted"
    return (Finding(NAME, reading.host, Level.PASS, text),)
