"""The connection of the real client: log-in, time, and what its errors say."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from stressor.errors import KubeError
from stressor.kube.client import connect
from stressor.kube.login import Login

from .conftest import login


def peer(answer: Callable[[socket.socket], None]) -> Iterator[tuple[str, list[int]]]:
    """A server on loopback that does `answer` with each connection; its URL, and a count."""
    listener = socket.create_server(("127.0.0.1", 0))
    seen: list[int] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            seen.append(1)
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", seen
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def read_request(connection: socket.socket) -> bytes:
    """Everything up to the end of the headers."""
    text = b""
    while b"\r\n\r\n" not in text and (more := connection.recv(4096)):
        text += more
    return text


def keep_silent(connection: socket.socket) -> None:
    """Read and say nothing for two seconds."""
    with connection:
        connection.settimeout(2.0)
        read_request(connection)
        time.sleep(2.0)


def trickle(connection: socket.socket) -> None:
    """Send a header byte by byte for two seconds, faster than any read time-out."""
    with connection:
        try:
            for _ in range(40):
                connection.sendall(b"H")
                time.sleep(0.05)
        except OSError:
            return


@pytest.fixture
def silent() -> Iterator[tuple[str, list[int]]]:
    """A server that accepts and never answers."""
    yield from peer(keep_silent)


@pytest.fixture
def trickling() -> Iterator[tuple[str, list[int]]]:
    """A server that answers for ever."""
    yield from peer(trickle)


def test_a_silent_server_costs_the_deadline_once(silent: tuple[str, list[int]]) -> None:
    url, seen = silent
    kube = connect(login(url))
    started_s = time.monotonic()
    with pytest.raises(KubeError, match=r"GET /api/v1/namespaces/kube-system: .*0\.2 s"):
        kube.cluster_uid(deadline_s=0.2)
    assert 0.15 < time.monotonic() - started_s < 0.6
    time.sleep(0.3)
    assert len(seen) == 1


def test_a_trickling_server_is_cut_off_by_the_wall_clock(trickling: tuple[str, list[int]]) -> None:
    kube = connect(login(trickling[0]))
    started_s = time.monotonic()
    with pytest.raises(KubeError, match=r"no answer within|0\.2 s"):
        kube.cluster_uid(deadline_s=0.2)
    assert time.monotonic() - started_s < 0.6


def test_a_closed_port_is_an_error_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    kube = connect(login(f"http://127.0.0.1:{port}"))
    with pytest.raises(KubeError, match="refused") as error:
        kube.nodes(deadline_s=5.0)
    assert error.value.__cause__ is not None


def test_the_token_of_the_kubeconfig_is_sent() -> None:
    heard: list[bytes] = []

    def listen(connection: socket.socket) -> None:
        with connection:
            heard.append(read_request(connection))
            connection.sendall(b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno")

    for url, _ in peer(listen):
        kube = connect(login(url, token="open"))
        with pytest.raises(KubeError, match="401 no"):
            kube.nodes(deadline_s=2.0)
    assert b"\r\nauthorization: bearer open\r\n" in heard[0].lower()


def test_a_redirect_is_not_followed() -> None:
    def send_away(connection: socket.socket) -> None:
        with connection:
            read_request(connection)
            away = b"Location: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
            connection.sendall(b"HTTP/1.1 302 Found\r\n" + away)

    for url, _ in peer(send_away):
        with pytest.raises(KubeError, match="302"):
            connect(login(url)).nodes(deadline_s=2.0)


@pytest.mark.parametrize(
    "document", [{}, {"clusters": []}, {"current-context": "c", "contexts": [], "clusters": []}]
)
def test_a_login_that_is_none_is_named(document: dict[str, object]) -> None:
    with pytest.raises(KubeError, match="context c of k cannot be used"):
        connect(Login(document, "context c of k"))


def test_impersonation_goes_with_each_request_group_by_group() -> None:
    heard: list[bytes] = []

    def listen(connection: socket.socket) -> None:
        with connection:
            heard.append(read_request(connection))
            connection.sendall(b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno")

    asked = (("Impersonate-User", "ann"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"))
    for url, _ in peer(listen):
        with pytest.raises(KubeError, match="401 no"):
            connect(replace(login(url), headers=asked)).nodes(deadline_s=2.0)
    lines = heard[0].split(b"\r\n")
    assert [line for line in lines if line.startswith(b"Impersonate-")] == [
        b"Impersonate-User: ann",
        b"Impersonate-Group: a",
        b"Impersonate-Group: b",
    ]
