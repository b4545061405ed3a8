"""A drill: a harmless marked sleep on each host, killed in every way that an abort may go.

Three ways, one after the other, on all hosts at once: by an armed guard, by a cold abort on a new
connection, and by the script beside the lifeline file. Each has a run of its own, for the tombstone
of the one before would make a guard refuse. A way is proven when the host says that something was
killed and nothing is left, and a look from outside finds the sleep gone: a kill that finds nothing
has rehearsed nothing.
"""

import queue
import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from stressor.checks.base import parse_facts, script_argv
from stressor.core import events as ev
from stressor.engine.abort import ColdKiller
from stressor.engine.abort_script import shown
from stressor.engine.clock import Clock
from stressor.engine.fleet import Fleet
from stressor.engine.loop import EventQueue
from stressor.engine.tidy import tidy
from stressor.guard.script import guard_argv
from stressor.model import PROVEN, Host, HostProof, HostState
from stressor.remote.base import Completed, Remote, TimedOut, Unreachable

SLEEP_S = 60
"""The sleep ends by itself, whatever becomes of the drill: timeout(1), and its scope's limit."""
BEAT_S = 30.0
"""The guards of a drill get no beats: nobody decides anything. What takes longer trips them."""
ARM_WAIT_S = 25.0
PROOF_WAIT_S = 10.0
"""A guard reports survivors for the last time 5 s after its kill."""
COMMAND_DEADLINE_S = 12.0
SCRIPT_WAIT_S = 60.0
AT_ONCE = 32

# The scope carries the run's name, as the guard wants it of load outside of a pod. Without systemd
# the mark counts in a mount namespace of its own.
_START = """\
run=$1 seconds=$2 apart=''
command -v setsid >/dev/null 2>&1 && apart=setsid
set -- env STRESSOR_RUN="$run" timeout -s KILL "$seconds" sleep "$seconds"
if [ -d /run/systemd/system ] && command -v systemd-run >/dev/null 2>&1; then
    $apart systemd-run --quiet --collect --scope --unit="stressor-$run" \\
        --property=RuntimeMaxSec="$seconds" "$@" >/dev/null 2>&1 </dev/null &
else
    $apart unshare --mount "$@" >/dev/null 2>&1 </dev/null &
fi
child=$! tries=0 comm='' pid=''
while [ "$tries" -lt 50 ] && [ "$comm" != timeout ]; do
    sleep 0.1
    { read -r comm <"/proc/$child/comm"; } 2>/dev/null
    tries=$((tries + 1))
done
[ "$comm" = timeout ] && pid=$child
start=$(cut -d' ' -f22 "/proc/${pid:-none}/stat" 2>/dev/null)
echo "pid=$pid"
echo "start=$start"
"""
_LOOK = """\
now=$(cut -d' ' -f22 "/proc/$1/stat" 2>/dev/null)
state=$(cut -d' ' -f3 "/proc/$1/stat" 2>/dev/null)
if [ "$now" = "$2" ] && [ "$state" != Z ]; then echo sleep=alive; else echo sleep=gone; fi
"""


class Way(StrEnum):
    """How the sleep is killed."""

    GUARD = "guard"
    COLD = "cold"
    SCRIPT = "script"


@dataclass(frozen=True, slots=True)
class Sleeper:
    """A marked sleep on a host: its pid there, and its start time (proc(5), field 22)."""

    host: Host
    run: str
    pid: int
    start: str


@dataclass(frozen=True, slots=True)
class Trial:
    """What one way did on one host. `proven`: the host's own proof that something died, and the
    look from outside. `took_s`: from the order to the proof; None where there was none."""

    host: str
    way: Way
    proven: bool
    state: HostState | None
    stopped: int = 0
    took_s: float | None = None
    detail: str = ""


def judge(way: Way, proof: HostProof, gone: bool | None, took_s: float | None) -> Trial:
    """What a proof and the look afterwards amount to. `gone` None: the look gave no answer."""
    if proof.state not in PROVEN:
        why = proof.detail or "not proven"
    elif proof.stopped == 0:
        why = "it found nothing to kill: the sleep was not seen"
    elif gone is None:
        why = "no answer to whether the sleep is gone"
    elif not gone:
        why = "the sleep is alive beside a proof of death"
    else:
        why = ""
    return Trial(proof.host, way, not why, proof.state, proof.stopped, took_s, why)


_Proofs = Mapping[str, tuple[HostProof, float]]
"""By host: its proof, and how many seconds after the order it came."""


@dataclass(frozen=True, slots=True)
class Drill:
    """Drills hosts under runs that begin with `name`; `script` is the file of the third way."""

    name: str
    connect: Callable[[Host], Remote]
    killer: ColdKiller
    clock: Clock
    holder: str
    script: Path

    def run(self, hosts: Sequence[Host]) -> Iterator[Trial]:
        """Every trial, way by way. What the drill itself left on proven hosts is removed last."""
        proven: list[Trial] = []
        for trials in (
            self._guarded(hosts),
            self._way(hosts, Way.COLD, self._kill_cold),
            self._way(hosts, Way.SCRIPT, self._call_script),
        ):
            for trial in trials:
                proven += [trial] if trial.proven else []
                yield trial
        self._tidy(hosts, proven)

    def _run_of(self, way: Way) -> str:
        return f"{self.name}{way[0]}"

    def _way(
        self, hosts: Sequence[Host], way: Way, kill: Callable[[Sequence[Sleeper]], _Proofs]
    ) -> Iterator[Trial]:
        """Something to kill on each host, the kill, and the look afterwards."""
        if not hosts:
            return
        with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            begun = tuple(pool.map(lambda host: self._sleep(host, self._run_of(way)), hosts))
            for host, sleeper in zip(hosts, begun, strict=True):
                if isinstance(sleeper, str):
                    yield Trial(host.name, way, False, None, detail=sleeper)
            sleepers = tuple(sleeper for sleeper in begun if isinstance(sleeper, Sleeper))
            proofs = kill(sleepers)
            looks = pool.map(self._gone, sleepers)
            for sleeper, gone in zip(sleepers, looks, strict=True):
                yield _trial(way, sleeper.host.name, proofs, gone)

    def _guarded(self, hosts: Sequence[Host]) -> Iterator[Trial]:
        """All guards in one fleet, as in a run: armed, shown something to kill, and told to."""
        events = queue.SimpleQueue[ev.Event]()
        fleet = Fleet(
            self._run_of(Way.GUARD),
            self.clock,
            events,
            self.connect,
            self.killer.rehearse,
            guard_argv(),
            self.holder,
        )
        fleet.start()
        try:
            fleet.arm(hosts, left_s=SLEEP_S * 2.0, beat_s=BEAT_S)
            refused = self._arming(events, hosts)
            yield from refused.values()
            armed = [host for host in hosts if host.name not in refused]
            yield from self._way(armed, Way.GUARD, lambda found: self._order(fleet, events, found))
        finally:
            fleet.order("quit")
            fleet.wait_quit(COMMAND_DEADLINE_S)
            fleet.close()

    def _arming(self, events: EventQueue, hosts: Sequence[Host]) -> dict[str, Trial]:
        """Wait until every host is armed or has refused: a trial for each that is not armed."""
        waiting = {host.name for host in hosts}
        refused: dict[str, Trial] = {}
        until_s = self.clock.now_s() + ARM_WAIT_S
        while waiting and (event := self._next(events, until_s)) is not None:
            if isinstance(event, ev.GuardArmed):
                waiting.discard(event.host)
            elif isinstance(event, ev.GuardRefused | ev.GuardLost) and event.host in waiting:
                waiting.discard(event.host)
                refused[event.host] = _unarmed(event.host, event.reason)
        return refused | {name: _unarmed(name, "it did not arm in time") for name in waiting}

    def _order(self, fleet: Fleet, events: EventQueue, sleepers: Sequence[Sleeper]) -> _Proofs:
        """The kill order to all at once; the last proof of each until every host is proven."""
        began_s = self.clock.now_s()
        open_hosts = {sleeper.host.name for sleeper in sleepers}
        fleet.order("kill drill", tuple(open_hosts))
        proofs: dict[str, tuple[HostProof, float]] = {}
        until_s = began_s + PROOF_WAIT_S
        while open_hosts and (event := self._next(events, until_s)) is not None:
            if isinstance(event, ev.HostProven):
                proofs[event.proof.host] = (event.proof, self.clock.now_s() - began_s)
                if event.proof.state in PROVEN:
                    open_hosts.discard(event.proof.host)
        return proofs

    def _next(self, events: EventQueue, until_s: float) -> ev.Event | None:
        try:
            return events.get(timeout=max(0.01, until_s - self.clock.now_s()))
        except queue.Empty:
            return None

    def _kill_cold(self, sleepers: Sequence[Sleeper]) -> _Proofs:
        def kill(sleeper: Sleeper) -> tuple[HostProof, float]:
            began_s = self.clock.now_s()
            proof = self.killer.kill(sleeper.host, sleeper.run, "drill", 0.0)
            return proof, self.clock.now_s() - began_s

        with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            proofs = tuple(pool.map(kill, sleepers))
        return {proof.host: (proof, took_s) for proof, took_s in proofs}

    def _call_script(self, sleepers: Sequence[Sleeper]) -> _Proofs:
        """One call for all hosts. It kills on every host of the lifeline file, drilled or not."""
        if not sleepers:
            return {}
        began_s = self.clock.now_s()
        said = _call(("sh", str(self.script), self._run_of(Way.SCRIPT), "0"))
        took_s = self.clock.now_s() - began_s
        names = (sleeper.host.name for sleeper in sleepers)
        return {name: (script_proof(name, said), took_s) for name in names}

    def _sleep(self, host: Host, run: str) -> Sleeper | str:
        """Start the sleep; why there is none, in words."""
        answer = self._facts(host, script_argv("drill", _START, run, str(SLEEP_S)))
        pid = answer.get("pid", "")
        if not pid.isdigit() or not answer.get("start"):
            return f"no sleep could be started: {answer.get('problem') or 'look there'}"
        return Sleeper(host, run, int(pid), answer["start"])

    def _gone(self, sleeper: Sleeper) -> bool | None:
        words = (str(sleeper.pid), sleeper.start)
        answer = self._facts(sleeper.host, script_argv("drill", _LOOK, *words))
        return {"gone": True, "alive": False}.get(answer.get("sleep", ""))

    def _facts(self, host: Host, argv: tuple[str, ...]) -> dict[str, str]:
        remote = self.connect(host)
        try:
            outcome = remote.run(argv, deadline_s=COMMAND_DEADLINE_S)
        finally:
            remote.close()
        if not isinstance(outcome, Completed):
            return {"problem": outcome_text(outcome)}
        facts = parse_facts("drill", outcome.stdout.decode("utf-8", "replace"))
        if facts is None:
            return {"problem": "the answer was cut off"}
        return {key: facts.one(key) or "" for key in facts.values}

    def _tidy(self, hosts: Sequence[Host], proven: Sequence[Trial]) -> None:
        """Remove the folders of the drill's own runs. One that stays is a tombstone of a run that
        nobody will start: preflight shows it, and nothing stands on it."""
        by_name = {host.name: host for host in hosts}

        def one(trial: Trial) -> None:
            remote = self.connect(by_name[trial.host])
            try:
                tidy(remote, by_name[trial.host], self._run_of(trial.way))
            finally:
                remote.close()

        with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            tuple(pool.map(one, proven))


def _trial(way: Way, host: str, proofs: _Proofs, gone: bool | None) -> Trial:
    if host in proofs:
        proof, took_s = proofs[host]
        return judge(way, proof, gone, took_s)
    silent = HostProof(host, HostState.UNVERIFIED, detail="no proof came")
    return judge(way, silent, gone, None)


def outcome_text(outcome: Unreachable | TimedOut) -> str:
    """Why a host gave no answer, in a few words."""
    if isinstance(outcome, TimedOut):
        return f"no answer within {outcome.after_s:.0f} s"
    return f"{outcome.reason}: {outcome.detail}"


def _unarmed(host: str, reason: str) -> Trial:
    return Trial(host, Way.GUARD, False, None, detail=reason)


_LINE = re.compile(r"  (\S.*?) +([A-Z_]+) +(.*)")


def script_proof(host: str, said: str) -> HostProof:
    """What the script's line for `host` says; UNVERIFIED when there is none."""
    for line in said.splitlines():
        found = _LINE.fullmatch(line)
        if found is None or found[1] != shown(host) or found[2] not in tuple(HostState):
            continue
        count = re.match(r"(\d+) processes killed", found[3])
        stopped = int(count[1]) if count else 0
        return HostProof(host, HostState(found[2]), stopped, detail=found[3])
    return HostProof(host, HostState.UNVERIFIED, detail="the script has no line for it")


def _call(argv: tuple[str, ...]) -> str:
    """The script's output, whatever its end; empty when it outlived SCRIPT_WAIT_S."""
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        killer = threading.Timer(SCRIPT_WAIT_S, child.kill)
        killer.start()
        try:
            output = child.stdout.read() if child.stdout is not None else b""
        finally:
            killer.cancel()
    return output.decode("utf-8", "replace")
