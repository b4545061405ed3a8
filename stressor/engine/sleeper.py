"""Something harmless to kill: a sleep with the marks of load, on a host, for a drill.

Like all load outside of a pod it runs under `timeout`, and in a transient scope of its run with
RuntimeMaxSec (I2): it ends by itself, whatever becomes of the drill.
"""

from dataclasses import dataclass
from enum import StrEnum

from stressor.checks.base import parse_facts, script_argv
from stressor.model import Host
from stressor.remote.base import Completed, Outcome, Remote, TimedOut, Unreachable

SLEEP_S = 60
"""Longer than a drill's slowest way from the first sleep to the kill."""
COMMAND_DEADLINE_S = 20.0
"""Login, 5 s for a systemd that hangs, and 5 s until the sleep is there."""

# The scope carries the run's name, as the guard wants it of load outside of a pod. It is tried on
# `true` first: systemd before 244 knows no RuntimeMaxSec of scopes, and a systemd that hangs must
# not make every drill fail. Where there is none, the mark counts in a mount namespace of its own.
# timeout(1) stays in front of the sleep, but for busybox, where it becomes the sleep.
_START = """\
run=$1 seconds=$2 apart='' place=namespace
command -v setsid >/dev/null 2>&1 && apart=setsid
if ! command -v systemd-run >/dev/null 2>&1; then
    echo 'scope=no systemd-run'
elif said=$(timeout -s KILL 5 systemd-run --quiet --collect --scope \\
    --property=RuntimeMaxSec="$seconds" true 2>&1 </dev/null); then
    place=scope
else
    echo "scope=systemd-run: $(printf '%s\\n' "${said:-no answer}" | tail -n 1)"
fi
set -- env STRESSOR_RUN="$run" timeout -s KILL "$seconds" sleep "$seconds"
if [ "$place" = scope ]; then
    $apart systemd-run --quiet --collect --scope --unit="stressor-$run" \\
        --property=RuntimeMaxSec="$seconds" "$@" >/dev/null 2>&1 </dev/null &
else
    $apart unshare -m "$@" >/dev/null 2>&1 </dev/null &
fi
child=$! tries=0 pid=''
while [ "$tries" -lt 50 ] && [ -z "$pid" ]; do
    sleep 0.1
    tries=$((tries + 1))
    read -r stat 2>/dev/null <"/proc/$child/stat" || break
    case $stat in
    *') Z '*) break ;;
    *' (timeout) '* | *' (sleep) '*) pid=$child ;;
    esac
done
[ -n "$pid" ] || echo "problem=no sleep in a $place of its own"
echo "place=$place"
echo "pid=$pid"
echo "start=$(cut -d' ' -f22 "/proc/${pid:-none}/stat" 2>/dev/null)"
"""
_LOOK = """\
now=$(cut -d' ' -f22 "/proc/$1/stat" 2>/dev/null)
state=$(cut -d' ' -f3 "/proc/$1/stat" 2>/dev/null)
if [ "$now" = "$2" ] && [ "$state" != Z ]; then echo sleep=alive; else echo sleep=gone; fi
"""


class Place(StrEnum):
    """Where the sleep runs: in a transient scope of the run, or in a mount namespace alone."""

    SCOPE = "scope"
    NAMESPACE = "namespace"


@dataclass(frozen=True, slots=True)
class Sleeper:
    """A marked sleep on a host: its pid there, and its start time (proc(5), field 22)."""

    host: Host
    run: str
    pid: int
    start: str
    place: Place = Place.SCOPE


def begin(remote: Remote, run: str, *, seconds: int = SLEEP_S) -> Sleeper | str:
    """Start a sleep of `run` that ends by itself after so long; why there is none, in words."""
    facts = _ask(remote, script_argv("drill", _START, run, str(seconds)))
    pid, start, place = (facts.get(key, "") for key in ("pid", "start", "place"))
    if not pid.isdecimal() or not start.isdecimal() or place not in tuple(Place):
        words = [facts[key] for key in ("scope", "problem") if facts.get(key)]
        return f"no sleep could be started: {', '.join(words) or 'it ended at once'}"
    return Sleeper(remote.host, run, int(pid), start, Place(place))


def gone(remote: Remote, sleeper: Sleeper) -> bool | None:
    """Whether the sleep has ended, by a look of its own; None when the look gave no answer."""
    facts = _ask(remote, script_argv("drill", _LOOK, str(sleeper.pid), sleeper.start))
    return {"gone": True, "alive": False}.get(facts.get("sleep", ""))


def _ask(remote: Remote, argv: tuple[str, ...]) -> dict[str, str]:
    outcome = remote.run(argv, deadline_s=COMMAND_DEADLINE_S)
    if not isinstance(outcome, Completed):
        return {"problem": _words(outcome)}
    facts = parse_facts("drill", outcome.stdout.decode("utf-8", "replace"))
    if facts is None:
        return {"problem": "the answer was cut off"}
    return {key: facts.one(key) or "" for key in facts.values}


def _words(outcome: Outcome) -> str:
    """Why a host gave no answer."""
    match outcome:
        case TimedOut():
            return f"no answer within {outcome.after_s:.0f} s"
        case Unreachable():
            return f"{outcome.reason}: {outcome.detail}"
        case Completed():
            return f"it ended with {outcome.returncode}"
