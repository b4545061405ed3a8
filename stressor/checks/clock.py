"""The host's wall clock against the caller's.

The entry point of a load pod compares two absolute times with its node's clock: START_BY, 60 s
after the creation of its Job, and the deadline. A node that is slow by n seconds starts load up to
n seconds after the last moment that stressor believes in, and ends it n seconds late.
"""

import re

from stressor.checks.base import Finding, Level, Reading, script_argv, unknown
from stressor.model import Host

NAME = "clock"
_SCRIPT = 'echo "unix=$(date +%s.%N </dev/null)"'
FAIL_OFFSET_S = 2.0
"""The margin between the 60 s of START_BY and the 62 s for which a run expects load to arrive
(core.stopping): an offset as large uses it up, and load may start on a host counted clean."""
WARN_OFFSET_S = 0.5
"""A synchronised clock is off by milliseconds, so this one is not. From here a quartz that runs
free at 100 ppm is at FAIL_OFFSET_S after four hours, in the middle of a soak."""
_UNIX = re.compile(r"(\d{9,11})(?:\.(\d{1,9})?.*)?")


def argv(host: Host) -> tuple[str, ...]:
    """The host's time."""
    return script_argv(NAME, _SCRIPT)


def judge(reading: Reading) -> tuple[Finding, ...]:
    """The offset, uncertain by half the round trip: the host read its clock at some moment in it.

    FAIL only when proven, PASS only when proven; WARN between, and unknown where the round trip
    was too slow to tell.
    """
    found = _UNIX.fullmatch(reading.facts.one("unix") or "")
    remedy = "chronyc tracking; timedatectl: synchronise it"
    trip_s = reading.received_unix_s - reading.sent_unix_s
    if found is None or trip_s < 0:
        why = "date gave no time" if found is None else "the caller's clock was set back"
        return (unknown(NAME, reading.host, Level.FAIL, why, remedy),)
    # busybox's date has no nanoseconds: then the time is somewhere in the second that it names.
    blur_s = 0.0 if found[2] else 0.5
    host_s = float(f"{found[1]}.{found[2] or '5'}")
    offset_s = host_s - (reading.sent_unix_s + reading.received_unix_s) / 2
    return (_judged(reading.host, offset_s, trip_s / 2 + blur_s, remedy),)


def _judged(host: str, offset_s: float, error_s: float, remedy: str) -> Finding:
    text = f"{offset_s:+.2f} s +- {error_s:.2f} s against here"
    least_s, most_s = abs(offset_s) - error_s, abs(offset_s) + error_s
    if least_s >= FAIL_OFFSET_S:
        return Finding(NAME, host, Level.FAIL, text, remedy)
    if most_s <= WARN_OFFSET_S:
        return Finding(NAME, host, Level.PASS, text)
    if least_s <= WARN_OFFSET_S:
        return unknown(NAME, host, Level.WARN, text, remedy)
    return Finding(NAME, host, Level.WARN, text, remedy)
