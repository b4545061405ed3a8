"""Where the lab keeps things, and the fixed facts of its hosts (names, addresses, versions)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

KUBERNETES_VERSION = "v1.34.4"
ETCD_VERSION = "3.6.16"
PAUSE_TAG = "3.10.1"
IMAGE_REPOSITORY = "stressor.local"

SUBNET = "10.203.77"
PREFIX_LENGTH = 24
CONTROL_ADDRESS = f"{SUBNET}.1"
CONTROL_INTERFACE = "stressor0"
SWITCH_NAMESPACE = "stressor-lab"
METRICS_URL = "http://127.0.0.1:2381/metrics"
ETCD_DATA = "/var/lib/etcd"
SCRATCH = "/var/lib/stressor-scratch"
OPERATOR = "oncall"
"""A user of every host who is not root and may become it with sudo: how most operators log in."""
FROZEN = "/var/lib/stressor-frozen"
API_PORT = 6443


@dataclass(frozen=True, slots=True)
class Host:
    """One lab host: a booted system in a network namespace of its own."""

    name: str
    number: int
    """Last octet of the address; also orders the hosts."""
    kubernetes: bool

    @property
    def address(self) -> str:
        return f"{SUBNET}.{self.number}"

    @property
    def namespace(self) -> str:
        return f"stressor-{self.name}"

    @property
    def port_name(self) -> str:
        """Name of the switch's end of this host's cable (interface names end at 15 bytes)."""
        return f"p-{self.name}"

    @property
    def cgroup_name(self) -> str:
        return f"lab-{self.name}"

    @property
    def pod_subnet(self) -> str:
        return f"10.244.{self.number}.0/24"

    @property
    def api_url(self) -> str:
        return f"https://{self.address}:{API_PORT}"


def hosts(nodes: int) -> tuple[Host, ...]:
    """The Kubernetes nodes `node1`… and the bystander, in the order in which they start."""
    members = tuple(Host(f"node{i}", 10 + i, kubernetes=True) for i in range(1, nodes + 1))
    return (*members, Host("bystander", 21, kubernetes=False))


@dataclass(frozen=True, slots=True)
class Places:
    """Folders and files of one lab, derived from the environment once."""

    cache: Path
    state: Path
    cache_chosen: bool
    """True when STRESSOR_CACHE is set: Go's caches then live below it as well."""
    image_folder: Path | None
    """The checkout's `image/` folder, copied into the load image; None outside a checkout."""

    @property
    def ledger(self) -> Path:
        return self.state / "lab.json"

    @property
    def breaks(self) -> Path:
        return self.state / "breaks.json"

    @property
    def inventory(self) -> Path:
        return self.state / "inventory.yaml"

    @property
    def kubeconfig(self) -> Path:
        return self.state / "kubeconfig"

    @property
    def keys(self) -> Path:
        return self.state / "keys"

    @property
    def client_key(self) -> Path:
        return self.keys / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        return self.state / "known_hosts"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def nodes(self) -> Path:
        return self.state / "nodes"

    @property
    def spindle_mount(self) -> Path:
        return self.state / "spindle" / "mount"

    @property
    def spindle_backing(self) -> Path:
        return self.state / "spindle" / "backing"

    @property
    def spindle_delay(self) -> Path:
        return self.state / "spindle" / "delay_ms"

    def node(self, host: Host) -> Path:
        return self.nodes / host.name

    def root(self, host: Host) -> Path:
        """The mounted root filesystem of `host`, as the controlling side sees it."""
        return self.node(host) / "root"

    def frozen(self, host: Host) -> Path:
        """Mount point of the small filesystem of `host` that `fsfreeze` may stop."""
        return self.node(host) / "frozen"


def _base(environ: Mapping[str, str], xdg: str, fallback: str) -> Path:
    root = environ.get(xdg) or str(Path(environ.get("HOME", "/root")) / fallback)
    return Path(root) / "stressor"


def places(environ: Mapping[str, str] | None = None) -> Places:
    """Folders from STRESSOR_CACHE and STRESSOR_STATE, else the XDG folders, else ~/.cache etc."""
    env = os.environ if environ is None else environ
    cache = env.get("STRESSOR_CACHE")
    state = env.get("STRESSOR_STATE")
    image = Path(__file__).resolve().parents[2] / "image"
    return Places(
        cache=Path(cache).absolute() if cache else _base(env, "XDG_CACHE_HOME", ".cache"),
        state=(Path(state).absolute() if state else _base(env, "XDG_STATE_HOME", ".local/state"))
        / "lab",
        cache_chosen=bool(cache),
        image_folder=image if image.is_dir() else None,
    )
