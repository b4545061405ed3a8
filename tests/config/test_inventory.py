"""Inventories: Ansible's structure and precedence, and no host or value lost in silence."""

from pathlib import Path

import pytest

from stressor.config.inventory import load_inventory
from stressor.errors import ConfigError
from stressor.model import Host, Inventory, Role, Route, Transport

GOOD = """\
all:
  vars:
    stressor_cluster: lab
    stressor_kubeconfig: admin.conf
    stressor_load_image: registry.example/load:1
    disposable: true
    ansible_user: ops
    ansible_port: 2222
    ansible_ssh_private_key_file: /keys/id
    kubeadm_version: "{{ lookup('env', 'V') }}"
    other_secret: !vault |
      $ANSIBLE_VAULT;1.1;AES256
  children:
    cluster:
      vars: {ansible_port: "2223", ansible_become: yes}
      children:
        control_plane:
          vars: {ansible_port: 2224}
          hosts:
            node1:
              ansible_host: 10.0.0.1
              ansible_port: 2225
              etcd_metrics_url: http://127.0.0.1:2381/metrics
              etcd_data_dir: /var/lib/etcd
              stressor_host_key: ssh-ed25519 AAAA root@node1
              stressor_known_hosts: known
            node2: {ansible_host: 10.0.0.2, apiserver_url: "https://10.0.0.2:6443"}
        workers:
          hosts:
            node2: {scratch_dir: /scratch}
            10.0.0.3:
bystanders:
  hosts:
    far1: {ansible_host: "fd00::1", stressor_transport: openssh}
"""


def load(folder: Path, text: str) -> Inventory:
    path = folder / "inv.yaml"
    path.write_text(text)
    return load_inventory(path)


def mistakes(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as told:
        load(folder, text)
    return [line.removeprefix(f"{folder}/") for line in told.value.mistakes]


def test_a_good_file_becomes_the_hosts_it_describes(tmp_path: Path) -> None:
    inventory = load(tmp_path, GOOD)
    assert inventory.cluster == "lab"
    assert inventory.kubeconfig_path == str(tmp_path / "admin.conf")
    assert inventory.load_image == "registry.example/load:1"
    assert inventory.disposable
    assert inventory.bystanders_none_reason is None
    assert inventory.source_path == str(tmp_path / "inv.yaml")
    control, worker, bystander = Role.CONTROL_PLANE, Role.WORKER, Role.BYSTANDER
    assert inventory.hosts == (
        Host(
            "node1",
            (
                Route(
                    "10.0.0.1",
                    2225,
                    "ops",
                    "/keys/id",
                    "ssh-ed25519 AAAA",
                    str(tmp_path / "known"),
                ),
            ),
            frozenset({control}),
            become=True,
            etcd_metrics_url="http://127.0.0.1:2381/metrics",
            etcd_data_dir="/var/lib/etcd",
        ),
        Host(
            "node2",
            (Route("10.0.0.2", 2224, "ops", "/keys/id"),),
            frozenset({control, worker}),
            become=True,
            scratch_dir="/scratch",
            apiserver_url="https://10.0.0.2:6443",
        ),
        Host(
            "10.0.0.3",
            (Route("10.0.0.3", 2223, "ops", "/keys/id"),),
            frozenset({worker}),
            become=True,
        ),
        Host(
            "far1",
            (Route("fd00::1", 2222, "ops", "/keys/id"),),
            frozenset({bystander}),
            transport=Transport.OPENSSH,
        ),
    )


def test_a_group_named_twice_is_merged_and_no_host_is_lost(tmp_path: Path) -> None:
    more = GOOD + "workers:\n  hosts:\n    node9: {ansible_host: 10.0.0.9}\n"
    inventory = load(tmp_path, more)
    assert [h.name for h in inventory.with_role(Role.WORKER)] == ["node2", "10.0.0.3", "node9"]


def test_defaults_are_root_port_22_and_paramiko(tmp_path: Path) -> None:
    text = """\
all: {vars: {stressor_cluster: a, stressor_bystanders_none: "own disks"}}
control_plane: {hosts: {10.1.1.1: }}
"""
    inventory = load(tmp_path, text)
    (host,) = inventory.hosts
    assert host.routes == (Route("10.1.1.1", 22, "root"),)
    assert (host.become, host.transport) == (False, Transport.PARAMIKO)
    assert inventory.bystanders_none_reason == "own disks"
    assert not inventory.disposable


def test_home_and_relative_paths_become_absolute(tmp_path: Path) -> None:
    key = load(tmp_path, GOOD.replace("/keys/id", "~/id")).hosts[0].routes[0].key_path
    assert key == str(Path.home() / "id")
    key = load(tmp_path, GOOD.replace("/keys/id", "../id")).hosts[0].routes[0].key_path
    assert key == str(tmp_path.parent / "id")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("node1:\n", "node[01:10]:\n", "inv.yaml:20: host range `node[01:10]` is not read"),
        ("node1:\n", '"{{ n }}":\n', "inv.yaml:20: host name `{{ n }}` is a Jinja template"),
        ("10.0.0.1\n", '"{{ ip }}"\n', "inv.yaml:21: `ansible_host`: `{{ ip }}` is a Jinja"),
        ("10.0.0.1\n", "!vault x\n", "inv.yaml:21: `ansible_host`: a value tagged `!vault`"),
        ("10.0.0.1\n", "n1.example\n", "inv.yaml:21: `ansible_host`: `n1.example` must be an IP"),
        ("10.0.0.1\n", "10.0.0.2\n              ansible_port: 2224\n", "inv.yaml:23: duplicate"),
        (
            "              ansible_host: 10.0.0.1\n",
            "",
            "inv.yaml:20: host `node1` needs `ansible_h",
        ),
        ("ansible_host: 10.0.0.1", "ansible_hots: 10.0.0.1", "inv.yaml:21: unknown variable `ans"),
        (
            "stressor_known_hosts: k",
            "stressor_nown: k",
            "inv.yaml:26: unknown variable `stressor_no",
        ),
        (
            "ansible_port: 2225",
            "ansible_port: 70000",
            "inv.yaml:22: `ansible_port`: `70000` is no p",
        ),
        ("ansible_port: 2225", "ansible_port: no", "inv.yaml:22: `ansible_port`: `False` is no p"),
        ("become: yes", "become: maybe", "inv.yaml:15: `ansible_become`: `maybe` must be true or"),
        (
            "http://127.0.0.1",
            "http://localhost",
            "inv.yaml:23: `etcd_metrics_url`: `localhost` must",
        ),
        ("http://127.0.0.1", "ftp://127.0.0.1", "inv.yaml:23: `etcd_metrics_url`: `ftp://"),
        (
            "http://127.0.0.1",
            "http://u:p@127.0.0.1",
            "inv.yaml:23: `etcd_metrics_url`: credentials",
        ),
        (
            "/var/lib/etcd",
            "lib/etcd",
            "inv.yaml:24: `etcd_data_dir`: `lib/etcd` must be an absolute",
        ),
        (
            "ssh-ed25519 AAAA root@node1",
            "AAAA",
            "inv.yaml:25: `stressor_host_key`: must be a public",
        ),
        (
            "openssh",
            "telnet",
            "inv.yaml:34: `stressor_transport`: `telnet` is no transport: use one",
        ),
        (
            "disposable: true",
            "disposable: 7",
            "inv.yaml:6: `disposable`: `7` must be true or false",
        ),
        (
            "stressor_cluster: lab",
            "stressor_cluster: La/b",
            "inv.yaml:3: `stressor_cluster`: `La/b`",
        ),
        (
            "    stressor_cluster: lab\n",
            "",
            "inv.yaml:1: missing `stressor_cluster` in the vars of",
        ),
        (
            "scratch_dir: /s",
            "disposable: no, scratch_dir: /s",
            "inv.yaml:30: `disposable` is one for",
        ),
        ("ansible_user: ops", "ansible_user:", "inv.yaml:7: `ansible_user`: has no value"),
        (
            "kubeadm_version:",
            "ansible_password:",
            "inv.yaml:10: `ansible_password` passwords are no",
        ),
        (
            "kubeadm_version:",
            "ansible_ssh_common_args:",
            "inv.yaml:10: `ansible_ssh_common_args`: `{{",
        ),
        ("kubeadm_version:", "ansible_become_method:", "inv.yaml:10: `ansible_become_method`: `{{"),
        (
            "other_secret: !vault |",
            "ansible_connection: |",
            "inv.yaml:11: `ansible_connection` is `$",
        ),
        (
            "        workers:",
            "        worker:",
            "inv.yaml:28: group `worker` means nothing (did you",
        ),
        ("control_plane:", "masters:", "inv.yaml:1: no host is in group `control_plane`"),
        ("far1: {", "node1: {", "inv.yaml:20: host `node1` is a bystander and part of the cluster"),
        (
            "disposable: true",
            "stressor_bystanders_none: x",
            "inv.yaml:6: `stressor_bystanders_none`",
        ),
        (
            "fd00::1",
            "10.0.0.3",
            "inv.yaml:34: hosts `10.0.0.3` and `far1` have one address, 10.0.0.3",
        ),
        ("bystanders:\n  hosts", "bystanders:\n  host", "inv.yaml:33: unknown key `host` in group"),
        (
            "  hosts:\n    far1:",
            "  hosts: [x]\n  vars:\n    far1:",
            "inv.yaml:33: hosts of `bystand",
        ),
        (
            "workers:\n",
            "workers:\n          children: {cluster: }\n",
            "inv.yaml:14: group `cluster`",
        ),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    assert old in GOOD
    text = GOOD.replace("2222", "2223") if new == "10.0.0.3" else GOOD
    found = mistakes(tmp_path, text.replace(old, new, 1))
    assert any(line.startswith(told) for line in found), found


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("ansible_user: ops", "ansible_user: 7").replace("fd00::1", "far.example")
    assert mistakes(tmp_path, text) == [
        "inv.yaml:7: `ansible_user`: `7` must be text (put it in quotes if it is)",
        "inv.yaml:34: `ansible_host`: `far.example` must be an IP address: abort asks no DNS",
    ]


def test_variables_in_files_beside_the_inventory_do_not_pass_in_silence(tmp_path: Path) -> None:
    beside = tmp_path / "group_vars" / "all" / "ssh.yml"
    beside.parent.mkdir(parents=True)
    beside.write_text("ntp: 1\n")
    assert len(load(tmp_path, GOOD).hosts) == 4
    beside.write_text("ntp: 1\nansible_user: other\n")
    assert mistakes(tmp_path, GOOD) == [
        "inv.yaml:1: `ansible_user` is set in group_vars/all/ssh.yml, which is not read: "
        "move it into this file"
    ]


def test_no_inventory_at_all_says_so(tmp_path: Path) -> None:
    assert "inv.yaml:1: an inventory is a mapping of groups; this is none" in mistakes(
        tmp_path, "- a\n"
    )
