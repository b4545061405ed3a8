"""What is killed, what is left alone, and what the proof says, on real processes."""

import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from stressor.guard.protocol import ProofLine, WatchReport, parse
from stressor.guard.script import Shell, kill_argv, script_text
from stressor.model import HostState
from tests.guard.client import BOUND, cold_kill, guard
from tests.guard.trees import FREEZER, PIDS, UNIFIED, alive, cgroup, eventually, fresh_run, tree

pytestmark = pytest.mark.slow


def comm_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def test_i5_a_marked_tree_is_stopped_with_proof_and_a_second_kill_finds_a_clean_host(
    state: Path, shell: Shell
) -> None:
    run = fresh_run()
    with cgroup(FREEZER) as group, tree(env_run=run, volume_run=run, cgroups=[group]) as load:
        with guard(state, shell) as client:
            client.arm(run)
            assert client.ask("2 beat") == "2 ok beat"
            client.ask("3 watch")
            report = parse(client.wait_for("! watch 3 "))
            assert isinstance(report, WatchReport)
            assert (report.processes, report.cgroups) == (8, 1)
            assert set(report.commands) == {"timeout", "sleep", "sh"}
            client.ask("4 prove")
            assert client.proof(4).state is HostState.SURVIVORS
            assert len(client.survivors(4)) == 8
            assert len(load.pids) == 8
            proof = client.kill(5)
            assert (proof.state, load.pids) == (HostState.STOPPED, [])
            assert proof.stopped >= 7
            assert 0.25 <= proof.took_s < 2.5
            assert (group / "freezer.state").read_text() == "THAWED\n"
            again = client.kill(6)
            assert (again.state, again.stopped) == (HostState.CLEAN, 0)
            assert client.ask("7 beat") == "7 err beat tripped test"
            assert client.ask("8 quit") == "8 ok quit"
            assert client.process.wait(timeout=5) == 0
        assert (state / run / "tombstone").exists()


@pytest.mark.parametrize("known", [True, False], ids=["watched", "unseen"])
def test_one_mark_is_enough_seen_before_or_not(state: Path, shell: Shell, known: bool) -> None:
    run = fresh_run()
    with (
        tree(env_run=run) as by_environment,
        tree(volume_run=run) as by_volume,
        guard(state, shell) as client,
    ):
        client.arm(run)
        if known:
            client.ask("2 watch")
            client.wait_for("! watch 2 processes=16")
        assert client.kill(3).state is HostState.STOPPED
        assert (by_environment.pids, by_volume.pids) == ([], [])


def test_unified_hierarchy_is_killed_through_its_own_cgroup(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with cgroup(UNIFIED) as group, tree(env_run=run, cgroups=[group]) as load:
        with guard(state, shell) as client:
            client.arm(run)
            client.ask("2 watch")
            client.wait_for("! watch 2 processes=8 cgroups=1 ")
            assert client.kill(3).state is HostState.STOPPED
        assert load.pids == []
        assert "populated 0" in (group / "cgroup.events").read_text()


def test_workers_that_overwrote_their_environment_show_by_their_volume(
    state: Path, shell: Shell
) -> None:
    run = fresh_run()
    script = 'cd "$SCRATCH"; stress-ng --cpu 2 --cpu-load 1 --timeout 50 >/dev/null 2>&1'
    with tree(env_run=run, volume_run=run, script=script) as load:

        def workers() -> list[int]:
            names = {p: Path(f"/proc/{p}/comm").read_text() for p in load.pids if alive(p)}
            return [p for p, name in names.items() if name.startswith("stress-ng-cpu")]

        assert eventually(lambda: len(workers()) == 2, within_s=15)
        bare = f"STRESSOR_RUN={run}".encode()
        seen = workers()
        assert all(bare not in Path(f"/proc/{p}/environ").read_bytes() for p in seen)
        with guard(state, shell) as client:
            client.arm(run)
            assert client.kill(2).state is HostState.STOPPED
        assert not any(alive(p) for p in seen)


def test_i7_everybody_else_is_left_alone(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with (
        tree(env_run=run) as load,
        tree(env_run=f"{run}d", volume_run=f"{run}d") as longer_name,
        tree(env_run=run[:-1], volume_run=run[:-1]) as shorter_name,
        tree() as unmarked,
        tree(env={"NOT_STRESSOR_RUN": run, "OTHER": f"x\nSTRESSOR_RUN={run}\n"}) as look_alike,
        tree(env_run=run, own_namespace=False) as operators_shell,
        guard(state, shell) as client,
    ):
        client.arm(run)
        assert client.kill(2).state is HostState.STOPPED
        assert load.pids == []
        for other in (longer_name, shorter_name, unmarked, look_alike, operators_shell):
            assert len(other.pids) == 8


def test_i7_a_daemon_that_sees_the_kubelets_own_mounts_is_no_load(
    state: Path, shell: Shell
) -> None:
    """node-exporter and CSI plugins mount the host's tree: subPath mounts and volumes of medium
    Memory show in theirs, without being theirs."""
    run = fresh_run()
    script = f"""
      kubelet=$SCRATCH/kubelet
      volume=$kubelet/pods/1/volumes/kubernetes.io~empty-dir/stressor-{run}
      mkdir -p "$volume" "$kubelet/pods/1/volume-subpaths/x"
      mount --bind "$volume" "$kubelet/pods/1/volume-subpaths/x"
      mount -t tmpfs none "$volume"
      touch "$SCRATCH/mounted"; timeout 60 sleep 50; exit"""
    with tree(script=script) as daemon, guard(state, shell) as client:
        assert daemon.scratch is not None
        mounted = daemon.scratch / "scratch" / "mounted"
        assert eventually(mounted.exists)
        client.arm(run)
        before = daemon.pids
        assert client.kill(2).state is HostState.CLEAN
        assert daemon.pids == before


@pytest.mark.parametrize("known", [True, False], ids=["watched", "unseen"])
def test_of_a_shared_cgroup_only_the_marked_die(state: Path, shell: Shell, known: bool) -> None:
    run = fresh_run()
    with (
        cgroup(FREEZER) as group,
        tree(env_run=run, volume_run=run, cgroups=[group]) as load,
        tree(cgroups=[group], own_namespace=False) as hosts_own,
        tree(cgroups=[group], env_run=f"{run}x") as foreign,
        guard(state, shell) as client,
    ):
        client.arm(run)
        if known:
            client.ask("2 watch")
            client.wait_for("! watch 2 ")
        assert client.kill(3).state is HostState.STOPPED
        assert load.pids == []
        assert (len(hosts_own.pids), len(foreign.pids)) == (8, 8)
        assert (group / "freezer.state").read_text() == "THAWED\n"


def test_a_foreigner_that_moved_in_after_the_watch_is_spared(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with (
        cgroup(FREEZER) as group,
        tree(env_run=run, volume_run=run, cgroups=[group]) as load,
        guard(state, shell) as client,
    ):
        client.arm(run)
        client.ask("2 watch")
        client.wait_for("! watch 2 ")
        with tree(cgroups=[group], own_namespace=False) as late:
            assert client.kill(3).state is HostState.STOPPED
            assert (load.pids, len(late.pids)) == ([], 8)


def test_a_load_that_somebody_froze_is_thawed_and_dies(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with cgroup(FREEZER) as group, tree(env_run=run, volume_run=run, cgroups=[group]) as load:
        with guard(state, shell) as client:
            client.arm(run)
            client.ask("2 watch")
            client.wait_for("! watch 2 ")
            (group / "freezer.state").write_text("FROZEN")
            assert client.kill(3).state is HostState.STOPPED
        assert load.pids == []
        assert (group / "freezer.state").read_text() == "THAWED\n"


def test_nested_cgroups_die_with_their_parent(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with cgroup(FREEZER) as group:
        inner = group / "inner"
        inner.mkdir()
        with (
            tree(env_run=run, volume_run=run, cgroups=[group]) as outer_load,
            tree(volume_run=run, cgroups=[inner]) as inner_load,
            guard(state, shell) as client,
        ):
            (inner / "freezer.state").write_text("FROZEN")
            client.arm(run)
            assert client.kill(2).state is HostState.STOPPED
            assert (outer_load.pids, inner_load.pids) == ([], [])
            assert (inner / "freezer.state").read_text() == "THAWED\n"


def test_a_recycled_pid_is_not_shot() -> None:
    """`shoot_one` with another start time than the process has: the unit that all kills of single
    processes go through."""
    library = script_text().rpartition("case $0 in\nstressor-guard)")[0]
    sleeper = subprocess.Popen(["timeout", "60", "sleep", "50"])
    start = Path(f"/proc/{sleeper.pid}/stat").read_text().rpartition(") ")[2].split()[19]
    try:
        for shell in (["dash"], ["busybox", "ash"], ["bash"]):
            call = f"{library}\nKILLED=; shoot_one /proc/{sleeper.pid} {int(start) - 1}"
            subprocess.run([*shell, "-c", call], check=False, timeout=10)
            assert alive(sleeper.pid)
        call = f"{library}\nKILLED=; shoot_one /proc/{sleeper.pid} {start}"
        subprocess.run(["dash", "-c", call], check=False, timeout=10)
        assert sleeper.wait(timeout=5) == -9
    finally:
        sleeper.kill()
        sleeper.wait(timeout=5)


def test_a_hostile_process_name_harms_neither_the_kill_nor_the_protocol(
    state: Path, shell: Shell
) -> None:
    run = fresh_run()
    name = "x) Z 1 \n! proof"
    rename = f"import ctypes, time; ctypes.CDLL(None).prctl(15, {name!r}.encode()); time.sleep(50)"
    script = f"exec python3 -c {shlex.quote(rename)}"
    with tree(env_run=run, script=script) as load, guard(state, shell) as client:
        assert eventually(lambda: any("! proof" in comm_of(pid) for pid in load.pids))
        client.arm(run)
        client.ask("2 prove")
        assert client.proof(2).state is HostState.SURVIVORS
        assert any(line.survivor.comm.startswith("x__Z_1") for line in client.survivors(2))
        assert client.kill(3).state is HostState.STOPPED
        assert load.pids == []


def test_cold_kill_proves_leaves_a_tombstone_and_returns(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with (
        cgroup(FREEZER) as group,
        tree(env_run=run, volume_run=run, cgroups=[group]) as load,
        tree() as unmarked,
        tree(env_run=run, own_namespace=False) as operators_shell,
    ):
        code, lines, took_s = cold_kill(state, run, shell, left_s=20)
        assert (code, load.pids) == (0, [])
        assert lines[0].startswith(f"! hello kill {run} boot=")
        assert "state=STOPPED" in lines[-1]
        assert (state / run / "tombstone").read_text() == "test\n"
        assert took_s < 5
        assert (len(unmarked.pids), len(operators_shell.pids)) == (8, 8)
        pid_file = state / run / "late.pid"
        assert eventually(pid_file.exists)
        late = int(pid_file.read_text().split()[0])
        assert alive(late)
        code, lines, _ = cold_kill(state, run, shell, left_s=20)
        assert (code, "state=CLEAN stopped=0" in lines[-1]) == (0, True)
        assert int(pid_file.read_text().split()[0]) == late
        os.kill(late, 9)


ALL_RUNS = """
for run in a-1 b; do unshare -m env STRESSOR_RUN=$run timeout 60 sleep 50 & done
unshare -m env STRESSOR_RUN=NOT_A_RUN timeout 60 sleep 51 &
unshare -m env STRESSOR_RUNNER=a timeout 60 sleep 52 &
env STRESSOR_RUN=a-1 timeout 60 sleep 53 &
sleep 0.5
"$@"
echo "exit $?"
for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo; done | grep '^sleep 5'
"""


def test_all_means_every_run_and_nothing_that_is_no_run(state: Path, shell: Shell) -> None:
    """In a process namespace of its own: on a shared machine `all` would reach others' load."""
    argv = kill_argv("all", "test", 0, shell=shell, state_dir=str(state))
    inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", ALL_RUNS]
    done = subprocess.run(
        ["timeout", "40", *inside, "sh", *argv], capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    assert "state=STOPPED stopped=" in next(x for x in lines if x.startswith("! proof 0"))
    after = lines[lines.index("exit 0") + 1 :]
    assert sorted(line.strip() for line in after) == ["sleep 51", "sleep 52", "sleep 53"]


def test_i3_a_tombstone_refuses_the_run_for_ever_and_no_other(state: Path, shell: Shell) -> None:
    run = fresh_run()
    assert cold_kill(state, run, shell)[0] == 0
    with guard(state, shell) as client:
        assert client.ask(f"1 arm {run} 20 5") == "1 err arm tombstone"
        assert client.ask(f"2 arm {run}2 20 5", within_s=15).startswith("2 ok arm ")


def test_kill_sh_at_the_console_needs_no_words(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with guard(state, shell) as client:
        client.arm(run)
        with tree(env_run=run) as load:
            script = state / run / "kill.sh"
            done = subprocess.run(["sh", str(script)], capture_output=True, timeout=20, check=False)
            assert done.returncode == 0
            assert b"! proof 0 state=STOPPED" in done.stdout
            assert load.pids == []
        client.wait_for("! tripped tombstone", within_s=3)


def test_the_host_timers_kill_by_sh_needs_no_fork_to_tell_load_from_others(state: Path) -> None:
    """dash cannot: it kills what is remembered and goes on as a better shell, and what both have
    killed is counted. No guard is left that could help."""
    run = fresh_run()
    with (
        cgroup(FREEZER) as frozen,
        cgroup(PIDS) as group,
        tree(env_run=run, volume_run=run, cgroups=[frozen]) as known,
    ):
        with guard(state, Shell.AUTO) as client:
            client.arm(run)
            client.ask("2 watch")
            client.wait_for("! watch 2 processes=8 cgroups=1 ")
        no_forks = f'echo $$ > {group}/cgroup.procs; echo 1 > {group}/pids.max; exec "$@"'
        timer = ["dash", str(state / run / "kill.sh"), run, "deadline", "0"]
        with tree(env_run=run, count=1) as unseen:
            done = subprocess.run(
                ["sh", "-c", no_forks, "sh", *timer], capture_output=True, timeout=30, check=False
            )
            hello, *_, proof = done.stdout.decode().splitlines()
            assert (done.returncode, known.pids, unseen.pids) == (0, [], [])
        assert hello.startswith(f"! hello kill {run} boot=")
        assert done.stdout.count(b"! hello") == 1
        last = parse(proof)
        assert isinstance(last, ProofLine)
        assert (last.state, last.detail) == (HostState.STOPPED, "builtin")
        assert last.stopped >= 8
        assert (state / run / "tombstone").read_text() == "deadline\n"


def test_a_kill_that_can_write_nowhere_proves_nothing_and_kills() -> None:
    run = fresh_run()
    argv = kill_argv(run, "test", 0, state_dir="/proc/nowhere")
    with (
        tree(env_run=run, count=1) as load,
        subprocess.Popen([*BOUND, *argv], stdout=subprocess.PIPE, text=True) as cold,
    ):
        assert cold.stdout is not None
        said = [cold.stdout.readline() for _ in range(2)]
        assert eventually(lambda: load.pids == [], within_s=8)
        for pid in (int(p) for p in children(cold.pid)):
            os.kill(pid, signal.SIGKILL)
    assert "state=UNVERIFIED" in said[1]
    assert said[1].endswith(" detail=no-folder\n")


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
