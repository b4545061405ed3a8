"""How long a key is good for, read from its files: certificates end, hardware keys need a touch.

Formats: OpenSSH's PROTOCOL.certkeys (certificates) and PROTOCOL.key (private keys, whose public
part is in clear even where the rest is encrypted). What cannot be read is unknown, which is not
"forever".
"""

import base64
import binascii
import re
import struct
from dataclasses import dataclass

FOREVER = 2**64 - 1
"""`valid before` of a certificate without an end (PROTOCOL.certkeys)."""
_MAGIC = b"openssh-key-v1\0"
# How many length-prefixed fields the public key has, between the nonce and the serial number.
_KEY_FIELDS = {
    "ssh-ed25519": 1,
    "ssh-rsa": 2,
    "ecdsa-sha2-nistp256": 2,
    "ecdsa-sha2-nistp384": 2,
    "ecdsa-sha2-nistp521": 2,
    "ssh-dss": 4,
    "sk-ssh-ed25519": 2,
    "sk-ecdsa-sha2-nistp256": 3,
}
_USER = 1
_PRESENCE, _PIN = 0x01, 0x04
"""Flags of a hardware key, PROTOCOL.u2f: it wants a touch, or a PIN, for each signature. Without
`no-touch-required` at its making it has the first."""
_CERT = re.compile(r"(.+)-cert-v0\d@openssh\.com")
_PEM = re.compile(r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----\s+(.*?)-----END", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KeyLife:
    """`ends_unix_s` None: it does not end; `begins_unix_s` None: it is good since ever. `known` is
    false when a file could not be read as what it should be; then the others say nothing."""

    ends_unix_s: float | None = None
    needs_touch: bool = False
    known: bool = True
    begins_unix_s: float | None = None


UNKNOWN = KeyLife(known=False)


@dataclass(frozen=True, slots=True)
class Kind:
    """The type of a private key ("ssh-ed25519"; "pem" for the older formats, which no hardware key
    has), and whether somebody must touch something, or type a PIN, for each of its signatures."""

    name: str
    needs_touch: bool = False


def judge(private: str | None, certificate: str | None) -> KeyLife:
    """The life of a key from the texts of its private file and of its `-cert.pub`; None: there is
    no such file, or it cannot be read (a missing certificate is none)."""
    kind = None if private is None else kind_of(private)
    if kind is None:
        return UNKNOWN
    if certificate is None:
        return KeyLife(needs_touch=kind.needs_touch)
    try:
        begins, ends = validity(certificate)
    except ValueError:
        return UNKNOWN
    return KeyLife(
        None if ends == FOREVER else float(ends),
        kind.needs_touch,
        begins_unix_s=float(begins) if begins else None,
    )


def kind_of(private: str) -> Kind | None:
    """The kind of a private key; None for what is no key."""
    match = _PEM.search(private)
    if match is None:
        return None
    if match[1] != "OPENSSH ":
        return Kind("pem")
    try:
        blob = base64.b64decode("".join(match[2].split()), validate=True)
        return _kind(blob) if blob.startswith(_MAGIC) else None
    except (ValueError, binascii.Error, UnicodeDecodeError):
        return None


def _kind(blob: bytes) -> Kind:
    """Of the decoded file. Raises ValueError for one that is cut off."""
    cipher, rest = _string(blob[len(_MAGIC) :])
    for _ in range(2):  # kdf, its options
        _, rest = _string(rest)
    public, rest = _string(rest[4:])
    name = _string(public)[0].decode("ascii")
    if not name.startswith("sk-"):
        return Kind(name)
    # Whoever encrypts the file keeps the flags in it: the usual ones are then taken for granted.
    flags = _flags(rest, name) if cipher == b"none" else _PRESENCE
    return Kind(name, needs_touch=bool(flags & (_PRESENCE | _PIN)))


def _flags(rest: bytes, name: str) -> int:
    secret, _ = _string(rest)
    secret = secret[8:]  # twice the same number, which tells a wrong passphrase
    fields = 1 + _KEY_FIELDS[name.removesuffix("@openssh.com")]  # type, public key, application
    for _ in range(fields):
        _, secret = _string(secret)
    if not secret:
        raise ValueError("cut off")
    return secret[0]


def validity(text: str) -> tuple[int, int]:
    """From when and until when (FOREVER: no end) a certificate as in a `-cert.pub` file is valid,
    in Unix seconds. Raises ValueError for what is no certificate of a user."""
    words = text.split()
    match = _CERT.fullmatch(words[0]) if len(words) > 1 else None
    fields = None if match is None else _KEY_FIELDS.get(match[1].removesuffix("@openssh.com"))
    if fields is None:
        raise ValueError("not a certificate of a known type")
    try:
        rest = base64.b64decode(words[1], validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    for _ in range(2 + fields):  # type, nonce, the key's own
        _, rest = _string(rest)
    rest, kind = rest[8 + 4 :], rest[8 : 8 + 4]  # after the serial number
    for _ in range(2):  # key id, principals
        _, rest = _string(rest)
    if len(rest) < 16:
        raise ValueError("cut off")
    if int.from_bytes(kind, "big") != _USER:
        raise ValueError("a certificate of a host: nobody logs in with it")
    after, before = struct.unpack(">QQ", rest[:16])
    return int(after), int(before)


def _string(data: bytes) -> tuple[bytes, bytes]:
    """A length-prefixed field (RFC 4251, section 5), and what follows it."""
    if len(data) < 4:
        raise ValueError("cut off")
    (length,) = struct.unpack(">I", data[:4])
    if len(data) < 4 + length:
        raise ValueError("cut off")
    return data[4 : 4 + length], data[4 + length :]
