"""Inventories that were made for other playbooks: nothing is lost in silence."""

from pathlib import Path

import pytest

from stressor.config.adoption import Adopted, Chosen, adopt
from stressor.config.ansible import read_groups
from stressor.config.hostlist import Described
from stressor.config.yamlfile import parse_yaml
from stressor.errors import ConfigError
from stressor.model import Role

CP, WORKER = Role.CONTROL_PLANE, Role.WORKER

KUBESPRAY = """\
all:
  vars: {ansible_user: ops, ansible_become: "yes", ansible_become_pass: sesame}
  hosts:
    node1: {ansible_host: 10.0.0.1, ip: 10.0.0.1, ansible_ssh_private_key_file: keys/id}
    node2: {ansible_host: 10.0.0.2, ansible_become_pass: sesame}
    node3: {ansible_host: node3.example}
    bastion: {ansible_host: 10.0.0.9}
  children:
    kube_control_plane: {hosts: {node1: , node2: }}
    kube_node: {hosts: {node2: , node3: }}
    etcd: {hosts: {node1: }}
    k8s_cluster: {children: {kube_control_plane: , kube_node: }}
"""


def adopted(text: str, chosen: Chosen | None = None) -> Adopted:
    groups = read_groups(parse_yaml("t", text))
    return adopt(Path("/site/hosts.yaml"), groups, chosen or Chosen())


def by_name(found: Adopted) -> dict[str, Described]:
    return {host.name: host for host in found.hosts}


def test_an_inventory_of_kubespray() -> None:
    found = adopted(KUBESPRAY)
    hosts = by_name(found)
    assert {name: host.roles for name, host in hosts.items()} == {
        "node1": {CP},
        "node2": {CP, WORKER},
        "node3": {WORKER},
        "bastion": frozenset(),
    }
    assert [name for name, host in hosts.items() if host.etcd] == ["node1"]
    assert hosts["node1"].variables == {
        "ansible_user": "ops",
        "ansible_become": True,
        "ansible_ssh_private_key_file": "/site/keys/id",
    }
    assert hosts["node1"].origin == "/site/hosts.yaml:4"
    assert (hosts["node3"].address, hosts["node3"].told_address) == (None, "node3.example")


def test_how_groups_were_understood_is_said() -> None:
    assert adopted(KUBESPRAY).notes[:3] == (
        "control plane: group kube_control_plane of /site/hosts.yaml",
        "worker: group kube_node of /site/hosts.yaml",
        "etcd: group etcd of /site/hosts.yaml",
    )


def test_a_secret_is_named_once_and_never_shown() -> None:
    found = adopted(KUBESPRAY)
    (note,) = [one for one in found.notes if "ansible_become_pass" in one]
    assert note.startswith("left out: `ansible_become_pass` of node1, node2, node3 and 1 more: ")
    assert "sesame" not in repr(found)


@pytest.mark.parametrize(
    ("control_plane", "worker"),
    [
        ("control_plane", "workers"),
        ("kube-master", "kube-node"),
        ("masters", "workers"),
        ("rke2_servers", "rke2_agents"),
        ("server", "agent"),
        ("master", "node"),
    ],
)
def test_groups_of_the_usual_playbooks(control_plane: str, worker: str) -> None:
    text = f"{control_plane}: {{hosts: {{10.0.0.1: }}}}\n{worker}: {{hosts: {{10.0.0.2: }}}}\n"
    hosts = by_name(adopted(text))
    assert [hosts["10.0.0.1"].roles, hosts["10.0.0.2"].roles] == [{CP}, {WORKER}]
    assert hosts["10.0.0.1"].address == "10.0.0.1"


def test_masters_of_openshift_are_in_nodes_and_carry_no_load() -> None:
    text = "masters: {hosts: {10.0.0.1: }}\nnodes: {hosts: {10.0.0.1: , 10.0.0.2: }}\n"
    hosts = by_name(adopted(text))
    assert [hosts["10.0.0.1"].roles, hosts["10.0.0.2"].roles] == [{CP}, {WORKER}]
    both = by_name(adopted(text, Chosen(workers=("nodes",))))
    assert both["10.0.0.1"].roles == {CP, WORKER}


def test_groups_that_were_named_count_alone() -> None:
    text = (
        "masters: {hosts: {10.0.0.1: }}\ncore: {hosts: {10.0.0.2: }}\nws: {hosts: {10.0.0.3: }}\n"
    )
    hosts = by_name(adopted(text, Chosen(("core",), ("ws",))))
    assert [host.roles for host in hosts.values()] == [frozenset(), {CP}, {WORKER}]


def test_a_group_that_is_not_there_is_a_mistake() -> None:
    with pytest.raises(ConfigError) as error:
        adopted(KUBESPRAY, Chosen(("kube_control_plan",), ("x",)))
    assert error.value.mistakes == (
        "--control-plane-group: /site/hosts.yaml has no group `kube_control_plan` "
        "(did you mean `kube_control_plane`?)",
        "--worker-group: /site/hosts.yaml has no group `x`",
    )


def test_what_cannot_be_carried_over_is_named_with_the_reason() -> None:
    text = """\
masters:
  hosts:
    10.0.0.1:
      ansible_connection: winrm
      ansible_ssh_extra_args: -A
      ansible_ssh_common_args: -o StrictHostKeyChecking=no
      ansible_port: x
      stressor_fense: [a]
"""
    found = adopted(text)
    assert found.hosts[0].variables == {}
    named = {one.split("`")[1] for one in found.notes if one.startswith("left out")}
    assert named == {
        "ansible_connection",
        "ansible_ssh_extra_args",
        "ansible_ssh_common_args",
        "ansible_port",
        "stressor_fense",
    }


def test_lists_stay_as_they_were_written_but_for_relative_paths() -> None:
    text = """\
masters:
  hosts:
    10.0.0.1:
      ansible_ssh_common_args: -o ProxyJump=ops@10.0.0.9
      stressor_routes: [{address: 10.0.1.1, key: k/x, jumps: [{address: 10.0.1.2, key: ~/y}]}]
      stressor_fence: [cut, it]
"""
    assert adopted(text).hosts[0].variables == {
        "ansible_ssh_common_args": "-o ProxyJump=ops@10.0.0.9",
        "stressor_routes": [
            {
                "address": "10.0.1.1",
                "key": "/site/k/x",
                "jumps": [{"address": "10.0.1.2", "key": "~/y"}],
            }
        ],
        "stressor_fence": ["cut", "it"],
    }


def test_variables_of_the_cluster_come_along() -> None:
    text = """\
all: {vars: {stressor_cluster: lab, stressor_kubeconfig: kc, disposable: true}}
control_plane: {hosts: {10.0.0.1: }}
"""
    assert adopted(text).cluster == {
        "stressor_cluster": "lab",
        "stressor_kubeconfig": "/site/kc",
        "disposable": True,
    }


def test_mistakes_of_the_inventory_are_told_with_their_lines() -> None:
    with pytest.raises(ConfigError, match=r"^/site/hosts.yaml:1: "):
        adopted("masters: {hosts: {a: , a: }}\n")
