"""Which host keys a draft may trust: those that a known_hosts file holds already, and no other.

Nothing is fetched from a host here or anywhere else: a key that the host itself brings proves
nothing. Where no file vouches for a host, the draft says what to compare, and where.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stressor.config.draft_hosts import DraftHost
from stressor.model import Transport
from stressor.remote.trust import Trust, parse_known_hosts

_OWN = ("stressor_host_key", "stressor_known_hosts")


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """A known_hosts file: its path as the inventory is to name it, and its text."""

    path: str
    text: str


def with_trust(host: DraftHost, files: Sequence[KnownHosts]) -> DraftHost:
    """The host with what vouches for its key, where anything does.

    A file that knows its address is named; one that knows only its name gives fingerprints, since
    stressor looks hosts up by address alone.
    """
    if is_trusted(host):
        return host
    port = host.variables.get("ansible_port", 22)
    assert isinstance(port, int)
    for file in files:
        if _good(parse_known_hosts(file.text, host.address, port)):
            return _given(host, {"stressor_known_hosts": file.path})
    for file in files:
        prints = _good(parse_known_hosts(file.text, host.name, port))
        if prints:
            note = f"Its key as {file.path} has it under the name {host.name}."
            found = _given(host, {"stressor_host_key": " ".join(prints)})
            return replace(found, notes=(*host.notes, note))
    return host


def is_trusted(host: DraftHost) -> bool:
    """Whether the draft says what vouches for the host's key, or no key is needed."""
    local = host.variables.get("stressor_transport") == Transport.LOCAL
    return local or any(name in host.variables for name in _OWN)


def _good(trust: Trust) -> tuple[str, ...]:
    kept = tuple(key.fingerprint() for key in trust.keys if key not in trust.revoked)
    return tuple(dict.fromkeys(kept))


def _given(host: DraftHost, variables: Mapping[str, object]) -> DraftHost:
    return replace(host, variables={**host.variables, **variables})
