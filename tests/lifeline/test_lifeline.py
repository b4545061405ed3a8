"""The lifeline file: everything an abort needs survives the way to disk, and damage is told."""

import fcntl
import json
import stat
from dataclasses import fields, replace
from pathlib import Path

import pytest

from stressor import lifeline
from stressor.errors import ConfigError
from stressor.lifeline import DrillEntry, Lifeline, RunEntry
from stressor.model import Host, Role, Route, Transport

FULL_ROUTE = Route(
    "10.0.0.1",
    2222,
    "ops",
    "/keys/id",
    "ssh-ed25519 AAAA",
    "/keys/known",
    (Route("192.0.2.1", 23, "jump", jumps=(Route("fd00::1"),)),),
)
FULL_HOST = Host(
    "node1",
    (FULL_ROUTE, Route("10.9.0.1")),
    frozenset({Role.CONTROL_PLANE, Role.WORKER}),
    become=True,
    transport=Transport.OPENSSH,
    etcd_metrics_url="http://127.0.0.1:2381/metrics",
    etcd_data_dir="/var/lib/etcd",
    scratch_dir="/scratch",
    apiserver_url="https://10.0.0.1:6443",
    fence=("openstack", "server", "stop", "node1"),
    hypervisor="rack1-7",
)
ENTRY = RunEntry(
    "7f3a", 1e9, 1e9 + 60, "/s/j.jsonl", "stressor-7f3a", "/k", ("node1",), 1e9 + 70, "admin"
)
LIVE = replace(ENTRY, run="8000", closed_unix_s=None, kubeconfig_path=None)
DRILL = DrillEntry("node1", 1e9, ("cold", "guard"), lifeline.access_of(FULL_HOST))
FULL = Lifeline(
    "lab", 1e9, (FULL_HOST, Host("plain", (Route("10.0.0.2"),))), (ENTRY, LIVE), (DRILL,)
)


def test_every_field_survives_the_way_to_disk_and_back(tmp_path: Path) -> None:
    for record in (FULL, FULL_HOST, FULL_ROUTE, ENTRY, DRILL):
        assert all(getattr(record, field.name) for field in fields(record))
    path = lifeline.write(tmp_path, FULL)
    assert path == tmp_path / "lifeline" / "lab.json"
    assert lifeline.read(path) == FULL
    assert FULL.open_runs == (LIVE,)


def test_the_file_is_private_whole_and_alone(tmp_path: Path) -> None:
    path = lifeline.write(tmp_path, FULL)
    path.chmod(0o644)
    assert lifeline.permission_warning(path) == "is open to others: chmod 600 it"
    lifeline.write(tmp_path, FULL)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert lifeline.permission_warning(path) is None
    assert [one.name for one in path.parent.iterdir()] == ["lab.json"]


def test_who_may_change_the_file_is_judged_by_owner_and_mode(tmp_path: Path) -> None:
    assert lifeline.permission_flaw(0, 0o100600, 1000) is None
    assert lifeline.permission_flaw(1000, 0o100600, 1000) is None
    for mode in (0o100640, 0o100602, 0o100606):
        assert lifeline.permission_flaw(1000, mode, 1000) == "is open to others: chmod 600 it"
    assert lifeline.permission_flaw(1001, 0o100600, 1000) == "belongs to uid 1001: is it yours?"
    assert lifeline.permission_warning(tmp_path / "none.json") is None
    looped = tmp_path / "looped.json"
    looped.symlink_to(looped)
    assert lifeline.permission_warning(looped) == (
        "cannot be checked: Too many levels of symbolic links"
    )


def test_runs_are_recorded_replaced_closed_and_bounded(tmp_path: Path) -> None:
    path = lifeline.refresh(tmp_path, "lab", FULL.hosts, 1.0)
    for n in range(25):
        lifeline.record_run(tmp_path, "lab", replace(LIVE, run=f"r{n}"))
    lifeline.record_run(tmp_path, "lab", replace(LIVE, run="r24", namespace="again"))
    lifeline.close_run(tmp_path, "lab", "r23", 9.0)
    lifeline.close_run(tmp_path, "lab", "unheard", 9.0)
    runs = lifeline.read(path).runs
    assert [run.run for run in runs] == [f"r{n}" for n in range(5, 25)]
    assert runs[-1].namespace == "again"
    assert [run.closed_unix_s for run in runs[-3:]] == [None, 9.0, None]


def test_a_new_preflight_keeps_the_runs(tmp_path: Path) -> None:
    lifeline.write(tmp_path, FULL)
    path = lifeline.refresh(tmp_path, "lab", FULL.hosts[:1], 2e9)
    assert lifeline.read(path) == Lifeline("lab", 2e9, FULL.hosts[:1], FULL.runs, (DRILL,))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"schema": 1', '"schema": 2'),
        ('"hosts": [', '"host": ['),
        ('"address": "10.0.0.2"', '"address": "node1.example"'),
        ('"address": "fd00::1"', '"address": "jump.example"'),
        ('"port": 2222', '"port": "ssh"'),
        ('"openssh"', '"telnet"'),
        ('"worker"', '"king"'),
        ('"run": "8000",', ""),
        ("{", ""),
    ],
)
def test_damage_is_told_with_the_way_out(tmp_path: Path, old: str, new: str) -> None:
    path = lifeline.write(tmp_path, FULL)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(ConfigError, match=r"lab\.json: damaged .*abort --host IP") as told:
        lifeline.read(path)
    assert len(told.value.mistakes) == 1
    with pytest.raises(ConfigError, match="damaged"):
        lifeline.refresh(tmp_path, "lab", FULL.hosts, 1.0)


def test_fields_of_a_later_program_are_passed_over(tmp_path: Path) -> None:
    path = lifeline.write(tmp_path, FULL)
    data = json.loads(path.read_text())
    data["fence"] = data["hosts"][0]["distro"] = data["runs"][0]["drill"] = "new"
    path.write_text(json.dumps(data))
    assert lifeline.read(path) == FULL


def test_no_name_gets_in_and_no_cluster_leaves_the_folder(tmp_path: Path) -> None:
    named = replace(FULL, hosts=(Host("n", (Route("n.example"),)),))
    with pytest.raises(ConfigError, match=r"`n\.example` is no IP address"):
        lifeline.write(tmp_path, named)
    for cluster in ("../x", "", "A", "a/b", ".a"):
        with pytest.raises(ConfigError, match="no cluster name"):
            lifeline.path_of(tmp_path, cluster)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        lifeline.read(lifeline.path_of(tmp_path, "lab"))
    assert lifeline.known_clusters(tmp_path) == ()
    lifeline.write(tmp_path, FULL)
    lifeline.write(tmp_path, replace(FULL, cluster="a.b"))
    assert lifeline.known_clusters(tmp_path) == ("a.b", "lab")


def test_readers_never_wait_for_a_writer(tmp_path: Path) -> None:
    path = lifeline.write(tmp_path, FULL)
    with path.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert lifeline.read(path) == FULL


def test_state_dir_follows_its_own_variable_then_xdg_then_home() -> None:
    own = {"STRESSOR_STATE": "/own", "XDG_STATE_HOME": "/xdg", "HOME": "/home/o"}
    assert lifeline.state_dir(own) == Path("/own")
    assert lifeline.state_dir({**own, "STRESSOR_STATE": ""}) == Path("/xdg/stressor")
    relative = {"XDG_STATE_HOME": "xdg", "HOME": "/home/o"}
    assert lifeline.state_dir(relative) == Path("/home/o/.local/state/stressor")


def test_a_run_has_its_folder() -> None:
    assert lifeline.journal_path(Path("/s"), "7f3a") == Path("/s/runs/7f3a/journal.jsonl")


def test_hosts_of_an_open_run_outlive_a_plan_without_them(tmp_path: Path) -> None:
    lifeline.write(tmp_path, FULL)
    other = Host("node9", (Route("10.0.0.9"),))
    path = lifeline.refresh(tmp_path, "lab", (other,), 2e9)
    assert [host.name for host in lifeline.read(path).hosts] == ["node9", "node1"]


def test_drills_outlive_whatever_is_written_later(tmp_path: Path) -> None:
    plain = Host("plain", (Route("10.0.0.2"),))
    path = lifeline.refresh(tmp_path, "lab", (FULL_HOST, plain), 1.0)
    other = replace(DRILL, host="plain")
    lifeline.record_drills(tmp_path, "lab", (DRILL, other))
    lifeline.record_run(tmp_path, "lab", LIVE)
    again = replace(DRILL, at_unix_s=2e9)
    lifeline.record_drills(tmp_path, "lab", (again,))
    assert set(lifeline.read(path).drills) == {again, other}
    lifeline.refresh(tmp_path, "lab", (plain,), 3.0)
    assert set(lifeline.read(path).drills) == {again, other}


def test_another_way_in_is_another_access() -> None:
    seen = {
        lifeline.access_of(host)
        for host in (
            FULL_HOST,
            replace(FULL_HOST, become=False),
            replace(FULL_HOST, transport=Transport.PARAMIKO),
            replace(FULL_HOST, routes=FULL_HOST.routes[:1]),
            replace(FULL_HOST, routes=(replace(FULL_ROUTE, host_key="ssh-ed25519 BBBB"),)),
        )
    }
    assert len(seen) == 5
    assert lifeline.access_of(replace(FULL_HOST, hypervisor="x")) in seen
