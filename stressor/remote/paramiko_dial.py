"""One paramiko connection: dialled hop by hop, each hop's key checked before any login.

Every wait in here is bounded by the deadline, apart from those that paramiko leaves no bound for
(a write into a full socket); the caller abandons those and closes the connection.
"""

import contextlib
import errno
import logging
import socket
import threading
from collections.abc import Mapping, Sequence

import paramiko

from stressor.model import Route
from stressor.remote.base import UnreachableReason
from stressor.remote.deadline import Deadline
from stressor.remote.fault import Fault, hops
from stressor.remote.trust import HostKey, Trust

# Without a handler of its own, paramiko's log would go to stderr, traceback and all: every failure
# arrives here as an exception anyway.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

_NO_ROUTE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN})
_ADMINISTRATIVELY_PROHIBITED, _CONNECT_FAILED = 1, 2  # RFC 4254, section 5.1
_ARMED_WINDOW_BYTES = 256 * 1024 * 1024
_POLL_S = 0.05
_RSA_NAMES = ("rsa-sha2-512", "rsa-sha2-256")

_PRINT_KINDS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ssh-rsa",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
)
"""The types of host keys, as often as they are met: an ed25519 fingerprint costs no second try."""

Keys = Mapping[str, paramiko.PKey]


class Link:
    """The transports from here to the host, outermost first. Closing never waits for a peer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._transports: list[paramiko.Transport] = []
        self._closed = False

    @property
    def top(self) -> paramiko.Transport:
        """The transport to the host itself."""
        return self._transports[-1]

    def alive(self) -> bool:
        """Whether the connection is there, as far as paramiko has noticed: it does not notice a
        silent peer (paramiko issues #503, #918)."""
        return not self._closed and all(hop.is_active() for hop in self._transports)

    def add(self, transport: paramiko.Transport) -> None:
        """Own one more hop. Raises Fault when the link was closed meanwhile."""
        with self._lock:
            self._transports.append(transport)
            closed = self._closed
        if closed:
            transport.close()
            raise Fault(UnreachableReason.SILENT, "given up at the deadline")

    def drop(self) -> None:
        """Close the last hop alone, to dial it again."""
        with self._lock:
            transport = self._transports.pop()
        transport.close()

    def close(self) -> None:
        """Close every hop; whoever waits on one of them is released."""
        with self._lock:
            self._closed = True
            hops_ = list(reversed(self._transports))
        for transport in hops_:
            with contextlib.suppress(Exception):
                transport.close()
                transport.sock.close()  # which close() leaves open before the handshake

    def session(self, timeout_s: float, *, armed: bool = False) -> paramiko.Channel:
        """A session channel. `armed`: with a receive window so wide that reading practically never
        has to write (each window adjustment could block behind a peer that does not read)."""
        window = _ARMED_WINDOW_BYTES if armed else None
        return self._open("session", None, window, timeout_s)

    def direct(self, address: str, port: int, timeout_s: float) -> paramiko.Channel:
        """A byte stream from the host to `address`:`port`."""
        return self._open("direct-tcpip", (address, port), None, timeout_s)

    def _open(
        self, kind: str, to: tuple[str, int] | None, window: int | None, timeout_s: float
    ) -> paramiko.Channel:
        # One at a time: paramiko keeps the reason of a refusal on the transport, and two openers
        # would take each other's.
        if not self._opening.acquire(timeout=timeout_s):
            raise Fault(UnreachableReason.SILENT, "the connection does not open sessions")
        try:
            source = ("127.0.0.1", 0) if to else None
            return self.top.open_channel(
                kind, dest_addr=to, src_addr=source, window_size=window, timeout=timeout_s
            )
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise _opening_fault(error, kind) from error
        finally:
            self._opening.release()


def dial(route: Route, link: Link, trusts: Sequence[Trust], keys: Keys, deadline: Deadline) -> None:
    """Fill `link` with a connection to the route's end. Raises Fault; then `link` is closed."""
    try:
        for hop, trust in zip(hops(route), trusts, strict=True):
            _verified(hop, trust, link, deadline)
            _log_in(link.top, hop, keys, deadline)
    except BaseException:
        link.close()
        raise


def load_keys(route: Route) -> Keys:
    """The private keys of every hop, by path. Raises Fault AUTH for a missing or unusable one."""
    return {hop.key_path: _load_key(hop) for hop in hops(route) if hop.key_path is not None}


def _load_key(hop: Route) -> paramiko.PKey:
    assert hop.key_path is not None
    try:
        return paramiko.PKey.from_path(hop.key_path)
    except (paramiko.PasswordRequiredException, TypeError) as error:  # TypeError: cryptography
        detail = f"{hop.key_path} has a passphrase, and nobody is asked for one here"
        raise Fault(UnreachableReason.AUTH, detail) from error
    except (OSError, ValueError, paramiko.SSHException, paramiko.pkey.UnknownKeyType) as error:
        detail = f"cannot use the key {hop.key_path}: {error}"
        raise Fault(UnreachableReason.AUTH, detail) from error


def _transport(hop: Route, link: Link, deadline: Deadline) -> paramiko.Transport:
    timeout_s = max(deadline.remaining_s(), 0.001)
    raw: socket.socket | paramiko.Channel
    if link._transports:
        raw = link.direct(hop.address, hop.port, timeout_s)
    else:
        raw = _connect(hop, timeout_s)
    transport = paramiko.Transport(raw)
    transport.daemon = True
    transport.banner_timeout = transport.handshake_timeout = timeout_s
    transport.auth_timeout = timeout_s
    return transport


def _connect(hop: Route, timeout_s: float) -> socket.socket:
    try:
        raw = socket.create_connection((hop.address, hop.port), timeout=timeout_s)
    except OSError as error:
        raise _connect_fault(hop, error) from error
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return raw


def _connect_fault(hop: Route, error: OSError) -> Fault:
    where = f"{hop.address} port {hop.port}"
    if isinstance(error, TimeoutError):
        return Fault(UnreachableReason.SILENT, f"{where} does not answer")
    if isinstance(error, ConnectionRefusedError):
        return Fault(UnreachableReason.REFUSED, f"{where} refused the connection")
    if error.errno in _NO_ROUTE:
        return Fault(UnreachableReason.NO_ROUTE, f"{where}: {error.strerror}")
    return Fault(UnreachableReason.LOST, f"{where}: {error.strerror or error}")


def _verified(hop: Route, trust: Trust, link: Link, deadline: Deadline) -> None:
    """Add a hop whose key is trusted. Who knows a fingerprint does not know of which of the host's
    keys it is, and a host shows one key a handshake: so each type is asked for in turn."""
    kinds = _PRINT_KINDS if trust.prints else (None,)
    changed: Fault | None = None
    for kind in kinds:
        link.add(_transport(hop, link, deadline))
        try:
            return _handshake(link.top, hop, trust, kind, deadline)
        except Fault as fault:
            # That it has no key of the last type says less than that it has shown another one.
            changed = fault if fault.reason is UnreachableReason.KEY_CHANGED else changed
            another = fault.reason in (UnreachableReason.KEY_CHANGED, UnreachableReason.PROTOCOL)
            if not another:
                raise
            if kind == kinds[-1]:
                raise changed or fault from fault
            link.drop()
    raise AssertionError("there is a type to ask for")


def _handshake(
    transport: paramiko.Transport, hop: Route, trust: Trust, kind: str | None, deadline: Deadline
) -> None:
    _prefer(transport, trust, kind)
    done = threading.Event()
    transport.start_client(event=done)
    while not done.wait(min(_POLL_S, deadline.remaining_s())) and transport.is_active():
        if deadline.passed():
            raise Fault(UnreachableReason.SILENT, f"{hop.address} did not finish the handshake")
    if not transport.is_active():
        raise _handshake_fault(transport.get_exception(), hop, deadline)
    shown = transport.get_remote_server_key()
    trust.check(HostKey(shown.get_name(), shown.get_base64()), hop.address)


def _prefer(transport: paramiko.Transport, trust: Trust, only: str | None) -> None:
    # The host shows one of its keys, and by our preference: the trusted type has to come first.
    options = transport.get_security_options()
    kinds = [key.kind for key in trust.keys] if only is None else [only]
    first = [name for kind in kinds for name in (_RSA_NAMES if kind == "ssh-rsa" else (kind,))]
    known = [name for name in dict.fromkeys(first) if name in options.key_types]
    if only is not None:
        options.key_types = tuple(known)
        return
    options.key_types = (*known, *(name for name in options.key_types if name not in known))


def _handshake_fault(error: BaseException | None, hop: Route, deadline: Deadline) -> Fault:
    said = str(error) or type(error).__name__
    if isinstance(error, paramiko.ssh_exception.IncompatiblePeer):
        return Fault(UnreachableReason.PROTOCOL, f"{hop.address}: {said}")
    if deadline.passed():
        return Fault(UnreachableReason.SILENT, f"{hop.address} did not finish the handshake")
    # Mostly MaxStartups: sshd drops connections above it without a word (paramiko issue #664).
    return Fault(UnreachableReason.LOST, f"{hop.address} hung up during the handshake: {said}")


def _log_in(transport: paramiko.Transport, hop: Route, keys: Keys, deadline: Deadline) -> None:
    if hop.key_path is None:
        raise Fault(UnreachableReason.AUTH, f"no key_path for {hop.user}@{hop.address}")
    transport.auth_timeout = max(deadline.remaining_s(), 0.001)
    who = f"{hop.user}@{hop.address}"
    try:
        more = transport.auth_publickey(hop.user, keys[hop.key_path])
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise _auth_fault(error, who, transport, deadline) from error
    if more:
        raise Fault(UnreachableReason.AUTH, f"{who}: the key alone is not enough ({more})")


def _auth_fault(
    error: Exception, who: str, transport: paramiko.Transport, deadline: Deadline
) -> Fault:
    if deadline.passed():
        return Fault(UnreachableReason.SILENT, f"{who}: no answer to the login")
    if not transport.is_active() and not isinstance(error, paramiko.BadAuthenticationType):
        return Fault(UnreachableReason.LOST, f"{who}: hung up during the login: {error}")
    return Fault(UnreachableReason.AUTH, f"{who}: {error}")


def _opening_fault(error: Exception, kind: str) -> Fault:
    if isinstance(error, paramiko.ChannelException):
        if error.code == _CONNECT_FAILED and kind == "direct-tcpip":
            return Fault(UnreachableReason.REFUSED, f"the host cannot connect there: {error.text}")
        return Fault(UnreachableReason.FORBIDDEN, f"sshd refuses a {kind}: {error.text}")
    if "Timeout opening" in str(error):
        return Fault(UnreachableReason.SILENT, f"no answer to a new {kind}")
    return Fault(UnreachableReason.LOST, f"connection lost: {error or type(error).__name__}")
