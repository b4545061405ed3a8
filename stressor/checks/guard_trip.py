"""A guard's round trip: does the script start under this host's shell, and does it answer?

The guard is started as a run starts it, refuses a beat because it is not armed, and ends. It leaves
nothing behind; arming, which takes the host's lock, is the drill's part.
"""

from stressor.checks.base import Finding, Level, unknown

NAME = "guard"
SLOW_S = 2.0
"""A guard starts once, at arming, which waits 20 s; more than this has a cause that an abort meets,
too. On the lab it takes a tenth of a second."""
_REMEDY = "stressor drill --host NAME says more; is sh there a POSIX shell?"


def judge(host: str, answered: bool, took_s: float, problem: str = "") -> tuple[Finding, ...]:
    """`answered`: both orders were answered as the protocol has it; else `problem` says what came
    instead. `took_s` is from the order to start to the end."""
    if not answered:
        remedy = _REMEDY.replace("NAME", host)
        return (unknown(NAME, host, Level.FAIL, f"no guard: {problem}", remedy),)
    text = f"starts, answers and ends in {took_s:.2f} s"
    if took_s > SLOW_S:
        return (Finding(NAME, host, Level.WARN, text, "a slow disk or shell; load of the host"),)
    return (Finding(NAME, host, Level.PASS, text),)
