"""Inventories: an Ansible inventory in YAML becomes the hosts of a cluster and its bystanders.

The same file serves `ansible-playbook`. Only what stressor needs is read; whatever it needs and
cannot read is an error with its line, so that no host goes missing in silence.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from stressor.config import routes
from stressor.config.ansible import Groups, Variable, read_groups
from stressor.config.routes import HOST_VARIABLES
from stressor.config.values import CLUSTER_VARIABLES, ONLY, REFUSED, Reader, address, plain, told
from stressor.config.yamlfile import Mistake, did_you_mean, read_yaml, refuse
from stressor.model import Host, Inventory, Role, Route, Transport

ROLES: Mapping[str, Role] = {
    "control_plane": Role.CONTROL_PLANE,
    "workers": Role.WORKER,
    "bystanders": Role.BYSTANDER,
}
"""The groups that mean something here; a host is in one through its child groups, too."""

_READ = (*HOST_VARIABLES, *CLUSTER_VARIABLES)
_BESIDE = ("group_vars", "host_vars")


def load_inventory(path: Path) -> Inventory:
    """The inventory in the file at `path`. Raises ConfigError with all mistakes.

    `ansible_user` is root where nobody says otherwise. Paths of keys, known hosts and kubeconfig
    may start with `~`; relative ones are relative to the inventory's folder.
    """
    document = read_yaml(path)
    groups = read_groups(document)
    return inventory_of(path, groups, _beside(path))


def inventory_of(path: Path, groups: Groups, more: Iterable[Mistake] = ()) -> Inventory:
    """The inventory that `groups`, read from `path` in whatever way, describe.

    Raises ConfigError with all their mistakes, those in `more`, and those found here.
    """
    reading = _Reading(path, groups)
    mistakes = [*groups.mistakes, *more]
    cluster = reading.cluster(mistakes)
    hosts = tuple(reading.host(name, mistakes) for name in groups.host_lines)
    mistakes += _whole(groups, hosts, cluster)
    refuse(str(path), mistakes)
    return Inventory(
        cluster=str(cluster["stressor_cluster"]),
        hosts=hosts,
        kubeconfig_path=reading.path_of(cluster.get("stressor_kubeconfig")),
        context=_text(cluster.get("stressor_context")),
        cluster_uid=_text(cluster.get("stressor_cluster_uid")),
        load_image=_text(cluster.get("stressor_load_image")),
        disposable=cluster.get("disposable") is True,
        bystanders_none_reason=_text(cluster.get("stressor_bystanders_none")),
        source_path=str(path),
    )


@dataclass(frozen=True, slots=True)
class _Reading:
    """Variables to values. Readers return what is right and add what is wrong to `mistakes`."""

    path: Path
    groups: Groups

    def cluster(self, mistakes: list[Mistake]) -> dict[str, object]:
        everywhere = self.groups.groups["all"].vars if "all" in self.groups.groups else {}
        found = dict(_values(everywhere, CLUSTER_VARIABLES, mistakes))
        if "stressor_cluster" not in everywhere:
            line = self.groups.group_lines.get("all", self.groups.top_line)
            mistakes.append(Mistake(line, "missing `stressor_cluster` in the vars of `all`"))
        mistakes += _misplaced(self.groups)
        return found

    def host(self, name: str, mistakes: list[Mistake]) -> Host:
        variables = self.groups.variables(name)
        wrong = list(_not_read(variables))
        found = dict(_values(variables, HOST_VARIABLES, wrong))
        against = routes.contradiction(found)
        if against is not None:
            wrong.append(Mistake(variables[against[0]].line, against[1]))
        mistakes += (_of_host(name, one) for one in wrong)
        if "ansible_host" not in variables:
            found["ansible_host"] = self._own_address(name, mistakes)
        transport = found.get("stressor_transport", Transport.PARAMIKO)
        fence = found.get("stressor_fence", ())
        return Host(
            name=name,
            routes=self._routes(found),
            roles=frozenset(r for g, r in ROLES.items() if name in self.groups.members(g)),
            become=found.get("ansible_become") is True,
            transport=transport if isinstance(transport, Transport) else Transport.PARAMIKO,
            etcd_metrics_url=_text(found.get("etcd_metrics_url")),
            etcd_data_dir=_text(found.get("etcd_data_dir")),
            scratch_dir=_text(found.get("scratch_dir")),
            apiserver_url=_text(found.get("apiserver_url")),
            fence=fence if isinstance(fence, tuple) else (),
            hypervisor=_text(found.get("stressor_hypervisor")),
        )

    def path_of(self, value: object) -> str | None:
        """A path on this machine, absolute from here on: abort may run in another folder."""
        if value is None:
            return None
        folder = self.path if self.path.is_dir() else self.path.parent
        return os.path.abspath(folder / os.path.expanduser(str(value)))

    def _routes(self, found: Mapping[str, object]) -> tuple[Route, ...]:
        """Ansible's own way in first, then the further ones in their order."""
        own = self._route(found)
        own = replace(own, jumps=self._jumps(routes.jumps_of(found), own))
        further = found.get("stressor_routes", ())
        assert isinstance(further, tuple)
        return (own, *(self._way(way, own) for way in further))

    def _way(self, way: routes.Way, own: Route) -> Route:
        jumps = own.jumps if way.jumps is None else self._jumps(way.jumps, own)
        return routes.route(way.end, replace(own, port=22), self.path_of, jumps)

    def _jumps(self, hops: object, own: Route) -> tuple[Route, ...]:
        assert isinstance(hops, tuple)
        # A port is the machine's own, as its key is: neither is taken over.
        default = replace(own, port=22)
        return tuple(routes.route(hop, default, self.path_of, ()) for hop in hops)

    def _route(self, found: Mapping[str, object]) -> Route:
        port = found.get("ansible_port", 22)
        return Route(
            address=str(found.get("ansible_host", "")),
            port=port if isinstance(port, int) else 22,
            user=str(found.get("ansible_user", "root")),
            key_path=self.path_of(found.get("ansible_ssh_private_key_file")),
            host_key=_text(found.get("stressor_host_key")),
            known_hosts_path=self.path_of(found.get("stressor_known_hosts")),
        )

    def _own_address(self, name: str, mistakes: list[Mistake]) -> str:
        try:
            return address(name)
        except ValueError:
            line = self.groups.host_lines[name]
            mistakes.append(Mistake(line, f"host `{name}` needs `ansible_host`, an IP address"))
            return ""


def _of_host(name: str, mistake: Mistake) -> Mistake:
    """The mistake, with the host's name where no line tells whose it is."""
    return mistake if mistake.line else Mistake(0, f"host `{name}`: {mistake.message}")


def _values(
    variables: Mapping[str, Variable],
    readers: Mapping[str, Reader],
    mistakes: list[Mistake],
) -> Iterator[tuple[str, object]]:
    for name, read in readers.items():
        if name not in variables:
            continue
        try:
            yield name, read(variables[name].value)
        except ValueError as error:
            line = variables[name].line
            mistakes += (Mistake(line, f"`{name}`: {message}") for message in told(error))


def _not_read(variables: Mapping[str, Variable]) -> Iterator[Mistake]:
    """Variables that would change how a host is reached, and names one letter off."""
    for name, variable in variables.items():
        if name in _READ:
            continue
        if name in REFUSED:
            yield Mistake(variable.line, f"`{name}` {REFUSED[name]}")
        elif name in ONLY:
            yield from _only(name, variable)
        elif name.startswith("stressor_") or get_close_matches(name, _READ, n=1, cutoff=0.9):
            hint = did_you_mean(name, _READ)
            yield Mistake(variable.line, f"unknown variable `{name}`{hint}")


def _only(name: str, variable: Variable) -> Iterator[Mistake]:
    try:
        value = plain(variable.value)
    except ValueError as error:
        yield Mistake(variable.line, f"`{name}`: {error}")
        return
    if value not in ONLY[name]:
        message = f"`{name}` is `{value}`: stressor only does {', '.join(ONLY[name])}"
        yield Mistake(variable.line, message)


def _misplaced(groups: Groups) -> Iterator[Mistake]:
    scopes = [g.vars for name, g in groups.groups.items() if name != "all"]
    for variables in (*scopes, *groups.host_vars.values()):
        for name in CLUSTER_VARIABLES:
            if name in variables:
                message = f"`{name}` is one for the whole cluster: set it in the vars of `all`"
                yield Mistake(variables[name].line, message)


def _whole(
    groups: Groups, hosts: tuple[Host, ...], cluster: Mapping[str, object]
) -> Iterator[Mistake]:
    """What only shows when all hosts are looked at together."""
    if not any(Role.CONTROL_PLANE in host.roles for host in hosts):
        yield Mistake(
            groups.top_line, "no host is in group `control_plane`: nothing would be watched"
        )
    for name in groups.groups:
        if name not in ROLES and get_close_matches(name, tuple(ROLES), n=1, cutoff=0.8):
            hint = did_you_mean(name, ROLES)
            yield Mistake(groups.group_lines[name], f"group `{name}` means nothing{hint}")
    for host in hosts:
        if Role.BYSTANDER in host.roles and len(host.roles) > 1:
            message = f"host `{host.name}` is a bystander and part of the cluster: choose one"
            yield Mistake(groups.host_lines[host.name], message)
    if any(Role.BYSTANDER in h.roles for h in hosts) and "stressor_bystanders_none" in cluster:
        line = groups.groups["all"].vars["stressor_bystanders_none"].line
        yield Mistake(line, "`stressor_bystanders_none` is set, and there are bystanders")
    yield from _same_address(groups, hosts)


def _same_address(groups: Groups, hosts: tuple[Host, ...]) -> Iterator[Mistake]:
    seen: dict[tuple[str, int], str] = {}
    for host in hosts:
        route = host.routes[0]
        first = seen.setdefault((route.address, route.port), host.name)
        if route.address and first != host.name:
            message = f"hosts `{first}` and `{host.name}` have one address, {route.address}"
            yield Mistake(groups.host_lines[host.name], message)


def _beside(path: Path) -> Iterator[Mistake]:
    """Ansible also reads group_vars/ and host_vars/ beside an inventory; stressor does not. Where
    they hold something that it would have needed, that must not pass in silence."""
    for folder in _BESIDE:
        for file in sorted((path.parent / folder).rglob("*")):
            needed = _needed_in(file) if file.is_file() else None
            if needed is not None:
                where = f"`{needed}` is set in {folder}/{file.relative_to(path.parent / folder)}"
                yield Mistake(1, f"{where}, which is not read: move it into this file")


def _needed_in(file: Path) -> str | None:
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return None
    names = {line.split(":", 1)[0].strip() for line in lines}
    return next((name for name in (*_READ, *REFUSED) if name in names), None)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
