"""What earlier runs left under /run/stressor: a living guard owns the host."""

import re
from dataclasses import dataclass
from enum import StrEnum

from stressor.checks.base import Finding, Level, Reading, script_argv, unknown
from stressor.model import Host

NAME = "leftovers"
# Only the stat line's presence, state and start time are used: a process chooses its own name.
_SCRIPT = """\
[ -e /run/stressor ] || echo folder=none
[ -d /run/stressor ] && [ -r /run/stressor ] && [ -x /run/stressor ] && echo folder=read
for dir in /run/stressor/*/; do
    [ -d "$dir" ] || continue
    run=${dir%/}
    run=${run##*/}
    case $run in *[!a-z0-9-]*) run='?' ;; esac
    echo "run=$run"
    [ -e "$dir/tombstone" ] && echo "tombstone=$run"
    word=''
    { read -r word <"$dir/proof"; } 2>/dev/null
    case $word in
    CLEAN | STOPPED) echo "proven=$run" ;;
    *) [ -e "$dir/proof" ] && echo "unproven=$run" ;;
    esac
    { read -r who <"$dir/holder"; } 2>/dev/null && echo "holder=$run $who"
    for file in "$dir"/guard.pid "$dir"/claim.*; do
        pid=''
        { read -r pid start <"$file"; } 2>/dev/null
        case $pid in '' | *[!0-9]*) continue ;; esac
        { read -r stat <"/proc/$pid/stat"; } 2>/dev/null || continue
        echo "guard=$run $pid ${start:--} ${stat##*) }"
    done
done
"""
_RUN = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


@dataclass(frozen=True, slots=True)
class Owner:
    """A run whose guard lives on a host. `who` started it, by its own word; "-" where unsaid."""

    run: str
    pid: str
    who: str


class Hold(StrEnum):
    """What a run is to a host. UNPROVEN: its folder is there, no guard lives, and the last word of a
    kill there, if any, was no proof. A tombstone is no such word: it comes before the kill."""

    FREE = "free"
    HELD = "held"
    UNPROVEN = "unproven"


def argv(host: Host) -> tuple[str, ...]:
    """The runs' folders, their tombstones, and the processes that their guards' files name."""
    return script_argv(NAME, _SCRIPT)


def judge(reading: Reading) -> tuple[Finding, ...]:
    """A living guard: FAIL. A folder without guard or tombstone: its guard died, WARN. A kill whose
    last word was no proof: WARN. Tombstones alone are how a run ends: PASS."""
    facts, host = reading.facts, reading.host
    if facts.one("folder") == "none":
        return (Finding(NAME, host, Level.PASS, "nothing of earlier runs"),)
    if facts.one("folder") is None:
        return (unknown(NAME, host, Level.FAIL, "/run/stressor", "ls -l /run/stressor as root"),)
    ended = set(facts.all("tombstone"))
    living = owners(reading)
    dead = sorted(set(facts.all("run")) - ended - {owner.run for owner in living})
    unproven = sorted(set(facts.all("unproven")) & ended - {owner.run for owner in living})
    found = (
        *_held(host, living),
        *_dead(host, dead, "lost its guard"),
        *_dead(host, unproven, "killed, not proven dead"),
    )
    text = f"tombstones of {len(ended)} ended runs, no guard"
    return found or (Finding(NAME, host, Level.PASS, text),)


def owners(reading: Reading) -> tuple[Owner, ...]:
    """The runs whose guards live on the host: it is theirs until they end."""
    facts = reading.facts
    who = dict(line.split(" ", 1) for line in facts.all("holder") if " " in line)
    living = dict(filter(None, map(_living, facts.all("guard"))))
    return tuple(Owner(run, pid, who.get(run, "-")[:64]) for run, pid in living.items())


def hold(reading: Reading, run: str) -> Hold | None:
    """What `run` is to the host; None when /run/stressor could not be read."""
    facts = reading.facts
    if facts.one("folder") == "none":
        return Hold.FREE
    if facts.one("folder") is None:
        return None
    if any(owner.run == run for owner in owners(reading)):
        return Hold.HELD
    killed = run in facts.all("tombstone") and run in facts.all("proven")
    return Hold.FREE if killed or run not in facts.all("run") else Hold.UNPROVEN


def _living(line: str) -> tuple[str, str] | None:
    """Run and pid, when the process with that pid is the one that wrote the file.

    The line: run, pid, start time as noted, then /proc/PID/stat from its third field (state) on;
    the start time is field 22.
    """
    words = line.split()
    if len(words) < 23:
        return None
    run, pid, noted, *stat = words
    if stat[0] in ("Z", "X", "x") or stat[19] != noted:
        return None
    return run, pid


def _held(host: str, living: tuple[Owner, ...]) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            NAME,
            host,
            Level.FAIL,
            f"run {owner.run[:24]}{_of(owner)} has a guard here (pid {owner.pid[:10]})",
            f"wait, or {abort_command(owner.run)}",
        )
        for owner in living
    )


def _of(owner: Owner) -> str:
    return "" if owner.who == "-" else f" of {owner.who}"


def _dead(host: str, runs: list[str], why: str) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            NAME,
            host,
            Level.WARN,
            f"run {run[:24]} {why}: load may live",
            abort_command(run),
        )
        for run in runs
    )


def abort_command(run: str) -> str:
    """The command, where the name can be a run's: it comes from the host."""
    if _RUN.fullmatch(run):
        return f"stressor abort --run {run}"
    return "look into /run/stressor as root"
