"""Which host keys a route trusts: pinned in the route, or vouched for by a known_hosts file.

A pin is a public key (`ssh-ed25519 AAAA…`), or one or more fingerprints (`SHA256:…`, as
`ssh-keygen -l` prints them): enough to recognise a key that is shown, and short enough to be read
out over the telephone.

The format is that of sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT": plain and `[host]:port` names, lists,
`*` and `?`, negation, hashed names, `@revoked`. `@cert-authority` lines are ignored: a certificate
authority is not a host key, and neither backend checks host certificates here.
"""

import base64
import binascii
import fnmatch
import hashlib
import hmac
import re
from dataclasses import dataclass

from stressor.model import Route
from stressor.remote.base import UnreachableReason
from stressor.remote.fault import Fault

_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
"""A SHA-256 digest in base64 without padding, as ssh-keygen(1) shows it."""


@dataclass(frozen=True, slots=True)
class HostKey:
    """A public key: its type ("ssh-ed25519") and its blob in base64."""

    kind: str
    blob: str

    def fingerprint(self) -> str:
        """As `ssh-keygen -l` prints it."""
        digest = hashlib.sha256(base64.b64decode(self.blob)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class Trust:
    """The keys that a host may show, those that it must not, and fingerprints of keys that it may
    show, where nobody knows the keys themselves."""

    keys: tuple[HostKey, ...]
    revoked: tuple[HostKey, ...] = ()
    prints: tuple[str, ...] = ()

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """Of everything that is trusted, for somebody who is to compare or to type them."""
        return (*(key.fingerprint() for key in self.keys), *self.prints)

    def check(self, shown: HostKey, address: str) -> None:
        """Raise Fault KEY_CHANGED unless `shown` is trusted.

        A key of another type than the trusted one counts as changed: the host had the choice.
        """
        print_ = f"{shown.kind} {shown.fingerprint()}"
        if shown in self.revoked:
            raise Fault(UnreachableReason.KEY_CHANGED, f"{address} shows the revoked {print_}")
        if shown not in self.keys and shown.fingerprint() not in self.prints:
            raise Fault(UnreachableReason.KEY_CHANGED, f"{address} shows {print_}, not its own")


def unknown(address: str) -> Fault:
    """Nobody vouches for the host."""
    detail = f"nothing vouches for the key of {address}: pin host_key or name known_hosts"
    return Fault(UnreachableReason.KEY_UNKNOWN, detail)


def trust_of(route: Route) -> Trust:
    """The trust of one hop: the pinned key alone where there is one, else its known_hosts file.

    Raises Fault PROTOCOL for a pin that is neither key nor fingerprint, KEY_UNKNOWN for a file
    that cannot be read.
    """
    if route.host_key is not None:
        return pinned(route.host_key)
    if route.known_hosts_path is None:
        return Trust(())
    try:
        with open(route.known_hosts_path, encoding="utf-8", errors="replace") as file:
            return parse_known_hosts(file.read(), route.address, route.port)
    except OSError as error:
        detail = f"cannot read {route.known_hosts_path}: {error.strerror}"
        raise Fault(UnreachableReason.KEY_UNKNOWN, detail) from error


def required_trust(route: Route) -> Trust:
    """As `trust_of`; raises Fault KEY_UNKNOWN when there is none, so that a host without it is not
    even dialled."""
    trust = trust_of(route)
    if not trust.fingerprints:
        raise unknown(route.address)
    return trust


def parse_known_hosts(text: str, address: str, port: int) -> Trust:
    """What a known_hosts file says of the host at this address and port."""
    name = address if port == 22 else f"[{address}]:{port}"
    lines = [line.split() for line in text.splitlines() if not line.lstrip().startswith("#")]
    revoked = [
        _key(words[2:])
        for words in lines
        if words[:1] == ["@revoked"] and words[3:] and _names(words[1], name)
    ]
    keys = [
        _key(words[1:])
        for words in lines
        if words[2:] and not words[0].startswith("@") and _names(words[0], name)
    ]
    return Trust(tuple(filter(None, keys)), tuple(filter(None, revoked)))


def pinned(text: str) -> Trust:
    """The trust of a pin. Raises Fault PROTOCOL when it is neither key nor fingerprints."""
    words = text.split()
    if words and all(_FINGERPRINT.fullmatch(word) for word in words):
        return Trust((), prints=tuple(words))
    key = _key(words)
    if key is None or words[0].startswith("SHA256:"):
        detail = "the pinned host_key is neither `type base64` nor SHA256:…"
        raise Fault(UnreachableReason.PROTOCOL, detail)
    return Trust((key,))


def fingerprints(route: Route) -> tuple[str, ...]:
    """What is known of the keys of the route's last hop, without revoked ones: it is printed for
    somebody to type. Empty when nothing vouches for the host."""
    try:
        trust = trust_of(route)
    except Fault:
        return ()
    revoked = {key.fingerprint() for key in trust.revoked}
    return tuple(one for one in trust.fingerprints if one not in revoked)


def _key(words: list[str]) -> HostKey | None:
    if len(words) < 2:
        return None
    try:
        base64.b64decode(words[1], validate=True)
    except binascii.Error:
        return None
    return HostKey(words[0], words[1])


def _names(field: str, name: str) -> bool:
    if field.startswith("|1|"):
        return _hashed_name(field, name)
    patterns = field.split(",")
    if any(_matches(pattern[1:], name) for pattern in patterns if pattern.startswith("!")):
        return False
    return any(_matches(pattern, name) for pattern in patterns)


def _matches(pattern: str, name: str) -> bool:
    translated = re.sub(r"([\[\]])", lambda found: f"[{found[1]}]", pattern)
    return fnmatch.fnmatchcase(name, translated)


def _hashed_name(field: str, name: str) -> bool:
    try:
        salt, digest = (base64.b64decode(part) for part in field.split("|")[2:4])
    except (ValueError, binascii.Error):
        return False
    return hmac.compare_digest(hmac.new(salt, name.encode(), "sha1").digest(), digest)
