"""What Ansible answers becomes the inventory, whole, or an error that names what is missing.

The answers in ansible_answers/ were recorded from ansible-core 2.19.14.
"""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stressor.config.ansible_inventory import DEADLINE_S, read_inventory
from stressor.config.inventory import load_inventory
from stressor.errors import ConfigError
from stressor.model import Host, Inventory, Role, Route, Transport
from stressor.playbooks import Answer

RECORDED = Path(__file__).with_name("ansible_answers")
PLAIN = """\
all: {vars: {stressor_cluster: lab}}
control_plane: {hosts: {n1: {ansible_host: 10.0.0.1}}}
"""


@dataclass
class Ansible:
    """Gives recorded answers, in their order, and keeps what it was asked."""

    answers: list[Answer]
    asked: list[tuple[str, tuple[str, ...], float]] = field(default_factory=list)

    def ask(self, program: str, arguments: tuple[str, ...], deadline_s: float) -> Answer:
        self.asked.append((program, arguments, deadline_s))
        return self.answers.pop(0)


def recorded(name: str, returncode: int = 0, stderr: bytes = b"") -> Answer:
    return Answer(returncode, (RECORDED / name).read_bytes(), stderr)


def listing(text: str) -> Answer:
    return Answer(0, text.encode(), b"")


def read(folder: Path, *answers: Answer) -> Inventory:
    path = folder / "site.ini"
    path.write_text("[control_plane]\nn1\n")
    return read_inventory(path, Ansible(list(answers)).ask, folder)


def mistakes(folder: Path, *answers: Answer) -> list[str]:
    with pytest.raises(ConfigError) as told:
        read(folder, *answers)
    return [line.replace(f"{folder}/", "") for line in told.value.mistakes]


def needs(path: Path, working_folder: Path | None = None) -> list[str]:
    with pytest.raises(ConfigError) as told:
        read_inventory(path, None, working_folder or path.parent)
    tail = ": only Ansible can read that, and it is not installed: pip install 'stressor[ansible]'"
    assert all(line.endswith(tail) for line in told.value.mistakes), told.value.mistakes
    return [m.removesuffix(tail).replace(f"{path.parent}/", "") for m in told.value.mistakes]


def control(address: str) -> Host:
    roles = frozenset({Role.CONTROL_PLANE})
    return Host(address, (Route(address, 22, "ops"),), roles, etcd_data_dir="/var/lib/etcd")


def worker(name: str, route: Route) -> Host:
    return Host(name, (route,), frozenset({Role.WORKER}), become=True, scratch_dir="/scratch")


def test_a_recorded_answer_becomes_the_hosts_it_tells_of(tmp_path: Path) -> None:
    inventory = read(tmp_path, recorded("site.json"), recorded("site_values.txt"))
    assert inventory.cluster == "site"
    assert inventory.disposable
    assert inventory.kubeconfig_path == str(tmp_path / "admin.conf")
    assert sorted(inventory.hosts, key=lambda host: host.name) == [
        *(control(f"10.0.0.{n}") for n in (1, 2, 3)),
        Host(
            "far1",
            (Route("192.0.2.1", 22, "ops"),),
            frozenset({Role.BYSTANDER}),
            transport=Transport.OPENSSH,
        ),
        worker("w1", Route("10.0.1.11", 2222, "ops")),
        worker("w2", Route("10.0.1.12", 2223, "ops")),
    ]


def test_ansible_is_asked_without_a_shell_and_with_a_deadline(tmp_path: Path) -> None:
    path = tmp_path / "site.ini"
    path.write_text("[control_plane]\n")
    ansible = Ansible([recorded("site.json"), recorded("site_values.txt")])
    read_inventory(path, ansible.ask, tmp_path)
    first, second = ansible.asked
    assert first == ("ansible-inventory", ("-i", str(path), "--list"), DEADLINE_S)
    program, arguments, deadline_s = second
    assert (program, arguments[:5], deadline_s) == (
        "ansible",
        ("-i", str(path), "all", "-m", "ansible.builtin.debug"),
        DEADLINE_S,
    )
    assert "motd" not in arguments[-1]


def test_a_vault_value_that_cannot_be_decrypted_is_told_by_host_and_variable(
    tmp_path: Path,
) -> None:
    told = mistakes(
        tmp_path,
        recorded("site.json"),
        recorded("site_no_vault_values.txt", 2),
        recorded("site_no_vault_host.txt", 2),
        recorded("site_no_vault_port.txt", 2),
    )
    why = "Task failed: Attempting to decrypt but no vault secrets found."
    assert told == [
        f"site.ini: host `w2`: Ansible cannot resolve `ansible_host`: {why}",
        f"site.ini: host `w2`: Ansible cannot resolve `ansible_port`: {why}",
    ]


def test_variables_that_fail_together_are_asked_one_by_one(tmp_path: Path) -> None:
    text = """{"_meta": {"hostvars": {"10.0.0.1": {
        "stressor_cluster": "a", "etcd_data_dir": "{{ x }}", "scratch_dir": "{{ y }}"}}},
        "control_plane": {"hosts": ["10.0.0.1"]}}"""
    together = listing('10.0.0.1 | FAILED! => {"msg": "broken"}')
    etcd = listing('10.0.0.1 | SUCCESS => {"msg": {"etcd_data_dir": "/etcd"}}')
    scratch = listing('10.0.0.1 | SUCCESS => {"msg": {"scratch_dir": "/scratch"}}')
    wrong = "site.ini: host `10.0.0.1`: Ansible cannot resolve `scratch_dir`: broken"
    assert mistakes(tmp_path, listing(text), together, etcd, together) == [wrong]
    (host,) = read(tmp_path, listing(text), together, etcd, scratch).hosts
    assert (host.etcd_data_dir, host.scratch_dir) == ("/etcd", "/scratch")


def test_a_value_that_stays_a_template_or_is_missing_is_told(tmp_path: Path) -> None:
    host = '{"_meta": {"hostvars": {"n1": {"etcd_data_dir": "{{ x }}"}}}, "all": {"hosts": ["n1"]}}'
    wrong = "site.ini: host `n1`: Ansible cannot resolve `etcd_data_dir`: "
    for answer, why in (
        ('n1 | SUCCESS => {"msg": {"etcd_data_dir": "{{ y }}"}}', "a part of it is not defined"),
        ('n1 | SUCCESS => {"msg": {}}', "a part of it is not defined"),
        ('n2 | SUCCESS => {"msg": {"etcd_data_dir": "/x"}}', "it gave no value"),
        ('n1 | SUCCESS => {"msg": ', "it gave no value"),
        ('n1 | UNREACHABLE! => {"msg": "no route"}', "no route"),
    ):
        assert mistakes(tmp_path, listing(host), listing(answer)) == [wrong + why]


def test_a_warning_of_something_left_out_is_no_smaller_host_list(tmp_path: Path) -> None:
    stderr = (RECORDED / "skipped_stderr.txt").read_bytes()
    assert mistakes(tmp_path, recorded("skipped.json", stderr=stderr)) == [
        "site.ini: Ansible warns: Found duplicate mapping key 'x'. "
        "(Origin: /site/skipped.yaml:3:21)",
        "site.ini: Ansible warns: Skipping unexpected key (host) in group (all), only "
        '"vars", "children" and "hosts" are valid',
        "site.ini: Ansible warns: Skipping 'k' as this is not a valid group definition",
    ]


def test_warnings_that_say_nothing_of_hosts_pass(tmp_path: Path) -> None:
    stderr = b"[WARNING]: Found variable using reserved name: environment\n"
    stderr += b"[DEPRECATION WARNING]: old\n"
    inventory = read(tmp_path, recorded("site.json", stderr=stderr), recorded("site_values.txt"))
    assert len(inventory.hosts) == 6


def test_a_failed_or_late_or_strange_answer_is_an_error(tmp_path: Path) -> None:
    stderr = (RECORDED / "broken_stderr.txt").read_bytes()
    (told,) = mistakes(tmp_path, Answer(1, b"", stderr))
    assert told.startswith("site.ini: ansible-inventory failed: [WARNING]: Failed to parse inven")
    late = "site.ini: ansible-inventory gave no answer within 60 s"
    assert mistakes(tmp_path, Answer(None, b"", b"")) == [late]
    assert mistakes(tmp_path, Answer(3, b"", b"")) == [
        "site.ini: ansible-inventory failed: exit code 3"
    ]
    for text in (
        "[]",
        "{}",
        '{"_meta": {"hostvars": []}}',
        '{"_meta": {"hostvars": {}}, "a": {"hosts": {"n": {}}}}',
        '{"_meta": {"hostvars": {"n": 7}}}',
    ):
        (told,) = mistakes(tmp_path, listing(text))
        assert "has another shape than known" in told, text
    (told,) = mistakes(tmp_path, listing('{"_meta": '))
    assert told.startswith("site.ini: the answer of ansible-inventory is not JSON")


def test_a_program_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    def ask(program: str, arguments: tuple[str, ...], deadline_s: float) -> Answer:
        raise FileNotFoundError(2, "No such file or directory", program)

    (tmp_path / "a.ini").write_text("n1\n")
    with pytest.raises(ConfigError, match=r"a\.ini: ansible-inventory cannot be started: No such"):
        read_inventory(tmp_path / "a.ini", ask, tmp_path)


def test_values_stressor_refuses_are_told_with_their_host(tmp_path: Path) -> None:
    text = """{"_meta": {"hostvars": {
        "n1": {"stressor_cluster": "a", "ansible_host": "n1.example", "ansible_password": "x"},
        "n2": {"stressor_cluster": "b", "ansible_port": 0}}},
        "control_plane": {"hosts": ["n1", "n2"]}}"""
    assert mistakes(tmp_path, listing(text)) == [
        "site.ini: `stressor_cluster` is one for the whole cluster: set it in the vars of `all`",
        "site.ini: host `n1`: `ansible_host`: `n1.example` must be an IP address: "
        "abort asks no DNS",
        "site.ini: host `n1`: `ansible_password` passwords are not read: log in with a key, "
        "and let `sudo -n` work",
        "site.ini: host `n2` needs `ansible_host`, an IP address",
        "site.ini: host `n2`: `ansible_port`: `0` is no port: use 1 to 65535",
        "site.ini: missing `stressor_cluster` in the vars of `all`",
    ]


def test_a_host_that_no_group_names_is_not_lost(tmp_path: Path) -> None:
    text = """{"_meta": {"hostvars": {
        "10.0.0.1": {"stressor_cluster": "a"}, "10.0.0.2": {"stressor_cluster": "a"}}},
        "control_plane": {"hosts": ["10.0.0.1"]}}"""
    assert [host.name for host in read(tmp_path, listing(text)).hosts] == ["10.0.0.1", "10.0.0.2"]


def test_the_plain_reader_does_not_take_a_port_for_a_part_of_the_name(tmp_path: Path) -> None:
    path = tmp_path / "inv.yaml"
    path.write_text(PLAIN.replace("n1:", '"n1:2222":'))
    with pytest.raises(ConfigError, match=r"inv\.yaml:2: port in host name `n1:2222` is not read"):
        load_inventory(path)


def test_plain_yaml_is_read_here_and_keeps_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "inv.yaml"
    path.write_text(PLAIN)
    assert [host.name for host in read_inventory(path, Ansible([]).ask, tmp_path).hosts] == ["n1"]
    path.write_text(PLAIN.replace("10.0.0.1", "n1.example"))
    with pytest.raises(ConfigError, match=r"inv\.yaml:2: `ansible_host`: `n1\.example`"):
        read_inventory(path, Ansible([]).ask, tmp_path)
    path.write_text("all: [\n")
    with pytest.raises(ConfigError, match=r"inv\.yaml:2: not valid YAML"):
        read_inventory(path, Ansible([]).ask, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("n1:", '"n[1:3]":', "inv.yaml:2: host range `n[1:3]`"),
        ("n1:", '"n1:2222":', "inv.yaml:2: a port in host name `n1:2222`"),
        ("10.0.0.1", '"{{ ip }}"', "inv.yaml:2: `ansible_host` is a Jinja template"),
        ("10.0.0.1", "!vault x", "inv.yaml:2: `ansible_host` is a vault value"),
        ("lab}", "lab, ansible_group_priority: 2}", "inv.yaml:1: `ansible_group_priority`"),
        ("lab", "&a lab", None),
        ("10.0.0.1", "10.0.0.1, hosts: {'x[1:2]': 1}", None),
        ("10.0.0.1", '10.0.0.1, motd: "{{ x }}"', None),
        ("10.0.0.1", "10.0.0.1, secret: !vault x", None),
    ],
)
def test_without_ansible_the_error_names_what_it_is_needed_for(
    tmp_path: Path, old: str, new: str, told: str | None
) -> None:
    path = tmp_path / "inv.yaml"
    assert old in PLAIN
    path.write_text(PLAIN.replace(old, new))
    if told is not None:
        assert needs(path) == [told]
    else:
        assert len(read_inventory(path, None, tmp_path).hosts) == 1


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("hosts", "[a]\nn1\n", ":1: an inventory that is not a YAML mapping"),
        ("hosts", "n1 ansible_host=10.0.0.1\n", ":1: an inventory that is not a YAML mapping"),
        ("a.ini", "n1 x='a: b'\n", ":1: an inventory that is not a YAML mapping"),
        ("a.py", "#!/bin/sh\nall: 1\n", ":1: an inventory script"),
        ("a.yml", "$ANSIBLE_VAULT;1.1;AES256\n31\n", ":1: a file encrypted by ansible-vault"),
        ("a.yml", "plugin: aws_ec2\nregions: [x]\n", ":1: inventory plugin `aws_ec2`"),
        ("a.yml", "all: &x {hosts: {n: }}\nb: *x\n", ":2: alias `*x`"),
    ],
)
def test_other_formats_need_ansible(tmp_path: Path, name: str, text: str, told: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert needs(path)[0].removeprefix(str(path)).startswith((told, name + told))


def test_a_folder_needs_ansible_and_is_where_relative_paths_start(tmp_path: Path) -> None:
    assert needs(tmp_path) == [f"{tmp_path.name}: a folder of inventories"]
    ansible = Ansible([recorded("site.json"), recorded("site_values.txt")])
    inventory = read_inventory(tmp_path, ansible.ask, tmp_path)
    assert inventory.kubeconfig_path == str(tmp_path / "admin.conf")


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("group_vars/all.yml", "ansible_user: x\n", "variable `ansible_user`"),
        ("group_vars/all/a", "ansible_password: x\n", "variable `ansible_password`"),
        ("host_vars/n1.json", '{"a": 1, "scratch_dir": "/x"}', "variable `scratch_dir`"),
        ("host_vars/n1", "stressor_hots_key: x\n", "variable `stressor_hots_key`"),
        ("host_vars/n1", "<<: {ansible_user: x}\n", "variable `<<`"),
        ("group_vars/all", "$ANSIBLE_VAULT;1.1;AES256\n31\n", "variables encrypted by ansible-"),
        ("group_vars/all", "a: [\n", "variables that are not plain YAML"),
        ("group_vars/all", "- a\n", "variables that are not a mapping"),
        ("group_vars/all", "ntp: 1\n", None),
        ("group_vars/all", "", None),
        ("group_vars/README.md", "# ansible_user: x\n[", None),
        ("group_vars/.hidden.yml", "- a\n", None),
    ],
)
def test_variables_beside_the_inventory_or_where_ansible_runs_need_ansible(
    tmp_path: Path, file: str, text: str, told: str | None
) -> None:
    beside, elsewhere = tmp_path / "site" / file, tmp_path / "work" / file
    for path in (beside, elsewhere):
        path.parent.mkdir(parents=True)
    inventory = tmp_path / "site" / "inv.yaml"
    inventory.write_text(PLAIN)
    for path in (beside, elsewhere):
        path.write_text(text)
        if told is None:
            assert len(read_inventory(inventory, None, tmp_path / "work").hosts) == 1
        else:
            (found,) = needs(inventory, tmp_path / "work")
            shown = file if path == beside else str(path)
            assert found.startswith(f"inv.yaml: {told}")
            assert found.endswith(f" in {shown}")
            path.unlink()


def test_a_linked_folder_of_variables_needs_ansible(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "all").symlink_to(tmp_path / "real")
    (tmp_path / "inv.yaml").write_text(PLAIN)
    assert needs(tmp_path / "inv.yaml") == [
        "inv.yaml: a linked folder of variables, group_vars/all"
    ]


def test_a_path_that_ansible_would_take_for_hosts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a,b.ini"
    path.write_text("n1\n")
    with pytest.raises(ConfigError, match="a path with a comma"):
        read_inventory(path, Ansible([]).ask, tmp_path)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml:1: cannot be read: No such file"):
        read_inventory(tmp_path / "none.yaml", None, tmp_path)
