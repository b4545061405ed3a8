"""/readyz over real TLS on loopback: verified, and bounded by the wall clock."""

import base64
import datetime
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from stressor.errors import KubeError
from stressor.kube.login import Login
from stressor.kube.readyz import credentials, readyz

from .test_kube_client import read_request

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BAD = b"HTTP/1.1 500 Oops\r\nContent-Length: 15\r\n\r\n[-]etcd failed\n"


@dataclass(frozen=True)
class Pair:
    """A self-signed certificate that is its own CA, and its key, as PEM."""

    certificate: bytes
    key: bytes


def pair(*names: x509.GeneralName) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    pkcs8, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return Pair(built.public_bytes(pem), key.private_bytes(pem, pkcs8, plain))


LOOPBACK = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
GOOD = pair(LOOPBACK, x509.DNSName("localhost"))
OTHER_NAME = pair(x509.DNSName("api.example"))


@contextmanager
def server(
    identity: Pair, tmp_path: Path, answer: Callable[[ssl.SSLSocket], None]
) -> Iterator[str]:
    """A TLS server on loopback; its https URL."""
    both = tmp_path / "server.pem"
    both.write_bytes(identity.certificate + identity.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(plain: socket.socket) -> None:
        try:
            plain.settimeout(3.0)
            with context.wrap_socket(plain, server_side=True) as stream:
                answer(stream)
        except OSError:
            plain.close()

    def accept() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(plain,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def login(authority: Pair, *, server: str = "https://127.0.0.1:6443", **more: Any) -> Login:
    """A login that trusts `authority`; `more` goes into user and cluster."""
    data = base64.b64encode(authority.certificate).decode()
    cluster = {"server": server, "certificate-authority-data": data, **more.get("cluster", {})}
    return Login(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": more.get("user", {})}],
        },
        "context c of k",
    )


def say(text: bytes) -> Callable[[ssl.SSLSocket], None]:
    def answer(stream: ssl.SSLSocket) -> None:
        read_request(stream)
        stream.sendall(text)

    return answer


def test_status_body_and_time_are_told(tmp_path: Path) -> None:
    trust = credentials(login(GOOD))
    with server(GOOD, tmp_path, say(OK)) as url:
        status, body, took_s = readyz(url, trust, 2.0)
    assert (status, body) == (200, b"ok")
    assert 0 < took_s < 2.0


def test_an_unready_server_is_an_answer(tmp_path: Path) -> None:
    trust = credentials(login(GOOD))
    with server(GOOD, tmp_path, say(BAD)) as url:
        assert readyz(url, trust, 2.0)[:2] == (500, b"[-]etcd failed\n")


def test_a_certificate_of_another_ca_is_refused(tmp_path: Path) -> None:
    trust = credentials(login(pair(LOOPBACK)))
    with server(GOOD, tmp_path, say(OK)) as url, pytest.raises(KubeError, match="CERTIFICATE"):
        readyz(url, trust, 2.0)


def test_a_certificate_without_the_address_must_carry_the_clusters_name(tmp_path: Path) -> None:
    with server(OTHER_NAME, tmp_path, say(OK)) as url:
        known = credentials(login(OTHER_NAME, server="https://api.example:6443"))
        assert readyz(url, known, 2.0).status == 200
        unknown = credentials(login(OTHER_NAME, server="https://db.example:6443"))
        with pytest.raises(KubeError, match="CERTIFICATE"):
            readyz(url, unknown, 2.0)


def test_a_fixed_server_name_is_the_only_one(tmp_path: Path) -> None:
    fixed: Any = {"cluster": {"tls-server-name": "api.example"}}
    trust = credentials(login(OTHER_NAME, **fixed))
    with server(OTHER_NAME, tmp_path, say(OK)) as url:
        assert readyz(url, trust, 2.0).status == 200
    wrong = credentials(login(GOOD, **fixed))
    with server(GOOD, tmp_path, say(OK)) as url, pytest.raises(KubeError, match="CERTIFICATE"):
        readyz(url, wrong, 2.0)


def test_token_and_client_certificate_are_used(tmp_path: Path) -> None:
    heard: list[bytes] = []

    def listen(stream: ssl.SSLSocket) -> None:
        heard.append(read_request(stream))
        stream.sendall(OK)

    encoded = {
        "client-certificate-data": base64.b64encode(GOOD.certificate).decode(),
        "client-key-data": base64.b64encode(GOOD.key).decode(),
        "token": "open",
    }
    trust = credentials(login(GOOD, user=encoded))
    with server(GOOD, tmp_path, listen) as url:
        readyz(url, trust, 2.0)
    assert heard[0].startswith(b"GET /readyz HTTP/1.1\r\n")
    assert b"\r\nAuthorization: Bearer open\r\n" in heard[0]


def trickle_headers(stream: ssl.SSLSocket) -> None:
    read_request(stream)
    for _ in range(60):
        stream.sendall(b"H")
        time.sleep(0.03)


def trickle_body(stream: ssl.SSLSocket) -> None:
    read_request(stream)
    stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(60):
        stream.sendall(b"H")
        time.sleep(0.03)


def keep_silent(stream: ssl.SSLSocket) -> None:
    read_request(stream)
    time.sleep(1.0)


@pytest.mark.parametrize("answer", [trickle_headers, trickle_body, keep_silent])
def test_no_complete_answer_within_the_deadline_is_an_error(
    tmp_path: Path, answer: Callable[[ssl.SSLSocket], None]
) -> None:
    trust = credentials(login(GOOD))
    with server(GOOD, tmp_path, answer) as url:
        started_s = time.monotonic()
        with pytest.raises(KubeError, match=r"/readyz: .*deadline 0\.2 s"):
            readyz(url, trust, 0.2)
        assert time.monotonic() - started_s < 0.5


def test_a_server_that_never_shakes_hands_is_an_error(tmp_path: Path) -> None:
    trust = credentials(login(GOOD))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        started_s = time.monotonic()
        with pytest.raises(KubeError, match="timed out"):
            readyz(f"https://127.0.0.1:{listener.getsockname()[1]}", trust, 0.2)
        assert time.monotonic() - started_s < 0.5


@pytest.mark.parametrize(
    "text", [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", b"SSH-2.0-x\r\n", b""]
)
def test_a_broken_answer_is_an_error(tmp_path: Path, text: bytes) -> None:
    trust = credentials(login(GOOD))
    with server(GOOD, tmp_path, say(text)) as url, pytest.raises(KubeError):
        readyz(url, trust, 1.0)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "127.0.0.1:6443", "https://"])
def test_only_https_is_spoken(tmp_path: Path, url: str) -> None:
    with pytest.raises(KubeError, match="not an https"):
        readyz(url, credentials(login(GOOD)), 1.0)


def test_a_kubeconfig_that_forgoes_verification_is_refused(tmp_path: Path) -> None:
    way = login(GOOD, cluster={"insecure-skip-tls-verify": True})
    with pytest.raises(KubeError, match="name the CA instead"):
        credentials(way)


@pytest.mark.parametrize("document", [{}, {"clusters": []}, {"clusters": [{"cluster": {}}]}])
def test_a_login_that_is_none_is_named(document: dict[str, object]) -> None:
    with pytest.raises(KubeError, match="context c of k cannot be used"):
        credentials(Login(document, "context c of k"))


def test_authority_and_token_are_read_from_their_files(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(GOOD.certificate)
    (tmp_path / "token").write_text("open\n")
    by_file = {
        "certificate-authority-data": None,
        "certificate-authority": str(tmp_path / "ca.pem"),
    }
    trust = credentials(login(GOOD, cluster=by_file, user={"tokenFile": str(tmp_path / "token")}))
    assert trust.token == "open"
    with server(GOOD, tmp_path, say(OK)) as url:
        assert readyz(url, trust, 2.0).status == 200
