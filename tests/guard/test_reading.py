"""What the shells read of the kernel's files: a byte-wise reader must get the whole line."""

import os
import subprocess
from pathlib import Path

import pytest

from stressor.guard.script import script_text
from tests.guard.trees import eventually, fresh_run, tree

pytestmark = pytest.mark.slow

SHELLS = (("dash",), ("busybox", "ash"), ("bash",))
STEADY = ("/proc/PID/mounts", "/proc/PID/cgroup", "/proc/PID/mountinfo", "/proc/PID/stat")


def functions(words: str, shell: tuple[str, ...], *arguments: str) -> str:
    """Run `words` with the guard's functions defined and nothing started."""
    body, _, _ = script_text("/nowhere").rpartition("case $0 in")
    argv = ["timeout", "20", *shell, "-c", f"{body}\n{words}", "functions", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize("name", STEADY)
def test_a_first_line_is_read_whole(shell: tuple[str, ...], name: str) -> None:
    with subprocess.Popen(["sleep", "20"]) as sleeper:
        path = name.replace("PID", str(sleeper.pid))
        while Path(f"/proc/{sleeper.pid}/comm").read_text() != "sleep\n":
            os.sched_yield()
        said = functions('line "$1"; printf "%s\\n" "$LINE"', shell, path)
        expected = Path(path).read_text().splitlines()[0]
        sleeper.kill()
    assert said == f"{expected}\n"


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_the_hosts_task_limit_is_read_whole(shell: tuple[str, ...]) -> None:
    """Sysctl files give a byte-wise reader one digit."""
    files = [Path("/proc/sys/kernel") / name for name in ("threads-max", "pid_max")]
    smallest = min(int(path.read_text()) for path in files)
    assert functions("tasks_max; echo $TASKS_MAX", shell) == f"{smallest}\n"


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize(("limit", "answer"), [("20", "no"), ("4000000", "yes"), ("", "yes")])
def test_a_host_full_of_tasks_is_not_forked_on(
    shell: tuple[str, ...], limit: str, answer: str
) -> None:
    words = f"mounts; TASKS_MAX={limit}; if can_fork; then echo yes; else echo no; fi"
    assert functions(words, shell) == f"{answer}\n"


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_mount_table_seen_from_another_root_clears_nobody(shell: tuple[str, ...]) -> None:
    """A scan without forks reads a table once for each namespace and root, not each namespace."""
    run = fresh_run()
    script = "r=$SCRATCH/r; mkdir $r; mount --bind / $r; sleep 50 & exec chroot $r sleep 51"
    with tree(volume_run=run, script=script) as load:
        assert eventually(lambda: len(sleepers(load.pids)) == 2)
        inside, outside = sleepers(load.pids)["51"], sleepers(load.pids)["50"]
        words = (
            'RUN=$1 CAND="$2 $3" MARKED="" UNCLEAR="" REPS="" ARMED=0; host_ns; '
            "look_builtin; echo $MARKED"
        )
        said = functions(words, shell, run, f"/proc/{inside}", f"/proc/{outside}")
        assert f"/proc/{outside}:" in said
        assert f"/proc/{inside}:" not in said


def sleepers(pids: list[int]) -> dict[str, int]:
    found = {}
    for pid in pids:
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        if words[0] == "sleep":
            found[words[1]] = pid
    return found
