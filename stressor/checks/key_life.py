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
_CERT = re.compile(r"(.+)-cert-v0\d@openssh\.com")
_PEM = re.compile(r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----\s+(.*?)-----END", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KeyLife:
    """`ends_unix_s` None: it does not end. `known` is false when a file could not be read as what
    it should be; then the other two say nothing."""

    ends_unix_s: float | None = None
    needs_touch: bool = False
    known: bool = True


UNKNOWN = KeyLife(known=False)


def judge(private: str | None, certificate: str | None) -> KeyLife:
    """The life of a key from the texts of its private file and of its `-cert.pub`; None: there is
    no such file, or it cannot be read (a missing certificate is none)."""
    kind = None if private is None else kind_of(private)
    if kind is None:
        return UNKNOWN
    touch = kind.startswith("sk-")
    if certificate is None:
        return KeyLife(needs_touch=touch)
    try:
        ends = certificate_end(certificate)
    except ValueError:
        return UNKNOWN
    return KeyLife(None if ends == FOREVER else float(ends), touch)


def kind_of(private: str) -> str | None:
    """The type of a private key ("ssh-ed25519"); "pem" for the older formats, which no hardware
    key has. None for what is no key."""
    match = _PEM.search(private)
    if match is None:
        return None
    if match[1] != "OPENSSH ":
        return "pem"
    try:
        blob = base64.b64decode("".join(match[2].split()), validate=True)
        if not blob.startswith(_MAGIC):
            return None
        rest = blob[len(_MAGIC) :]
        for _ in range(3):  # cipher, kdf, its options
            _, rest = _string(rest)
        public, _ = _string(rest[4:])
        return _string(public)[0].decode("ascii")
    except (ValueError, binascii.Error, UnicodeDecodeError):
        return None


def certificate_end(text: str) -> int:
    """`valid before` of a certificate as in a `-cert.pub` file, in Unix seconds, or FOREVER. Raises
    ValueError for what is none."""
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
    rest = rest[8 + 4 :]  # serial, kind
    for _ in range(2):  # key id, principals
        _, rest = _string(rest)
    if len(rest) < 16:
        raise ValueError("cut off")
    _, before = struct.unpack(">QQ", rest[:16])
    return int(before)


def _string(data: bytes) -> tuple[bytes, bytes]:
    """A length-prefixed field (RFC 4251, section 5), and what follows it."""
    if len(data) < 4:
        raise ValueError("cut off")
    (length,) = struct.unpack(">I", data[:4])
    if len(data) < 4 + length:
        raise ValueError("cut off")
    return data[4 : 4 + length], data[4 + length :]
