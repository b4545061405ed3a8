"""Is anybody there? One TCP connection and sshd's first line, without a handshake.

Dead hosts are told from living ones at no cost: whoever speaks is worth the processor time of a
handshake, and whoever does not holds nobody else up.
"""

import errno
import socket
import time

from stressor.model import Route
from stressor.remote.base import UnreachableReason
from stressor.remote.fault import hops

BANNER = b"SSH-"
_LIMIT_BYTES = 8192
"""sshd may say other lines first (RFC 4253, section 4.2), but not for ever."""
_NO_ROUTE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN})


def knock(route: Route, deadline_s: float) -> UnreachableReason | None:
    """None when the first machine on the route speaks SSH within `deadline_s`, else why it does
    not seem to. What lies behind a jump host is not asked."""
    first, end_s = hops(route)[0], time.monotonic() + deadline_s
    try:
        with socket.create_connection((first.address, first.port), timeout=deadline_s) as stream:
            return _listen(stream, end_s)
    except TimeoutError:
        return UnreachableReason.SILENT
    except ConnectionRefusedError:
        return UnreachableReason.REFUSED
    except OSError as error:
        lost = error.errno not in _NO_ROUTE
        return UnreachableReason.LOST if lost else UnreachableReason.NO_ROUTE


def _listen(stream: socket.socket, end_s: float) -> UnreachableReason | None:
    heard = b""
    while len(heard) < _LIMIT_BYTES:
        left_s = end_s - time.monotonic()
        if left_s <= 0:
            return UnreachableReason.SILENT
        stream.settimeout(left_s)
        more = stream.recv(512)
        if not more:
            return UnreachableReason.LOST
        heard += more
        if any(line.startswith(BANNER) for line in heard.split(b"\n")):
            return None
    return UnreachableReason.PROTOCOL
