"""What somebody reads before they say yes: complete, plain, and the same in text and JSON."""

import json
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from stressor.checks.base import Finding, Level, unknown
from stressor.core import schedule
from stressor.core.drift import ClusterFooting
from stressor.model import Host, Inventory, Phase, Plan, Role, Route, Suite, Transport
from stressor.probes import SIGNALS
from stressor.report.lines import WIDTH
from stressor.report.plan import Outlook, as_json, as_text
from stressor.workloads.gates import safety_gates
from stressor.workloads.job import job_name
from tests.footings import NODE

ETCD, API = "http://127.0.0.1:2381/metrics", "https://192.0.2.1:6443"
INVENTORY = Inventory(
    "c",
    (
        Host(
            "cp1",
            (Route("192.0.2.1"), Route("198.51.100.1", 2222, "ops")),
            frozenset({Role.CONTROL_PLANE, Role.WORKER}),
            become=True,
            etcd_metrics_url=ETCD,
            apiserver_url=API,
            scratch_dir="/scratch",
        ),
        Host("w1", (Route("192.0.2.2"),), frozenset({Role.WORKER}), transport=Transport.OPENSSH),
        Host("w2", (Route("192.0.2.3"),), frozenset({Role.WORKER})),
        Host("mgmt", (Route("192.0.2.9"),), frozenset({Role.BYSTANDER}), etcd_metrics_url=ETCD),
    ),
    load_image="image:1",
)
CPU = Phase(
    "warm", "cpu", ("cp1", "w1"), 600.0, 900.0, 5.0, 30.0, params={"load": "50%"},
    steps=({"workers": 1}, {"workers": 8}),
)  # fmt: skip
DISK = Phase(
    "write", "disk", ("cp1", "w1"), 60.0, 120.0,
    params={"host_path": "/scratch", "jobs": 4, "size": "1GiB", "rate_iops": 100},
)  # fmt: skip
EMPTY_DIR = replace(DISK, name="inside", params={"size": "64MiB"})


def planned(*phases: Phase) -> Plan:
    return schedule.plan(
        Suite("s", 30.0, phases),
        INVENTORY,
        run="planned",
        image="image:1",
        signals=SIGNALS,
        safety_gates=safety_gates(1.0),
    )


def outlook(*phases: Phase) -> Outlook:
    return Outlook(planned(*phases or (CPU, DISK)), INVENTORY, "p.yaml", (), storage=True)


MOVED = Outlook(
    planned(CPU),
    INVENTORY,
    "p.yaml",
    ("the worst-case end is too late",),
    False,
    words=("--phases", "warm", "--max-duration", "1h"),
    findings=(
        unknown("cluster", "", Level.FAIL, "no answer within 5 s", "kubectl get nodes"),
        Finding("placement", "w1", Level.WARN, "small", "a smaller load"),
        Finding("placement", "cp1", Level.PASS, "takes it"),
    ),
    notes=("p.yaml says otherwise by now",),
)


@pytest.mark.parametrize("name", ["sound", "refused"])
def test_text(name: str, snapshot: SnapshotAssertion) -> None:
    shown = as_text({"sound": outlook(), "refused": MOVED}[name])
    assert shown == snapshot
    assert shown.isascii()
    *lines, last = shown.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert last.startswith("NEXT      stressor ")


@pytest.mark.parametrize("name", ["sound", "refused"])
def test_json(name: str, snapshot: SnapshotAssertion) -> None:
    shown = as_json({"sound": outlook(), "refused": MOVED}[name])
    assert shown == snapshot
    first = ["schema_version", "verdict", "exit_code", "next_command"]
    assert list(json.loads(shown))[:4] == first


def test_every_job_is_named_as_the_run_will_name_it() -> None:
    document = json.loads(as_json(outlook()))
    wanted = [
        job_name("r", step, node).replace("stressor-r-", "stressor-RUN-")
        for step in (0, 1, 2)
        for node in ("cp1", "w1")
    ]
    assert [name for step in document["steps"] for name in step["jobs"]] == wanted
    assert [text.split(":")[0] for text in document["objects"] if text.startswith("Job ")] == [
        f"Job stressor-RUN/{name}" for name in wanted
    ]
    assert document["node_names_are_of"] == "inventory"


def test_the_api_knows_better_how_nodes_are_called() -> None:
    node = replace(NODE, name="other", hostname="cp1.example", addresses=("192.0.2.1",))
    known = replace(outlook(CPU), cluster=ClusterFooting("u", (node,)))
    (first, second), _ = [step["jobs"] for step in json.loads(as_json(known))["steps"]]
    assert first.endswith(job_name("r", 0, "cp1.example")[-9:])
    assert second.endswith(job_name("r", 0, "w1")[-9:])
    assert "where nodes are called as in the inventory" not in as_text(known)
    assert "where nodes are called as in the inventory" in as_text(outlook(CPU))


def test_ceilings_of_disk_load_are_said_in_bytes_and_writes() -> None:
    said = " ".join(as_text(outlook(DISK)).split())
    assert "I/O: at most 400 writes a second, over and over the same 4096 MiB" in said
    assert "hostPath /scratch at /scratch, at most 4096 MiB in files stressor-RUN.*" in said
    said = " ".join(as_text(outlook(EMPTY_DIR)).split())
    assert "I/O: as fast as the disk takes it, over and over the same 80 MiB" in said
    assert "emptyDir stressor-RUN of 80 MiB at /stressor stop:" in said


def test_what_cleanup_would_leave_is_said_with_the_line_that_changes_it() -> None:
    said = " ".join(as_text(outlook(DISK)).split())
    assert "a kill leaves in /scratch on w1: there, too, with scratch_dir: /scratch" in said
    assert "/scratch on cp1" not in said
    assert "a kill leaves" not in as_text(outlook(EMPTY_DIR))


def test_each_guarded_host_has_a_line_with_its_ways_in() -> None:
    said = as_text(outlook(CPU))
    assert "  w1 (root@192.0.2.2:22, openssh): worker, carries load\n" in said
    assert "  mgmt (root@192.0.2.9:22, paramiko): bystander\n" in said
    assert "  w2 (" not in said
    guards = json.loads(as_json(outlook(CPU)))["guards"]
    assert [(g["name"], g["load"]) for g in guards] == [
        ("cp1", True),
        ("w1", True),
        ("mgmt", False),
    ]


def test_each_steps_end_comes_before_the_end_of_all() -> None:
    document = json.loads(as_json(outlook()))
    ends_s = [step["gone_by_s"] for step in document["steps"]]
    assert ends_s == sorted(ends_s)
    assert ends_s == [
        60 + 30 + 60 + 900,
        60 + 30 + 60 + 900 + 30 + 60 + 900,
        60 + 30 + 2 * (60 + 900 + 30) + 60 + 120,
    ]
    assert ends_s[-1] < document["plan"]["deadline_s"]
    assert "1050 s (17m30s) after the run's start" in as_text(outlook())


def test_i4_an_api_that_did_not_answer_is_no_sound_plan() -> None:
    silent = replace(MOVED, flaws=(), notes=())
    assert silent.exit_code == 3
    assert silent.next_command == "stressor plan p.yaml --phases warm --max-duration 1h"
    said = as_text(silent)
    assert "REFUSED   the API shows" in said
    assert "PLANNED" not in said


def test_warnings_alone_do_not_refuse() -> None:
    warned = replace(MOVED, flaws=(), findings=MOVED.findings[1:])
    assert warned.exit_code == 0
    assert "PLANNED   nothing was started; the API was read, no host was asked" in as_text(warned)
    assert warned.next_command == "stressor run p.yaml --phases warm --max-duration 1h"


def test_a_written_plan_is_what_is_run_next() -> None:
    written = replace(outlook(), written_to="a plan.json", words=("--phases", "warm"))
    assert written.next_command == "stressor run 'a plan.json'"
    assert "WRITTEN   a plan.json" in as_text(written)


def test_what_a_file_or_the_api_said_moves_no_cursor() -> None:
    odd = replace(MOVED, notes=("\x1b[2J",), flaws=("\x1b[1m",))
    assert "\x1b" not in as_text(odd)
