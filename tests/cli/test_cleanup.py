"""`stressor cleanup` as an operator calls it: what it says, in text, JSON and its log."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stressor import lifeline
from stressor.cli.cleanup import Outcome, as_json, as_text
from stressor.lifeline import Lifeline, RunEntry
from stressor.model import Host, Route
from stressor.testing.kube import MemoryApi
from tests.cli.child import run
from tests.contract.kube.conftest import serve

HEAD = ["schema_version", "verdict", "exit_code", "next_command"]
DEAD_END = Host("node1", (Route("127.0.0.1", 1),))
CLEAN = Outcome("c", "r1", {"node1": None}, 3, ())


class Desk:
    """A state folder that knows one run, and an API on loopback."""

    def __init__(self, path: Path, port: int) -> None:
        self.path, self.state = path, path / "state"
        config = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "u", "user": {"token": "sesame"}}],
        }
        (path / "kubeconfig").write_text(json.dumps(config))

    def knows(self, *hosts: str) -> None:
        entry = RunEntry(
            run="r1",
            started_unix_s=1.0,
            deadline_unix_s=2.0,
            journal_path="",
            namespace="stressor-r1",
            kubeconfig_path=str(self.path / "kubeconfig"),
            hosts=hosts,
        )
        lifeline.write(self.state, Lifeline("c", 1.0, (DEAD_END,), (entry,)))

    def stressor(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run(sys.executable, "-m", "stressor", *words, state=self.state)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    server = serve(MemoryApi())
    yield Desk(tmp_path, server.server_address[1])
    server.shutdown()
    server.server_close()


def test_nothing_left_is_exit_0_and_closes_the_run(desk: Desk) -> None:
    desk.knows()
    done = desk.stressor("cleanup", "--run", "r1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "api    nothing found\nCLEAN  nothing of run r1 is left\n"
    assert lifeline.read(lifeline.path_of(desk.state, "c")).open_runs == ()


def test_json_of_a_clean_up_that_left_nothing(desk: Desk) -> None:
    desk.knows()
    done = desk.stressor("cleanup", "--run", "r1", "-o", "json")
    said = json.loads(done.stdout)
    assert list(said)[:4] == HEAD
    assert (done.returncode, said["verdict"], said["exit_code"]) == (0, "pass", 0)
    assert said["next_command"] == "stressor report r1"
    assert (said["cluster"], said["run"], said["objects_deleted"]) == ("c", "r1", 0)


def test_json_of_a_host_that_was_not_proven(desk: Desk) -> None:
    desk.knows("node1", "lost")
    done = desk.stressor("cleanup", "--run", "r1", "-o", "json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["verdict"], said["exit_code"]) == (4, "fail", 4)
    assert said["next_command"] == "stressor cleanup --run r1"
    assert [(host["host"], host["tidied"]) for host in said["hosts"]] == [
        ("node1", False),
        ("lost", False),
    ]
    assert "UNREACHABLE" in said["hosts"][0]["detail"]
    assert "no route in the lifeline file" in said["hosts"][1]["detail"]
    assert lifeline.read(lifeline.path_of(desk.state, "c")).open_runs != ()


def test_suspended_is_no_word_on_the_load(desk: Desk) -> None:
    desk.knows()
    done = desk.stressor("cleanup", "--run", "r1", "--suspend", "-o", "json")
    said = json.loads(done.stdout)
    assert list(said)[:4] == HEAD
    assert (done.returncode, said["verdict"], said["exit_code"]) == (0, "unknown", 0)
    assert said["suspended"] == []
    assert said["next_command"] == "stressor abort --cluster c --run r1"


def test_text_ends_in_the_verdict_or_in_what_comes_next() -> None:
    assert as_text(CLEAN) == "api    3 objects deleted\nCLEAN  nothing of run r1 is left\n"
    left = replace(CLEAN, troubles={"n": "n: \x1b[2J"}, deleted=None, left=("API objects: down",))
    assert as_text(left).splitlines() == [
        "LEFT   n: \\x1b[2J",
        "LEFT   API objects: down",
        "NEXT   stressor cleanup --run r1",
    ]
    assert json.loads(as_json(left))["objects_deleted"] is None


def test_the_log_says_what_was_done_where(desk: Desk) -> None:
    desk.knows("node1")
    file = desk.path / "stressor.log"
    done = desk.stressor("-v", "--log-file", str(file), "cleanup", "--run", "r1")
    asked, cleaned = file.read_text().splitlines()
    assert 'level=info event="host asked" run=r1 node=node1 state=UNREACHABLE' in asked
    assert 'event="api cleaned" run=r1 deleted=0 left=' in cleaned
    assert done.stderr == file.read_text()
    assert "event=" not in done.stdout
    quiet = desk.stressor("cleanup", "--run", "r1")
    assert quiet.stderr == ""


@pytest.mark.parametrize("words", [(), ("--suspend",)])
def test_a_broken_config_file_keeps_nobody_from_cleaning_up(
    desk: Desk, words: tuple[str, ...]
) -> None:
    desk.knows()
    broken = desk.path / "broken.yaml"
    broken.write_text("inventroy: x\n")
    env = ("env", f"STRESSOR_CONFIG={broken}")
    call = (sys.executable, "-m", "stressor", "cleanup", "--run", "r1", *words)
    done = run(*env, *call, state=desk.state)
    assert done.returncode == 0, done.stderr
    warned = f"WARNING  {broken}:1: unknown key `inventroy`" in done.stderr
    assert warned is not bool(words), "an abort's own clean-up reads no file"


def test_a_log_that_cannot_be_opened_keeps_nobody_from_cleaning_up(desk: Desk) -> None:
    desk.knows()
    done = desk.stressor("--log-file", "/nowhere/x.log", "cleanup", "--run", "r1")
    assert done.returncode == 0
    assert "WARNING  /nowhere/x.log: the log cannot be written: " in done.stderr
