"""The settings of sshd on a host against the logins that a run and an abort make there.

`sshd -T` leaves Match blocks out: what they change shows in the timed login only.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stressor.checks.base import Finding, Level, Reading, script_argv, unknown
from stressor.model import Host

NAME = "sshd"
_SCRIPT = """\
limit=''
command -v timeout >/dev/null 2>&1 && limit='timeout -s KILL 5'
$limit sshd -T 2>/dev/null </dev/null | while read -r key value; do
    echo "$key=$value"
    [ "$key $value" = 'usedns yes' ] && [ -n "$limit" ] || continue
    { timeout -s KILL 3 getent hosts 192.0.2.1 >/dev/null </dev/null; } 2>/dev/null
    [ "$?" -eq 137 ] && echo 'stressor-lookup=slow'
done
"""
_STARTUPS = re.compile(r"(\d+):(\d+):(\d+)")
_PENALTY_S = re.compile(r"(\w+(?:-\w+)*):(\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class Load:
    """What this sshd must take. `handshakes` at the same moment (a jump host has those of all the
    hosts behind it), `sessions` side by side on one connection, and whether hosts lie behind it."""

    handshakes: int
    sessions: int
    is_jump: bool = False


def argv(host: Host) -> tuple[str, ...]:
    """The settings in effect, Match blocks apart. With UseDNS, an address is looked up as sshd does
    it with ours: one that is for documentation (RFC 5737), so that only a resolver can answer."""
    return script_argv(NAME, _SCRIPT)


def judge(reading: Reading, load: Load) -> tuple[Finding, ...]:
    """One finding a setting that stands in the way, else PASS."""
    settings = {key.lower(): values[-1] for key, values in reading.facts.values.items()}
    if "port" not in settings:
        why = "sshd -T said nothing"
        return (unknown(NAME, reading.host, Level.WARN, why, "sshd -T as root: read the error"),)
    found = tuple(
        Finding(NAME, reading.host, bad.level, bad.text, bad.remedy, bad.unknown)
        for bad in _found(settings, load)
    )
    text = f"fits {load.handshakes} logins at once"
    return found or (Finding(NAME, reading.host, Level.PASS, text),)


@dataclass(frozen=True, slots=True)
class _Bad:
    level: Level
    text: str
    remedy: str
    unknown: bool = False


_Found = Iterator[_Bad]


def _found(settings: Mapping[str, str], load: Load) -> _Found:
    yield from _startups(settings.get("maxstartups", ""), load.handshakes)
    yield from _per_source(settings.get("persourcemaxstartups", "none"), load.handshakes)
    yield from _sessions(settings.get("maxsessions", ""), load.sessions)
    yield from _penalties(settings, load.handshakes)
    yield from _forwarding(settings, is_jump=load.is_jump)
    if settings.get("usedns") == "yes":
        # Only a warning even so: what it does to a login now is measured, and fails where it must.
        slow = settings.get("stressor-lookup") == "slow"
        text = "a look-up takes more than 3 s now" if slow else "a login waits for dead resolvers"
        yield _Bad(Level.WARN, f"UseDNS yes: {text}", "UseDNS no")
    if settings.get("gssapiauthentication") == "yes":
        text = "GSSAPIAuthentication yes: a login may wait for dead resolvers"
        yield _Bad(Level.WARN, text, "GSSAPIAuthentication no")


def _startups(value: str, handshakes: int) -> _Found:
    """Above `begin` sshd drops new logins by chance: 10:30:100 let 13 to 15 of 16 through, and 37
    to 51 of 64; with 200 all of 64. At `full` it drops all (sshd_config(5))."""
    limits = _STARTUPS.fullmatch(value)
    if limits is None:
        yield _Bad(Level.WARN, "MaxStartups unknown", "sshd -T | grep -i maxstartups", unknown=True)
        return
    begin, full = int(limits[1]), int(limits[3])
    if handshakes > begin:
        level = Level.FAIL if handshakes > full else Level.WARN
        text = f"MaxStartups {value[:12]}: drops some of {handshakes} logins"
        remedy = f"MaxStartups {handshakes * 2}:30:{max(handshakes * 4, 100)}"
        yield _Bad(level, text, remedy)


def _per_source(value: str, handshakes: int) -> _Found:
    """Logins under way from one address, all of ours: what is above is dropped, always. OpenSSH 8.5
    and later; absent before."""
    if value.isdigit() and int(value) < handshakes:
        text = f"PerSourceMaxStartups {value[:6]}: drops some of {handshakes} logins"
        yield _Bad(Level.FAIL, text, f"PerSourceMaxStartups {handshakes * 2}, or none")
    elif not value.isdigit() and value != "none":
        remedy = "sshd -T | grep -i persourcemaxstartups"
        yield _Bad(Level.WARN, "PerSourceMaxStartups unknown", remedy, unknown=True)


def _sessions(value: str, sessions: int) -> _Found:
    """The session after the last allowed one is refused on the same connection."""
    if not value.isdigit():
        yield _Bad(Level.WARN, "MaxSessions unknown", "sshd -T | grep -i maxsessions", unknown=True)
    elif int(value) < sessions:
        text = f"MaxSessions {value[:6]}: {sessions} are needed"
        yield _Bad(Level.FAIL, text, f"MaxSessions {max(sessions, 10)}")


def _penalties(settings: Mapping[str, str], handshakes: int) -> _Found:
    """Each failed login costs its source seconds, and from `min` on the source is refused: one
    fan-out that fails must not lock the operator out. OpenSSH 9.8 and later; absent before."""
    value = settings.get("persourcepenalties", "no")
    exempt = settings.get("persourcepenaltyexemptlist", "none")
    if value == "no" or exempt != "none":
        return
    cost_s = {key: float(amount) for key, amount in _PENALTY_S.findall(value)}
    if not {"authfail", "noauth", "min"} <= cost_s.keys():
        text, remedy = "PerSourcePenalties unknown", "PerSourcePenaltyExemptList YOUR-IP"
        yield _Bad(Level.WARN, text, remedy, unknown=True)
    elif handshakes * max(cost_s["authfail"], cost_s["noauth"]) >= cost_s["min"]:
        text = f"PerSourcePenalties: {handshakes} failed logins lock us out"
        yield _Bad(Level.WARN, text, "PerSourcePenaltyExemptList YOUR-IP")


def _forwarding(settings: Mapping[str, str], *, is_jump: bool) -> _Found:
    """`local` and `yes` allow what scrapes and jumps need; DisableForwarding overrides both."""
    value = settings.get("allowtcpforwarding", "unknown")
    if settings.get("disableforwarding") == "yes":
        value = "no (DisableForwarding)"
    if value in ("yes", "all", "local"):
        return
    unread = value == "unknown"
    text = f"AllowTcpForwarding {value[:24]}: "
    if is_jump:
        remedy = "AllowTcpForwarding local; DisableForwarding no"
        yield _Bad(Level.FAIL, f"{text}no jump", remedy, unread)
    else:
        remedy = "have curl, wget or bash there, or allow local"
        yield _Bad(Level.WARN, f"{text}no forward", remedy, unread)
