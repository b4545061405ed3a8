"""`stressor abort -o json`: stdout is one object, people read stderr, and no stream stops it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stressor import lifeline
from stressor.cli.abort_json import Ending, render
from stressor.errors import ExitCode
from stressor.lifeline import Lifeline
from stressor.model import Host, HostProof, HostState, Route, Survivor, Transport
from tests.cli.child import run
from tests.sshd import running_sshd

DEAD_END = Host("node1", (Route("127.0.0.1", 1),))
"""Nothing listens on the tcpmux port of loopback: the abort must end without proof."""
ABORT = ("abort", "--budget", "1")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    lifeline.write(tmp_path, Lifeline("c", 1.0, (DEAD_END,)))
    return tmp_path


def _abort(state: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "stressor", *ABORT, *words, state=state)


def test_stdout_is_one_object_and_the_screen_is_on_stderr(state: Path) -> None:
    done = _abort(state, "-o", "json")
    assert done.returncode == 4
    said = json.loads(done.stdout)
    assert list(said)[:4] == ["schema_version", "verdict", "exit_code", "next_command"]
    assert (said["verdict"], said["exit_code"]) == ("unknown", 4)
    assert said["next_command"] == "stressor abort --budget 1 -o json"
    assert (said["cluster"], said["run"], said["jobs_suspended"]) == ("c", None, None)
    (host,) = said["hosts"]
    assert (host["host"], host["state"], host["proven"]) == ("node1", "UNREACHABLE", False)
    lines = done.stderr.splitlines()
    assert lines[0] == "ABORT  all runs  cluster c"
    assert lines[-1].startswith("exit 4 ")
    assert max(map(len, lines)) <= 64


def test_text_stays_on_stdout(state: Path) -> None:
    done = _abort(state)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1].startswith("exit 4 ")


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("streams", [">&-", ">/dev/full", "2>&-", "2>/dev/full", ">&- 2>&-"])
def test_a_stream_that_is_gone_stops_no_abort(state: Path, output: str, streams: str) -> None:
    words = (sys.executable, "-m", "stressor", *ABORT, "-o", output)
    # Unbuffered streams would hide what is left in a buffer at the end.
    script = f'unset PYTHONUNBUFFERED; "$@" {streams}'
    done = run("sh", "-c", script, "sh", *words, state=state)
    assert done.returncode == 4, done.stdout + done.stderr
    if output == "json" and ">&-" not in streams.split() and ">/dev/full" not in streams.split():
        assert json.loads(done.stdout)["exit_code"] == 4


def test_a_pipe_without_a_reader_stops_no_abort(state: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    env = {**os.environ, "STRESSOR_STATE": str(state)}
    words = (sys.executable, "-m", "stressor", *ABORT, "-o", "json")
    done = subprocess.run(words, env=env, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert done.returncode == 4
    assert b"Traceback" not in done.stderr


def _verdict(*states: HostState) -> str:
    stuck = (Survivor(7, "fio", "D", "io_schedule", 3.0),)
    proofs = {
        str(n): HostProof(str(n), state, survivors=stuck if state is HostState.SURVIVORS else ())
        for n, state in enumerate(states)
    }
    ending = Ending(ExitCode.UNVERIFIED_HOSTS, "c", "r1", proofs, 1.0, None, "x")
    said = json.loads(render(ending))
    assert [host["proven"] for host in said["hosts"]] == [
        state in (HostState.CLEAN, HostState.STOPPED) for state in states
    ]
    return str(said["verdict"])


def test_i5_false_beats_unknown_beats_true() -> None:
    assert _verdict(HostState.CLEAN, HostState.STOPPED) == "pass"
    for silent in (HostState.UNREACHABLE, HostState.UNVERIFIED, HostState.KEY_CHANGED):
        assert _verdict(HostState.CLEAN, silent) == "unknown"
        assert _verdict(silent, HostState.SURVIVORS) == "fail"
    assert _verdict() == "unknown"


def test_survivors_are_told_in_full() -> None:
    proof = HostProof("n", HostState.SURVIVORS, 2, (Survivor(7, "fio", "D", "w", 3.0),), 0.5)
    ending = Ending(ExitCode.UNVERIFIED_HOSTS, None, "all", {"n": proof}, 1.23456, True, "x")
    said = json.loads(render(ending))
    assert said["hosts"][0]["survivors"] == [
        {"pid": 7, "comm": "fio", "state": "D", "wchan": "w", "age_s": 3.0}
    ]
    assert (said["cluster"], said["run"], said["took_s"]) == (None, None, 1.235)
    assert said["jobs_suspended"] is True


@pytest.mark.ssh
def test_a_proven_abort_says_pass_and_what_comes_next(tmp_path: Path) -> None:
    with running_sshd(tmp_path / "sshd") as sshd:
        lifeline.write(tmp_path, Lifeline("loop", 1.0, (sshd.host(Transport.PARAMIKO),)))
        words = ("abort", "--budget", "20", "-o", "json")
        done = run(sys.executable, "-m", "stressor", *words, state=tmp_path)
    said = json.loads(done.stdout)
    assert (done.returncode, said["verdict"], said["exit_code"]) == (0, "pass", 0), done.stderr
    assert said["next_command"] == "stressor cleanup --run RUN"
    assert said["hosts"][0]["proven"] is True
