"""What `stressor init` writes: both files or neither, and never over another; and as a process."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from stressor.cli.init import make, publish, refuse_existing
from stressor.cli.init_facts import Asked
from stressor.config.inventory import load_inventory
from stressor.config.yamlfile import parse_yaml
from stressor.errors import ConfigError
from stressor.playbooks import find_ansible
from tests.cli.child import run
from tests.cli.test_init import UID, Desk, found, kubeconfig
from tests.cli.test_plan_verbs import WATCHED
from tests.contract.kube.conftest import serve

PAIR = {"inventory.yaml": "a: 1\n", "stressor.yaml": "b: 2\n"}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_both_files_are_written_privately(tmp_path: Path) -> None:
    made = publish(tmp_path / "new" / "folder", PAIR)
    assert [(path.name, path.read_text()) for path in made] == list(PAIR.items())
    assert {path.stat().st_mode & 0o777 for path in made} == {0o600}
    assert sorted(os.listdir(tmp_path / "new" / "folder")) == sorted(PAIR)


@pytest.mark.parametrize("there", [["inventory.yaml"], ["stressor.yaml"], list(PAIR)])
def test_nothing_is_replaced_and_nothing_is_left(tmp_path: Path, there: list[str]) -> None:
    for name in there:
        (tmp_path / name).write_text("mine")
    with pytest.raises(ConfigError, match=f"{there[0]}: exists already and is not replaced"):
        publish(tmp_path, PAIR)
    assert sorted(os.listdir(tmp_path)) == sorted(there)
    assert {(tmp_path / name).read_text() for name in there} == {"mine"}
    with pytest.raises(ConfigError) as error:
        refuse_existing(tmp_path)
    assert len(error.value.mistakes) == len(there)


def test_a_link_that_leads_nowhere_is_a_file_of_somebody(tmp_path: Path) -> None:
    (tmp_path / "stressor.yaml").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="exists already"):
        refuse_existing(tmp_path)
    with pytest.raises(ConfigError, match="exists already"):
        publish(tmp_path, PAIR)
    assert os.listdir(tmp_path) == ["stressor.yaml"]


def test_a_folder_that_cannot_be_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        publish(tmp_path / "file", PAIR)


def stressor(desk: Desk, *words: str, start: tuple[str, ...] = ("-m", "stressor")) -> Any:
    named = ("--kubeconfig", str(desk.kubeconfig), "--hosts", str(desk.hosts))
    return run(sys.executable, *start, "init", *named, *words, state=desk.path / "state")


@pytest.mark.slow
def test_offline_opens_no_socket_and_starts_no_child(desk: Desk) -> None:
    desk.hosts.write_text("cp1 192.0.2.1 group=control_plane\n")
    out = str(desk.path / "out put")
    done = stressor(desk, "--offline", "--out", out, start=("-c", WATCHED))
    assert done.returncode == 0, done.stderr
    assert "TOUCHED" not in done.stderr
    assert done.stdout.splitlines()[-1] == (
        f"NEXT      stressor preflight --inventory '{out}/inventory.yaml'"
    )
    assert load_inventory(Path(out) / "inventory.yaml").cluster == "staging"
    settings = (Path(out) / "stressor.yaml").read_text()
    assert parse_yaml("t", settings).data == {"inventory": "inventory.yaml"}
    again = stressor(desk, "--offline", "--out", out)
    assert again.returncode == 2
    assert again.stderr.count("exists already and is not replaced") == 2


@pytest.mark.slow
def test_a_dry_run_prints_both_files_and_writes_nothing(desk: Desk) -> None:
    desk.hosts.write_text("cp1 192.0.2.1 group=control_plane\n")
    out = desk.path / "out"
    out.mkdir()
    (out / "inventory.yaml").write_text("mine")
    done = stressor(desk, "--offline", "--dry-run", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert os.listdir(out) == ["inventory.yaml"]
    first, _, second = done.stdout.partition("# stressor.yaml\n")
    assert "control_plane" in str(parse_yaml("t", first).data)
    assert parse_yaml("t", second).data == {"inventory": "inventory.yaml"}


@pytest.mark.slow
def test_the_api_is_asked_over_http(desk: Desk) -> None:
    server = serve(desk.kube.api)
    kubeconfig(desk.kubeconfig, f"http://127.0.0.1:{server.server_port}")
    try:
        done = stressor(desk, "--out", str(desk.path / "out"))
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 0, done.stderr
    assert load_inventory(desk.path / "out" / "inventory.yaml").cluster_uid == UID


@pytest.mark.slow
def test_ansible_reads_what_only_ansible_can(desk: Desk) -> None:
    found_programs = find_ansible(sys.executable, None)
    assert found_programs is not None, "ansible-core is part of the set-up"
    site = desk.path / "site"
    (site / "group_vars").mkdir(parents=True)
    (site / "group_vars" / "all.yml").write_text(
        "ansible_user: core\nansible_become_pass: sesame\n"
    )
    (site / "hosts.ini").write_text(
        "[masters]\ncp[1:2] ansible_host='192.0.2.{{ inventory_hostname[-1] }}'\n"
        "[workers]\n192.0.2.9\n"
    )
    asked = Asked(from_ansible=site / "hosts.ini", offline=True, out=desk.path / "out")
    drafted = make(asked, desk.env, desk.open_api, found_programs.ask)
    path = desk.path / "read.yaml"
    path.write_text(drafted.inventory)
    assert found(load_inventory(path)) == {
        "cp1": ("192.0.2.1", 22, "core", {"control_plane"}),
        "cp2": ("192.0.2.2", 22, "core", {"control_plane"}),
        "192.0.2.9": ("192.0.2.9", 22, "core", {"worker"}),
    }
    assert "sesame" not in repr(drafted)
