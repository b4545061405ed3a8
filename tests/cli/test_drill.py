"""`stressor drill` as an operator types it: what it says, writes down, and ends with."""

import json
import shlex
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stressor import lifeline
from stressor.cli.drill import _entries, _json, _line
from stressor.engine.drill import Trial, Way
from stressor.engine.sleeper import Place
from stressor.errors import ExitCode
from stressor.lifeline import DrillEntry
from stressor.model import Host, HostState, Inventory, Route
from tests.cli.child import run
from tests.cli.test_preflight import inventory
from tests.sshd import free_port, make_key, running_sshd

NODES = (Host("n1", (Route("10.0.0.1"),)), Host("n2", (Route("10.0.0.2"),)))
GOOD = tuple(
    Trial(host.name, way, True, HostState.STOPPED, 2, 0.5, place=Place.SCOPE)
    for host in NODES
    for way in Way
)
BAD = Trial("n2", Way.COLD, False, HostState.SURVIVORS, 1, 6.0, "not proven", Place.SCOPE, 42)


def drill(path: Path, state: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = (sys.executable, "-m", "stressor", "drill", "--inventory", str(path), *words)
    return run(*argv, state=state)


def test_a_date_is_given_only_to_hosts_with_every_way_proven() -> None:
    half = tuple(trial for trial in GOOD if (trial.host, trial.way) != ("n2", Way.COLD))
    for trials in (half, (*half, BAD)):
        assert [entry.host for entry in _entries(NODES, trials)] == ["n1"]
    both = _entries(NODES, GOOD)
    assert [(entry.host, entry.ways) for entry in both] == [
        ("n1", ("cold", "guard", "script")),
        ("n2", ("cold", "guard", "script")),
    ]
    assert both[0].access == lifeline.access_of(NODES[0])


def test_the_document_says_each_way_of_each_host() -> None:
    site = Inventory("c", NODES)
    document = json.loads(_json(site, (*GOOD[:-2], BAD), ExitCode.UNVERIFIED_HOSTS))
    assert document["schema_version"] == 1
    assert (document["verdict"], document["exit_code"]) == ("fail", 4)
    assert document["next_command"].startswith("stressor ")
    last = document["trials"][-1]
    assert (last["host"], last["way"], last["state"]) == ("n2", "cold", "SURVIVORS")
    assert (last["stopped"], last["took_s"], last["pid"]) == (1, 6.0, 42)
    assert json.loads(_json(site, GOOD, ExitCode.PASS))["verdict"] == "pass"


def test_where_there_is_no_scope_the_line_says_so() -> None:
    trial = Trial("n1", Way.COLD, True, HostState.STOPPED, 2, 0.5, place=Place.NAMESPACE)
    assert _line(trial).endswith("2 processes killed, none left (no scope here)")
    assert _line(GOOD[0]).endswith("2 processes killed, none left")


def test_a_host_that_nobody_knows_is_a_mistake(tmp_path: Path) -> None:
    path = inventory(tmp_path, 22, "/keys/id", make_key(tmp_path / "k"))
    done = drill(path, tmp_path, "--host", "nosuch")
    assert done.returncode == 2
    assert "not in the inventory: nosuch" in done.stderr


def test_a_host_that_is_down_is_no_success_and_gets_no_date(tmp_path: Path) -> None:
    key = make_key(tmp_path / "k")
    path = inventory(tmp_path, free_port(), str(tmp_path / "k"), key)
    done = drill(path, tmp_path)
    assert done.returncode == 4, done.stderr
    lines = done.stdout.splitlines()
    for way in Way:
        assert any(f"loop           {way:<7} FAILED" in line for line in lines), lines
    assert "0 of 3 proven" in lines[-2]
    assert lines[-1].startswith("NEXT")
    known = lifeline.read(lifeline.path_of(tmp_path, "c"))
    assert [host.name for host in known.hosts] == ["loop"]
    assert known.drills == ()


@pytest.mark.ssh
def test_a_host_that_a_run_holds_is_left_alone_and_the_holder_is_named(tmp_path: Path) -> None:
    """The guard is a file that names a living process, in a /run that only these logins see."""
    guard = tmp_path / "run" / "stressor" / "r4f09c2"
    guard.mkdir(parents=True)
    with running_sshd(tmp_path / "sshd", private_run(tmp_path)) as sshd:
        guard.joinpath("guard.pid").write_text(f"{sshd.started.pid} {sshd.started.start_ticks}\n")
        guard.joinpath("holder").write_text("ann@desk:7\n")
        done = drill(inventory(tmp_path, sshd.port, sshd.key_path, sshd.host_key), tmp_path)
    assert done.returncode == 5, done.stderr
    assert "run r4f09c2 of ann@desk:7 holds loop: stressor abort --run r4f09c2" in done.stderr
    assert done.stdout == ""
    assert lifeline.read(lifeline.path_of(tmp_path, "c")).drills == ()


def private_run(folder: Path) -> str:
    script = f'mount --bind {shlex.quote(str(folder / "run"))} /run && eval "$SSH_ORIGINAL_COMMAND"'
    return f"ForceCommand unshare -m sh -c {shlex.quote(script)}"


@pytest.mark.ssh
@pytest.mark.slow
def test_i1_a_whole_drill_is_dated_and_preflight_takes_it(tmp_path: Path) -> None:
    began_unix_s = time.time()
    with running_sshd(tmp_path / "sshd") as sshd:
        path = inventory(tmp_path, sshd.port, sshd.key_path, sshd.host_key)
        done = drill(path, tmp_path, "--host", "loop", "-o", "json")
        document = json.loads(done.stdout)
        assert (done.returncode, document["verdict"]) == (0, "pass"), done.stderr
        check = ("preflight", "--inventory", str(path), "--only", "drill")
        assert run(sys.executable, "-m", "stressor", *check, state=tmp_path).returncode == 0
        # Another key to the same host is a way in that nobody has tried.
        other = inventory(tmp_path, sshd.port, str(tmp_path / "other"), sshd.host_key)
        assert other == path
        assert run(sys.executable, "-m", "stressor", *check, state=tmp_path).returncode == 3
    assert [(trial["way"], trial["proven"]) for trial in document["trials"]] == [
        (way, True) for way in Way
    ]
    (entry,) = lifeline.read(lifeline.path_of(tmp_path, "c")).drills
    assert isinstance(entry, DrillEntry)
    assert entry.at_unix_s >= began_unix_s
    script = lifeline.path_of(tmp_path, "c").with_name("abort-c.sh")
    assert stat.S_IMODE(script.stat().st_mode) == 0o700
