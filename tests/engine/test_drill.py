"""A drill proves a way only when something died, the host says so, and it is gone from outside."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stressor.engine.abort import ColdKiller
from stressor.engine.abort_script import publish, script_path
from stressor.engine.clock import BootClock
from stressor.engine.drill import Drill, Kill, Trial, Way, judge, script_lines, script_proof
from stressor.engine.sleeper import Place, Sleeper
from stressor.model import Host, HostProof, HostState, Role, Route, Transport
from stressor.remote.base import Completed, Outcome, Remote
from stressor.remote.connect import connect
from stressor.testing.remote import Command, FakeFault, FakeHost, FakeRemote
from tests.guard.trees import alive, eventually
from tests.sshd import running_sshd

STOPPED = HostProof("n1", HostState.STOPPED, 2)
SLEEPER = Sleeper(Host("n1", ()), "d0c", 4242, "777", Place.SCOPE)


@pytest.mark.parametrize(
    ("proof", "gone", "why"),
    [
        (HostProof("n1", HostState.CLEAN), True, "found nothing to kill"),
        (STOPPED, False, "alive beside a proof of death"),
        (STOPPED, None, "no answer to whether"),
        (HostProof("n1", HostState.UNVERIFIED, detail="silent"), True, "silent"),
        (HostProof("n1", HostState.SURVIVORS, 1), True, "not proven"),
        (HostProof("n1", HostState.UNREACHABLE, detail="refused"), None, "refused"),
    ],
)
def test_half_a_proof_is_none(proof: HostProof, gone: bool | None, why: str) -> None:
    trial = judge(Way.COLD, Kill(proof, 1.0), gone, SLEEPER)
    assert not trial.proven
    assert why in trial.detail


def test_a_whole_proof_is_one() -> None:
    trial = judge(Way.COLD, Kill(STOPPED, 0.6), True, SLEEPER)
    assert (trial.proven, trial.stopped, trial.took_s, trial.detail) == (True, 2, 0.6, "")


@pytest.mark.parametrize("gone", [False, None])
def test_a_sleep_that_may_live_is_named(gone: bool | None) -> None:
    for proof in (STOPPED, HostProof("n1", HostState.SURVIVORS, 1)):
        trial = judge(Way.COLD, Kill(proof, 1.0), gone, SLEEPER)
        assert trial.pid == 4242
        assert "pid 4242 ends by itself within 60 s" in trial.detail
    assert judge(Way.COLD, Kill(STOPPED, 1.0), True, SLEEPER).pid is None


def test_a_guard_that_saw_nothing_has_rehearsed_nothing() -> None:
    trial = judge(Way.GUARD, Kill(STOPPED, 1.0, seen=False), True, SLEEPER)
    assert (trial.proven, trial.detail) == (
        False,
        "the guard had not seen the sleep before its kill",
    )


def test_the_scripts_lines_are_read_and_nothing_else_is() -> None:
    said = "ABORT  cluster c, 2 hosts\n  n1             STOPPED      2 processes killed\n"
    assert script_proof("n1", said).stopped == 2
    assert script_proof("n1", said).state is HostState.STOPPED
    assert script_proof("n", said).state is HostState.UNVERIFIED
    assert script_proof("n1", "").state is HostState.UNVERIFIED
    assert script_proof("n1", "  n1  FINE  2 processes killed\n").state is HostState.UNVERIFIED


@pytest.mark.parametrize("fault", [FakeFault.UNREACHABLE, FakeFault.LYING])
def test_a_host_that_is_down_or_lies_is_proven_in_no_way(tmp_path: Path, fault: FakeFault) -> None:
    machine = FakeHost(Host("n1", ()), fault=fault)

    def fake(host: Host, route: int = 0) -> Remote:
        del host, route
        return FakeRemote(machine)

    script = tmp_path / "abort.sh"
    script.write_text("echo '  n1  STOPPED  2 processes killed'\n")
    drill = Drill("d0", fake, ColdKiller(fake), BootClock.start(), "me", script)
    trials = list(drill.run((machine.host,)))
    assert [trial.way for trial in trials] == [Way.GUARD, Way.COLD, Way.SCRIPT]
    assert not any(trial.proven for trial in trials)
    assert all(trial.detail for trial in trials)


@dataclass(slots=True)
class Site:
    """Hosts that do what they are told. `sees`: what a guard says that it sees; `before_cold`:
    called with a host's name when a cold kill arrives there."""

    folder: Path
    names: tuple[str, ...] = ("n1",)
    sees: str = "2"
    before_cold: Callable[[str], object] = str
    orders: list[str] = field(default_factory=list)
    tidied: list[str] = field(default_factory=list)

    @property
    def hosts(self) -> tuple[Host, ...]:
        return tuple(Host(name, (Route("10.0.0.1"),)) for name in self.names)

    def connect(self, host: Host, route: int = 0) -> Remote:
        del route
        identity = Completed(0, b"0\n", b"", 0.0)
        command: dict[tuple[str, ...], Outcome | Command] = {
            ("id", "-u"): identity,
            ("sh",): self._command(host),
        }
        return FakeRemote(FakeHost(host, command, {("sh",): self._guard}))

    def trials(self, script: str | None = None) -> Iterator[Trial]:
        path = self.folder / "abort.sh"
        lines = (f"  {name:<14} STOPPED      2 processes killed" for name in self.names)
        path.write_text(script or "".join(f"echo '{line}'\n" for line in lines))
        killer, clock = ColdKiller(self.connect), BootClock.start()
        drill = Drill("d0", self.connect, killer, clock, "me@here:1", path, see_wait_s=0.2)
        return drill.run(self.hosts)

    def _guard(self, line: str) -> Sequence[str]:
        number, verb = line.split()[:2]
        self.orders.append(verb)
        return (f"{number} ok {verb}", *self._report(number, verb))

    def _report(self, number: str, verb: str) -> Sequence[str]:
        if verb == "watch":
            return (f"! watch {number} processes={self.sees} cgroups=1 comms=sleep",)
        return (PROOF.format(number),) if verb == "kill" else ()

    def _command(self, host: Host) -> Command:
        def answer(argv: tuple[str, ...], stdin: bytes) -> Completed:
            del stdin
            if argv[3] == "stressor-tidy":
                self.tidied.append(argv[4])
            if argv[3] == "stressor-kill":
                self.before_cold(host.name)
                return Completed(0, PROOF.format(0).encode(), b"", 0.0)
            facts = "place=scope\npid=42\nstart=7\nsleep=gone"
            return Completed(0, f"stressor-facts drill\n{facts}\nend drill\n".encode(), b"", 0.0)

        return answer


PROOF = "! proof {} state=STOPPED stopped=2 scans=2 took_ms=300 detail=grep"


def test_every_way_is_proven_where_every_way_works(tmp_path: Path) -> None:
    site = Site(tmp_path, ("n1", "n2"))
    trials = list(site.trials())
    assert sorted((trial.way, trial.host) for trial in trials) == [
        (way, host) for way in sorted(Way) for host in ("n1", "n2")
    ]
    for trial in trials:
        assert (trial.proven, trial.stopped, trial.detail) == (True, 2, "")
        assert (trial.place, trial.pid) == (Place.SCOPE, None)
        assert trial.took_s is not None
    assert site.orders.index("watch") < site.orders.index("kill") < site.orders.index("quit")
    assert sorted(site.tidied) == ["d0c", "d0c", "d0g", "d0g", "d0s", "d0s"]


@pytest.mark.parametrize("sees", ["0", "-"])
def test_i4_the_guard_has_to_see_the_sleep_and_no_look_is_no_sight(
    tmp_path: Path, sees: str
) -> None:
    site = Site(tmp_path, sees=sees)
    by_way = {trial.way: trial for trial in site.trials()}
    assert "had not seen the sleep" in by_way[Way.GUARD].detail
    assert by_way[Way.COLD].proven
    assert by_way[Way.SCRIPT].proven
    assert "kill" in site.orders
    assert sorted(site.tidied) == ["d0c", "d0s"]


def test_a_host_that_hangs_holds_up_nobody_elses_result(tmp_path: Path) -> None:
    """n2's cold kill ends only after n1's trial was handed out."""
    handed_out = threading.Event()
    waited: list[bool] = []

    def before(name: str) -> None:
        if name == "n2":
            waited.append(handed_out.wait(20.0))

    cold: list[str] = []
    for trial in Site(tmp_path, ("n2", "n1"), before_cold=before).trials():
        if trial.way is Way.COLD:
            cold.append(trial.host)
            handed_out.set()
    assert waited == [True]
    assert cold == ["n1", "n2"]


def test_a_host_that_the_script_does_not_name_is_not_proven(tmp_path: Path) -> None:
    line = "  n1             STOPPED      2 processes killed"
    site = Site(tmp_path, ("n1", "n2"))
    script = {t.host: t for t in site.trials(f"echo '{line}'") if t.way is Way.SCRIPT}
    assert script["n1"].proven
    assert (script["n2"].proven, script["n2"].detail) == (False, "no proof came")


def test_a_name_that_ends_like_a_proof_proves_nobody_else() -> None:
    said = "  n1 STOPPED 9 processes killed UNREACHABLE  refused\n"
    assert script_proof("n1", said).state is HostState.UNVERIFIED


def test_a_script_that_does_not_end_is_ended_with_all_that_it_started() -> None:
    """Its children hold its output: killing the shell alone would wait for them."""
    body = "echo first; sleep 50 & echo $!; wait"
    lines: list[str] = []
    for line in script_lines(("sh", "-c", body), lambda: 20.0 if len(lines) < 2 else 0.0):
        lines.append(line)
    assert lines[0] == "first"
    assert eventually(lambda: not alive(int(lines[1])))


@pytest.mark.ssh
@pytest.mark.slow
def test_every_way_is_proven_on_a_real_host(tmp_path: Path) -> None:
    with running_sshd(tmp_path / "sshd") as sshd:
        host = Host("loop", (sshd.route(),), frozenset({Role.WORKER}), transport=Transport.PARAMIKO)
        publish(tmp_path, "c", (host,), time.time())
        killer = ColdKiller(lambda host, route: connect(host, route=route))
        script = script_path(tmp_path, "c")
        drill = Drill("dt0", connect, killer, BootClock.start(), "me@here:1", script)
        trials = list(drill.run((host,)))
    assert [(trial.way, trial.proven, trial.detail) for trial in trials] == [
        (way, True, "") for way in (Way.GUARD, Way.COLD, Way.SCRIPT)
    ]
    assert all(trial.stopped >= 1 for trial in trials)
    assert not list(Path("/run/stressor").glob("dt0*"))
