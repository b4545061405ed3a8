"""A drill proves a way only when something died, the host says so, and it is gone from outside."""

import time
from pathlib import Path

import pytest

from stressor.engine.abort import ColdKiller
from stressor.engine.abort_script import publish, script_path
from stressor.engine.clock import BootClock
from stressor.engine.drill import Drill, Kill, Way, judge, script_proof
from stressor.engine.sleeper import Place, Sleeper
from stressor.model import Host, HostProof, HostState, Role, Transport
from stressor.remote.base import Remote
from stressor.remote.connect import connect
from stressor.testing.remote import FakeFault, FakeHost, FakeRemote
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
