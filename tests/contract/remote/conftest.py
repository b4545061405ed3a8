"""One suite for every backend: the machine behind it is this one, over real sshd or directly."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from stressor.model import Host, Transport
from stressor.remote.base import Remote
from stressor.remote.connect import connect
from tests.sshd import Sshd, running_sshd

SSH = (Transport.PARAMIKO, Transport.OPENSSH)
Opener = Callable[..., Remote]


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture(scope="session")
def forbidding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """An sshd that forwards nothing."""
    with running_sshd(tmp_path_factory.mktemp("forbidding"), "AllowTcpForwarding no") as server:
        yield server


@pytest.fixture
def opened() -> Iterator[Callable[[Host], Remote]]:
    """Connects, and closes what was connected."""
    with contextlib.ExitStack() as stack:

        def open_(host: Host) -> Remote:
            remote = connect(host)
            stack.callback(remote.close)
            return remote

        yield open_


@pytest.fixture(params=SSH)
def transport(request: pytest.FixtureRequest) -> Transport:
    """Each transport that uses ssh."""
    chosen: Transport = request.param
    return chosen


@pytest.fixture(params=[*(pytest.param(each, marks=pytest.mark.ssh) for each in SSH), "local"])
def remote(request: pytest.FixtureRequest, opened: Callable[[Host], Remote]) -> Remote:
    """This machine behind each backend."""
    if request.param == "local":
        return opened(Host("loop", (), transport=Transport.LOCAL))
    server: Sshd = request.getfixturevalue("sshd")
    return opened(server.host(request.param))


@pytest.fixture(params=SSH)
def ssh_remote(
    request: pytest.FixtureRequest, sshd: Sshd, opened: Callable[[Host], Remote]
) -> Remote:
    """This machine behind each backend that uses ssh."""
    return opened(sshd.host(request.param))


@pytest.fixture
def own_sshd(tmp_path: Path) -> Iterator[Sshd]:
    """An sshd that a test may freeze or kill the sessions of."""
    with running_sshd(tmp_path / "own") as server:
        yield server


class _Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = f"path {self.path}\n".encode() * 3
        if self.path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True
            return
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


class CountingServer(ThreadingHTTPServer):
    """Counts connections."""

    daemon_threads = True
    accepted = 0

    def process_request(self, request, client_address) -> None:  # type: ignore[no-untyped-def]
        self.accepted += 1
        super().process_request(request, client_address)


@pytest.fixture
def web() -> Iterator[CountingServer]:
    """A tiny HTTP server on loopback."""
    with CountingServer(("127.0.0.1", 0), _Page) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
