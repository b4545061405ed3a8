"""`stressor abort --host`: from a machine without any file, and to no host that nobody knows."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stressor.cli.abort_hosts import Asked, hosts_of
from stressor.errors import ConfigError
from tests.sshd import make_key, running_sshd

PRINT = "SHA256:" + "A" * 43
ASKED = Asked(("10.0.0.1", "fd00::1"), "ops", 2222, "/k", (PRINT,), sudo=True)


def test_the_hosts_are_what_was_typed() -> None:
    first, second = hosts_of(replace(ASKED, jumps=("j@192.0.2.1:23", "[fd00::2]")), {})
    assert (first.name, second.name) == ("10.0.0.1", "fd00::1")
    assert first.become
    (route,) = first.routes
    assert (route.user, route.port, route.key_path, route.host_key) == ("ops", 2222, "/k", PRINT)
    assert [(j.user, j.address, j.port, j.host_key) for j in route.jumps] == [
        ("j", "192.0.2.1", 23, PRINT),
        ("ops", "fd00::2", 22, PRINT),
    ]


def test_a_public_key_is_as_good_as_its_fingerprint(tmp_path: Path) -> None:
    public = make_key(tmp_path / "k")
    (host, _) = hosts_of(replace(ASKED, host_keys=(public, PRINT)), {})
    words = str(host.routes[0].host_key).split()
    assert len(words) == 2
    assert words[1] == PRINT
    assert words[0].startswith("SHA256:")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hosts": ("node1",)}, "no IP address"),
        ({"jumps": ("gate.example:22",)}, "no IP address"),
        ({"jumps": ("10.0.0.9:x",)}, "no port"),
        ({"host_keys": ("SHA256:x",)}, "neither"),
        ({"host_keys": ()}, "--host-key SHA256:FINGERPRINT"),
        ({"key": None}, "--key KEY"),
    ],
)
def test_what_cannot_be_used_gets_a_ready_line(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        hosts_of(replace(ASKED, **changes), {})  # type: ignore[arg-type]
    assert said in str(caught.value)


def test_known_hosts_vouches_where_no_key_was_typed(tmp_path: Path) -> None:
    folder = tmp_path / ".ssh"
    folder.mkdir()
    public = make_key(folder / "id_ed25519")
    (folder / "known_hosts").write_text(f"10.0.0.1 {public}\n")
    (host,) = hosts_of(Asked(("10.0.0.1",)), {"HOME": str(tmp_path)})
    assert host.routes[0].known_hosts_path == str(folder / "known_hosts")
    assert host.routes[0].key_path == str(folder / "id_ed25519")
    with pytest.raises(ConfigError):
        hosts_of(Asked(("10.0.0.2",)), {"HOME": str(tmp_path)})


def bare(*words: str) -> subprocess.CompletedProcess[str]:
    """An abort without home, state or anything else in the environment."""
    return subprocess.run(
        (sys.executable, "-m", "stressor", "abort", *words),
        env={"PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_without_a_fingerprint_it_ends_with_the_ready_command() -> None:
    done = bare("--host", "127.0.0.1", "--key", "/none")
    assert done.returncode == 2
    last = done.stderr.rstrip().splitlines()[-1].strip()
    assert last == (
        "stressor abort --host 127.0.0.1 --user root --key /none --host-key SHA256:FINGERPRINT"
    )


def test_options_without_a_host_are_a_mistake() -> None:
    done = bare("--host-key", PRINT)
    assert done.returncode == 2
    assert "go with --host" in done.stderr


@pytest.mark.ssh
def test_a_host_is_proven_clean_from_a_machine_without_any_file(tmp_path: Path) -> None:
    with running_sshd(tmp_path / "sshd") as sshd:
        own = hosts_of(Asked(("127.0.0.1",), key="/k", host_keys=(sshd.host_key,)), {})
        words = ("--host", "127.0.0.1", "--port", str(sshd.port), "--key", sshd.key_path)
        good = bare(*words, "--host-key", str(own[0].routes[0].host_key))
        bad = bare(*words, "--host-key", PRINT, "--budget", "10")
    assert good.returncode == 0, good.stdout + good.stderr
    assert "127.0.0.1    CLEAN" in good.stdout
    assert good.stdout.splitlines()[-1].startswith("exit 0")
    assert bad.returncode == 4
    assert "KEY_CHANGED" in bad.stdout
