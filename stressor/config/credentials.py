"""When the credentials of a kubeconfig end, as far as they say it themselves.

A run that outlives its credential loses its view of the API half-way, so preflight compares these
with the plan's worst-case end. Nothing here verifies a signature: the API server does.
"""

import base64
import json
from dataclasses import dataclass

from stressor.config.kubeconfig import Kubeconfig

_LAST_S = 253402300800.0
"""The first second of the year 10000: what claims to end later, or at infinity, says nothing."""


@dataclass(frozen=True, slots=True)
class CredentialEnd:
    """`kind` is certificate, token, exec, auth-provider or password; `at_s` is UTC seconds since
    1970, None where the credential does not say (which is not: never)."""

    kind: str
    at_s: float | None


def credential_ends(kubeconfig: Kubeconfig) -> tuple[CredentialEnd, ...]:
    """One entry for each credential that is sent; none for an anonymous user or without https.

    A token file outranks a token, as kubectl reads it anew with each request; it may be renewed
    there before it ends.
    """
    if not kubeconfig.sends_credentials:
        return ()
    user = kubeconfig.user
    ends: list[CredentialEnd] = []
    if user.certificate_path or user.certificate_data:
        pem = user.certificate_data or _content(user.certificate_path)
        ends.append(CredentialEnd("certificate", certificate_end(pem)))
    if user.token or user.token_path:
        text = _content(user.token_path).decode("ascii", "replace").strip() or user.token
        ends.append(CredentialEnd("token", token_end(text)))
    if user.exec:
        ends.append(CredentialEnd("exec", None))
    if user.auth_provider is not None:
        ends.append(CredentialEnd("auth-provider", None))
    if user.username or user.password:
        ends.append(CredentialEnd("password", None))
    return tuple(ends)


def credential_end(kubeconfig: Kubeconfig) -> float | None:
    """The earliest end that is known, in UTC seconds: by then at the latest a credential is lost.

    None when no credential says its end. Where several are sent, one that does not say it may end
    sooner: `credential_ends` tells them apart.
    """
    known = (end.at_s for end in credential_ends(kubeconfig) if end.at_s is not None)
    return min(known, default=None)


def certificate_end(pem: bytes) -> float | None:
    """`notAfter` of the first certificate in `pem`, which is the one that the client shows."""
    # Only what asks for dates pays for the import; paramiko brings the package.
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp()
    except ValueError:
        return None


def token_end(token: str) -> float | None:
    """`exp` of a JWT (RFC 7519, section 4.1.4); None for any other token."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return None
    end = claims.get("exp") if isinstance(claims, dict) else None
    if isinstance(end, bool) or not isinstance(end, int | float):
        return None
    return float(end) if abs(end) < _LAST_S else None


def _content(path: str) -> bytes:
    """A file's bytes; none where it cannot be read any more."""
    if not path:
        return b""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
