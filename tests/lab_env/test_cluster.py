"""The cluster is a real one: nodes, members, pods that reach each other, hosts that answer."""

from __future__ import annotations

import json
import time

import pytest
import yaml

from tests.lab_env.conftest import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(4000)]


def _pod(name: str, node: str, image: str, command: list[str]) -> dict[str, object]:
    container = {"name": "main", "image": image, "command": command}
    spec = {
        "nodeName": node,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_up_on_a_running_lab_is_quick(lab: Lab) -> None:
    began_s = time.monotonic()
    lab.verb("up")
    assert time.monotonic() - began_s < 5


def test_pods_reach_each_other_across_nodes(
    lab: Lab, tmp_path_factory: pytest.TempPathFactory
) -> None:
    image = lab.ledger.record.facts["load_image"]
    pods = [
        _pod("lab-env-server", "node1", image, ["iperf3", "-s"]),
        _pod("lab-env-client", "node3", image, ["sleep", "120"]),
    ]
    path = tmp_path_factory.mktemp("pods") / "pods.yaml"
    path.write_text(yaml.safe_dump_all(pods))
    lab.kubectl("apply", "-f", str(path))
    try:
        lab.kubectl("wait", "--for=condition=Ready", "--timeout=40s", "-f", str(path))
        address = lab.kubectl("get", "pod", "lab-env-server", "-o", "jsonpath={.status.podIP}")
        said = lab.kubectl("exec", "lab-env-client", "--", "iperf3", "-c", address, "-t1", "-J")
        assert json.loads(said)["end"]["sum_received"]["bytes"] > 1 << 20
    finally:
        lab.kubectl("delete", "--wait=false", "--grace-period=0", "-f", str(path))


def test_every_host_has_what_guards_use(lab: Lab) -> None:
    for host in lab.hosts:
        found = lab.ssh(
            host, "command -v dash busybox systemd-run grep curl | wc -l; stat -fc %T /"
        )
        assert found.split()[0] == "5", host.name
        assert "etcd_" in lab.ssh(host, "curl -s http://127.0.0.1:2381/metrics | head -40")


def test_the_inventory_says_who_is_who(lab: Lab) -> None:
    document = yaml.safe_load(lab.places.inventory.read_text())["all"]
    assert document["vars"]["disposable"] is True
    assert document["vars"]["stressor_load_image"] == lab.ledger.record.facts["load_image"]
    groups = document["children"]
    nodes = [host.name for host in lab.hosts if host.kubernetes]
    assert list(groups["control_plane"]["hosts"]) == nodes
    assert list(groups["workers"]["hosts"]) == nodes
    assert list(groups["bystanders"]["hosts"]) == ["bystander"]
    for host in lab.hosts:
        pinned = lab.places.known_hosts.read_text()
        entries = {**groups["control_plane"]["hosts"], **groups["bystanders"]["hosts"]}
        assert f"{host.address} {entries[host.name]['stressor_host_key']}" in pinned


def test_all_storage_of_etcd_and_scratch_is_one_device(lab: Lab) -> None:
    devices = {lab.ssh(host, "stat -c %d /var/lib/etcd").strip() for host in lab.hosts}
    assert len(devices) == 1
