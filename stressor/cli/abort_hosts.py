"""`stressor abort --host …`: hosts named on the command line, for a machine without any file.

Part of the emergency side (I6): SSH and the standard library. Host keys are verified here as
everywhere: by fingerprints that somebody read from a page or a console, or by known_hosts.
"""

import ipaddress
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from stressor.errors import ConfigError
from stressor.model import Host, Route
from stressor.remote.fault import Fault
from stressor.remote.trust import fingerprints, pinned

_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_CONSOLE = "  ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub     at its console"


@dataclass(frozen=True, slots=True)
class Asked:
    """What was typed. `host_keys`: fingerprints or public keys; each host, jump hosts included,
    must show one of them. Without any, known_hosts decides."""

    hosts: tuple[str, ...]
    user: str = "root"
    port: int = 22
    key: str | None = None
    host_keys: tuple[str, ...] = ()
    sudo: bool = False
    jumps: tuple[str, ...] = ()
    run: str | None = None
    jump_key: str | None = None


def hosts_of(asked: Asked, env: Mapping[str, str]) -> tuple[Host, ...]:
    """The hosts, under their addresses. Raises ConfigError, with the ready command, for an address
    that is no IP address, a key that is none, and a host that nothing vouches for."""
    home = Path(env["HOME"]) / ".ssh" if env.get("HOME") else None
    key = asked.key or _own_key(home)
    if key is None:
        raise ConfigError(("which private key? Name it:", _command(asked, "--key", "KEY")))
    pin = _pin(asked)
    jump_key = asked.jump_key or key
    jumps = tuple(_route(*_jump(jump, asked), jump_key, pin, home) for jump in asked.jumps)
    addresses = dict.fromkeys(asked.hosts)
    routes = tuple(_route(a, asked.user, asked.port, key, pin, home) for a in addresses)
    _require_trust(asked, (*jumps, *routes))
    return tuple(
        Host(route.address, (replace(route, jumps=jumps),), become=asked.sudo) for route in routes
    )


def require_usable_keys(asked: Asked, hosts: tuple[Host, ...]) -> None:
    """Raise ConfigError, with the ready command, for a private key that no login can use: a try at
    each host until the budget ends would find out nothing else."""
    # Here and not above: `abort --help` does not pay for paramiko.
    from stressor.remote.paramiko_dial import load_keys

    for host in hosts:
        try:
            load_keys(host.routes[0])
        except Fault as fault:
            without = replace(asked, key=None)
            raise ConfigError((fault.detail, _command(without, "--key", "KEY"))) from fault


def _own_key(home: Path | None) -> str | None:
    if home is None:
        return None
    return next((str(home / name) for name in _KEYS if (home / name).exists()), None)


def _pin(asked: Asked) -> str | None:
    """Everything that was given as fingerprints."""
    found: list[str] = []
    for text in asked.host_keys:
        try:
            found += pinned(text).fingerprints
        except Fault as fault:
            raise ConfigError((f"--host-key {text}: {fault.detail}",)) from fault
    return " ".join(found) or None


def _jump(text: str, asked: Asked) -> tuple[str, str, int]:
    """[USER@]ADDRESS[:PORT] -> address, user, port. An IPv6 address with a port stands in
    brackets."""
    user, _, rest = text.rpartition("@")
    address, port = rest, "22"
    if rest.startswith("["):
        address, _, port = rest[1:].partition("]")
        port = port.removeprefix(":") or "22"
    elif rest.count(":") == 1:
        address, _, port = rest.partition(":")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ConfigError((f"--jump {text}: `{port}` is no port: USER@ADDRESS:PORT",))
    return address, user or asked.user, int(port)


def _route(
    address: str, user: str, port: int, key: str, pin: str | None, home: Path | None
) -> Route:
    try:
        ipaddress.ip_address(address)
    except ValueError as error:
        message = f"`{address}` is no IP address, and abort asks no DNS: name the address"
        raise ConfigError((message,)) from error
    route = Route(address, port, user, key, host_key=pin)
    if pin is not None:
        return route
    known = [Path("/etc/ssh/ssh_known_hosts")]
    known = [home / "known_hosts", *known] if home is not None else known
    tried = (Route(address, port, user, key, known_hosts_path=str(path)) for path in known)
    return next((one for one in tried if fingerprints(one)), route)


def _require_trust(asked: Asked, routes: tuple[Route, ...]) -> None:
    unknown = [route.address for route in routes if not fingerprints(route)]
    if unknown:
        lines = (
            f"nothing vouches for the host key of {', '.join(unknown)}.",
            "The fingerprint is in the report, in preflight and in abort-CLUSTER.sh, or:",
            _CONSOLE,
            "Then:",
            _command(asked, "--host-key", "SHA256:FINGERPRINT"),
        )
        raise ConfigError(lines)


def _command(asked: Asked, *more: str) -> str:
    """What to type: the same again, with what was missing."""
    words = ["stressor", "abort"]
    words += [word for host in dict.fromkeys(asked.hosts) for word in ("--host", host)]
    words += ["--user", asked.user]
    words += ["--port", str(asked.port)] if asked.port != 22 else []
    words += ["--key", asked.key] if asked.key else []
    words += ["--sudo"] if asked.sudo else []
    words += ["--run", asked.run] if asked.run else []
    words += [word for jump in asked.jumps for word in ("--jump", jump)]
    words += ["--jump-key", asked.jump_key] if asked.jump_key else []
    words += [word for key in asked.host_keys for word in ("--host-key", key)]
    return "  " + shlex.join((*words, *more))
