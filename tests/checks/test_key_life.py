"""How long keys are good for, from files that ssh-keygen made."""

import base64
import struct
import subprocess
from pathlib import Path

import pytest

from stressor.checks import routes
from stressor.checks.base import Level
from stressor.checks.key_life import FOREVER, KeyLife, Kind, judge, kind_of, validity
from stressor.engine.keys import lives
from stressor.model import Host, Route
from tests.sshd import make_key


def keygen(*words: object) -> None:
    argv = ["ssh-keygen", "-q", *map(str, words)]
    subprocess.run(argv, check=True, timeout=30, stdin=subprocess.DEVNULL)


def certified(folder: Path, validity: str, kind: str = "ed25519") -> Path:
    """A key with a certificate of this validity, as `ssh-keygen -V` takes it."""
    keygen("-t", kind, "-N", "", "-f", folder / "key")
    keygen("-t", "ed25519", "-N", "", "-f", folder / "ca")
    keygen("-s", folder / "ca", "-I", "me", "-n", "root", "-V", validity, folder / "key.pub")
    return folder / "key"


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
def test_the_end_of_a_certificate_is_read(tmp_path: Path, kind: str) -> None:
    key = certified(tmp_path, "20260101000000Z:20270203040506Z", kind)
    text = key.with_name("key-cert.pub").read_text()
    # Whatever this ssh-keygen makes of the time zone, it says it itself.
    said = subprocess.run(
        ["ssh-keygen", "-L", "-f", str(key.with_name("key-cert.pub"))],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
        env={"TZ": "UTC", "PATH": "/usr/bin:/bin"},
    ).stdout
    assert "2027-02-03T04:05:06" in said
    assert validity(text) == (1767225600, 1801627506)
    assert judge(key.read_text(), text) == KeyLife(1801627506.0, begins_unix_s=1767225600.0)


def test_a_certificate_without_an_end_lasts(tmp_path: Path) -> None:
    key = certified(tmp_path, "always:forever")
    text = key.with_name("key-cert.pub").read_text()
    assert validity(text) == (0, FOREVER)
    assert judge(key.read_text(), text) == KeyLife(None)


@pytest.mark.parametrize(
    "text", ["", "x", "ssh-ed25519 AAAA", "ssh-ed25519-cert-v01@openssh.com AAAA", "a-cert-v01 %"]
)
def test_i4_what_is_no_certificate_is_unknown_and_not_forever(tmp_path: Path, text: str) -> None:
    make_key(tmp_path / "k")
    assert not judge((tmp_path / "k").read_text(), text).known


def test_a_certificate_that_was_cut_off_is_unknown(tmp_path: Path) -> None:
    key = certified(tmp_path, "+1d")
    words = key.with_name("key-cert.pub").read_text().split()
    for length in range(0, 160, 4):
        assert not judge(key.read_text(), f"{words[0]} {words[1][:length]}").known, length


def test_kinds_of_private_keys(tmp_path: Path) -> None:
    make_key(tmp_path / "plain")
    keygen("-t", "ed25519", "-N", "secret", "-f", tmp_path / "locked")
    keygen("-t", "rsa", "-m", "PEM", "-N", "", "-f", tmp_path / "old")
    assert kind_of((tmp_path / "plain").read_text()) == Kind("ssh-ed25519")
    assert kind_of((tmp_path / "locked").read_text()) == Kind("ssh-ed25519")
    assert kind_of((tmp_path / "old").read_text()) == Kind("pem")
    assert kind_of("no key") is None
    assert kind_of((tmp_path / "plain").read_text().replace("b3BlbnNz", "AAAAAAAA")) is None


def string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def hardware_key(flags: int | None, kind: str = "sk-ssh-ed25519", cipher: bytes = b"none") -> str:
    """The private file of a hardware key, as PROTOCOL.key and PROTOCOL.u2f have it; `flags` None:
    it ends before them. No ssh-keygen makes one without the hardware."""
    name = string(f"{kind}@openssh.com".encode())
    curve = string(b"nistp256") if "ecdsa" in kind else b""
    public = name + curve + string(b"k" * 32) + string(b"ssh:")
    secret = b"\1\2\3\4" * 2 + public
    if flags is not None:
        secret += bytes([flags]) + string(b"handle") + string(b"") + string(b"me")
    blob = b"openssh-key-v1\0" + string(cipher) + string(b"none") + string(b"")
    blob += struct.pack(">I", 1) + string(public) + string(secret)
    body = base64.b64encode(blob).decode()
    return f"-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----\n"


@pytest.mark.parametrize("kind", ["sk-ssh-ed25519", "sk-ecdsa-sha2-nistp256"])
@pytest.mark.parametrize(
    ("flags", "touch"), [(0x01, True), (0x00, False), (0x20, False), (4, True)]
)
def test_a_hardware_key_needs_a_touch_unless_it_was_made_without(
    kind: str, flags: int, touch: bool
) -> None:
    assert judge(hardware_key(flags, kind), None) == KeyLife(needs_touch=touch)


def test_i4_a_hardware_key_whose_flags_are_hidden_needs_a_touch(tmp_path: Path) -> None:
    make_key(tmp_path / "plain")
    assert judge((tmp_path / "plain").read_text(), None) == KeyLife()
    assert judge(hardware_key(0, cipher=b"aes256-ctr"), None) == KeyLife(needs_touch=True)
    assert not judge(hardware_key(None), None).known


def test_a_certificate_of_a_host_is_no_login(tmp_path: Path) -> None:
    make_key(tmp_path / "key")
    make_key(tmp_path / "ca")
    keygen("-s", tmp_path / "ca", "-h", "-I", "me", "-n", "h", tmp_path / "key.pub")
    text = (tmp_path / "key-cert.pub").read_text()
    assert not judge((tmp_path / "key").read_text(), text).known


def test_a_route_ends_with_the_first_of_its_keys(tmp_path: Path) -> None:
    key = str(certified(tmp_path, "20260101000000Z:20270203040506Z"))
    (tmp_path / "jump").mkdir()
    make_key(tmp_path / "jump" / "k")
    plain = str(tmp_path / "jump" / "k")
    gate = Route("192.0.2.1", key_path=key)
    host = Host("n", (Route("10.0.0.1", key_path=plain, jumps=(gate,)), Route("10.0.0.2")))
    through, bare = lives(host)
    assert (through.ends_unix_s, through.known) == (1801627506.0, True)
    assert (through.begins_unix_s, bare.begins_unix_s) == (1767225600.0, None)
    assert not bare.known
    end_unix_s = 1801627506.0 - 3600
    found = routes.judge_lifetimes("n", (through,), worst_case_end_unix_s=end_unix_s)
    assert [one.level for one in found] == [Level.FAIL]
    found = routes.judge_lifetimes("n", (through, bare), worst_case_end_unix_s=end_unix_s)
    assert {one.level for one in found} == {Level.WARN}


def test_a_route_begins_with_the_last_of_its_keys(tmp_path: Path) -> None:
    keys = []
    for year in ("2026", "2027"):
        (tmp_path / year).mkdir()
        keys.append(str(certified(tmp_path / year, f"{year}0101000000Z:20290101000000Z")))
    gate = Route("192.0.2.1", key_path=keys[1])
    (life,) = lives(Host("n", (Route("10.0.0.1", key_path=keys[0], jumps=(gate,)),)))
    assert life.begins_unix_s == 1798761600.0


def test_a_key_that_is_not_there_is_unknown(tmp_path: Path) -> None:
    (life,) = lives(Host("n", (Route("10.0.0.1", key_path=str(tmp_path / "none")),)))
    assert not life.known
