"""What the guard and the late loop cost while nothing happens, also where nothing can be forked."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from stressor.guard.script import Shell, script_text
from tests.guard.client import BOUND, at_once, guard
from tests.guard.trees import PIDS, cgroup, end, eventually, fresh_run, tree

pytestmark = pytest.mark.slow

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pids: list[int], *, with_children: bool = False) -> float:
    """CPU seconds spent so far: fields 14 to 17 of /proc/PID/stat, proc(5)."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        total += sum(map(int, fields[11 : 15 if with_children else 13]))
    return total / TICKS_PER_S


def no_more_forks(group: Path) -> None:
    """Nor later, when some in the group have ended."""
    (group / "pids.max").write_text("1")


def test_a_late_loop_that_cannot_fork_does_not_spin(state: Path) -> None:
    run = fresh_run()
    folder = state / run
    folder.mkdir(parents=True)
    script = folder / "kill.sh"
    script.write_text(script_text(str(state)))
    with cgroup(PIDS) as group:
        into = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
        loop = subprocess.Popen(
            [*into, "dash", str(script), "--late", run, "20"], start_new_session=True
        )
        try:
            assert eventually((folder / "late.pid").exists)
            no_more_forks(group)
            time.sleep(5.5)  # beyond a first wait that still could fork
            before = cpu_s([loop.pid])
            time.sleep(4)
            assert loop.poll() is None
            assert cpu_s([loop.pid]) - before < 0.4
        finally:
            end(loop.pid)
            loop.wait(timeout=5)


def test_only_one_of_two_late_loops_stays(state: Path) -> None:
    run = fresh_run()
    folder = state / run
    folder.mkdir(parents=True)
    script = folder / "kill.sh"
    script.write_text(script_text(str(state)))
    loops = [
        subprocess.Popen([*BOUND, "sh", str(script), "--late", run, "20"], start_new_session=True)
        for _ in range(2)
    ]
    try:
        assert eventually(lambda: [p.poll() for p in loops].count(0) == 1)
        time.sleep(0.5)
        assert [p.poll() for p in loops].count(None) == 1
    finally:
        for loop in loops:
            if loop.poll() is None:
                os.killpg(loop.pid, signal.SIGKILL)
            loop.wait(timeout=5)


@at_once()
def test_a_worker_alone_that_cannot_fork_kills_and_does_not_spin(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with (
        cgroup(PIDS) as group,
        tree(env_run=run, volume_run=run, count=1) as load,
        guard(state, shell, into=group) as client,
    ):
        client.arm(run)
        main = int((state / run / "guard.pid").read_text().split()[0])
        others = [pid for pid in client.children() if pid not in (main, client.process.pid)]
        no_more_forks(group)
        os.kill(main, signal.SIGKILL)
        assert eventually(lambda: not load.pids, within_s=8)
        time.sleep(1)
        left = [pid for pid in others if Path(f"/proc/{pid}").exists()]
        before = cpu_s(left)
        time.sleep(3)
        left = [pid for pid in left if Path(f"/proc/{pid}").exists()]
        assert cpu_s(left) - before < 0.6


def test_i10_an_idle_guard_costs_at_most_a_hundredth_of_a_core(state: Path) -> None:
    """The shell that AUTO takes; beat and sample once a second, as a run does."""
    run = fresh_run()
    with guard(state, Shell.AUTO) as client:
        client.arm(run)
        pids = client.children()
        before = cpu_s(pids, with_children=True)
        for sequence in range(2, 8):
            client.ask(f"{sequence * 2} beat")
            client.ask(f"{sequence * 2 + 1} sample")
            time.sleep(1)
        spent = cpu_s(pids, with_children=True) - before
        assert spent / 6 < 0.01 + 1 / TICKS_PER_S / 6
