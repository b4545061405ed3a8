"""Every way in which a host cannot be talked to has its own reason, in time, on both backends."""

import contextlib
import shlex
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stressor.model import Host, Transport
from stressor.remote.base import Completed, Remote, TimedOut, Unreachable, UnreachableReason
from tests.sshd import Sshd, free_port, make_key, running_sshd

pytestmark = pytest.mark.ssh
DEADLINE_S = 15.0
Open = Callable[[Host], Remote]


def reason(outcome: object) -> UnreachableReason:
    assert isinstance(outcome, Unreachable), outcome
    assert outcome.detail
    assert "\n" not in outcome.detail
    return outcome.reason


def reasons(remote: Remote, deadline_s: float = DEADLINE_S) -> set[UnreachableReason]:
    """What a command and a channel say; they must agree."""
    ran = remote.run(["true"], deadline_s=deadline_s)
    return {reason(ran), reason(remote.open_channel(["cat"], deadline_s=deadline_s))}


def test_a_closed_port_is_refused(transport: Transport, sshd: Sshd, opened: Open) -> None:
    host = sshd.host(transport, port=free_port())
    assert reasons(opened(host)) == {UnreachableReason.REFUSED}


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Accepts, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_silent_sshd_is_given_up_at_the_deadline(
    transport: Transport, sshd: Sshd, opened: Open, silent_port: int
) -> None:
    start_s = time.monotonic()
    remote = opened(sshd.host(transport, port=silent_port))
    assert reasons(remote, deadline_s=1.0) == {UnreachableReason.SILENT}
    assert reason(remote.forward(80, deadline_s=1.0)) == UnreachableReason.SILENT
    assert 2.9 < time.monotonic() - start_s < 4.5


def test_a_changed_key_is_its_own_reason(
    transport: Transport, sshd: Sshd, opened: Open, tmp_path: Path
) -> None:
    host = sshd.host(transport, host_key=make_key(tmp_path / "other"))
    assert reasons(opened(host)) == {UnreachableReason.KEY_CHANGED}


def test_a_key_of_another_type_than_the_pinned_one_is_a_changed_key(
    transport: Transport, sshd: Sshd, opened: Open, tmp_path: Path
) -> None:
    argv = ["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(tmp_path / "other")]
    subprocess.run(argv, check=True, timeout=20)
    pinned = (tmp_path / "other.pub").read_text()
    assert reasons(opened(sshd.host(transport, host_key=pinned))) == {UnreachableReason.KEY_CHANGED}


def printed(public: str) -> str:
    """The fingerprint of a public key, as ssh-keygen prints it."""
    argv = ["ssh-keygen", "-l", "-f", "-"]
    done = subprocess.run(
        argv, input=public + "\n", capture_output=True, text=True, timeout=20, check=True
    )
    return done.stdout.split()[1]


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
def test_a_fingerprint_is_enough_to_recognise_a_host_by(
    transport: Transport, opened: Open, tmp_path: Path, kind: str
) -> None:
    """Whichever of the host's keys it is of, where the host has one alone."""
    argv = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(tmp_path / "own")]
    subprocess.run(argv, check=True, timeout=30)
    own = printed((tmp_path / "own.pub").read_text())
    with running_sshd(tmp_path / "sshd", keys=[tmp_path / "own"]) as sshd:
        pin = f"{printed(make_key(tmp_path / 'other'))} {own}"
        remote = opened(sshd.host(transport, host_key=pin))
        assert isinstance(remote.run(["true"], deadline_s=DEADLINE_S), Completed)


def test_a_fingerprint_of_a_key_that_the_host_shows_last_is_found(
    opened: Open, tmp_path: Path
) -> None:
    """By paramiko, which asks for one type after the other; OpenSSH sees the first one only."""
    argv = ["ssh-keygen", "-q", "-t", "ecdsa", "-b", "521", "-N", "", "-f", str(tmp_path / "last")]
    subprocess.run(argv, check=True, timeout=30)
    own = printed((tmp_path / "last.pub").read_text())
    make_key(tmp_path / "first")
    keys = [tmp_path / "first", tmp_path / "last"]
    with running_sshd(tmp_path / "sshd", keys=keys) as sshd:
        remote = opened(sshd.host(Transport.PARAMIKO, host_key=own))
        assert isinstance(remote.run(["true"], deadline_s=DEADLINE_S), Completed)


def test_another_fingerprint_is_a_changed_key(
    transport: Transport, sshd: Sshd, opened: Open, tmp_path: Path
) -> None:
    pin = printed(make_key(tmp_path / "other"))
    assert reasons(opened(sshd.host(transport, host_key=pin))) == {UnreachableReason.KEY_CHANGED}


@pytest.mark.parametrize("pin", ["SHA256:short", "SHA256:" + "*" * 43, "MD5:00:11", ""])
def test_a_pin_that_is_nothing_is_no_trust(
    transport: Transport, sshd: Sshd, opened: Open, pin: str
) -> None:
    assert reasons(opened(sshd.host(transport, host_key=pin))) == {UnreachableReason.PROTOCOL}


def test_a_jump_host_is_recognised_by_its_fingerprint_too(
    transport: Transport, sshd: Sshd, opened: Open, tmp_path: Path
) -> None:
    good, bad = printed(sshd.host_key), printed(make_key(tmp_path / "other"))
    for pin, outcome in ((good, Completed), (bad, Unreachable)):
        jump = sshd.route(host_key=pin)
        remote = opened(sshd.host(transport, host_key=good, jumps=(jump,)))
        assert isinstance(remote.run(["true"], deadline_s=DEADLINE_S), outcome)


def test_a_key_that_nothing_vouches_for_is_unknown(
    transport: Transport, sshd: Sshd, opened: Open, tmp_path: Path
) -> None:
    (tmp_path / "known").write_text(f"[127.0.0.2]:{sshd.port} {sshd.host_key}\n")
    for path in (None, str(tmp_path / "known"), str(tmp_path / "missing")):
        host = sshd.host(transport, host_key=None, known_hosts_path=path)
        assert reasons(opened(host)) == {UnreachableReason.KEY_UNKNOWN}


@pytest.mark.parametrize("hashed", [False, True])
def test_a_known_hosts_file_vouches_for_a_host(
    transport: Transport, sshd: Sshd, opened: Open, tmp_path: Path, hashed: bool
) -> None:
    known = tmp_path / "known hosts"
    known.write_text(f"# comment\n[127.0.0.1]:{sshd.port},other {sshd.host_key}\n")
    if hashed:
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(known)], check=True, timeout=20)
        assert "127.0.0.1" not in known.read_text()
    remote = opened(sshd.host(transport, host_key=None, known_hosts_path=str(known)))
    assert isinstance(remote.run(["true"], deadline_s=DEADLINE_S), Completed)


def test_a_revoked_key_is_refused(
    transport: Transport, sshd: Sshd, opened: Open, tmp_path: Path
) -> None:
    known, name = tmp_path / "known", f"[127.0.0.1]:{sshd.port}"
    known.write_text(f"{name} {sshd.host_key}\n@revoked {name} {sshd.host_key}\n")
    host = sshd.host(transport, host_key=None, known_hosts_path=str(known))
    assert reasons(opened(host)) == {UnreachableReason.KEY_CHANGED}


def test_a_wrong_a_missing_and_no_key_fail_the_login(
    transport: Transport, sshd: Sshd, opened: Open, tmp_path: Path
) -> None:
    make_key(tmp_path / "wrong")
    for key_path in (str(tmp_path / "wrong"), str(tmp_path / "missing"), None):
        host = sshd.host(transport, key_path=key_path)
        assert reasons(opened(host)) == {UnreachableReason.AUTH}


def test_a_key_with_a_passphrase_asks_nobody(
    transport: Transport, sshd: Sshd, opened: Open, tmp_path: Path
) -> None:
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", str(tmp_path / "locked")]
    subprocess.run(argv, check=True, timeout=20)
    host = sshd.host(transport, key_path=str(tmp_path / "locked"))
    assert reasons(opened(host)) == {UnreachableReason.AUTH}


def test_a_name_is_never_looked_up(transport: Transport, sshd: Sshd, opened: Open) -> None:
    assert reasons(opened(sshd.host(transport, address="localhost"))) == {
        UnreachableReason.PROTOCOL
    }
    jump = sshd.route(address="localhost")
    assert reasons(opened(sshd.host(transport, jumps=(jump,)))) == {UnreachableReason.PROTOCOL}


def test_a_peer_that_is_no_sshd_is_told_apart_from_success(
    transport: Transport, sshd: Sshd, opened: Open
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        remote = opened(sshd.host(transport, port=listener.getsockname()[1]))
        listener.settimeout(5)

        def hang_up() -> None:
            for _ in range(2):
                peer, _address = listener.accept()
                peer.sendall(b"220 mail.example ESMTP\r\n")
                peer.close()

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        assert reasons(remote) <= {UnreachableReason.LOST, UnreachableReason.PROTOCOL}
        thread.join(5)


def test_a_frozen_host_is_given_up_at_the_deadline(
    own_sshd: Sshd, transport: Transport, opened: Open
) -> None:
    remote = opened(own_sshd.host(transport))
    assert isinstance(remote.run(["true"], deadline_s=DEADLINE_S), Completed)
    with own_sshd.frozen(whole=True):
        start_s = time.monotonic()
        outcome = remote.run(["echo", "x"], deadline_s=1.5)
        assert not isinstance(outcome, Completed)
        if isinstance(outcome, Unreachable):
            assert outcome.reason in (UnreachableReason.SILENT, UnreachableReason.LOST)
        assert time.monotonic() - start_s < 2.5


def test_freezing_while_a_command_runs_is_a_time_out_and_a_big_put_does_not_hang(
    own_sshd: Sshd, transport: Transport, opened: Open, tmp_path: Path
) -> None:
    remote = opened(own_sshd.host(transport))
    assert isinstance(remote.run(["true"], deadline_s=DEADLINE_S), Completed)
    outcomes: list[object] = []
    start_s = time.monotonic()

    def put() -> None:
        outcomes.append(
            remote.run(["sh", "-c", "sleep 30; cat"], stdin=b"x" * 30_000_000, deadline_s=2.5)
        )

    thread = threading.Thread(target=put, daemon=True)
    thread.start()
    time.sleep(1.0)
    with own_sshd.frozen():
        thread.join(4)
        assert [type(outcome) for outcome in outcomes] == [TimedOut]
        assert time.monotonic() - start_s < 3.5
    assert isinstance(remote.run(["true"], deadline_s=DEADLINE_S), Completed)


def test_a_lost_connection_is_made_anew(own_sshd: Sshd, transport: Transport, opened: Open) -> None:
    remote = opened(own_sshd.host(transport))
    assert isinstance(remote.run(["true"], deadline_s=DEADLINE_S), Completed)
    for process in own_sshd.sessions():
        process.signal(signal.SIGKILL)
    time.sleep(0.3)
    assert isinstance(remote.run(["true"], deadline_s=DEADLINE_S), Completed)


def test_a_connection_lost_in_mid_command_is_lost_and_not_an_exit_status(
    own_sshd: Sshd, transport: Transport, opened: Open
) -> None:
    remote = opened(own_sshd.host(transport))

    def kill() -> None:
        for process in own_sshd.sessions():
            process.signal(signal.SIGKILL)

    timer = threading.Timer(1.0, kill)
    timer.start()
    assert reason(remote.run(["sleep", "20"], deadline_s=DEADLINE_S)) == UnreachableReason.LOST
    timer.join()


SUDO = """#!/bin/sh
[ "$1" = -n ] || exit 99
[ "$2" = -- ] || exit 98
shift 2
{body}
"""


@pytest.fixture
def with_sudo(tmp_path: Path) -> Iterator[Callable[[str], Sshd]]:
    """An sshd whose sessions find a sudo with the given body first on their PATH."""
    with contextlib.ExitStack() as stack:

        def start(body: str) -> Sshd:
            script = tmp_path / "bin" / "sudo"
            script.parent.mkdir()
            script.write_text(SUDO.format(body=body))
            script.chmod(0o755)
            path = f"SetEnv PATH={script.parent}:/usr/sbin:/usr/bin:/sbin:/bin"
            return stack.enter_context(running_sshd(tmp_path / "sudo", path))

        yield start


def test_sudo_that_wants_a_password_is_its_own_reason_in_any_language(
    transport: Transport, opened: Open, with_sudo: Callable[[str], Sshd]
) -> None:
    server = with_sudo("echo 'sudo: Ein Passwort ist notwendig' >&2; exit 1")
    remote = opened(replace(server.host(transport), become=True))
    assert reasons(remote) == {UnreachableReason.SUDO}


def test_sudo_that_works_is_not_seen(
    transport: Transport, opened: Open, with_sudo: Callable[[str], Sshd]
) -> None:
    server = with_sudo("echo 'sudo: unable to resolve host' >&2; MARK=root exec \"$@\"")
    remote = opened(replace(server.host(transport), become=True))
    ended = remote.run(["sh", "-c", "echo $MARK; exit 1"], deadline_s=DEADLINE_S)
    assert isinstance(ended, Completed)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, b"root\n", b"")


def test_noise_of_the_login_shell_is_not_the_commands_output(
    transport: Transport, opened: Open, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    shell = shlex.quote("echo noise; printf 'no end'; echo more >&2")
    forced = f'ForceCommand eval {shell}; eval "$SSH_ORIGINAL_COMMAND"'
    with running_sshd(tmp_path / "noisy", forced) as server:
        remote = opened(server.host(transport))
        ended = remote.run(["sh", "-c", "echo own; echo err >&2"], deadline_s=DEADLINE_S)
        assert isinstance(ended, Completed)
        assert (ended.stdout, ended.stderr) == (b"own\n", b"err\n")
        assert ended.noise_bytes == len("noise\nno end")
        peer = remote.open_channel(["sh", "-c", "echo first; cat"], deadline_s=DEADLINE_S)
        assert not isinstance(peer, Unreachable | TimedOut)
        time.sleep(0.3)
        assert peer.receive() == ("first",)
        peer.close()


def test_a_login_without_a_shell_is_not_a_completed_command(
    transport: Transport, opened: Open, tmp_path: Path
) -> None:
    nologin = "ForceCommand echo 'This account is currently not available.' >&2; exit 0"
    with running_sshd(tmp_path / "nologin", nologin) as server:
        assert reasons(opened(server.host(transport))) == {UnreachableReason.PROTOCOL}


def test_a_jump_host_is_verified_and_passed(
    transport: Transport, sshd: Sshd, own_sshd: Sshd, opened: Open, tmp_path: Path
) -> None:
    remote = opened(sshd.host(transport, jumps=(own_sshd.route(),)))
    ended = remote.run(["sh", "-c", "echo $SSH_CONNECTION"], deadline_s=DEADLINE_S)
    assert isinstance(ended, Completed)
    assert ended.stdout.split()[3] == str(sshd.port).encode()
    assert own_sshd.sessions()
    peer = remote.open_channel(["cat"], deadline_s=DEADLINE_S)
    assert not isinstance(peer, Unreachable | TimedOut)
    peer.close()
    changed = own_sshd.route(host_key=make_key(tmp_path / "other"))
    assert reasons(opened(sshd.host(transport, jumps=(changed,)))) == {
        UnreachableReason.KEY_CHANGED
    }


def test_a_jump_host_that_forbids_forwarding_says_so(
    transport: Transport, sshd: Sshd, forbidding: Sshd, opened: Open
) -> None:
    host = sshd.host(transport, jumps=(forbidding.route(),))
    assert reasons(opened(host)) == {UnreachableReason.FORBIDDEN}
