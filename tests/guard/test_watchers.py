"""The resident guard with real processes: its words, its kill, and each of its own trips."""

import os
import signal
import time
from pathlib import Path

import pytest

from stressor.guard.protocol import GuardSample, WatchReport, parse
from stressor.guard.script import Shell
from stressor.model import HostState
from tests.guard.client import GuardClient, guard
from tests.guard.trees import FREEZER, UNIFIED, Tree, alive, cgroup, eventually, fresh_run, tree

pytestmark = pytest.mark.slow


def gone(load: Tree, *, within_s: float) -> bool:
    return eventually(lambda: not load.pids, within_s=within_s)


def test_each_verb_is_acknowledged_with_its_number(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with guard(state, shell) as client:
        assert client.ask("7 beat") == "7 err beat not-armed"
        facts = client.arm(run)
        assert f"shell={shell}" in facts
        assert client.ask("2 beat") == "2 ok beat"
        sample = parse(client.ask("3 sample"))
        assert isinstance(sample, GuardSample)
        assert sample.boot_s == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=5)
        assert sample.cpu_some_us is not None
        assert client.ask("4 watch") == "4 ok watch"
        assert parse(client.wait_for("! watch 4")) == WatchReport(4, 0, 0, ())
        assert client.ask("5 prove") == "5 ok prove"
        assert client.proof(5).state is HostState.CLEAN
        assert client.ask("6 arm x 9 9") == "6 err arm armed"
        assert client.ask("8 dance") == "8 err dance usage"
        assert client.ask("9 quit") == "9 ok quit"
        assert client.process.wait(timeout=5) == 0
        assert eventually(lambda: client.children() == [])
    assert not (state / run).exists()


@pytest.mark.parametrize(
    "words", ["abc 10", "UP 10 5", "all 10 5", "../x 10 5", "abc 0 5", "abc x 5"]
)
def test_an_arm_that_is_no_arm_is_refused(state: Path, words: str) -> None:
    with guard(state, Shell.DASH) as client:
        assert client.ask(f"1 arm {words}") == "1 err arm usage"
        assert client.arm(fresh_run())


def test_i5_a_marked_tree_is_seen_killed_and_proven_dead(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with (
        guard(state, shell) as client,
        cgroup(FREEZER) as group,
        tree(env_run=run, cgroups=[group]) as load,
    ):
        client.arm(run)
        client.send("2 watch")
        seen = parse(client.wait_for("! watch 2"))
        assert isinstance(seen, WatchReport)
        assert (seen.processes, seen.cgroups) == (len(load.pids), 1)
        proof = client.kill(3)
        assert (proof.state, load.pids) == (HostState.STOPPED, [])
        assert proof.stopped >= 7
        assert client.survivors(3) == []
        assert client.ask("4 beat") == "4 err beat tripped test"


def test_i5_a_tree_nobody_watched_in_the_unified_hierarchy_dies(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with (
        guard(state, shell) as client,
        cgroup(UNIFIED) as group,
        tree(env_run=run, cgroups=[group]) as load,
    ):
        client.arm(run)
        assert client.kill(2).state is HostState.STOPPED
        assert load.pids == []


def test_the_second_mark_alone_condemns_stress_ng_workers(state: Path, shell: Shell) -> None:
    """stress-ng's workers overwrite their environment, so only the volume tells (measured)."""
    run = fresh_run()
    workers = 'exec timeout 60 stress-ng --cpu 2 --cpu-load 1 --temp-path "$SCRATCH" -q'
    with (
        guard(state, shell) as client,
        tree(volume_run=run, script=workers) as load,
    ):
        client.arm(run)
        assert eventually(lambda: len(load.pids) >= 4)
        proof = client.kill(2)
        assert (proof.state, load.pids) == (HostState.STOPPED, [])


def test_i2_the_end_of_the_channel_kills(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with guard(state, shell) as client, tree(env_run=run) as load:
        client.arm(run)
        client.hang_up()
        assert gone(load, within_s=2)
        assert (state / run / "tombstone").read_text() == "eof\n"


def test_i2_lost_beats_kill(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with guard(state, shell) as client, tree(env_run=run) as load:
        client.arm(run, beat_s=1.5)
        time.sleep(1)
        assert client.ask("2 beat") == "2 ok beat"
        time.sleep(1)
        assert load.pids
        assert client.wait_for("! tripped", within_s=2.5) == "! tripped beat"
        assert client.proof(0).state is HostState.STOPPED
        assert load.pids == []


def test_i2_the_deadline_kills_however_well_it_beats(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with guard(state, shell) as client, tree(env_run=run) as load:
        client.arm(run, left_s=1)
        assert client.wait_for("! tripped", within_s=2.5) == "! tripped deadline"
        assert gone(load, within_s=2)
        assert client.ask("2 beat") == "2 err beat tripped deadline"


def test_i3_a_tombstone_forbids_arming_and_trips_who_is_armed(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with guard(state, shell) as client, tree(env_run=run) as load:
        client.arm(run)
        (state / run / "tombstone").write_text("elsewhere\n")
        assert client.wait_for("! tripped", within_s=1.5) == "! tripped tombstone"
        assert gone(load, within_s=2)
        assert client.ask("2 beat").startswith("2 err beat tripped")
        client.ask("3 quit")
    with guard(state, shell) as client:
        assert client.ask(f"1 arm {run} 40 30") == "1 err arm tombstone"


def test_i3_late_comers_die_until_the_deadline(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with guard(state, shell) as client:
        client.arm(run)
        assert client.kill(2).state is HostState.CLEAN
        with tree(env_run=run, count=1) as late:
            assert client.wait_for("! late", within_s=8).startswith("! late n=")
            assert late.pids == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["dead", "stopped"])
def test_i2_the_worker_kills_when_main_is_dead_or_hangs(
    state: Path, shell: Shell, number: signal.Signals
) -> None:
    run = fresh_run()
    with guard(state, shell) as client, tree(env_run=run) as load:
        client.arm(run)
        main = main_pid(client, run)
        os.kill(main, number)
        assert gone(load, within_s=8)
        assert (state / run / "tombstone").exists()
        with tree(env_run=run, count=1) as late:
            assert gone(late, within_s=8)


def test_a_lost_ticker_trips(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with guard(state, shell) as client, tree(env_run=run) as load:
        client.arm(run)
        client.ask("2 beat")
        main = main_pid(client, run)
        for ticker in shell_children(client, main)[1:2]:
            os.kill(ticker, signal.SIGKILL)
        assert client.wait_for("! tripped", within_s=3) == "! tripped watcher"
        assert gone(load, within_s=2)


def test_one_guard_a_host(state: Path, shell: Shell) -> None:
    run, other = fresh_run(), fresh_run()
    with guard(state, shell) as first:
        first.arm(run)
        with guard(state, shell) as second:
            assert second.ask(f"1 arm {other} 40 30") == f"1 err arm held {run}"
            assert second.ask(f"2 arm {run} 40 30") == f"2 err arm held {run}"
            assert first.ask("2 beat") == "2 ok beat"
            first.ask("3 quit")
            assert first.process.wait(timeout=5) == 0
            second.arm(other)


def test_what_a_dead_guard_left_does_not_hold_the_host(state: Path, shell: Shell) -> None:
    run = fresh_run()
    folder = state / run
    folder.mkdir(parents=True)
    (folder / "guard.pid").write_text(f"{os.getpid()} 1\n")
    (folder / "claim.77").write_text("4000000 5\n")
    with guard(state, shell) as client:
        client.arm(run)


def main_pid(client: GuardClient, run: str) -> int:
    return int((client.state / run / "guard.pid").read_text().split()[0])


def shell_children(client: GuardClient, main: int) -> list[int]:
    """The worker, two tickers and the reader, in the order of their start."""
    text = Path(f"/proc/{main}/task/{main}/children").read_text()
    children = [int(word) for word in text.split()]
    assert all(alive(pid) for pid in children)
    assert len(children) == 4
    return children
