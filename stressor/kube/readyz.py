"""GET /readyz of one API server, bounded by the wall clock and light enough for once a second.

No kubernetes client, no kept connection: a new one each time also proves that the server still
accepts them, and one TLS handshake a second costs it a few milliseconds of CPU. The server is
verified against the kubeconfig's CA, always.
"""

import base64
import http.client
import io
import socket
import ssl
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from stressor.errors import KubeError
from stressor.kube.login import Login

_BODY_LIMIT = 64 * 1024
# X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH (OpenSSL, x509_vfy.h)
_NAME_MISMATCHES = frozenset({62, 64})


class Answer(NamedTuple):
    """What /readyz answered: HTTP status, body (its first 64 KiB), seconds from dial to end."""

    status: int
    body: bytes
    took_s: float


@dataclass(frozen=True, slots=True)
class Credentials:
    """How to trust and how to log in, from a kubeconfig.

    `server_name` is the name or address that the kubeconfig reaches the cluster by: certificates of
    API servers carry it, but not always the address of each single server.
    """

    context: ssl.SSLContext
    server_name: str
    name_is_fixed: bool = False
    token: str | None = None


def credentials(login: Login) -> Credentials:
    """Read the CA, and the client certificate or token where the login has one itself.

    Credential plugins are not run: /readyz answers anonymous requests by default. Raises KubeError
    when the login cannot be used, and when it asks not to verify the server.
    """
    try:
        return _credentials(login)
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise KubeError(f"read credentials: {login.shown} cannot be used: {error!r}") from error


def readyz(endpoint_url: str, credentials: Credentials, deadline_s: float) -> Answer:
    """Ask the server at `endpoint_url` (https://address:port). Any HTTP status is an answer.

    Raises KubeError when no complete answer came within `deadline_s`, a peer that trickles bytes
    included.
    """
    started_s = time.monotonic()
    try:
        status, body = _ask(endpoint_url, credentials, started_s + deadline_s)
    except (OSError, ValueError, http.client.HTTPException) as error:
        what = str(error) or type(error).__name__
        where = f"GET {endpoint_url}/readyz"
        raise KubeError(f"{where}: {what} (deadline {deadline_s:g} s)") from error
    return Answer(status, body, time.monotonic() - started_s)


class _Bounded(io.RawIOBase):
    """A socket whose every operation ends at one common deadline, in the shape that http.client
    expects of a socket."""

    def __init__(self, stream: socket.socket, end_s: float) -> None:
        self._stream = stream
        self._end_s = end_s

    def sendall(self, data: bytes) -> None:
        self._stream.settimeout(_left_s(self._end_s))
        self._stream.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        assert mode == "rb"
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._stream.settimeout(_left_s(self._end_s))
        return self._stream.recv_into(buffer)


def _left_s(end_s: float) -> float:
    left_s = end_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("timed out")
    return left_s


def _ask(endpoint_url: str, credentials: Credentials, end_s: float) -> tuple[int, bytes]:
    url = urlsplit(endpoint_url)
    if url.scheme != "https" or url.hostname is None:
        raise ValueError("not an https:// address")
    host, port = url.hostname, url.port or 443
    with _dial(host, port, credentials, end_s) as stream:
        connection = http.client.HTTPConnection(host, port)
        connection.sock = _Bounded(stream, end_s)
        headers = {"Connection": "close", "Accept": "text/plain"}
        if credentials.token is not None:
            headers["Authorization"] = f"Bearer {credentials.token}"
        connection.request("GET", "/readyz", headers=headers)
        response = connection.getresponse()
        body = response.read(_BODY_LIMIT)
        if response.length and len(body) < _BODY_LIMIT:
            raise http.client.IncompleteRead(body, response.length)
        return response.status, body


def _dial(host: str, port: int, credentials: Credentials, end_s: float) -> ssl.SSLSocket:
    """A verified connection. A certificate that lacks this server's own address must carry the
    name by which the kubeconfig reaches the cluster."""
    if credentials.name_is_fixed:
        return _handshake(host, port, credentials.server_name, credentials, end_s)
    try:
        return _handshake(host, port, host, credentials, end_s)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code not in _NAME_MISMATCHES or credentials.server_name == host:
            raise
    return _handshake(host, port, credentials.server_name, credentials, end_s)


def _handshake(
    host: str, port: int, name: str, credentials: Credentials, end_s: float
) -> ssl.SSLSocket:
    plain = socket.create_connection((host, port), timeout=_left_s(end_s))
    try:
        plain.settimeout(_left_s(end_s))
        return credentials.context.wrap_socket(plain, server_hostname=name)
    except BaseException:
        plain.close()
        raise


def _credentials(login: Login) -> Credentials:
    cluster, user = login.cluster, login.user
    if cluster.get("insecure-skip-tls-verify"):
        raise ValueError("insecure-skip-tls-verify is set; name the CA instead")
    fixed = cluster.get("tls-server-name")
    return Credentials(
        context=_tls(cluster, user),
        server_name=fixed or urlsplit(cluster["server"]).hostname or "",
        name_is_fixed=bool(fixed),
        token=_token(user),
    )


def _tls(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> ssl.SSLContext:
    authority = _pem(cluster, "certificate-authority")
    tls = ssl.create_default_context(cadata=None if authority is None else authority.decode())
    certificate, key = _pem(user, "client-certificate"), _pem(user, "client-key")
    if certificate is not None and key is not None:
        # The ssl module takes a client certificate from a file only.
        with tempfile.NamedTemporaryFile() as both:
            both.write(certificate + b"\n" + key)
            both.flush()
            tls.load_cert_chain(both.name)
    return tls


def _pem(entry: Mapping[str, Any], key: str) -> bytes | None:
    """The value given in place (base64), else the file."""
    if entry.get(f"{key}-data"):
        return base64.b64decode(entry[f"{key}-data"])
    return Path(entry[key]).read_bytes() if entry.get(key) else None


def _token(user: Mapping[str, Any]) -> str | None:
    if user.get("tokenFile"):
        return Path(user["tokenFile"]).read_text().strip()
    token = user.get("token")
    return None if token is None else str(token)
