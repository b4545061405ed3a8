"""Who speaks at a port, told without a login."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from stressor.model import Route
from stressor.remote.base import UnreachableReason
from stressor.remote.knock import knock
from tests.sshd import free_port


@contextmanager
def speaker(*pieces: bytes, hold: bool = False) -> Iterator[int]:
    """A port that says these pieces to whoever comes, and hangs up unless it is to hold."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()

        def serve() -> None:
            client, _ = listener.accept()
            with client:
                for piece in pieces:
                    client.sendall(piece)
                if hold:
                    over.wait(10)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        over.set()
        thread.join(10)


@pytest.mark.parametrize(
    ("pieces", "hold", "found"),
    [
        ((b"SSH-2.0-x\r\n",), False, None),
        ((b"welcome\r\nSSH", b"-2.0-x\r\n"), False, None),
        ((b"HTTP/1.1 400\r\n",), False, UnreachableReason.LOST),
        ((b"x" * 9000,), False, UnreachableReason.PROTOCOL),
        ((), False, UnreachableReason.LOST),
        ((b"SS",), True, UnreachableReason.SILENT),
    ],
)
def test_what_is_heard(
    pieces: tuple[bytes, ...], hold: bool, found: UnreachableReason | None
) -> None:
    with speaker(*pieces, hold=hold) as port:
        assert knock(Route("127.0.0.1", port), 0.5) is found


def test_a_closed_port_refuses() -> None:
    assert knock(Route("127.0.0.1", free_port()), 1.0) is UnreachableReason.REFUSED


def test_behind_a_jump_host_the_jump_host_is_asked() -> None:
    with speaker(b"SSH-2.0-x\r\n") as port:
        behind = Route("192.0.2.1", jumps=(Route("127.0.0.1", port),))
        assert knock(behind, 1.0) is None
