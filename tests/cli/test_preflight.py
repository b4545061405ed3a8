"""`stressor preflight` against real sshds that are wrong in one way each: the finding, its remedy,
the exit code."""

import contextlib
import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.child import run
from tests.sshd import Sshd, make_key, running_sshd


def forced(shell: str) -> str:
    """What a login shell's start-up file would do, before each command."""
    return f'ForceCommand {shell}; eval "$SSH_ORIGINAL_COMMAND"'


def inventory(folder: Path, port: int, key_path: str, host_key: str) -> Path:
    path = folder / "inventory.yaml"
    path.write_text(
        f"""\
all:
  vars: {{stressor_cluster: c, stressor_bystanders_none: a test}}
  children:
    control_plane:
      hosts:
        loop:
          ansible_host: 127.0.0.1
          ansible_port: {port}
          ansible_user: root
          ansible_ssh_private_key_file: {key_path}
          stressor_host_key: {host_key}
"""
    )
    return path


def findings(folder: Path, path: Path, *only: str) -> tuple[int, list[dict[str, str]]]:
    words = [word for name in only for word in ("--only", name)]
    argv = (sys.executable, "-m", "stressor", "preflight", "--inventory", str(path))
    done = run(*argv, *words, "-o", "json", state=folder)
    document = json.loads(done.stdout)
    assert document["exit_code"] == done.returncode, done.stderr
    return done.returncode, document["findings"]


@contextlib.contextmanager
def wrong(folder: Path, what: str) -> Iterator[tuple[int, str, str]]:
    """Port, key and pinned host key of a set-up with this fault."""
    if what == "silent":
        with socket.socket() as mute:
            mute.bind(("127.0.0.1", 0))
            mute.listen(8)
            yield mute.getsockname()[1], str(folder / "k"), make_key(folder / "k")
        return
    options = {"noise": forced("echo hello"), "slow": forced("sleep 2.5")}
    with running_sshd(folder / "sshd", *filter(None, [options.get(what)])) as sshd:
        yield sshd.port, *_login(folder, sshd, what)


def _login(folder: Path, sshd: Sshd, what: str) -> tuple[str, str]:
    other = make_key(folder / "other") if what in ("key", "host-key") else ""
    key_path = str(folder / "other") if what == "key" else sshd.key_path
    return key_path, other if what == "host-key" else sshd.host_key


@pytest.mark.ssh
@pytest.mark.parametrize(
    ("what", "code", "text", "remedy"),
    [
        ("noise", 0, "6 bytes before our output", "noisy .bashrc"),
        ("slow", 0, "shell took 2.", "slow .bashrc"),
        ("key", 3, "the key was refused", "authorized_keys"),
        ("host-key", 3, "the host key is another one", "find out why"),
        ("silent", 3, "no answer in time", "hangs"),
    ],
)
def test_what_is_wrong_with_a_login_is_named(
    tmp_path: Path, what: str, code: int, text: str, remedy: str
) -> None:
    with wrong(tmp_path, what) as (port, key_path, host_key):
        found = findings(tmp_path, inventory(tmp_path, port, key_path, host_key), "login")
    assert found[0] == code
    (login,) = [one for one in found[1] if one["check"] == "login"]
    assert text in login["text"]
    assert remedy in login["remedy"]


@pytest.mark.ssh
def test_a_healthy_host_answers_every_check(tmp_path: Path) -> None:
    with running_sshd(tmp_path / "sshd") as sshd:
        path = inventory(tmp_path, sshd.port, sshd.key_path, sshd.host_key)
        _, found = findings(tmp_path, path, "login", "clock", "tools")
    assert {one["check"]: one["host"] for one in found} == {
        "clock": "loop",
        "login": "loop",
        "tools": "loop",
    }
    assert [one["level"] for one in found if one["check"] == "login"] == ["pass"]
    assert not [one for one in found if one["unknown"] and one["check"] != "clock"]


def test_a_name_that_is_no_check_is_a_mistake(tmp_path: Path) -> None:
    path = inventory(tmp_path, 22, "/none", make_key(tmp_path / "k"))
    argv = (sys.executable, "-m", "stressor", "preflight", "--inventory", str(path))
    done = run(*argv, "--only", "clok", state=tmp_path)
    assert done.returncode == 2
    assert "no check is called clok; there are: " in done.stderr
