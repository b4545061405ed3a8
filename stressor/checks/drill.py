"""Whether the ways of an abort were tried on each host, lately, and as they are now."""

from collections.abc import Sequence
from dataclasses import dataclass

from stressor.checks.base import Finding, Level, unknown

NAME = "drill"
FRESH_S = 30 * 24 * 3600.0
"""A month (design.md): keys, sudoers and firewalls change at about that pace."""
CLOCK_SLACK_S = 300.0
"""A drill may seem to lie ahead when clocks were set; more than this is no date to trust."""
WAYS = ("cold", "guard", "script")
_REMEDY = "stressor drill"


@dataclass(frozen=True, slots=True)
class Drilled:
    """What is known of the last proven drill of a host. `access` is a digest of the ways in as
    they were then."""

    host: str
    at_unix_s: float
    ways: tuple[str, ...]
    access: str


@dataclass(frozen=True, slots=True)
class Now:
    """A host as it is to be reached today."""

    host: str
    access: str


def judge(
    hosts: Sequence[Now], drills: Sequence[Drilled], *, now_unix_s: float
) -> tuple[Finding, ...]:
    """One finding a host. FAIL: an abort that nobody has tried is no abort (I1)."""
    known = {drill.host: drill for drill in drills}
    return tuple(_host(host, known.get(host.host), now_unix_s) for host in hosts)


def _host(now: Now, drill: Drilled | None, now_unix_s: float) -> Finding:
    if drill is None:
        return Finding(NAME, now.host, Level.FAIL, "no abort was ever tried here", _REMEDY)
    age_s = now_unix_s - drill.at_unix_s
    if age_s < -CLOCK_SLACK_S:
        why = "the last drill lies in the future"
        return unknown(NAME, now.host, Level.FAIL, why, _REMEDY)
    days = max(0.0, age_s) / 86400
    missing = [way for way in WAYS if way not in drill.ways]
    if missing:
        text = f"the last drill did not prove: {', '.join(missing)}"
        return Finding(NAME, now.host, Level.FAIL, text, _REMEDY)
    if age_s > FRESH_S:
        text = f"the last drill is {days:.0f} days old"
        return Finding(NAME, now.host, Level.FAIL, text, _REMEDY)
    if drill.access != now.access:
        text = "routes, keys or sudo have changed since the drill"
        return Finding(NAME, now.host, Level.FAIL, text, _REMEDY)
    return Finding(NAME, now.host, Level.PASS, f"{len(WAYS)} ways proven {days:.1f} days ago")
