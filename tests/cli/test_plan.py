"""`stressor plan`: what it says must be what a run would do, and nobody is asked."""

import json
import sys
from pathlib import Path

from stressor.workloads import disk
from tests.cli.child import run

HERE = Path(__file__).parent
CPU = """\
suite: s
baseline: 5s
phases:
  - name: warm
    kind: cpu
    placement: {nodes: [n1, n2]}
    hold: 10s
    deadline: 60s
"""
DISK = (
    CPU
    + """\
  - name: write
    kind: disk
    placement: {nodes: [n1]}
    hold: 10s
    deadline: 60s
    params: {host_path: /data, jobs: 1, block: 4KiB, size: 16MiB}
"""
)
INVENTORY = """\
all:
  vars:
    stressor_cluster: c
    stressor_load_image: image:1
    ansible_ssh_private_key_file: /no/such/key
  children:
    control_plane:
      hosts:
        n1:
          ansible_host: 192.0.2.1
          apiserver_url: https://192.0.2.1:6443
          etcd_metrics_url: http://127.0.0.1:2381/metrics
    workers:
      hosts:
        n1:
        n2: {ansible_host: 192.0.2.2}
"""
NO_BYSTANDERS = '    stressor_bystanders_none: "one cluster, own disks"\n'


def planned(
    tmp_path: Path, phases: str, *words: str, inventory: str = INVENTORY
) -> tuple[int, str]:
    (tmp_path / "phases.yaml").write_text(phases)
    (tmp_path / "inventory.yaml").write_text(inventory)
    argv = (sys.executable, "-m", "stressor", "plan", str(tmp_path / "phases.yaml"))
    named = ("--inventory", str(tmp_path / "inventory.yaml"))
    done = run(*argv, *named, *words, state=tmp_path)
    return done.returncode, done.stdout + done.stderr


def answered() -> str:
    head, tail = INVENTORY.split("  children:", 1)
    return f"{head}{NO_BYSTANDERS}  children:{tail}"


def test_a_plan_is_complete_and_ends_with_the_next_command(tmp_path: Path) -> None:
    code, said = planned(tmp_path, CPU)
    assert code == 0, said
    assert "STEP      0 warm: cpu on n1, n2" in said
    assert "stop: etcd_has_leader < 1 for 3 s at n1\n" in said
    assert "2 Jobs in it, one a step and node" in " ".join(said.split())
    assert "Namespace stressor-RUN (restricted)" in said
    *_, verdict, next_command = said.splitlines()
    assert verdict == "PLANNED   nothing was touched: no host, no API"
    # On one line, however long: it is there to be copied.
    assert next_command == f"NEXT      stressor run {tmp_path / 'phases.yaml'}"


def test_a_host_path_is_said_with_the_level_that_it_costs(tmp_path: Path) -> None:
    code, said = planned(tmp_path, DISK, inventory=answered())
    assert code == 0, said
    assert "privilege: uid 65534, no capabilities, hostPath /data" in said
    assert "privileged, for the hostPath of write" in said
    assert f"runs: {disk.argv({'host_path': '/data'}, 10.0)[0]} " in said
    assert "is compared by run" in said


def test_a_storage_class_is_said_with_the_volume_that_it_makes(tmp_path: Path) -> None:
    phases = DISK.replace("host_path: /data", "storage_class: fast")
    code, said = planned(tmp_path, phases, inventory=answered())
    assert code == 0, said
    words = " ".join(said.split())
    assert "a volume of 1024 MiB of StorageClass fast at /scratch, deleted with its pod" in words
    assert "over and over the same 16 MiB" in words
    assert "Namespace stressor-RUN (restricted)" in words


def test_disk_load_without_an_answer_about_bystanders_is_refused(tmp_path: Path) -> None:
    code, said = planned(tmp_path, DISK)
    assert code == 3
    assert "REFUSED   no bystanders are listed" in said
    assert "PLANNED" not in said
    assert "NEXT      stressor plan " in said


def test_a_gate_that_nobody_reports_is_refused(tmp_path: Path) -> None:
    deaf = INVENTORY.replace("          etcd_metrics_url: http://127.0.0.1:2381/metrics\n", "")
    code, said = planned(tmp_path, CPU, inventory=deaf)
    assert code == 3
    assert "no host reports etcd_has_leader" in said
    code, said = planned(tmp_path, CPU, "-o", "json", inventory=deaf)
    document = json.loads(said)
    assert (code, document["exit_code"], document["verdict"]) == (3, 3, "refused")
    assert document["next_command"].startswith("stressor plan ")


def test_json_carries_the_verdict_and_the_whole_plan(tmp_path: Path) -> None:
    code, said = planned(tmp_path, CPU, "-o", "json")
    document = json.loads(said)
    assert (code, document["exit_code"], document["verdict"]) == (0, 0, "pass")
    assert document["schema_version"] == 1
    assert document["next_command"].startswith("stressor run ")
    assert [step["phase"] for step in document["plan"]["steps"]] == ["warm"]
    assert document["plan"]["guarded"] == ["n1", "n2"]


def test_no_image_is_a_mistake(tmp_path: Path) -> None:
    bare = INVENTORY.replace("    stressor_load_image: image:1\n", "")
    code, said = planned(tmp_path, CPU, inventory=bare)
    assert code == 2
    assert "no load image" in said
