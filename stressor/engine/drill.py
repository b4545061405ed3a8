"""A drill: a harmless marked sleep on each host, killed in every way that an abort may go.

Three ways, one after the other, on all hosts at once: by an armed guard, by a cold abort on a new
connection, and by the script beside the lifeline file. Each has a run of its own, for the tombstone
of the one before would make a guard refuse. A way is proven when the host says that something was
killed and nothing is left, and a look from outside finds the sleep gone: a kill that finds nothing
has rehearsed nothing. A guard has to have seen the sleep before it is told to kill.
"""

import queue
import re
import selectors
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from stressor.core import events as ev
from stressor.engine import sleeper as sleeping
from stressor.engine.abort import ColdKiller
from stressor.engine.abort_script import shown
from stressor.engine.clock import Clock
from stressor.engine.fleet import Fleet
from stressor.engine.loop import EventQueue
from stressor.engine.sleeper import SLEEP_S, Place, Sleeper
from stressor.engine.tidy import tidy
from stressor.errors import ChannelClosed, RemoteError
from stressor.guard.script import guard_argv
from stressor.model import PROVEN, Host, HostProof, HostState
from stressor.remote import child
from stressor.remote.base import Remote

BEAT_S = float(SLEEP_S)
"""The guards of a drill get no beats: nobody decides anything. What takes longer trips them."""
ARM_WAIT_S = 25.0
SEE_WAIT_S = 6.0
"""A guard answers a look within 2 s (docs/guard-protocol.md); three looks."""
LOOK_AGAIN_S = 2.0
PROOF_WAIT_S = 10.0
"""A guard reports survivors for the last time 5 s after its kill."""
QUIT_WAIT_S = 12.0
SCRIPT_WAIT_S = float(SLEEP_S)
"""Nothing is left to kill after it. The script gives each route of a host 20 s at most."""
WAY_WAIT_S = 180.0
"""No way takes so long; what has not answered then is said as such."""
AT_ONCE = 32


class Way(StrEnum):
    """How the sleep is killed."""

    GUARD = "guard"
    COLD = "cold"
    SCRIPT = "script"


@dataclass(frozen=True, slots=True)
class Kill:
    """What a way says of a host: the proof, how many seconds after the order it came (None: it did
    not), and whether the sleep was seen before."""

    proof: HostProof
    took_s: float | None
    seen: bool = True


@dataclass(frozen=True, slots=True)
class Trial:
    """What one way did on one host. `proven`: the host's own proof that something died, and the
    look from outside. `took_s`: from the order to the proof; None where there was none. `place`:
    where the sleep ran, None where there was none. `pid` of a sleep that was not found gone: it
    ends by itself."""

    host: str
    way: Way
    proven: bool
    state: HostState | None
    stopped: int = 0
    took_s: float | None = None
    detail: str = ""
    place: Place | None = None
    pid: int | None = None


def judge(way: Way, kill: Kill, gone: bool | None, sleeper: Sleeper) -> Trial:
    """What a kill and the look afterwards amount to. `gone` None: the look gave no answer."""
    proof, pid = kill.proof, None if gone else sleeper.pid
    why = _flaw(kill, gone)
    if pid is not None:
        why += f"; pid {pid} ends by itself within {SLEEP_S} s"
    return Trial(
        proof.host,
        way,
        not why,
        proof.state,
        proof.stopped,
        kill.took_s,
        why,
        sleeper.place,
        pid,
    )


def _flaw(kill: Kill, gone: bool | None) -> str:
    """What a whole proof lacks here; empty when it lacks nothing."""
    proof = kill.proof
    if proof.state not in PROVEN:
        return proof.detail or "not proven"
    if proof.stopped == 0:
        return "it found nothing to kill: the sleep was not seen"
    if not kill.seen:
        return "the guard had not seen the sleep before its kill"
    if gone is None:
        return "no answer to whether the sleep is gone"
    return "" if gone else "the sleep is alive beside a proof of death"


Told = Callable[[Kill], None]
"""Where a way says what it knows of a host, at the moment it knows it."""


@dataclass(frozen=True, slots=True)
class Drill:
    """Drills hosts under runs that begin with `name`; `script` is the file of the third way."""

    name: str
    connect: Callable[[Host], Remote]
    killer: ColdKiller
    clock: Clock
    holder: str
    script: Path
    see_wait_s: float = SEE_WAIT_S

    def run(self, hosts: Sequence[Host]) -> Iterator[Trial]:
        """Every trial when it is known, way by way. What the drill itself left on proven hosts is
        removed last."""
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
        self, hosts: Sequence[Host], way: Way, kill: Callable[[Sequence[Sleeper], Told], None]
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
            if sleepers:
                yield from self._killed(pool, way, sleepers, kill)

    def _killed(
        self,
        pool: ThreadPoolExecutor,
        way: Way,
        sleepers: Sequence[Sleeper],
        kill: Callable[[Sequence[Sleeper], Told], None],
    ) -> Iterator[Trial]:
        """A trial for each sleeper: a host that hangs holds up nobody else's."""
        waiting = {sleeper.host.name: sleeper for sleeper in sleepers}
        trials = queue.SimpleQueue[Trial]()

        def look(told: Kill, sleeper: Sleeper) -> None:
            trials.put(judge(way, told, self._gone(sleeper), sleeper))

        def tell(told: Kill) -> None:
            sleeper = waiting.pop(told.proof.host, None)
            if sleeper is not None:
                pool.submit(look, told, sleeper)

        def work() -> None:
            try:
                kill(sleepers, tell)
            finally:
                for host in tuple(waiting):
                    tell(Kill(_silent(host, "no proof came"), None))

        working = pool.submit(work)
        yield from self._collected(trials, way, sleepers)
        working.result()

    def _collected(
        self, trials: "queue.SimpleQueue[Trial]", way: Way, sleepers: Sequence[Sleeper]
    ) -> Iterator[Trial]:
        missing = {sleeper.host.name: sleeper for sleeper in sleepers}
        until_s = self.clock.now_s() + WAY_WAIT_S
        while missing:
            try:
                trial = trials.get(timeout=max(0.01, until_s - self.clock.now_s()))
            except queue.Empty:
                break
            del missing[trial.host]
            yield trial
        for host, sleeper in missing.items():
            yield judge(way, Kill(_silent(host, "no answer at all"), None), None, sleeper)

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
            yield from self._way(
                armed, Way.GUARD, lambda found, tell: self._order(fleet, events, found, tell)
            )
        finally:
            fleet.order("quit")
            fleet.wait_quit(QUIT_WAIT_S)
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

    def _order(
        self, fleet: Fleet, events: EventQueue, sleepers: Sequence[Sleeper], tell: Told
    ) -> None:
        """The kill order to all at once, after each guard has seen its sleep; a proof as it comes,
        and the last word of a host that was not proven."""
        hosts = tuple(sleeper.host.name for sleeper in sleepers)
        seen = self._seen(fleet, events, hosts)
        began_s, last = self.clock.now_s(), dict[str, Kill]()
        fleet.order("kill drill", hosts)
        open_hosts = set(hosts)
        while open_hosts and (event := self._next(events, began_s + PROOF_WAIT_S)) is not None:
            if not isinstance(event, ev.HostProven):
                continue
            host = event.proof.host
            last[host] = Kill(event.proof, self.clock.now_s() - began_s, host in seen)
            if event.proof.state in PROVEN and host in open_hosts:
                open_hosts.discard(host)
                tell(last[host])
        for host in open_hosts & last.keys():
            tell(last[host])

    def _seen(self, fleet: Fleet, events: EventQueue, hosts: Sequence[str]) -> frozenset[str]:
        """The hosts whose guard sees something of its run. A kill is no rehearsal elsewhere."""
        unseen = set(hosts)
        until_s = self.clock.now_s() + self.see_wait_s
        while unseen and self.clock.now_s() < until_s:
            fleet.order("watch", tuple(unseen))
            again_s = min(until_s, self.clock.now_s() + LOOK_AGAIN_S)
            while unseen and (event := self._next(events, again_s)) is not None:
                if isinstance(event, ev.LoadSeen) and event.processes > 0:
                    unseen.discard(event.host)
        return frozenset(hosts) - unseen

    def _next(self, events: EventQueue, until_s: float) -> ev.Event | None:
        """The next event, also one that waits already; None at `until_s`."""
        try:
            return events.get(timeout=max(0.01, until_s - self.clock.now_s()))
        except queue.Empty:
            return None

    def _kill_cold(self, sleepers: Sequence[Sleeper], tell: Told) -> None:
        def kill(sleeper: Sleeper) -> None:
            began_s = self.clock.now_s()
            proof = self.killer.kill(sleeper.host, sleeper.run, "drill", 0.0)
            tell(Kill(proof, self.clock.now_s() - began_s))

        with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            tuple(pool.map(kill, sleepers))

    def _call_script(self, sleepers: Sequence[Sleeper], tell: Told) -> None:
        """One call for all hosts. It kills on every host of the lifeline file, drilled or not."""
        began_s = self.clock.now_s()
        until_s = began_s + SCRIPT_WAIT_S
        waiting = [sleeper.host.name for sleeper in sleepers]
        argv = ("sh", str(self.script), self._run_of(Way.SCRIPT), "0")
        for line in script_lines(argv, lambda: until_s - self.clock.now_s()):
            took_s = self.clock.now_s() - began_s
            for name in [name for name in waiting if _said(name, line) is not None]:
                waiting.remove(name)
                tell(Kill(script_proof(name, line), took_s))

    def _sleep(self, host: Host, run: str) -> Sleeper | str:
        remote = self.connect(host)
        try:
            return sleeping.begin(remote, run)
        finally:
            remote.close()

    def _gone(self, sleeper: Sleeper) -> bool | None:
        remote = self.connect(sleeper.host)
        try:
            return sleeping.gone(remote, sleeper)
        finally:
            remote.close()

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


def _silent(host: str, why: str) -> HostProof:
    return HostProof(host, HostState.UNVERIFIED, detail=why)


def _unarmed(host: str, reason: str) -> Trial:
    return Trial(host, Way.GUARD, False, None, detail=reason)


def script_proof(host: str, said: str) -> HostProof:
    """What the script's line for `host` says; UNVERIFIED when there is none."""
    proofs = (_said(host, line) for line in said.splitlines())
    return next(filter(None, proofs), _silent(host, "the script has no line for it"))


def _said(host: str, line: str) -> HostProof | None:
    """What a line of the script says of `host`; None when it is not about it."""
    start = f"  {shown(host):<14} "
    state, _, rest = line.removeprefix(start).partition(" ")
    if not line.startswith(start) or state not in tuple(HostState):
        return None
    detail = rest.strip()
    count = re.match(r"(\d+) processes killed", detail)
    return HostProof(host, HostState(state), int(count[1]) if count else 0, detail=detail)


def script_lines(argv: Sequence[str], left_s: Callable[[], float]) -> Iterator[str]:
    """The lines that a child says, as they come. When no time is left it is killed, and all that
    it has started: whoever holds its output would keep us waiting. Raises RemoteError when it
    cannot be started."""
    try:
        channel = child.PipeChannel(child.start(argv), kill=True)
    except OSError as error:
        raise RemoteError(f"{argv[0]} cannot be started: {error.strerror}") from error
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(channel.fileno(), selectors.EVENT_READ)
            while (wait_s := left_s()) > 0:
                if selector.select(wait_s):
                    yield from channel.receive()
    except ChannelClosed:
        return
    finally:
        channel.close()
