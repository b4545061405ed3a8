"""The generated ssh_config of one route: nothing of the user's or the machine's own is read.

ssh_config(5) gives the meaning of each option. No name look-ups, no prompt, no agent, no other key
than the route's; host keys are checked against a generated known_hosts under an alias a hop, so
that hashed names and ports play no part.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from stressor.model import Route
from stressor.remote.base import UnreachableReason
from stressor.remote.fault import Fault
from stressor.remote.trust import Trust

TARGET = "stressor-target"

KEX_ALGORITHMS = (
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521",
    "diffie-hellman-group16-sha512",
    "diffie-hellman-group14-sha256",
)
"""Fast ones first, and no post-quantum hybrid: OpenSSH 9.2's default, sntrup761x25519, took 118 ms
of client CPU where curve25519 took 16 (measured; at 200 hosts a cold fan-out took 14 s, not 4)."""

_OPTIONS: Mapping[str, str] = {
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "GlobalKnownHostsFile": "/dev/null",
    "UpdateHostKeys": "no",
    "CheckHostIP": "no",
    "VerifyHostKeyDNS": "no",
    "CanonicalizeHostname": "no",
    "IdentitiesOnly": "yes",
    "IdentityAgent": "none",
    "PreferredAuthentications": "publickey",
    "PasswordAuthentication": "no",
    "KbdInteractiveAuthentication": "no",
    "GSSAPIAuthentication": "no",
    "HostbasedAuthentication": "no",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "PermitLocalCommand": "no",
    "ControlMaster": "no",
    "ConnectionAttempts": "1",
    "ServerAliveInterval": "1",
    "ServerAliveCountMax": "3",
    "RequestTTY": "no",
    "EscapeChar": "none",
    "LogLevel": "VERBOSE",
    "KexAlgorithms": ",".join(KEX_ALGORITHMS),
}

_PLAIN = re.compile(r"[^\"\\\x00-\x1f\x7f]+")


def alias(index: int, count: int) -> str:
    """The name of a hop in the generated files; the last one is the host itself."""
    return TARGET if index == count - 1 else f"stressor-hop-{index}"


def config_text(hops: tuple[Route, ...], folder: Path) -> str:
    """The ssh_config of a route. Raises Fault PROTOCOL for values that no config can hold."""
    return open_config_text(hops) + f"  UserKnownHostsFile {_quoted(str(folder / 'known_hosts'))}\n"


def open_config_text(hops: tuple[Route, ...]) -> str:
    """As `config_text`, but for its last line, which names the known_hosts file: for a config that
    is written where nobody knows yet in which folder it will lie."""
    common = "".join(f"  {name} {value}\n" for name, value in _OPTIONS.items())
    blocks = [_block(hops, index) for index in range(len(hops))]
    return "".join(blocks) + "Host *\n" + common


def known_hosts_text(trusts: tuple[Trust, ...]) -> str:
    """The known_hosts file that vouches for each hop under its alias."""
    lines: list[str] = []
    for index, trust in enumerate(trusts):
        name = alias(index, len(trusts))
        lines += [f"{name} {key.kind} {key.blob}\n" for key in trust.keys]
        lines += [f"@revoked {name} {key.kind} {key.blob}\n" for key in trust.revoked]
    return "".join(lines)


KNOWN_SCRIPT = """\
# Called by ssh (KnownHostsCommand) with the key that a host shows: is it a pinned one?
while read -r known; do [ "$known" = "$2" ] && echo "$5 $3 $4" && exit 0; done <"$1"
exit 0
"""


def prints_name(index: int) -> str:
    """The file of the fingerprints of a hop, in the route's folder."""
    return f"prints-{index}"


def prints_text(trusts: tuple[Trust, ...], folder: Path) -> str:
    """Blocks for the hops that are trusted by fingerprint: ssh asks KNOWN_SCRIPT about their keys
    (ssh_config(5), KnownHostsCommand; OpenSSH 8.5 and later)."""
    lines: list[str] = []
    for index, trust in enumerate(trusts):
        if trust.prints:
            words = (folder / "known.sh", folder / prints_name(index))
            quoted = " ".join(_quoted(str(word)) for word in words)
            lines += [f"Host {alias(index, len(trusts))}\n"]
            lines += [f"  KnownHostsCommand /bin/sh {quoted} %f %t %K %H\n"]
    return "".join(lines)


def _block(hops: tuple[Route, ...], index: int) -> str:
    hop, name = hops[index], alias(index, len(hops))
    key = "none" if hop.key_path is None else _quoted(hop.key_path)
    values = {
        "HostName": hop.address,
        "Port": str(hop.port),
        "User": _quoted(hop.user),
        "HostKeyAlias": name,
        "IdentityFile": key,
        "ProxyJump": alias(index - 1, len(hops)) if index else "none",
    }
    return f"Host {name}\n" + "".join(f"  {option} {value}\n" for option, value in values.items())


def _quoted(value: str) -> str:
    if not _PLAIN.fullmatch(value):
        detail = f"{value!r} cannot be written into an ssh_config"
        raise Fault(UnreachableReason.PROTOCOL, detail)
    return '"' + value.replace("%", "%%") + '"'
