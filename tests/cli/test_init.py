"""`stressor init`: what it drafts, what it leaves open, and that it replaces nothing."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stressor.cli.init import Drafted, make
from stressor.cli.init_facts import Asked, source_of
from stressor.config.inventory import load_inventory
from stressor.errors import ConfigError, KubeError
from stressor.kube.base import Kube
from stressor.kube.login import Login
from stressor.lab import inventory as lab_inventory
from stressor.lab import places as lab_places
from stressor.lifeline import state_dir
from stressor.model import Inventory, Role
from stressor.testing.kube import FakeKube, Fault
from tests.cli.child import run

UID = "3f2a9c1e-0000-4000-8000-000000000001"
OTHER_UID = "00000000-0000-4000-8000-000000000002"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA=="
HOSTS = """\
cp1 192.0.2.1 ops
w1  192.0.2.2 ops 2222 group=workers
"""


def kubeconfig(path: Path, server: str = "https://192.0.2.1:6443", name: str = "staging") -> Path:
    user = {"token": "sesame"}
    document = {
        "current-context": "ctx",
        "contexts": [
            {"name": "ctx", "context": {"cluster": name, "user": "u"}},
            {"name": "other", "context": {"cluster": name, "user": "u"}},
        ],
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(json.dumps(document))
    return path


def cluster(version: str = "v1.34.4") -> FakeKube:
    kube = FakeKube()
    for number, name in enumerate(("cp1", "w1"), start=1):
        kube.api.add_node(name, control_plane=name == "cp1")
        node = kube.api.objects[f"/api/v1/nodes/{name}"]
        node["status"]["nodeInfo"] = {"kubeletVersion": version}
        node["status"]["addresses"] = [
            {"type": "ExternalIP", "address": f"203.0.113.{number}"},
            {"type": "InternalIP", "address": f"192.0.2.{number}"},
            {"type": "Hostname", "address": name},
        ]
    kube.api.objects["/api/v1/nodes/cp1"]["spec"] = {
        "taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
    }
    kube.api.objects["/api/v1/namespaces/kube-system"]["metadata"]["uid"] = UID
    return kube


class Desk:
    """An operator's folder, with a kubeconfig and a host list."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kube = cluster()
        self.logins: list[Login] = []
        self.kubeconfig = kubeconfig(path / "kubeconfig")
        self.hosts = path / "hosts.txt"
        self.hosts.write_text(HOSTS)
        self.env = {"HOME": str(path), "KUBECONFIG": str(self.kubeconfig)}

    def open_api(self, login: Login) -> Kube:
        self.logins.append(login)
        return self.kube

    def make(self, **asked: Any) -> Drafted:
        typed = Asked(out=self.path / "out")
        return make(replace(typed, **asked), self.env, self.open_api, None)

    def read(self, **asked: Any) -> Inventory:
        """The draft, written and read by the reader of every other verb."""
        path = self.path / "read.yaml"
        path.write_text(self.make(**asked).inventory)
        return load_inventory(path)

    def known_hosts(self, text: str) -> None:
        (self.path / ".ssh").mkdir()
        (self.path / ".ssh" / "known_hosts").write_text(text)

    def silent(self) -> None:
        self.kube.api.fail(Fault("GET", "/", times=99))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def found(inventory: Inventory) -> dict[str, tuple[str, int, str, set[str]]]:
    return {
        host.name: (
            host.routes[0].address,
            host.routes[0].port,
            host.routes[0].user,
            {str(role) for role in host.roles},
        )
        for host in inventory.hosts
    }


def test_from_the_api_alone(desk: Desk) -> None:
    inventory = desk.read()
    assert found(inventory) == {
        "cp1": ("192.0.2.1", 22, "root", {"control_plane"}),
        "w1": ("192.0.2.2", 22, "root", {"worker"}),
    }
    assert (inventory.cluster, inventory.context, inventory.cluster_uid) == ("staging", "ctx", UID)
    assert inventory.kubeconfig_path == str(desk.kubeconfig)
    assert inventory.host("cp1").apiserver_url == "https://192.0.2.1:6443"
    assert inventory.host("cp1").etcd_data_dir == "/var/lib/etcd"
    assert {request.method for request in desk.kube.api.requests} == {"GET"}


def test_from_a_host_list_with_the_apis_roles(desk: Desk) -> None:
    assert found(desk.read(hosts=desk.hosts)) == {
        "cp1": ("192.0.2.1", 22, "ops", {"control_plane"}),
        "w1": ("192.0.2.2", 2222, "ops", {"worker"}),
    }


def test_what_was_typed_is_for_hosts_that_have_none_of_their_own(desk: Desk) -> None:
    key = desk.path / "id"
    key.write_text("")
    desk.hosts.write_text("cp1 192.0.2.1\nw1 192.0.2.2 other\n")
    typed = {"user": "ops", "key": str(key), "become": True, "cluster": "mine"}
    inventory = desk.read(hosts=desk.hosts, **typed)
    assert inventory.cluster == "mine"
    assert [host.routes[0].user for host in inventory.hosts] == ["ops", "other"]
    assert {(host.routes[0].key_path, host.become) for host in inventory.hosts} == {
        (str(key), True)
    }


def test_the_context_that_was_chosen_is_fixed(desk: Desk) -> None:
    assert desk.read(context="other").context == "other"
    assert desk.logins[0].shown == f"context other of {desk.kubeconfig}"


def test_another_distribution_by_its_kubelets_or_by_word(desk: Desk) -> None:
    desk.kube = cluster("v1.34.4+rke2r1")
    label = {"node-role.kubernetes.io/etcd": "true"}
    desk.kube.api.objects["/api/v1/nodes/cp1"]["metadata"]["labels"] |= label
    assert desk.read().host("cp1").etcd_data_dir == "/var/lib/rancher/rke2/server/db/etcd"
    assert desk.read(distro="kubeadm").host("cp1").etcd_data_dir == "/var/lib/etcd"


def test_a_k3s_without_the_label_carries_no_etcd(desk: Desk) -> None:
    desk.kube = cluster("v1.34.4+k3s1")
    assert desk.read().host("cp1").etcd_data_dir is None


def test_i4_kubelets_of_somebody_else_are_not_taken_for_kubeadms(desk: Desk) -> None:
    desk.kube = cluster("v1.34.4-eks-1a2b3c")
    assert desk.read().host("cp1").etcd_data_dir is None
    assert any("v1.34.4-eks-1a2b3c" in note for note in desk.make().notes)


def test_i4_an_api_without_an_answer_leaves_the_pin_open_and_says_so(desk: Desk) -> None:
    desk.silent()
    desk.hosts.write_text("cp1 192.0.2.1 group=control_plane\n")
    drafted = desk.make(hosts=desk.hosts)
    assert "not pinned: the API gave no answer" in " ".join(drafted.inventory.split())
    assert "# example: stressor_cluster_uid: " in drafted.inventory
    assert any(note.startswith("not pinned: the API gave no answer") for note in drafted.notes)
    assert desk.read(hosts=desk.hosts).cluster_uid is None


def test_i4_an_api_without_an_answer_and_without_a_list_is_no_empty_cluster(desk: Desk) -> None:
    desk.silent()
    with pytest.raises(ConfigError, match=r"no hosts: the API gave no answer .* --hosts FILE"):
        desk.make()


def test_what_is_no_uid_is_no_pin(desk: Desk) -> None:
    desk.kube.api.objects["/api/v1/namespaces/kube-system"]["metadata"]["uid"] = "x: y"
    assert desk.read().cluster_uid is None


def test_a_login_that_may_not_read_the_namespace_still_sees_the_nodes(desk: Desk) -> None:
    desk.kube.api.fail(Fault("GET", "/namespaces/kube-system", status=403))
    inventory = desk.read()
    assert (len(inventory.hosts), inventory.cluster_uid) == (2, None)


def test_a_connection_that_cannot_be_made_is_a_reason_too(desk: Desk) -> None:
    def refused(login: Login) -> Kube:
        raise KubeError(f"connect: {login.shown} cannot be used")

    desk.hosts.write_text("cp1 192.0.2.1 group=control_plane\n")
    drafted = make(Asked(hosts=desk.hosts, out=desk.path / "o"), desk.env, refused, None)
    assert any("cannot be used" in note for note in drafted.notes)


def test_offline_asks_no_api(desk: Desk) -> None:
    desk.hosts.write_text("cp1 192.0.2.1 group=control_plane\n")
    inventory = desk.read(hosts=desk.hosts, offline=True)
    assert desk.logins == []
    assert (inventory.context, inventory.cluster_uid) == ("ctx", None)
    with pytest.raises(ConfigError, match="or leave out --offline"):
        desk.make(offline=True)


def test_without_a_kubeconfig_a_list_is_enough_and_the_name_is_asked_for(desk: Desk) -> None:
    desk.kubeconfig.unlink()
    desk.hosts.write_text("cp1 192.0.2.1 group=control_plane\n")
    assert desk.read(hosts=desk.hosts, cluster="c").kubeconfig_path is None
    with pytest.raises(ConfigError, match="--cluster NAME"):
        desk.make(hosts=desk.hosts)
    with pytest.raises(ConfigError, match="there is no such kubeconfig"):
        desk.make(hosts=desk.hosts, kubeconfig="/no/such")


def test_several_kubeconfigs_are_not_one(desk: Desk) -> None:
    second = kubeconfig(desk.path / "second")
    desk.env["KUBECONFIG"] = f"{desk.kubeconfig}:{second}"
    assert desk.read().kubeconfig_path is None
    assert any("write stressor_kubeconfig, one file" in note for note in desk.make().notes)


def test_the_name_that_every_kubeadm_cluster_has_is_told_apart(desk: Desk) -> None:
    kubeconfig(desk.kubeconfig, name="kubernetes")
    assert desk.read().cluster == "kubernetes-3f2a9c1e"


def test_host_keys_come_from_known_hosts_and_from_nowhere_else(desk: Desk) -> None:
    desk.known_hosts(f"192.0.2.1 {KEY}\n")
    drafted = desk.make()
    routes = {host.name: host.routes[0] for host in desk.read().hosts}
    assert os.path.basename(str(routes["cp1"].known_hosts_path)) == "known_hosts"
    assert (routes["w1"].known_hosts_path, routes["w1"].host_key) == (None, None)
    (note,) = [one for one in drafted.notes if "nothing vouches" in one]
    assert "w1" in note
    assert "cp1" not in note
    assert "keyscan" not in drafted.inventory + "".join(drafted.notes)


def test_one_source_of_hosts(desk: Desk) -> None:
    with pytest.raises(ConfigError, match="--hosts and --from-lab: choose one"):
        desk.make(hosts=desk.hosts, from_lab=True)
    with pytest.raises(ConfigError, match="need --from-ansible"):
        desk.make(hosts=desk.hosts, worker_group=("w",))


def test_every_mistake_of_a_list_is_told_with_its_line(desk: Desk) -> None:
    desk.hosts.write_text("cp1\nw1 192.0.2.2 group=wrokers\n")
    with pytest.raises(ConfigError) as error:
        desk.make(hosts=desk.hosts)
    assert [one.split(" ")[0] for one in error.value.mistakes] == [
        f"{desk.hosts}:1:",
        f"{desk.hosts}:2:",
    ]
    with pytest.raises(ConfigError, match="cannot be read"):
        desk.make(hosts=desk.path / "missing")


def test_a_key_that_is_not_there_is_a_mistake(desk: Desk) -> None:
    with pytest.raises(ConfigError, match=r"--key ~/\.ssh/none: there is no such file"):
        desk.make(key="~/.ssh/none")
    (desk.path / "id").write_text("")
    assert "ansible_ssh_private_key_file: ~/id\n" in desk.make(key="~/id").inventory


def test_from_an_inventory_of_another_playbook(desk: Desk) -> None:
    site = desk.path / "hosts.yaml"
    site.write_text(
        """\
kube_control_plane: {hosts: {cp1: {ansible_host: cp1.example, ansible_user: core}}}
kube_node: {hosts: {w1: {ansible_host: 192.0.2.2, ansible_become_pass: sesame}}}
lb: {hosts: {lb1: {ansible_host: lb.example}}}
"""
    )
    drafted = desk.make(from_ansible=site)
    assert found(desk.read(from_ansible=site)) == {
        "cp1": ("192.0.2.1", 22, "core", {"control_plane"}),
        "w1": ("192.0.2.2", 22, "root", {"worker"}),
    }
    assert "sesame" not in drafted.inventory + drafted.settings + "".join(drafted.notes)
    for left in ("lb1", "ansible_become_pass"):
        assert any(left in note for note in drafted.notes)
        assert left in drafted.inventory


def test_what_only_ansible_can_read_needs_ansible(desk: Desk) -> None:
    site = desk.path / "hosts.ini"
    site.write_text("[masters]\ncp1\n")
    with pytest.raises(ConfigError, match=r"only Ansible can read that, .*pip install"):
        desk.make(from_ansible=site)


def test_a_pin_that_the_source_has_is_kept_and_held_against_the_api(desk: Desk) -> None:
    site = desk.path / "own.yaml"
    text = f"all: {{vars: {{stressor_cluster: c, stressor_cluster_uid: {UID}}}}}\n"
    group = "control_plane: {hosts: {cp1: {ansible_host: 192.0.2.1}}}\n"
    site.write_text(text + group)
    assert desk.read(from_ansible=site, offline=True).cluster_uid == UID
    assert desk.read(from_ansible=site).cluster_uid == UID
    site.write_text(text.replace(UID, OTHER_UID) + group)
    with pytest.raises(ConfigError, match="choose the API with --kubeconfig or --context"):
        desk.make(from_ansible=site)


def test_from_the_lab_the_same_hosts_come_out(desk: Desk) -> None:
    desk.env["STRESSOR_STATE"] = str(desk.path / "state")
    places = lab_places.places(desk.env)
    assert places.inventory == state_dir(desk.env) / "lab" / "inventory.yaml"
    with pytest.raises(ConfigError, match="stressor lab up"):
        desk.make(from_lab=True)
    hosts = lab_places.hosts(2)
    places.keys.mkdir(parents=True)
    for host in hosts:
        (places.keys / f"{host.name}_ed25519.pub").write_text(f"{KEY} {host.name}\n")
    kubeconfig(places.kubeconfig)
    places.inventory.write_text(lab_inventory.text(places, hosts, "image:1"))
    was, is_now = load_inventory(places.inventory), desk.read(from_lab=True, offline=True)
    assert is_now == replace(was, source_path=is_now.source_path, context="ctx")
    assert {len(is_now.with_role(role)) for role in (Role.CONTROL_PLANE, Role.WORKER)} == {2}


def test_a_folder_of_variables_beside_the_draft_is_named(desk: Desk) -> None:
    (desk.path / "out" / "group_vars").mkdir(parents=True)
    assert any("group_vars will be read with the inventory" in n for n in desk.make().notes)


def test_what_the_api_says_cannot_steer_a_terminal(desk: Desk) -> None:
    desk.kube = cluster("v1\x1b[2J")
    assert not any("\x1b" in note for note in desk.make().notes)
    assert "\x1b" not in desk.make().inventory


def test_a_draft_that_would_be_refused_is_told_and_not_written(desk: Desk) -> None:
    site = desk.path / "hosts.yaml"
    both = "{a: {ansible_host: 192.0.2.1}, b: {ansible_host: 192.0.2.1}}"
    site.write_text(f"masters: {{hosts: {both}}}\n")
    with pytest.raises(ConfigError, match=r"\(draft, not written\):\d+: hosts `a` and `b`"):
        desk.make(from_ansible=site, offline=True)


def test_nodes_that_share_an_address_are_told_apart_by_nobody(desk: Desk) -> None:
    status = desk.kube.api.objects["/api/v1/nodes/w1"]["status"]
    status["addresses"] = [{"type": "InternalIP", "address": "192.0.2.1"}]
    with pytest.raises(ConfigError, match="correct one of the two"):
        desk.make()


@pytest.mark.parametrize(
    ("server", "url"),
    [
        ("https://192.0.2.1:7443", "https://192.0.2.1:7443"),
        ("https://192.0.2.1", "https://192.0.2.1:443"),
        ("https://192.0.2.99:7443", "https://192.0.2.1:6443"),
        ("https://api.example:8443/k8s", "https://192.0.2.1:6443"),
    ],
)
def test_the_port_of_an_api_server_is_the_kubeconfigs_where_it_names_the_host(
    desk: Desk, server: str, url: str
) -> None:
    kubeconfig(desk.kubeconfig, server)
    assert desk.read().host("cp1").apiserver_url == url


def test_a_source_that_is_missing_is_named(desk: Desk) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml:1: cannot be read"):
        source_of(Asked(from_ansible=desk.path / "none.yaml"), desk.env, None)


def test_what_was_written_is_said_to_programs(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("cp1 192.0.2.1 group=control_plane\n")
    argv = (sys.executable, "-m", "stressor", "init", "--offline", "--hosts", str(hosts))
    done = run(*argv, "--cluster", "c", "--out", str(tmp_path / "o"), "-o", "json", state=tmp_path)
    document = json.loads(done.stdout)
    assert (document["verdict"], document["exit_code"], done.returncode) == ("pass", 0, 0)
    assert [Path(one).name for one in document["written"]] == ["inventory.yaml", "stressor.yaml"]
    assert document["next_command"].startswith("stressor preflight --inventory ")
