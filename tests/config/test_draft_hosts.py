"""Hosts against nodes: who is who, and everything that does not fit by name."""

import pytest

from stressor.config.distros import Distro
from stressor.config.draft_hosts import DraftHost, described_nodes, join, roles_of
from stressor.config.draft_trust import KnownHosts, is_trusted, with_trust
from stressor.config.hostlist import Described
from stressor.errors import ConfigError
from stressor.kube.base import NodeFacts
from stressor.model import Role

CP = frozenset({Role.CONTROL_PLANE})
WORKER = frozenset({Role.WORKER})
TAINT = ("node-role.kubernetes.io/control-plane:NoSchedule",)


def node(
    name: str,
    address: str,
    *,
    control_plane: bool = False,
    taints: tuple[str, ...] = (),
    roles: tuple[str, ...] = (),
) -> NodeFacts:
    return NodeFacts(
        name=name,
        uid="u",
        hostname=name,
        ready=True,
        unschedulable=False,
        control_plane=control_plane,
        addresses=(address, name),
        taints=taints,
        internal_ips=(address,),
        roles=roles,
    )


CP1 = node("cp1", "10.0.0.1", control_plane=True, taints=TAINT)
W1 = node("w1", "10.0.0.2")
NODES = (CP1, W1)


def listed(name: str, address: str | None, *roles: Role) -> Described:
    return Described(name, address, frozenset(roles), origin="h:1")


def wrong(*described: Described, nodes: tuple[NodeFacts, ...] | None = NODES) -> str:
    with pytest.raises(ConfigError) as error:
        join(described, nodes)
    return "\n".join(error.value.mistakes)


def test_nodes_alone_give_names_addresses_and_roles() -> None:
    joined = join(described_nodes(NODES), NODES)
    assert [(h.name, h.address, h.roles) for h in joined.hosts] == [
        ("cp1", "10.0.0.1", CP),
        ("w1", "10.0.0.2", WORKER),
    ]
    assert [(h.etcd, h.apiserver) for h in joined.hosts] == [(True, True), (False, False)]
    assert (joined.notes, joined.unlisted) == ((), ())


def test_a_node_without_an_internal_address_needs_a_list() -> None:
    bare = NodeFacts("n", "u", "n", True, False, True, addresses=("n", "203.0.113.1"))
    with pytest.raises(ConfigError, match=r"no InternalIP of n: list the hosts with --hosts"):
        described_nodes((bare,))


@pytest.mark.parametrize(
    ("facts", "roles"),
    [
        (W1, WORKER),
        (CP1, CP),
        (node("a", "10.0.0.3", control_plane=True), CP | WORKER),
        (
            node("a", "10.0.0.3", control_plane=True, taints=("x:PreferNoSchedule",)),
            CP | WORKER,
        ),
        (node("a", "10.0.0.3", taints=("CriticalAddonsOnly:NoExecute",), roles=("etcd",)), CP),
        (node("a", "10.0.0.3", taints=("dedicated:NoSchedule",)), WORKER),
    ],
)
def test_what_a_node_is_to_a_run(facts: NodeFacts, roles: frozenset[Role]) -> None:
    assert roles_of(facts) == roles


def test_a_listed_host_is_a_node_by_name_or_by_address() -> None:
    joined = join((listed("cp1", "192.0.2.1"), listed("other", "10.0.0.2")), NODES)
    first, second = joined.hosts
    assert (first.address, first.roles) == ("192.0.2.1", CP)
    assert first.notes == ("The API knows it as 10.0.0.1.",)
    assert (second.name, second.roles, second.notes) == ("other", WORKER, ("Node w1.",))


def test_a_host_that_is_no_node_is_named_with_the_nodes_there_are() -> None:
    told = wrong(listed("cp1", "10.0.0.1"), listed("x", "10.9.9.9"))
    assert told.startswith("h:1: host `x`: no node of the cluster has its name or address")
    assert "cp1 10.0.0.1, w1 10.0.0.2" in told
    assert "group=bystanders" in told


def test_a_group_that_was_written_lets_a_stranger_in_with_a_note() -> None:
    joined = join((listed("cp1", "10.0.0.1"), listed("x", "10.9.9.9", Role.WORKER)), NODES)
    assert joined.hosts[1].roles == WORKER
    assert any("x: no node of the cluster" in note for note in joined.notes)


def test_name_of_one_node_and_address_of_another_is_a_mistake() -> None:
    assert "10.0.0.2 is node w1's address" in wrong(listed("cp1", "10.0.0.2"))


def test_two_hosts_that_are_one_node_are_a_mistake() -> None:
    told = wrong(listed("cp1", "192.0.2.1"), listed("again", "10.0.0.1"))
    assert "host `again`: is node cp1, which `cp1` is already" in told


def test_a_bystander_that_is_a_node_is_a_mistake() -> None:
    told = wrong(listed("cp1", "10.0.0.1"), listed("w1", "10.0.0.2", Role.BYSTANDER))
    assert "is node w1 of this cluster: no bystander" in told


def test_nodes_that_nobody_listed_are_named() -> None:
    second = node("cp2", "10.0.0.4", control_plane=True)
    joined = join((listed("cp1", "10.0.0.1"),), (*NODES, second))
    assert [host.name for host in joined.unlisted] == ["w1", "cp2"]
    assert joined.notes == (
        "node w1 (10.0.0.2) is in no description: it will carry no load",
        "node cp2 (10.0.0.4) is in no description: its etcd would be watched by nobody",
    )


def test_the_api_decides_what_is_of_the_control_plane() -> None:
    joined = join((listed("cp1", "10.0.0.1", Role.WORKER), listed("w1", "10.0.0.2")), NODES)
    assert joined.hosts[0].roles == CP | WORKER
    assert "cp1 is of the control plane by the API's word, not by h:1" in joined.notes


def test_i4_without_an_answer_roles_are_asked_for_and_not_guessed() -> None:
    told = wrong(listed("a", "10.0.0.1"), nodes=None)
    assert "nobody says of which group it is" in told
    assert "no host is known to be of the control plane" in wrong(
        listed("a", "10.0.0.1", Role.WORKER), nodes=None
    )


def test_a_name_where_an_address_belongs_is_taken_from_the_api_or_refused() -> None:
    named = Described("c", None, CP, origin="i:3", told_address="cp1")
    (host,) = join((named,), (CP1,)).hosts
    assert host.address == "10.0.0.1"
    assert "Its address is the API's InternalIP; i:3 says `cp1`." in host.notes
    told = wrong(named, nodes=None)
    assert told == (
        "i:3: host `c`: `cp1` is no IP address, and abort asks no DNS: write the address "
        "(getent ahosts cp1)"
    )


def test_hosts_of_no_known_group_are_left_out_with_their_names() -> None:
    described = (listed("cp1", "10.0.0.1", Role.CONTROL_PLANE), listed("lb", None))
    joined = join(described, None, keep_all=False)
    assert [host.name for host in joined.hosts] == ["cp1"]
    assert joined.notes == ("left out: lb, in no group that has a meaning here",)


def test_names_that_the_api_made_up_are_held_to_the_same_rule() -> None:
    evil = node("{{ x }}", "10.0.0.1", control_plane=True)
    assert "its name is a Jinja template" in wrong(*described_nodes((evil,)), nodes=(evil,))


def test_rke2_and_k3s_label_the_nodes_that_carry_an_etcd() -> None:
    split = (
        node("cp", "10.0.0.1", control_plane=True, taints=TAINT, roles=("control-plane",)),
        node("e", "10.0.0.2", taints=TAINT, roles=("etcd",)),
    )
    found = join(described_nodes(split), split, Distro.RKE2).hosts
    assert [(h.etcd, h.apiserver, h.roles) for h in found] == [
        (False, True, CP),
        (True, False, CP),
    ]


def test_an_etcd_outside_of_the_cluster_is_watched_and_never_loaded() -> None:
    etcd = Described("etcd1", "10.0.0.9", etcd=True, origin="i")
    joined = join((listed("cp1", "10.0.0.1", Role.CONTROL_PLANE), etcd), (CP1,))
    assert [(h.roles, h.etcd) for h in joined.hosts] == [
        (CP, False),
        (frozenset({Role.BYSTANDER}), True),
    ]
    (note,) = joined.notes
    assert "answers no question about neighbours" in note


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA=="
HOST = DraftHost("cp1", "192.0.2.1", CP)


def known(text: str) -> DraftHost:
    return with_trust(HOST, (KnownHosts("~/k", text),))


def test_a_file_that_knows_the_address_vouches() -> None:
    assert known(f"192.0.2.1 {KEY}\n").variables == {"stressor_known_hosts": "~/k"}


def test_a_key_is_one_of_a_port() -> None:
    host = DraftHost("cp1", "192.0.2.1", CP, variables={"ansible_port": 2222})
    assert not is_trusted(with_trust(host, (KnownHosts("~/k", f"192.0.2.1 {KEY}\n"),)))
    assert is_trusted(with_trust(host, (KnownHosts("~/k", f"[192.0.2.1]:2222 {KEY}\n"),)))


def test_a_file_that_knows_the_name_gives_fingerprints() -> None:
    host = known(f"cp1 {KEY}\n")
    (print_,) = host.variables.values()
    assert str(print_).startswith("SHA256:")
    assert host.notes == ("Its key as ~/k has it under the name cp1.",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"192.0.2.9 {KEY}\n",
        f"[192.0.2.1]:2222 {KEY}\n",
        f"@cert-authority 192.0.2.1 {KEY}\n",
        f"192.0.2.1 {KEY}\n@revoked * {KEY}\n",
        f"cp1 {KEY}\n@revoked cp1 {KEY}\n",
    ],
)
def test_nothing_else_vouches(text: str) -> None:
    assert known(text) == HOST
    assert not is_trusted(known(text))


def test_what_the_source_says_of_a_key_stays() -> None:
    own = DraftHost("cp1", "192.0.2.1", CP, variables={"stressor_host_key": KEY})
    assert with_trust(own, (KnownHosts("~/k", f"192.0.2.1 {KEY}\n"),)) == own
