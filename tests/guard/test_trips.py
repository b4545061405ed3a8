"""What the guard does on its own: trips, refusals, watchers, and a host in trouble."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stressor.guard.protocol import GuardSample, LateComers, ProofLine, parse
from stressor.guard.script import Shell
from stressor.model import PROVEN, HostState
from tests.guard.client import GuardClient, at_once, cold_kill, guard
from tests.guard.trees import (
    FREEZER,
    PIDS,
    alive,
    cgroup,
    cmdline,
    end,
    eventually,
    fresh_run,
    tree,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("order", "answer"),
    [
        ("1 arm Bad_Run 9 9", "1 err arm usage"),
        ("1 arm all 9 9", "1 err arm usage"),
        ("1 arm ../x 9 9", "1 err arm usage"),
        ("1 arm abc soon 9", "1 err arm usage"),
        ("1 arm abc 0 9", "1 err arm usage"),
        ("1 arm abc 9", "1 err arm usage"),
        ("1 beat", "1 err beat not-armed"),
        ("1 $(reboot)", "1 err __reboot_ not-armed"),
    ],
)
def test_misuse_is_refused_in_words(state: Path, order: str, answer: str) -> None:
    with guard(state, Shell.AUTO) as client:
        client.send("Welcome to this host!")
        assert client.ask(order) == answer


@at_once()
def test_arming_says_the_facts_and_leaves_the_way_back(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with guard(state, shell) as client:
        facts = dict(word.split("=", 1) for word in client.arm(run).split()[3:])
        assert set(facts) == {"cgroup", "kill", "shell", "deadman", "timer", "oom", "boot"}
        assert facts["shell"] == shell
        assert facts["deadman"] == ("watcher" if shell is Shell.DASH else "read-t")
        pid, start = (state / run / "guard.pid").read_text().split()
        assert Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[19] == start
        assert (state / run / "kill.sh").stat().st_mode & 0o777 == 0o700
        sample = parse(client.ask("2 sample"))
        assert isinstance(sample, GuardSample)
        assert sample.cpu_some_us is not None
        assert client.ask("3 nonsense") == "3 err nonsense usage"
        assert client.ask("4 quit") == "4 ok quit"
        assert client.process.wait(timeout=5) == 0
        assert not (state / run).exists()
        assert eventually(lambda: client.children() == [], within_s=3)


def test_one_guard_a_host_and_a_dead_one_does_not_block(state: Path, shell: Shell) -> None:
    run, other = fresh_run(), fresh_run()
    with guard(state, shell) as first:
        first.arm(run, who="ann@ops$1:7")
        with guard(state, shell) as second:
            assert second.ask(f"1 arm {other} 20 5") == f"1 err arm held {run} ann@ops_1:7"
            assert second.ask(f"2 arm {run} 20 5 bob") == f"2 err arm held {run} ann@ops_1:7"
            assert not (state / other).exists()
        assert first.ask("2 beat") == "2 ok beat"
    with guard(state, shell) as third:
        third.arm(run)
    with guard(state, shell) as fourth:
        fourth.arm(other)


@contextmanager
def armed_load(
    state: Path, shell: Shell, *, left_s: float = 40, beat_s: float = 30
) -> Iterator[tuple[GuardClient, str, list[int]]]:
    """An armed guard that has seen a marked tree; the tree's pids."""
    run = fresh_run()
    with (
        cgroup(FREEZER) as group,
        tree(env_run=run, volume_run=run, cgroups=[group]) as load,
        guard(state, shell) as client,
    ):
        client.arm(run, left_s=left_s, beat_s=beat_s)
        client.ask("2 watch")
        client.wait_for("! watch 2 processes=8")
        yield client, run, load.pids


def dead(pids: list[int]) -> bool:
    return not any(alive(pid) for pid in pids)


def test_i2_the_deadline_kills_whatever_beats(state: Path, shell: Shell) -> None:
    with armed_load(state, shell, left_s=2) as (client, _, pids):
        for _ in range(3):
            client.ask("3 beat")
        assert client.wait_for("! tripped ", within_s=5) == "! tripped deadline"
        assert client.proof(0).state is HostState.STOPPED
        assert dead(pids)
        assert client.ask("4 beat") == "4 err beat tripped deadline"


def test_i2_lost_beats_kill(state: Path, shell: Shell) -> None:
    with armed_load(state, shell, beat_s=1.5) as (client, run, pids):
        start = time.monotonic()
        assert client.wait_for("! tripped ", within_s=5) == "! tripped beat"
        assert time.monotonic() - start < 3
        assert client.proof(0).state is HostState.STOPPED
        assert dead(pids)
        assert (state / run / "tombstone").read_text() == "beat\n"
        assert client.kill(9).state is HostState.CLEAN
        assert client.ask("10 quit") == "10 ok quit"


def test_i2_the_end_of_the_channel_kills(state: Path, shell: Shell) -> None:
    with armed_load(state, shell) as (client, run, pids):
        client.hang_up()
        assert eventually(lambda: dead(pids), within_s=2)
        assert eventually((state / run / "tombstone").exists, within_s=2)
        assert (state / run / "tombstone").read_text() == "eof\n"
        assert client.process.poll() is None


def test_late_comers_die_whoever_looks_for_them(state: Path) -> None:
    """A guard that was told to kill and reports them; one whose channel is gone and that ends at
    its deadline; the late loop of a cold kill, which is one for a run."""
    run = fresh_run()
    with (
        armed_load(state / "told", Shell.AUTO) as (told, told_run, _),
        armed_load(state / "gone", Shell.BUSYBOX, left_s=9) as (gone, gone_run, _),
    ):
        told.kill(3)
        gone.hang_up()
        assert cold_kill(state / "cold", run, Shell.AUTO, left_s=15)[0] == 0
        with (
            tree(env_run=told_run) as late,
            tree(env_run=gone_run) as late_for_gone,
            tree(env_run=run) as late_for_loop,
        ):
            message = parse(told.wait_for("! late n="))
            assert isinstance(message, LateComers)
            assert message.processes >= 1
            assert eventually(lambda: late.pids == [], within_s=2)
            assert eventually(lambda: late_for_gone.pids == [], within_s=9)
            assert eventually(lambda: late_for_loop.pids == [], within_s=9)
        end(int((state / "cold" / run / "late.pid").read_text().split()[0]))
        gone.process.wait(timeout=14)
        assert eventually(lambda: gone.children() == [], within_s=3)


def test_i3_a_tombstone_from_elsewhere_trips(state: Path, shell: Shell) -> None:
    with armed_load(state, shell) as (client, run, pids):
        code, _, _ = cold_kill(state, run, shell)
        assert code == 0
        assert client.wait_for("! tripped ", within_s=2) == "! tripped tombstone"
        assert client.proof(0).state in PROVEN
        assert dead(pids)


def helpers(run: str, state: Path) -> tuple[int, list[int]]:
    """Main, and its children that are the guard's shell still."""
    main = int((state / run / "guard.pid").read_text().split()[0])
    others = Path(f"/proc/{main}/task/{main}/children").read_text().split()
    return main, [int(pid) for pid in others if "stressor-guard" in cmdline(int(pid))]


@pytest.mark.parametrize("shell", [Shell.DASH, Shell.BUSYBOX])
def test_i2_a_helper_that_dies_is_a_trip(state: Path, shell: Shell) -> None:
    """Worker, three tickers, reader: each in turn, killed alone, stops the load."""
    for which in range(5):
        with armed_load(state, shell) as (client, run, pids):
            _, others = helpers(run, state)
            assert len(others) == 5
            os.kill(others[which], signal.SIGKILL)
            tripped = client.wait_for("! tripped ", within_s=4)
            assert tripped in ("! tripped watcher", "! tripped eof")
            assert client.proof(0).state is HostState.STOPPED
            assert dead(pids)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=str)
@at_once()
def test_i2_load_dies_without_main(state: Path, shell: Shell, number: signal.Signals) -> None:
    with armed_load(state, shell) as (_, run, pids):
        main, _ = helpers(run, state)
        os.kill(main, number)
        assert eventually(lambda: dead(pids), within_s=8)
        assert eventually((state / run / "tombstone").exists)  # the kill goes first


@pytest.mark.parametrize("shell", [Shell.BUSYBOX])
def test_a_frozen_client_does_not_keep_the_load_alive(state: Path, shell: Shell) -> None:
    """Nobody reads: main blocks on a full pipe and can no longer see its beat or deadline."""
    with armed_load(state, shell, beat_s=5) as (client, _, pids):
        assert client.process.stdin is not None
        os.set_blocking(client.process.stdin.fileno(), False)
        for _ in range(40):
            try:
                client.process.stdin.write(b"9 sample\n" * 200)
                client.process.stdin.flush()
            except BlockingIOError:
                break
        assert eventually(lambda: dead(pids), within_s=15)


@contextmanager
def no_forks(group: Path) -> Iterator[None]:
    (group / "pids.max").write_text("1")
    try:
        yield
    finally:
        (group / "pids.max").write_text("max")


def test_i2_a_host_that_cannot_fork_still_kills_what_is_known(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with (
        cgroup(PIDS) as group,
        cgroup(FREEZER) as frozen,
        tree(env_run=run, volume_run=run, cgroups=[frozen]) as load,
        guard(state, shell, into=group) as client,
    ):
        client.arm(run)
        client.ask("2 watch")
        client.wait_for("! watch 2 processes=8")
        with no_forks(group):
            if shell is Shell.DASH:  # its tickers need forks: that alone is a trip
                client.wait_for("! tripped watcher", within_s=4)
            else:
                start = time.monotonic()
                client.send("3 kill test")
                client.wait_for("3 ok kill")
                assert eventually(lambda: load.pids == [], within_s=0.7)
                assert time.monotonic() - start < 1
            assert eventually(lambda: load.pids == [], within_s=1)
            proof = parse(client.wait_for("! proof ", within_s=9))
            assert isinstance(proof, ProofLine)
            assert proof.state in (HostState.STOPPED, HostState.UNVERIFIED)
            if proof.state is HostState.STOPPED:
                assert proof.detail.startswith("builtin")


def test_a_host_that_cannot_fork_is_scanned_without(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with cgroup(PIDS) as group, tree(env_run=run, volume_run=run) as load, tree() as other:
        with guard(state, shell, into=group) as client:
            client.arm(run)
            with no_forks(group):
                if shell is not Shell.DASH:
                    client.send("3 kill test")
                assert eventually(lambda: load.pids == [], within_s=6)
        assert len(other.pids) == 8


def test_i4_a_scan_that_hangs_is_unverified_and_does_not_stop_the_kill(
    state: Path, shell: Shell
) -> None:
    with armed_load(state, shell) as (client, run, pids):
        _, others = helpers(run, state)
        worker = others[0]  # the first that main starts
        os.kill(worker, signal.SIGSTOP)
        assert client.ask("3 kill test") == "3 ok kill"
        assert eventually(lambda: dead(pids), within_s=1)
        proof = client.proof(3, within_s=4)
        assert (proof.state, proof.detail) == (HostState.UNVERIFIED, "no-scan-answer")
        assert 2 <= proof.took_s < 3.2
        assert client.proof(3).state in PROVEN  # a new worker took over for the 5 s report
