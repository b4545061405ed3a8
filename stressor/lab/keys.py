"""SSH identities of the lab: one client key, one host key for each host, made once and kept."""

from __future__ import annotations

from pathlib import Path

from stressor.lab import places as p
from stressor.lab.shell import run


def _make(path: Path, comment: str) -> None:
    if path.exists():
        return
    draft = path.with_name(f".{path.name}.part")
    for stale in (draft, draft.with_name(f"{draft.name}.pub")):
        stale.unlink(missing_ok=True)
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(draft)])
    draft.with_name(f"{draft.name}.pub").rename(path.with_name(f"{path.name}.pub"))
    draft.rename(path)


def host_key(places: p.Places, host: p.Host) -> Path:
    return places.keys / f"{host.name}_ed25519"


def public(path: Path) -> str:
    """`ssh-ed25519 AAAA…` of a private key's companion, without the comment."""
    words = path.with_name(f"{path.name}.pub").read_text().split()
    return " ".join(words[:2])


def make(places: p.Places, hosts: tuple[p.Host, ...]) -> None:
    """Make the keys that are missing and pin all host keys in `known_hosts`."""
    places.keys.mkdir(parents=True, exist_ok=True, mode=0o700)
    places.keys.chmod(0o700)
    _make(places.client_key, "stressor-lab")
    for host in hosts:
        _make(host_key(places, host), host.name)
    lines = [f"{host.address} {public(host_key(places, host))}\n" for host in hosts]
    places.known_hosts.write_text("".join(lines))
