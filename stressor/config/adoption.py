"""An Ansible inventory that was written for something else, as descriptions of hosts.

Its groups are known by the names that the usual playbooks use, its host variables are carried over
where stressor reads them. What is not carried is named, never shown: it may be a password.
"""

import ipaddress
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from stressor.config.ansible import Groups, Variable
from stressor.config.hostlist import Described
from stressor.config.routes import HOST_VARIABLES
from stressor.config.values import CLUSTER_VARIABLES, ONLY, REFUSED, Reader, plain
from stressor.config.yamlfile import did_you_mean, refuse
from stressor.errors import ConfigError
from stressor.model import Role

_CONTROL_PLANE = (
    "control_plane", "kube_control_plane", "kube_master", "k8s_control_plane", "controlplane",
    "masters", "master", "rke2_servers", "rke2_server", "k3s_control_plane", "k3s_servers",
    "k3s_server", "k3s_masters", "k3s_master", "servers", "server",
)  # fmt: skip
_WORKERS = (
    "workers", "worker", "kube_node", "kube_workers", "k8s_workers", "rke2_agents", "rke2_agent",
    "k3s_workers", "k3s_worker", "k3s_agents", "k3s_agent", "k3s_nodes", "k3s_node", "agents",
    "agent", "nodes", "node",
)  # fmt: skip
KNOWN_GROUPS: Mapping[Role, tuple[str, ...]] = MappingProxyType(
    {
        Role.CONTROL_PLANE: _CONTROL_PLANE,
        Role.WORKER: _WORKERS,
        Role.BYSTANDER: ("bystanders",),
    }
)
"""Group names of kubespray, k3s-ansible, the RKE2 roles of lablabs and Rancher, openshift-ansible;
`-` counts as `_`."""
_ETCD = ("etcd", "etcd_nodes")
_ALL_MEMBERS = "nodes"
"""In openshift-ansible this group also holds the masters, which carry no ordinary pods."""
_PATHS = ("ansible_ssh_private_key_file", "stressor_known_hosts", "stressor_kubeconfig")
_SHOWN = 3
_HOP_PATHS = ("key", "known_hosts")


@dataclass(frozen=True, slots=True)
class Adopted:
    """What an inventory says. `cluster` are stressor's own variables of the whole cluster, `notes`
    what was understood and what was left out."""

    hosts: tuple[Described, ...]
    cluster: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """Groups that were named on the command line; none: the known names count."""

    control_plane: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()


def adopt(path: Path, groups: Groups, chosen: Chosen) -> Adopted:
    """The hosts of the inventory at `path`. Raises ConfigError for its structural mistakes, and
    when a group that was asked for is not there."""
    refuse(str(path), groups.mistakes)
    wrong = tuple(_unknown_groups(path, groups, chosen))
    if wrong:
        raise ConfigError(wrong)
    reading = _Reading(path, groups, chosen)
    roles = {role: tuple(reading.named(role)) for role in Role}
    hosts = tuple(reading.host(name, roles) for name in groups.host_lines)
    everywhere = groups.groups["all"].vars if "all" in groups.groups else {}
    cluster = dict(reading.values("the cluster", everywhere, CLUSTER_VARIABLES))
    notes = (*_mapped(path, roles, reading.etcd_groups()), *reading.notes())
    return Adopted(hosts, cluster, notes)


def _unknown_groups(path: Path, groups: Groups, chosen: Chosen) -> Iterator[str]:
    for option, names in (
        ("--control-plane-group", chosen.control_plane),
        ("--worker-group", chosen.workers),
    ):
        for name in names:
            if name not in groups.groups:
                hint = did_you_mean(name, groups.groups)
                yield f"{option}: {path} has no group `{name}`{hint}"


def _mapped(
    path: Path, roles: Mapping[Role, tuple[str, ...]], etcd: tuple[str, ...]
) -> Iterator[str]:
    for role, names in roles.items():
        if names:
            yield f"{role.replace('_', ' ')}: group {', '.join(names)} of {path}"
    if etcd:
        yield f"etcd: group {', '.join(etcd)} of {path}"


@dataclass(slots=True)
class _Reading:
    """One pass over an inventory's hosts. `left`: (variable, why it is left out) -> of whom."""

    path: Path
    groups: Groups
    chosen: Chosen
    left: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def notes(self) -> Iterator[str]:
        for (name, why), owners in self.left.items():
            shown = ", ".join(owners[:_SHOWN])
            more = f" and {len(owners) - _SHOWN} more" if len(owners) > _SHOWN else ""
            yield f"left out: `{name}` of {shown}{more}: {why}"

    def named(self, role: Role) -> Iterator[str]:
        """The groups that mean `role`, in the order of the file."""
        chosen = self.chosen
        own = {Role.CONTROL_PLANE: chosen.control_plane, Role.WORKER: chosen.workers}.get(role)
        if own:
            yield from own
            return
        known = KNOWN_GROUPS[role]
        yield from (name for name in self.groups.groups if name.replace("-", "_") in known)

    def etcd_groups(self) -> tuple[str, ...]:
        return tuple(name for name in self.groups.groups if name.replace("-", "_") in _ETCD)

    def host(self, name: str, groups: Mapping[Role, tuple[str, ...]]) -> Described:
        variables = self.groups.variables(name)
        roles = self._roles(name, groups)
        told = variables.get("ansible_host", Variable(name, 0)).value
        self._left_out(name, variables)
        own = dict(self.values(name, variables, HOST_VARIABLES))
        address = own.pop("ansible_host", None) if "ansible_host" in variables else _address(name)
        return Described(
            name=name,
            address=None if address is None else str(address),
            roles=roles,
            etcd=self._in(name, self.etcd_groups()),
            variables=own,
            origin=self._origin(name),
            told_address="" if address is not None else str(told),
        )

    def values(
        self, of: str, variables: Mapping[str, Variable], readers: Mapping[str, Reader]
    ) -> Iterator[tuple[str, object]]:
        """The variables that can be read, as they were written, paths made absolute."""
        for name, read in readers.items():
            if name not in variables:
                continue
            value = variables[name].value
            try:
                known = read(value)
            except ValueError as error:
                if name != "ansible_host":
                    self._leave_out(name, str(error), of)
                continue
            # Lists stay as they were written; everything else as the reader understands it.
            kept = value if isinstance(known, tuple) else known
            kept = str(kept) if isinstance(kept, str) else kept
            yield name, self._moved(name, kept)

    def _roles(self, name: str, groups: Mapping[Role, tuple[str, ...]]) -> frozenset[Role]:
        roles = frozenset(role for role, names in groups.items() if self._in(name, names))
        if Role.CONTROL_PLANE in roles and not self.chosen.workers:
            of_load = (group for group in groups[Role.WORKER] if group != _ALL_MEMBERS)
            return roles if self._in(name, of_load) else roles - {Role.WORKER}
        return roles

    def _in(self, name: str, groups: Iterable[str]) -> bool:
        return any(name in self.groups.members(group) for group in groups)

    def _origin(self, name: str) -> str:
        line = self.groups.host_lines[name]
        return f"{self.path}:{line}" if line else str(self.path)

    def _leave_out(self, name: str, why: str, owner: str) -> None:
        self.left.setdefault((name, why), []).append(owner)

    def _left_out(self, host: str, variables: Mapping[str, Variable]) -> None:
        """Names alone: a value may be a secret."""
        for name, variable in variables.items():
            if name in REFUSED:
                self._leave_out(name, REFUSED[name], host)
            elif name in ONLY and not _only(name, variable):
                self._leave_out(name, f"stressor only does {', '.join(ONLY[name])}", host)
            elif name.startswith("stressor_") and name not in (*HOST_VARIABLES, *CLUSTER_VARIABLES):
                self._leave_out(name, "no such variable", host)

    def _moved(self, name: str, value: object) -> object:
        """Paths that were relative to the inventory's folder, for a file in another folder."""
        if name in _PATHS:
            return self._absolute(str(value))
        if isinstance(value, list):
            return [self._moved_hop(one) for one in value]
        return value

    def _moved_hop(self, hop: object) -> object:
        if not isinstance(hop, dict):
            return hop
        moved = dict(hop)
        for key in _HOP_PATHS:
            if key in moved:
                moved[key] = self._absolute(str(moved[key]))
        if isinstance(moved.get("jumps"), list):
            moved["jumps"] = [self._moved_hop(one) for one in moved["jumps"]]
        return moved

    def _absolute(self, path: str) -> str:
        if path.startswith(("~", "/")):
            return path
        folder = self.path if self.path.is_dir() else self.path.parent
        return os.path.abspath(folder / path)


def _address(name: str) -> str | None:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return None


def _only(name: str, variable: Variable) -> bool:
    try:
        return plain(variable.value) in ONLY[name]
    except ValueError:
        return False
