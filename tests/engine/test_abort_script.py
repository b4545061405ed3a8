"""The script for machines without Python: well-formed whatever the inventory holds, honest about
what it was told, and the same kill."""

import re
import shutil
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stressor import lifeline
from stressor.engine.abort_script import by_hand, publish, script_path, script_text
from stressor.lifeline import Lifeline
from stressor.model import Host, Route, Transport
from tests.sshd import make_key, running_sshd

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIJ3yLQ8p5T8y5v3m0r0bq4e2Vd4r7vI8m3d2b1c0a9Z"
JUMP = Route("192.0.2.1", 2222, "jump", "/keys/jump", KEY)
PLAIN = Host("node1", (Route("10.0.0.1", 22, "root", "/keys/id", KEY),))
SUDO = Host("node2", (Route("10.0.0.2", 23, "ops", None, KEY, jumps=(JUMP,)),), become=True)
NOBODY = Host("node3", (Route("10.0.0.3"),))
HOSTILE = "$(touch /tmp/pwned)`id`'\"\\;|&"


def text(*hosts: Host) -> str:
    return script_text(Lifeline("lab", 1.0, hosts))


def shells() -> list[list[str]]:
    known = (["dash"], ["bash"], ["busybox", "ash"])
    return [words for words in known if shutil.which(words[0])]


def run(script: str, folder: Path, *words: str, using: list[str]) -> tuple[int, list[str]]:
    path = folder / "abort.sh"
    path.write_text(script)
    done = subprocess.run(
        (*using, str(path), *words), capture_output=True, text=True, timeout=40, check=False
    )
    return done.returncode, done.stdout.splitlines()


def test_shellcheck_has_nothing_to_say(tmp_path: Path) -> None:
    path = tmp_path / "abort.sh"
    path.write_text(text(PLAIN, SUDO, NOBODY, Host("here", (), transport=Transport.LOCAL)))
    argv = (str(Path(sys.executable).with_name("shellcheck")), str(path))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=50, check=False)
    assert done.stdout == ""
    assert done.returncode == 0


def test_every_route_verifies_its_own_host_key_and_asks_nobody() -> None:
    script = text(PLAIN, SUDO)
    assert script.count("StrictHostKeyChecking yes") == 2
    assert script.count("BatchMode yes") == 2
    assert f"stressor-target {KEY}" in script
    assert f"stressor-hop-0 {KEY}" in script
    assert "ProxyJump stressor-hop-0" in script


def test_what_is_known_of_the_host_keys_is_a_ready_command() -> None:
    (line,) = by_hand(SUDO)
    assert re.fullmatch(
        r"stressor abort --host 10\.0\.0\.2 --user ops --port 23 --sudo "
        r"--jump jump@192\.0\.2\.1:2222 --jump-key /keys/jump "
        r"--host-key SHA256:[A-Za-z0-9+/]{43}",
        line,
    )
    assert f"#   {line}" in text(SUDO)
    assert list(by_hand(NOBODY)) == []


def test_a_ready_command_goes_the_whole_way_or_is_not_printed(tmp_path: Path) -> None:
    """Each key that is met on the way is named, and each has to be known."""
    other = make_key(tmp_path / "k")
    far = replace(JUMP, address="fd00::1", key_path="/keys/id", host_key=other)
    route = replace(PLAIN.routes[0], jumps=(JUMP, replace(far, key_path="/keys/jump")))
    (line,) = by_hand(replace(PLAIN, routes=(route,)))
    assert "--jump jump@192.0.2.1:2222 --jump 'jump@[fd00::1]:2222' --jump-key /keys/jump" in line
    assert line.count("--host-key SHA256:") == 2
    for jumps in ((replace(JUMP, host_key=None),), (JUMP, far)):
        assert list(by_hand(replace(PLAIN, routes=(replace(route, jumps=jumps),)))) == []
    one_key = replace(route, jumps=(far,))
    assert "--jump-key" not in next(by_hand(replace(PLAIN, routes=(one_key,))))


def test_a_revoked_key_is_not_printed_for_somebody_to_type(tmp_path: Path) -> None:
    good, bad = make_key(tmp_path / "good"), make_key(tmp_path / "bad")
    known = tmp_path / "known"
    known.write_text(f"10.0.0.1 {good}\n10.0.0.1 {bad}\n@revoked * {bad}\n")
    route = replace(PLAIN.routes[0], host_key=None, known_hosts_path=str(known))
    (line,) = by_hand(replace(PLAIN, routes=(route,)))
    assert line.count("--host-key") == 1


@pytest.mark.parametrize("shell", shells(), ids=lambda words: str(words[0]))
def test_hosts_that_cannot_be_reached_are_said_and_are_no_success(
    tmp_path: Path, shell: list[str]
) -> None:
    """Nobody listens on port 1 of the loopback; node3 has no known host key and is not dialled."""
    closed = replace(PLAIN, routes=(Route("127.0.0.1", 1, "root", None, KEY),))
    code, lines = run(text(closed, NOBODY), tmp_path, using=shell)
    assert code == 4
    assert any(re.match(r"  node1 +UNREACHABLE .*refused", line) for line in lines), lines
    assert any(re.match(r"  node3 +UNREACHABLE .*pin host_key", line) for line in lines), lines
    assert lines[-2].startswith("NOT PROVEN  2 of 2 hosts")
    assert all(len(line) <= 64 for line in lines)


def test_no_host_at_all_is_no_success(tmp_path: Path) -> None:
    code, lines = run(text(), tmp_path, using=["sh"])
    assert (code, lines[-1]) == (4, "NOTHING  no host is named here: nothing is known")


@pytest.mark.parametrize("words", [["r1;id"], ["R1"], ["r1", "1s"], ["r1", "-1"]])
def test_words_that_are_no_run_are_refused(tmp_path: Path, words: list[str]) -> None:
    assert run(text(PLAIN), tmp_path, *words, using=["sh"])[0] == 2


def test_data_never_becomes_shell(tmp_path: Path) -> None:
    """Names and users that a shell would run; a line break cannot be put into a config at all."""
    marker = tmp_path / "pwned"
    evil = HOSTILE.replace("/tmp/pwned", str(marker))
    hosts = (
        Host(f"a{evil}", (Route("127.0.0.1", 1, f"u{evil}".replace('"', "").replace("\\", ""),
                                f"/k'{marker}$(id)", KEY),)),
        Host("b\n$(id)", (Route("127.0.0.1", 1, "root\nProxyCommand id", None, KEY),)),
    )  # fmt: skip
    code, lines = run(text(*hosts), tmp_path, using=["sh"])
    assert code == 4
    assert not marker.exists()
    assert lines[-2].startswith("NOT PROVEN  2 of 2 hosts")


def test_it_is_written_beside_the_lifeline_file_for_its_owner_alone(tmp_path: Path) -> None:
    path = publish(tmp_path, "lab", (PLAIN,), 1.0)
    script = script_path(tmp_path, "lab")
    assert script.parent == path.parent
    assert stat.S_IMODE(script.stat().st_mode) == 0o700
    assert sorted(one.name for one in path.parent.iterdir()) == [
        "abort-lab.sh",
        "lab.json",
        "lab.lock",
    ]
    assert lifeline.known_clusters(tmp_path) == ("lab",)


@pytest.mark.ssh
@pytest.mark.parametrize("shell", shells(), ids=lambda words: str(words[0]))
def test_a_real_host_proves_that_nothing_runs(tmp_path: Path, shell: list[str]) -> None:
    with running_sshd(tmp_path / "sshd") as sshd:
        host = Host("loop", (sshd.route(port=1), sshd.route()))
        code, lines = run(text(host), tmp_path, "t0000000", "0", using=shell)
    assert code == 0, lines
    assert lines[1].split() == ["loop", "CLEAN", "no", "load", "found"]
    assert lines[-1] == "STOPPED  all 1 hosts proven clean"


@pytest.mark.ssh
def test_a_host_with_another_key_is_not_asked(tmp_path: Path) -> None:
    with running_sshd(tmp_path / "sshd") as sshd:
        host = Host("loop", (sshd.route(host_key=make_key(tmp_path / "other")),))
        code, lines = run(text(host), tmp_path, "t0000000", "0", using=["sh"])
    assert code == 4
    assert "UNREACHABLE" in lines[1]
