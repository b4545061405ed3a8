"""Load that waits for a disk which does not answer: never called dead before it is."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stressor.guard.protocol import SurvivorLine
from stressor.guard.script import Shell
from stressor.model import PROVEN, HostState
from tests.guard.client import cold_kill, guard
from tests.guard.trees import cmdline, eventually, fresh_run, state_of, tree

pytestmark = pytest.mark.slow


@contextmanager
def frozen_disk() -> Iterator[tuple[Path, Path]]:
    """An ext4 file system on a loop device, and a folder beside it: writers go into state D when
    it is frozen. Always thawed and unmounted."""
    base = Path("/run") / f"guardtest-disk-{fresh_run()}"
    mount, image = base / "mnt", base / "img"
    mount.mkdir(parents=True)
    with image.open("wb") as file:
        file.truncate(32 << 20)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True, timeout=30)
    subprocess.run(["mount", "-o", "loop", str(image), str(mount)], check=True, timeout=30)
    try:
        yield mount, base
    finally:
        subprocess.run(["fsfreeze", "-u", str(mount)], check=False, timeout=30, capture_output=True)
        eventually(
            lambda: subprocess.run(["umount", str(mount)], check=False, timeout=30).returncode == 0,
            within_s=10,
            every_s=0.3,
        )
        shutil.rmtree(base, ignore_errors=True)


def test_i5_what_waits_for_a_dead_disk_is_a_survivor_until_the_disk_answers(
    state: Path, shell: Shell
) -> None:
    """stress-ng's disk writers, whose titles have overwritten their environment: only their mounts
    show whose they are. Under busybox the report at 5 s is awaited, too."""
    run = fresh_run()
    with frozen_disk() as (mount, base):
        script = (
            f"exec stress-ng --hdd 2 --hdd-bytes 4m --temp-path {mount} --timeout 50"
            f" >{base}/log 2>&1"
        )
        with (
            tree(env_run=run, volume_run=run, script=script) as load,
            guard(state, shell) as client,
        ):
            client.arm(run)
            assert eventually(lambda: len(writers(load.pids)) == 2, within_s=15)
            subprocess.run(["fsfreeze", "-f", str(mount)], check=True, timeout=30)
            stuck = writers(load.pids)
            assert eventually(lambda: [state_of(pid) for pid in stuck] == ["D", "D"], within_s=15)
            mark = f"STRESSOR_RUN={run}".encode()
            assert not any(mark in Path(f"/proc/{p}/environ").read_bytes() for p in stuck)
            client.ask("2 kill test")
            spans_s = ((0, 1.6), (1, 3), *([(5, 7.5)] if shell is Shell.BUSYBOX else []))
            for least_s, most_s in spans_s:
                proof = client.proof(2)
                assert proof.state is HostState.SURVIVORS
                assert least_s <= proof.took_s < most_s
            code, lines, _ = cold_kill(state, run, shell)
            assert code == 4
            assert any("comm=stress-ng-hdd state=D" in line for line in lines)
            assert "state=SURVIVORS" in lines[-1]
            named = {line.survivor.pid: line.survivor for line in client.survivors(2)}
            assert set(named) == set(stuck)
            for survivor in named.values():
                assert (survivor.comm, survivor.state) == ("stress-ng-hdd", "D")
                assert survivor.wchan != "-"
            subprocess.run(["fsfreeze", "-u", str(mount)], check=True, timeout=30)
            assert eventually(lambda: load.pids == [])
            assert client.kill(3).state in PROVEN


def writers(pids: list[int]) -> list[int]:
    return [pid for pid in pids if cmdline(pid).startswith("stress-ng-hdd")]


THREAD = """
import os, sys, threading, time
def write():
    while not os.path.exists(sys.argv[1] + "/go"): time.sleep(0.05)
    fd = os.open(sys.argv[2] + "/load", os.O_WRONLY | os.O_CREAT)
    os.write(fd, b"x" * 4096); os.fsync(fd); time.sleep(50)
threading.Thread(target=write).start()
import ctypes
ctypes.CDLL(None).syscall(60, 0)
"""


@pytest.mark.parametrize("shell", [Shell.DASH, Shell.BUSYBOX])
def test_i5_a_thread_that_outlives_its_leader_is_no_zombie(state: Path, shell: Shell) -> None:
    """The leader has exited: ps shows a zombie, while another thread is stuck in a write."""
    run = fresh_run()
    with frozen_disk() as (mount, base):
        (base / "t.py").write_text(THREAD)
        script = f"exec timeout 60 python3 {base}/t.py {base} {mount}"
        with (
            tree(env_run=run, volume_run=run, script=script) as load,
            guard(state, shell) as client,
        ):
            client.arm(run)

            def leaders() -> list[int]:
                all_pids = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]
                return [p for p in all_pids if state_of(p) == "Z" and _tasks(p) > 1]

            assert eventually(lambda: leaders() != [])
            subprocess.run(["fsfreeze", "-f", str(mount)], check=True, timeout=30)
            (base / "go").touch()
            pid = leaders()[0]
            load.extra.append(pid)
            assert eventually(lambda: "D" in _task_states(pid))
            client.ask("2 kill test")
            assert client.proof(2).state is HostState.SURVIVORS
            named = [m for m in client.messages() if isinstance(m, SurvivorLine)]
            assert (named[0].survivor.pid, named[0].survivor.state) == (pid, "D")
            subprocess.run(["fsfreeze", "-u", str(mount)], check=True, timeout=30)
            assert eventually(lambda: _tasks(pid) < 2)
            assert client.kill(3).state in PROVEN


def _tasks(pid: int) -> int:
    try:
        return len(list(Path(f"/proc/{pid}/task").iterdir()))
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _task_states(pid: int) -> list[str]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [t.joinpath("stat").read_text().rpartition(") ")[2][0] for t in tasks]
    except (FileNotFoundError, ProcessLookupError):
        return []
