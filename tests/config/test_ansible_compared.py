"""What stressor makes of an inventory, held against what `ansible-inventory` answers for it.

36 generated inventories: ini and YAML, nested groups, ranges, variables at every level of Ansible's
precedence, group_vars and host_vars. The answers are asked for here, by themselves: they share no
code with stressor's way of asking.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from stressor.config.ansible_inventory import ansible_groups, read_inventory
from stressor.config.inventory import inventory_of, load_inventory
from stressor.errors import ConfigError
from stressor.model import Host, Inventory, Role
from stressor.playbooks import Ansible, Answer, find_ansible

pytestmark = pytest.mark.slow

FORMS = ("ini", "yaml", "plain")
SEEDS = range(12)
VALUES: Mapping[str, tuple[object, ...]] = {
    "ansible_user": ("ops", "core", "admin", "root"),
    "ansible_port": (22, 2222, 2200, 10022),
    "ansible_become": (True, False),
    "ansible_ssh_private_key_file": ("/keys/a", "keys/b", "~/c"),
    "etcd_data_dir": ("/var/lib/etcd", "/data/etcd"),
    "scratch_dir": ("/scratch", "/var/tmp/x"),
    "stressor_transport": ("paramiko", "openssh", "local"),
    "etcd_metrics_url": ("http://127.0.0.1:2381/metrics", "https://10.0.0.9:2379/metrics"),
    "other": (1, "two", "x y"),
}
ROLES = {
    "control_plane": Role.CONTROL_PLANE,
    "workers": Role.WORKER,
    "bystanders": Role.BYSTANDER,
}


@dataclass
class Tree:
    """A generated inventory: what is in the file, and what lies beside it by path."""

    vars: dict[str, dict[str, object]] = field(default_factory=dict)
    hosts: dict[str, dict[str, dict[str, object]]] = field(default_factory=dict)
    children: dict[str, list[str]] = field(default_factory=dict)
    beside: dict[str, dict[str, object]] = field(default_factory=dict)

    def groups(self) -> list[str]:
        return list(dict.fromkeys((*self.vars, *self.hosts, *self.children)))


def some(chance: random.Random, share: float = 0.3) -> dict[str, object]:
    return {
        name: chance.choice(values) for name, values in VALUES.items() if chance.random() < share
    }


def generate(chance: random.Random, *, ranges: bool, beside: bool) -> Tree:
    tree = Tree(vars={"all": {"stressor_cluster": "gen", **some(chance)}})
    cluster = _cluster_groups(chance, tree)
    for index in range(chance.randint(2, 5)):
        _put(chance, tree, chance.choice(cluster), f"10.0.{index}.", ranges=ranges)
    _put(chance, tree, "control_plane", "10.0.7.", ranges=ranges)
    _put(chance, tree, "bystanders", "192.0.2.", ranges=ranges)
    _put(chance, tree, "loose", "10.0.8.", ranges=False)
    named = {"ansible_host": f"10.0.9.{chance.randint(1, 200)}", **some(chance)}
    tree.hosts.setdefault("workers", {})["named-1"] = named
    _mention_again(chance, tree, cluster)
    if beside:
        _beside(chance, tree)
    return tree


def _cluster_groups(chance: random.Random, tree: Tree) -> list[str]:
    """The role groups and some below and above them, each with variables or without."""
    racks = [f"rack{index}" for index in range(chance.randint(1, 4))]
    below = ["control_plane", "workers"]
    for rack in racks:
        for parent in chance.sample(below, chance.randint(1, 2)):
            tree.children.setdefault(parent, []).append(rack)
        if chance.random() < 0.5:
            below.append(rack)
    if chance.random() < 0.7:
        tree.children["kubernetes"] = ["control_plane", "workers"]
    for group in (*tree.children, *racks, "bystanders"):
        if chance.random() < 0.7:
            tree.vars[group] = some(chance)
    return ["control_plane", "workers", *racks]


def _put(chance: random.Random, tree: Tree, group: str, prefix: str, *, ranges: bool) -> None:
    first = chance.randint(1, 9)
    name = f"{prefix}[{first}:{first + chance.randint(0, 3)}]" if ranges else f"{prefix}{first}"
    tree.hosts.setdefault(group, {})[name] = some(chance, 0.2)


def _mention_again(chance: random.Random, tree: Tree, cluster: list[str]) -> None:
    """A host in a second group, with more variables: the later mention wins where both tell."""
    mine = sorted({name for group in cluster for name in tree.hosts.get(group, {})} - {"named-1"})
    name = chance.choice(mine)
    tree.hosts.setdefault(chance.choice(cluster), {}).setdefault(name, some(chance, 0.2))


def _beside(chance: random.Random, tree: Tree) -> None:
    for group in tree.groups():
        if chance.random() < 0.5:
            form = chance.choice(("{}.yml", "{}", "{}/a.yaml", "{}.json"))
            tree.beside["group_vars/" + form.format(group)] = some(chance)
    tree.beside["host_vars/named-1.yml"] = some(chance)
    tree.beside["host_vars/10.0.0.1.yml"] = some(chance)
    if chance.random() < 0.5:
        chance_group = chance.choice([group for group in tree.vars if group != "all"])
        tree.vars[chance_group]["ansible_group_priority"] = 10


def as_yaml(tree: Tree) -> str:
    data: dict[str, Any] = {}
    for group in tree.groups():
        parts = {
            "vars": tree.vars.get(group),
            "hosts": tree.hosts.get(group),
            "children": dict.fromkeys(tree.children.get(group, ())),
        }
        data[group] = {key: part for key, part in parts.items() if part}
    return yaml.safe_dump(data, sort_keys=False)


def as_ini(tree: Tree) -> str:
    lines: list[str] = []
    # Ansible refuses sections about a group that no section of hosts made.
    below = (child for children in tree.children.values() for child in children)
    for group in dict.fromkeys((*tree.groups(), *below)):
        lines.append(f"[{group}]")
        for host, own in tree.hosts.get(group, {}).items():
            lines.append(" ".join((host, *(f"{k}={_quoted(v)}" for k, v in own.items()))))
        if group in tree.vars:
            lines.append(f"[{group}:vars]")
            lines += (f"{name}={value}" for name, value in tree.vars[group].items())
        if group in tree.children:
            lines += (f"[{group}:children]", *tree.children[group])
    return "\n".join(lines) + "\n"


def _quoted(value: object) -> str:
    return f"'{value}'" if " " in str(value) else str(value)


def write(folder: Path, form: str, seed: int) -> Path:
    chance = random.Random(f"{form} {seed}")
    tree = generate(chance, ranges=form != "plain", beside=form != "plain")
    path = folder / ("site.ini" if form == "ini" else "site.yaml")
    path.write_text(as_ini(tree) if form == "ini" else as_yaml(tree))
    for name, variables in tree.beside.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(variables))
    return path


def installed() -> Ansible:
    found = find_ansible(sys.executable, os.environ.get("PATH"))
    assert found is not None, "ansible-core is part of the set-up: pip install 'stressor[ansible]'"
    return found


def ansible_inventory(path: Path) -> dict[str, Any]:
    argv = (str(installed().folder / "ansible-inventory"), "-i", str(path), "--list")
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=50)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def members(answer: Mapping[str, Any], group: str) -> set[str]:
    body = answer.get(group, {})
    below = (members(answer, child) for child in body.get("children", ()))
    return set(body.get("hosts", ())).union(*below)


def expected(answer: Mapping[str, Any], folder: Path) -> dict[str, dict[str, object]]:
    hostvars = answer["_meta"]["hostvars"]
    found = {}
    for name in members(answer, "all") | set(hostvars):
        own = hostvars.get(name, {})
        key = own.get("ansible_ssh_private_key_file")
        found[name] = {
            "address": own.get("ansible_host", name),
            "port": int(own.get("ansible_port", 22)),
            "user": own.get("ansible_user", "root"),
            "key": key and os.path.normpath(folder / os.path.expanduser(key)),
            "become": str(own.get("ansible_become", False)) == "True",
            "etcd_data_dir": own.get("etcd_data_dir"),
            "scratch_dir": own.get("scratch_dir"),
            "metrics": own.get("etcd_metrics_url"),
            "transport": own.get("stressor_transport", "paramiko"),
            "roles": {role for group, role in ROLES.items() if name in members(answer, group)},
        }
    return found


def used(host: Host) -> dict[str, object]:
    (route,) = host.routes
    return {
        "address": route.address,
        "port": route.port,
        "user": route.user,
        "key": route.key_path,
        "become": host.become,
        "etcd_data_dir": host.etcd_data_dir,
        "scratch_dir": host.scratch_dir,
        "metrics": host.etcd_metrics_url,
        "transport": str(host.transport),
        "roles": set(host.roles),
    }


def by_name(inventory: Inventory) -> dict[str, dict[str, object]]:
    return {host.name: used(host) for host in inventory.hosts}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("form", FORMS)
def test_what_is_used_is_what_ansible_inventory_answers(
    tmp_path: Path, form: str, seed: int
) -> None:
    path = write(tmp_path, form, seed)
    ask = installed().ask
    inventory = read_inventory(path, ask, tmp_path)
    answer = ansible_inventory(path)
    assert by_name(inventory) == expected(answer, tmp_path), path.read_text()
    if form == "plain":
        assert inventory == load_inventory(path)
        again = Answer(0, json.dumps(answer).encode(), b"")
        told = inventory_of(path, ansible_groups(path, lambda *_: again))
        assert sorted(told.hosts, key=str) == sorted(inventory.hosts, key=str)


def test_the_generated_files_hold_what_they_are_for(tmp_path: Path) -> None:
    texts = {}
    for form in FORMS:
        for seed in SEEDS:
            folder = tmp_path / f"{form}{seed}"
            folder.mkdir()
            texts[form, seed] = write(folder, form, seed).read_text()
    assert len(set(texts.values())) >= 30
    ranges = [form for (form, _), text in texts.items() if ":" in text and ".[" in text]
    assert {form: ranges.count(form) for form in FORMS} == {"ini": 12, "yaml": 12, "plain": 0}
    assert sum("ansible_group_priority" in text for text in texts.values()) >= 5
    assert sum("rack" in text for text in texts.values()) == len(texts)


SECRETS = """\
[control_plane]
cp[1:2] ansible_host="{{ net }}.{{ inventory_hostname[-1] }}"
[workers]
w1
[all:vars]
stressor_cluster={{ site }}
site=real
net=10.3.0
ansible_port={{ 2200 + 22 }}
"""


def _secrets(folder: Path) -> Path:
    """Templates, a vault value, and a folder of settings that names the vault's password file."""
    (folder / "password").write_text("a word\n")
    program = str(installed().folder / "ansible-vault")
    argv = (program, "encrypt_string", "--vault-password-file", "password", "--name")
    done = subprocess.run(
        (*argv, "ansible_host", "10.3.0.9"),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=50,
        check=True,
    )
    (folder / "host_vars").mkdir()
    (folder / "host_vars" / "w1.yml").write_bytes(done.stdout)
    path = folder / "site.ini"
    path.write_text(SECRETS)
    return path


def with_setting(folder: Path, setting: str) -> Ansible:
    """The installed programs, for an operator who has `setting` in the environment."""
    folder.mkdir()
    for name in ("ansible", "ansible-inventory"):
        program = folder / name
        program.write_text(f'#!/bin/sh\n{setting} exec {installed().folder / name} "$@"\n')
        program.chmod(0o755)
    return Ansible(folder)


def test_templates_and_vault_values_are_resolved_by_the_operators_own_settings(
    tmp_path: Path,
) -> None:
    path = _secrets(tmp_path)
    with pytest.raises(ConfigError) as told:
        read_inventory(path, installed().ask, tmp_path)
    assert all(" host `w1`: Ansible cannot resolve " in one for one in told.value.mistakes)
    assert "`ansible_host`" in told.value.mistakes[0]
    setting = f"ANSIBLE_VAULT_PASSWORD_FILE='{tmp_path / 'password'}'"
    operators = with_setting(tmp_path / "programs", setting)
    inventory = read_inventory(path, operators.ask, tmp_path)
    assert inventory.cluster == "real"
    assert {host.name: host.routes[0].address for host in inventory.hosts} == {
        "cp1": "10.3.0.1",
        "cp2": "10.3.0.2",
        "w1": "10.3.0.9",
    }
    assert {host.routes[0].port for host in inventory.hosts} == {2222}


def test_a_wish_for_a_password_prompt_is_an_error_and_not_a_wait(tmp_path: Path) -> None:
    path = _secrets(tmp_path)
    operators = with_setting(tmp_path / "programs", "ANSIBLE_ASK_VAULT_PASS=True")
    with pytest.raises(ConfigError, match=r"ansible-inventory failed: .*prompt"):
        read_inventory(path, operators.ask, tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.ini", "[control_plane\nn1\n"),
        ("a.ini", "[control_plane]\nn1\n[workers:children]\nnobody\n"),
        ("a.yaml", "all: {host: {n2: }}\ncontrol_plane: {hosts: {'n[1:2]': }}\n"),
        ("a.yaml", "control_plane: {hosts: {'n[1:2]': }}\nworkers: 7\n"),
    ],
)
def test_what_ansible_would_skip_is_an_error(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=r"Ansible warns|ansible-inventory failed"):
        read_inventory(tmp_path / name, installed().ask, tmp_path)
