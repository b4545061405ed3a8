"""Where the usual distributions keep an etcd: guesses for a draft, which preflight verifies.

Sources: kubeadm's etcd manifest (listen-metrics-urls, data-dir); the documentation and sources of
RKE2 and k3s, whose embedded etcd listens for metrics on loopback and has an election time-out of
5 s (k3s, pkg/etcd); etcd's own default is 1 s.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

API_PORT = 6443
"""Of kube-apiserver: the default of kubeadm, RKE2 and k3s alike."""

_PLAIN = re.compile(r"v\d+\.\d+\.\d+")
_BUILT = re.compile(r"v\d+\.\d+\.\d+\+(rke2r|k3s)\d+")


class Distro(StrEnum):
    """A distribution whose places are known here."""

    KUBEADM = "kubeadm"
    RKE2 = "rke2"
    K3S = "k3s"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a control-plane host keeps its etcd, and etcd's election time-out in seconds."""

    etcd_metrics_url: str
    etcd_data_dir: str
    election_timeout_s: float


LAYOUTS: Mapping[Distro, Layout] = MappingProxyType(
    {
        Distro.KUBEADM: Layout("http://127.0.0.1:2381/metrics", "/var/lib/etcd", 1.0),
        Distro.RKE2: Layout(
            "http://127.0.0.1:2381/metrics", "/var/lib/rancher/rke2/server/db/etcd", 5.0
        ),
        Distro.K3S: Layout(
            "http://127.0.0.1:2381/metrics", "/var/lib/rancher/k3s/server/db/etcd", 5.0
        ),
    }
)


def distro_of(kubelet_versions: Iterable[str]) -> Distro | None:
    """What the kubelets' versions say: `v1.34.4+rke2r1`, `v1.34.4+k3s1`, or without a suffix taken
    for kubeadm's. None when they differ, are missing, or have a suffix of somebody else."""
    found = {_builder(version) for version in kubelet_versions}
    return found.pop() if len(found) == 1 else None


def _builder(version: str) -> Distro | None:
    if _PLAIN.fullmatch(version):
        return Distro.KUBEADM
    match = _BUILT.fullmatch(version)
    return {"rke2r": Distro.RKE2, "k3s": Distro.K3S}[match[1]] if match else None
