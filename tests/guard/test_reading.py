"""What the shells read of the kernel's files: a byte-wise reader must get the whole line."""

import os
import subprocess
from pathlib import Path

import pytest

from stressor.guard.script import script_text
from tests.guard.trees import cmdline, eventually, fresh_run, tree

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
        words = cmdline(pid).split("\0")
        if words[0] == "sleep":
            found[words[1]] = pid
    return found


PILED = {
    1: "survivor pid=7 comm=x state=D wchan=w age_s=1\nproof state=SURVIVORS stopped=0\nend 1",
    2: "watch processes=4 cgroups=1 comms=a\nend 10",
    3: "proof state=STOPPED stopped=4\nend 3",
    4: "proof state=CLEAN stopped=0",
}
QUEUED = "1:prove:21:0:0 2:watch:22:0:0 3:kill:23:0:0 4:prove:24:0:0"


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_i4_each_answer_goes_to_its_own_order(shell: tuple[str, ...], tmp_path: Path) -> None:
    """Four jobs are done before main looks: the second's file has another's answer by now, and the
    last is cut."""
    for number, text in PILED.items():
        (tmp_path / f"answer.{number}").write_text(f"{text}\n")
    words = 'DIR=$1 QUEUE=$2 NOW=50 TRIPPED=""; for i in 1 1 9 2 3 4; do answered $i; done'
    assert functions(words, shell, str(tmp_path), QUEUED).splitlines() == [
        "! survivor 21 pid=7 comm=x state=D wchan=w age_s=1",
        "! proof 21 state=SURVIVORS stopped=0",
        "! watch 22 processes=- cgroups=- comms=-",
        "! proof 23 state=STOPPED stopped=4",
        "! proof 24 state=UNVERIFIED stopped=0 scans=0 took_ms=500 detail=answer-cut",
    ]
