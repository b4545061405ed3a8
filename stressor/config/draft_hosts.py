"""Who is who: hosts as somebody described them, held against the nodes that the API shows.

Pure. A host is a node when it has the node's name or one of its addresses, as everywhere
(`core.nodes`). Whatever does not fit is a mistake where a draft would be wrong, and a note where
it is merely unfinished; nothing is dropped without one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from stressor.config.distros import Distro
from stressor.config.hostlist import Described, name_flaw
from stressor.errors import ConfigError
from stressor.kube.base import NodeFacts
from stressor.model import Role

_KEEPS_OFF = ("NoSchedule", "NoExecute")
_EMBEDDED = (Distro.RKE2, Distro.K3S)
"""Distributions that label each node that carries an etcd."""


@dataclass(frozen=True, slots=True)
class DraftHost:
    """A host as the draft writes it. `etcd`: it is taken to carry one; `apiserver`: it is taken to
    run an API server; `notes` become comments above it."""

    name: str
    address: str
    roles: frozenset[Role]
    etcd: bool = False
    apiserver: bool = False
    variables: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Joined:
    """The hosts of a draft, and what somebody has to know about those that are not in it.

    `unlisted` are nodes that no description names."""

    hosts: tuple[DraftHost, ...]
    notes: tuple[str, ...] = ()
    unlisted: tuple[DraftHost, ...] = ()


def described_nodes(nodes: Sequence[NodeFacts]) -> tuple[Described, ...]:
    """The API's nodes as descriptions, for a draft that has no other source. Raises ConfigError
    for nodes without an InternalIP."""
    bare = [node.name for node in nodes if not node.internal_ips]
    if bare:
        told = f"the API knows no InternalIP of {', '.join(bare)}: list the hosts with --hosts FILE"
        raise ConfigError((told,))
    return tuple(Described(n.name, n.internal_ips[0], origin="the API's nodes") for n in nodes)


def join(
    described: Sequence[Described],
    nodes: Sequence[NodeFacts] | None,
    distro: Distro | None = None,
    *,
    keep_all: bool = True,
) -> Joined:
    """The hosts with their roles. `nodes` None: the API was not asked, or gave no answer.

    A host that nobody gave a role is a mistake with `keep_all`, else it is left out with a note:
    Ansible inventories also hold machines that are none of this cluster's. Raises ConfigError with
    all mistakes, of which one is a draft without a control plane.
    """
    joining = _Joining(tuple(nodes or ()), nodes is not None, distro, _external_etcd(described))
    hosts = tuple(filter(None, (joining.host(one, keep_all=keep_all) for one in described)))
    if not any(Role.CONTROL_PLANE in host.roles for host in hosts) and not joining.mistakes:
        joining.mistakes.append(
            "no host is known to be of the control plane: write group=control_plane in the host "
            "list, or name the group with --control-plane-group"
        )
    if joining.mistakes:
        raise ConfigError(tuple(joining.mistakes))
    unlisted = tuple(joining.unlisted())
    return Joined(hosts, tuple(joining.notes), unlisted)


def roles_of(node: NodeFacts) -> frozenset[Role]:
    """What a node is to a run. One that carries an etcd is watched like a control plane; one of the
    control plane carries load, too, when no taint keeps ordinary pods off."""
    if not (node.control_plane or "etcd" in node.roles):
        return frozenset({Role.WORKER})
    if any(taint.endswith(tuple(f":{effect}" for effect in _KEEPS_OFF)) for taint in node.taints):
        return frozenset({Role.CONTROL_PLANE})
    return frozenset({Role.CONTROL_PLANE, Role.WORKER})


def _external_etcd(described: Iterable[Described]) -> bool:
    return any(one.etcd for one in described)


@dataclass(slots=True)
class _Joining:
    """One pass over the descriptions, collecting on its way."""

    nodes: tuple[NodeFacts, ...]
    asked: bool
    distro: Distro | None
    etcd_told: bool
    mistakes: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    claimed: dict[str, str] = field(default_factory=dict)

    def host(self, one: Described, *, keep_all: bool) -> DraftHost | None:
        """The host, or None when it is left out or wrong."""
        node = self._node(one)
        roles = self._roles(one, node)
        if not roles and not keep_all:
            self.notes.append(f"left out: {one.name}, in no group that has a meaning here")
            return None
        flaw = name_flaw(one.name)
        if flaw is not None:
            self._wrong(one, f"its name {flaw}")
        if not roles:
            self._wrong(one, self._roleless())
        address = one.address or next(iter(node.internal_ips if node else ()), None)
        if address is None:
            told = one.told_address or one.name
            remedy = f"write the address (getent ahosts {told})"
            self._wrong(one, f"`{told}` is no IP address, and abort asks no DNS: {remedy}")
            return None
        notes = tuple(self._said_of(one, node, roles))
        return DraftHost(
            name=one.name,
            address=address,
            roles=roles,
            etcd=self._etcd(one, node, roles),
            apiserver=_apiserver(one, node, roles),
            variables=one.variables,
            notes=notes,
        )

    def unlisted(self) -> Iterator[DraftHost]:
        """Nodes that nobody described, with a note of each."""
        for node in self.nodes:
            if node.name in self.claimed:
                continue
            address = next(iter(node.internal_ips), "")
            roles = roles_of(node)
            watched = Role.CONTROL_PLANE in roles
            why = "its etcd would be watched by nobody" if watched else "it will carry no load"
            self.notes.append(f"node {node.name} ({address}) is in no description: {why}")
            yield DraftHost(node.name, address, roles)

    def _wrong(self, one: Described, message: str) -> None:
        self.mistakes.append(f"{one.origin}: host `{one.name}`: {message}")

    def _roleless(self) -> str:
        if not self.asked:
            return "nobody says of which group it is: write group=control_plane or group=workers"
        known = ", ".join(f"{node.name} {'/'.join(node.internal_ips)}" for node in self.nodes)
        return (
            f"no node of the cluster has its name or address (nodes: {known or 'none'}): correct "
            "it, or write group=bystanders when it is another cluster's"
        )

    def _node(self, one: Described) -> NodeFacts | None:
        names = {one.name, one.told_address} - {""}
        by_name = [node for node in self.nodes if node.name in names]
        ends = {one.address, one.told_address} - {"", None}
        by_address = [node for node in self.nodes if not ends.isdisjoint(node.addresses)]
        found = by_name or by_address
        if by_name and by_address and by_name[0].name != by_address[0].name:
            told = f"{one.address} is node {by_address[0].name}'s address, its name is another's"
            self._wrong(one, f"{told}: correct one of the two")
        if not found:
            return None
        node = found[0]
        first = self.claimed.setdefault(node.name, one.name)
        if first != one.name:
            self._wrong(one, f"is node {node.name}, which `{first}` is already: keep one")
        return node

    def _roles(self, one: Described, node: NodeFacts | None) -> frozenset[Role]:
        if Role.BYSTANDER in one.roles:
            if node is not None:
                told = f"is node {node.name} of this cluster: no bystander"
                self._wrong(one, f"{told}; take it out of the group bystanders")
            return one.roles
        roles = one.roles
        if node is not None:
            # What the API calls a control-plane node is watched, whatever a list says.
            found = roles_of(node)
            roles = (roles or found) | (found & {Role.CONTROL_PLANE})
        if one.etcd and Role.CONTROL_PLANE not in roles:
            roles |= {Role.CONTROL_PLANE} if node or roles else {Role.BYSTANDER}
        return roles

    def _etcd(self, one: Described, node: NodeFacts | None, roles: frozenset[Role]) -> bool:
        if self.etcd_told:
            return one.etcd
        if node is not None and self.distro in _EMBEDDED:
            return "etcd" in node.roles
        return Role.CONTROL_PLANE in roles

    def _said_of(
        self, one: Described, node: NodeFacts | None, roles: frozenset[Role]
    ) -> Iterator[str]:
        if node is None:
            yield from self._said_of_stranger(one, roles)
            return
        if one.name != node.name:
            yield f"Node {node.name}."
        if one.address is None:
            told = one.told_address or one.name
            yield f"Its address is the API's InternalIP; {one.origin} says `{told}`."
        elif one.address not in node.addresses:
            yield f"The API knows it as {', '.join(node.internal_ips) or 'without an address'}."
        if one.roles and roles != one.roles and not one.etcd:
            note = f"{one.name} is of the control plane by the API's word, not by {one.origin}"
            self.notes.append(note)
            yield f"Of the control plane by the API's word; {one.origin} does not say so."

    def _said_of_stranger(self, one: Described, roles: frozenset[Role]) -> Iterator[str]:
        if roles == {Role.BYSTANDER} and one.etcd and not one.roles:
            self.notes.append(
                f"{one.name} carries an etcd of this cluster and is no node: it stands in "
                "bystanders, to be watched and never loaded; this answers no question about "
                "neighbours"
            )
            yield "An etcd of this cluster on a host that is no node: watched, never loaded."
        elif self.asked and Role.BYSTANDER not in roles:
            told = "no node of the cluster has its name or address: preflight will refuse it"
            self.notes.append(f"{one.name}: {told}")
            yield f"{told.capitalize()}."


def _apiserver(one: Described, node: NodeFacts | None, roles: frozenset[Role]) -> bool:
    if node is not None:
        return node.control_plane
    return Role.CONTROL_PLANE in roles & one.roles
