"""What a kill leaves on the host for whoever asks later: its last word, no better than its proof. A
tombstone is there before the kill, and says nothing of it."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from stressor.guard.script import Shell, kill_argv
from stressor.model import PROVEN, HostState
from tests.guard.client import GuardClient, cold_kill, guard
from tests.guard.trees import eventually, fresh_run, tree

pytestmark = pytest.mark.slow


def last_word(state: Path, run: str) -> str | None:
    """Of the kills of `run`; None where there was none."""
    path = state / run / "proof"
    return path.read_text().strip() if path.exists() else None


def worker_pid(client: GuardClient, run: str) -> int:
    """Main's first child."""
    main = int((client.state / run / "guard.pid").read_text().split()[0])
    return int(Path(f"/proc/{main}/task/{main}/children").read_text().split()[0])


def test_a_cold_kill_leaves_its_proof(state: Path, shell: Shell) -> None:
    run = fresh_run()
    with tree(env_run=run, count=1):
        assert cold_kill(state, run, shell)[0] == 0
    assert last_word(state, run) == "STOPPED"
    assert cold_kill(state, run, shell)[0] == 0
    assert last_word(state, run) == "CLEAN"


def test_i5_a_kill_without_proof_leaves_none_and_takes_an_older_one_back(state: Path) -> None:
    """Without a believable grep, dash cannot tell whose mark another run's process carries."""
    run = fresh_run()
    assert cold_kill(state, run, Shell.DASH)[0] == 0
    assert last_word(state, run) == "CLEAN"
    canary = state / run / "canary"
    for file in canary.iterdir():
        file.unlink()
    canary.rmdir()
    canary.touch()
    with tree(env_run=fresh_run(), count=1):
        assert cold_kill(state, run, Shell.DASH)[0] == 4
    assert last_word(state, run) == "UNVERIFIED"


def test_i5_a_guard_leaves_the_last_of_its_words(state: Path, shell: Shell) -> None:
    """None while armed; unverified while a scan hangs; proven once the next one has answered."""
    run = fresh_run()
    with guard(state, shell) as client, tree(env_run=run, count=1):
        client.arm(run)
        assert last_word(state, run) is None
        os.kill(worker_pid(client, run), signal.SIGSTOP)
        client.ask("2 kill test")
        assert client.proof(2, within_s=4).state is HostState.UNVERIFIED
        assert eventually(lambda: last_word(state, run) == "UNVERIFIED", within_s=1)
        proof = client.proof(2)
        assert proof.state in PROVEN
        assert eventually(lambda: last_word(state, run) == str(proof.state), within_s=1)
        client.ask("3 quit")
        client.process.wait(timeout=5)
    assert last_word(state, run) in ("CLEAN", "STOPPED")


def test_late_comers_take_the_proof_back(state: Path) -> None:
    run = fresh_run()
    with guard(state, Shell.AUTO) as client:
        client.arm(run)
        client.kill(2)
        assert eventually(lambda: last_word(state, run) == "CLEAN", within_s=1)
        with tree(env_run=run, count=1):
            client.wait_for("! late n=")
            assert last_word(state, run) == "LATE"


def test_a_kill_of_all_runs_speaks_for_each_that_is_over(state: Path, shell: Shell) -> None:
    """In a process namespace of its own: on a shared machine `all` would reach others' load."""
    for run, file in (("a-1", "guard.pid"), ("b-2", "tombstone"), ("c-3", "kill.sh")):
        (state / run).mkdir(parents=True)
        (state / run / file).write_text("1 1\n")
    argv = kill_argv("all", "test", 0, shell=shell, state_dir=str(state))
    inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *argv]
    done = subprocess.run(["timeout", "40", *inside], capture_output=True, check=False)
    assert done.returncode == 0
    words = {run: last_word(state, run) for run in ("all", "a-1", "b-2", "c-3")}
    assert words == {"all": "CLEAN", "a-1": "CLEAN", "b-2": "CLEAN", "c-3": None}
