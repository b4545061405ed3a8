"""`stressor abort --host`: from a machine without any file, and to no host that nobody knows."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stressor.cli.abort_hosts import Asked, hosts_of
from stressor.errors import ConfigError
from tests.cli.test_abort_path import HEAVY
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


def test_an_address_that_is_named_twice_is_one_host() -> None:
    assert len(hosts_of(replace(ASKED, hosts=("10.0.0.1", "10.0.0.1")), {})) == 1


def test_jump_hosts_may_have_a_key_of_their_own() -> None:
    (host, _) = hosts_of(replace(ASKED, jumps=("192.0.2.1",), jump_key="/j"), {})
    assert host.routes[0].key_path == "/k"
    assert host.routes[0].jumps[0].key_path == "/j"


def test_the_ready_command_keeps_what_was_typed() -> None:
    asked = replace(ASKED, host_keys=(), jumps=("j@192.0.2.1",), jump_key="/j", run="r1")
    with pytest.raises(ConfigError) as caught:
        hosts_of(asked, {})
    assert str(caught.value).splitlines()[-1].strip() == (
        "stressor abort --host 10.0.0.1 --host fd00::1 --user ops --port 2222 --key /k --sudo "
        "--run r1 --jump j@192.0.2.1 --jump-key /j --host-key SHA256:FINGERPRINT"
    )


def bare(*words: str) -> subprocess.CompletedProcess[str]:
    """An abort without home, state or anything else in the environment."""
    return alone("-m", "stressor", "abort", *words)


def alone(*words: str) -> subprocess.CompletedProcess[str]:
    """Python, with nothing but the way to this source tree."""
    return subprocess.run(
        (sys.executable, "-B", *words),
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


@pytest.mark.parametrize("words", [("--host-key", PRINT), ("--sudo",), ("--user", "ops")])
def test_options_without_a_host_are_a_mistake(words: tuple[str, ...]) -> None:
    done = bare(*words)
    assert done.returncode == 2
    assert "go with --host" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cluster", "lab"), "--cluster goes without --host"),
        (("--run", "r1;id"), "no name of a run"),
        (("--port", "70000"), "1<=x<=65535"),
        (("--key", "/none"), "--key KEY"),
    ],
)
def test_what_could_only_fail_later_is_said_at_once(words: tuple[str, ...], said: str) -> None:
    done = bare("--host", "127.0.0.1", "--host-key", PRINT, *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_host_that_does_not_answer_is_named_in_full_with_the_next_step(tmp_path: Path) -> None:
    """Two addresses of fifteen characters that differ in their last one; nobody listens there."""
    make_key(tmp_path / "k")
    hosts = ("127.100.100.101", "127.100.100.102")
    words = [word for host in hosts for word in ("--host", host)]
    done = bare(
        *words, "--port", "1", "--key", str(tmp_path / "k"), "--host-key", PRINT, "--budget", "1"
    )
    assert done.returncode == 4, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "ABORT  all runs  2 hosts by hand"
    for host in hosts:
        assert any(host in line and "UNREACHABLE" in line for line in lines)
        assert f"       {host} port 1 refused the connection" in lines
    assert "NEXT     the same command again        (safe to repeat)" in lines
    assert max(map(len, lines)) <= 64


WATCHED = """\
import json, sys
seen = []
def note(event, args):
    if event == "open" and isinstance(args[2], int) and args[2] & 0o1103:
        seen.append(["write", str(args[0])])
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.system", "os.mkdir"):
        seen.append([event, str(args[:1])])
    if event.startswith("socket.get") and isinstance(args[0], str):
        seen.append([event, args[0]])
sys.addaudithook(note)
from stressor.main import main
try:
    main(["abort", *sys.argv[1:]])
except SystemExit as ended:
    code = ended.code
print(json.dumps({"code": code, "seen": seen, "modules": sorted(sys.modules)}))
"""


@pytest.mark.ssh
def test_a_host_is_proven_clean_from_a_machine_without_any_file(tmp_path: Path) -> None:
    with running_sshd(tmp_path / "sshd") as sshd:
        own = hosts_of(Asked(("127.0.0.1",), key="/k", host_keys=(sshd.host_key,)), {})
        words = ("--host", "127.0.0.1", "--port", str(sshd.port), "--key", sshd.key_path)
        # Not "all": a neighbour on this machine may have load of its own.
        of = ("--run", "t0000000")
        good = bare(*words, *of, "--host-key", str(own[0].routes[0].host_key))
        bad = bare(*words, *of, "--host-key", PRINT, "--budget", "10")
    assert good.returncode == 0, good.stdout + good.stderr
    assert "127.0.0.1    CLEAN" in good.stdout
    assert good.stdout.splitlines()[-1].startswith("exit 0")
    assert bad.returncode == 4
    assert "KEY_CHANGED" in bad.stdout
    assert ", not its own" in " ".join(bad.stdout.split())
    assert max(map(len, bad.stdout.splitlines())) <= 64


@pytest.mark.ssh
def test_i6_an_abort_by_hand_writes_no_file_starts_no_process_and_asks_no_name(
    tmp_path: Path,
) -> None:
    """Audited from within: nothing is opened for writing, so that a read-only disk is enough."""
    with running_sshd(tmp_path / "sshd") as sshd:
        words = ("--host", "127.0.0.1", "--port", str(sshd.port), "--key", sshd.key_path)
        done = alone("-c", WATCHED, *words, "--host-key", sshd.host_key, "--run", "t0000000")
    assert "CLEAN" in done.stdout, done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["code"] == 0
    names = {name for event, name in said["seen"] if event == "socket.getaddrinfo"}
    others = [one for one in said["seen"] if one[0] != "socket.getaddrinfo"]
    assert others == []
    assert names <= {"127.0.0.1"}
    heavy = [name for name in said["modules"] if name.split(".")[0] in HEAVY]
    assert heavy == []
    assert "paramiko" in said["modules"], "the abort did not go over SSH"


@pytest.mark.ssh
def test_a_jump_host_is_gone_through_and_verified_too(tmp_path: Path) -> None:
    with running_sshd(tmp_path / "a") as jump, running_sshd(tmp_path / "b") as sshd:
        words = ("--host", "127.0.0.1", "--port", str(sshd.port), "--key", sshd.key_path)
        by = ("--jump", f"root@127.0.0.1:{jump.port}", "--jump-key", jump.key_path)
        both = ("--host-key", sshd.host_key, "--host-key", jump.host_key)
        good = bare(*words, *by, *both, "--run", "t0000000")
        bad = bare(*words, *by, "--host-key", sshd.host_key, "--run", "t0000000", "--budget", "10")
    assert good.returncode == 0, good.stdout + good.stderr
    assert (bad.returncode, "KEY_CHANGED" in bad.stdout) == (4, True)
