"""Kubernetes on the lab's hosts: kubeadm's configuration, init, joins, and whether it is well."""

from __future__ import annotations

import json
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from stressor.lab import host as hosting
from stressor.lab import images
from stressor.lab import places as p
from stressor.lab.errors import LabError, LabSick
from stressor.lab.ledger import Ledger
from stressor.lab.shell import attempt, run

_CONFIG = "etc/kubernetes/stressor-kubeadm.yaml"
_DISCOVERY = "etc/kubernetes/discovery.conf"
_INIT_LIMIT_S = 240.0
"""`kubeadm init` takes 7-9 s on an idle machine, a join 9-30 s."""
_READY_LIMIT_S = 90.0
_SHARED_PKI = (
    "ca.crt ca.key sa.key sa.pub front-proxy-ca.crt front-proxy-ca.key etcd/ca.crt etcd/ca.key"
).split()
"""What every control plane node of a stacked cluster must have in common."""
_GIB = 1 << 30
_KUBEADM = {"apiVersion": "kubeadm.k8s.io/v1beta4"}
_CRI = "unix:///run/containerd/containerd.sock"
_ETCDCTL = (
    "etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/kubernetes/pki/etcd/ca.crt "
    "--cert=/etc/kubernetes/pki/etcd/healthcheck-client.crt "
    "--key=/etc/kubernetes/pki/etcd/healthcheck-client.key"
).split()


def memory_share_bytes(total_bytes: int, nodes: int) -> int:
    """What one host may use, with 4 GiB left to the machine around the lab."""
    return max(2 * _GIB, (total_bytes - 4 * _GIB) // nodes)


def kubelet_config(total_bytes: int, nodes: int) -> dict[str, Any]:
    """A kubelet that leaves room to the others: each sees the whole machine's memory as its own."""
    reserved = max(0, total_bytes - memory_share_bytes(total_bytes, nodes))
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": "cgroupfs",
        "failSwapOn": False,
        "failCgroupV1": False,
        "resolvConf": "",
        "systemReserved": {"memory": f"{reserved >> 20}Mi"},
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
        },
        # Nothing can pull an image again: never let the collector delete one.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    }


def _registration(host: p.Host) -> dict[str, Any]:
    return {
        "criSocket": _CRI,
        "name": host.name,
        "taints": [],
        "ignorePreflightErrors": ["all"],
        "kubeletExtraArgs": [{"name": "node-ip", "value": host.address}],
    }


def init_config(first: p.Host, total_bytes: int, nodes: int) -> str:
    """kubeadm's configuration for the first node."""
    endpoint = {"advertiseAddress": first.address, "bindPort": p.API_PORT}
    cluster = {
        **_KUBEADM,
        "kind": "ClusterConfiguration",
        "clusterName": "lab",
        "kubernetesVersion": p.KUBERNETES_VERSION,
        "controlPlaneEndpoint": f"{first.address}:{p.API_PORT}",
        "imageRepository": p.IMAGE_REPOSITORY,
        "etcd": {"local": {"dataDir": p.ETCD_DATA, "imageTag": images.ETCD_TAG}},
    }
    init = {
        **_KUBEADM,
        "kind": "InitConfiguration",
        "localAPIEndpoint": endpoint,
        "nodeRegistration": _registration(first),
        "skipPhases": ["addon", "preflight"],
    }
    return yaml.safe_dump_all([init, cluster, kubelet_config(total_bytes, nodes)])


def join_config(host: p.Host) -> str:
    """kubeadm's configuration for a further control plane node."""
    join = {
        **_KUBEADM,
        "kind": "JoinConfiguration",
        "discovery": {"file": {"kubeConfigPath": f"/{_DISCOVERY}"}},
        "controlPlane": {
            "localAPIEndpoint": {"advertiseAddress": host.address, "bindPort": p.API_PORT}
        },
        "nodeRegistration": _registration(host),
        "skipPhases": ["preflight"],
    }
    return yaml.safe_dump(join)


def _write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)


def init(ledger: Ledger, places: p.Places, first: p.Host, total_bytes: int, nodes: int) -> None:
    """`kubeadm init` on the first node, and the operator's kubeconfig."""
    root = places.root(first)
    _write(root, _CONFIG, init_config(first, total_bytes, nodes))
    argv = ["kubeadm", "init", f"--config=/{_CONFIG}"]
    hosting.inside(ledger, first, argv, timeout_s=_INIT_LIMIT_S)
    admin = (root / "etc/kubernetes/admin.conf").read_text()
    draft = places.kubeconfig.with_name(".kubeconfig.part")
    draft.write_text(admin)
    draft.chmod(0o600)
    draft.rename(places.kubeconfig)


def join(ledger: Ledger, places: p.Places, first: p.Host, host: p.Host) -> None:
    """`kubeadm join --control-plane` on a further node; certificates are handed over as files."""
    source, root = places.root(first) / "etc/kubernetes", places.root(host)
    for name in _SHARED_PKI:
        target = root / "etc/kubernetes/pki" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / "pki" / name, target)
    _write(root, _DISCOVERY, (source / "admin.conf").read_text())
    _write(root, _CONFIG, join_config(host))
    argv = ["kubeadm", "join", f"--config=/{_CONFIG}"]
    hosting.inside(ledger, host, argv, timeout_s=_INIT_LIMIT_S)


def kubectl(places: p.Places, program: Path, *argv: str, timeout_s: float = 10.0) -> str:
    """Run the lab's kubectl as the operator; raises LabError with its words."""
    limit = f"--request-timeout={timeout_s:g}s"
    return run(
        [str(program), "--kubeconfig", str(places.kubeconfig), limit, *argv],
        timeout_s=timeout_s + 5,
    )


def unready_nodes(node_list: str, wanted: frozenset[str]) -> frozenset[str]:
    """Names in `wanted` that a `kubectl get nodes -o json` does not show as Ready."""
    ready = {
        item["metadata"]["name"]
        for item in json.loads(node_list)["items"]
        for condition in item["status"].get("conditions", [])
        if condition["type"] == "Ready" and condition["status"] == "True"
    }
    return wanted - ready


def sick_members(health: str, wanted: int) -> str:
    """What `etcdctl endpoint health --cluster -w json` lacks; empty when all are well."""
    try:
        members = json.loads(health or "[]")
    except ValueError:
        return f"etcd does not answer: {health.strip()[-300:]}"
    bad = [str(m.get("endpoint")) for m in members if not m.get("health")]
    if bad:
        return f"etcd is not healthy at {', '.join(sorted(bad))}"
    if len(members) != wanted:
        return f"etcd has {len(members)} of {wanted} members"
    return ""


def faults(
    ledger: Ledger, places: p.Places, kubectl_path: Path, hosts: tuple[p.Host, ...]
) -> tuple[str, ...]:
    """Everything that is wrong with the cluster right now; empty when it is well."""
    nodes = tuple(host for host in hosts if host.kubernetes)
    found: list[str] = []
    try:
        listed = kubectl(places, kubectl_path, "get", "nodes", "-o", "json", timeout_s=3)
        unready = unready_nodes(listed, frozenset(host.name for host in nodes))
        if unready:
            found.append(f"not Ready: {', '.join(sorted(unready))}")
    except LabError as silent:
        found.append(f"the API of {nodes[0].name} does not answer: {silent}")
    found += [said for host in nodes if (said := _api_fault(places, kubectl_path, host))]
    found += _etcd_faults(ledger, nodes)
    return tuple(found)


def _api_fault(places: p.Places, kubectl_path: Path, host: p.Host) -> str:
    """What keeps this API server from its work; empty when nothing does. One that has just started
    answers, but refuses everybody (403) until it has read its roles."""
    ask = ("--server", host.api_url, "get", "--raw", "/readyz")
    try:
        kubectl(places, kubectl_path, *ask, timeout_s=3)
    except LabError as silent:
        return f"the API server of {host.name} is not ready: {silent}"
    return ""


def _etcd_faults(ledger: Ledger, nodes: tuple[p.Host, ...]) -> list[str]:
    argv = [*_ETCDCTL, "endpoint", "health", "--cluster", "-w", "json", "--command-timeout=3s"]
    with suppress(LabError):
        enter = hosting.entering(ledger, nodes[0])
        said = sick_members(attempt([*enter, *argv], timeout_s=8).stdout, len(nodes))
        return [said] if said else []
    return ["etcd cannot be asked"]


def wait_healthy(
    ledger: Ledger, places: p.Places, kubectl_path: Path, hosts: tuple[p.Host, ...]
) -> None:
    """Wait until all nodes are Ready and all members healthy; raises LabSick after 90 s."""
    limit = time.monotonic() + _READY_LIMIT_S
    while found := faults(ledger, places, kubectl_path, hosts):
        if time.monotonic() > limit:
            raise LabSick("the lab did not become healthy: " + "; ".join(found))
        time.sleep(0.5)
