"""The ways into a host beyond Ansible's own variables: further routes, and jump hosts.

`stressor_routes` is a list of mappings, `stressor_jumps` one of mappings or of `USER@IP:PORT`. What
a route or a jump does not say is taken from the host's own variables, but for the host key: each
machine has its own. A ProxyJump in `ansible_ssh_common_args` is read where it is plain; anything
else there is refused, never dropped.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from stressor.config import values
from stressor.config.values import Reader, address, host_key, plain, port, text
from stressor.model import Route

_HOP: Mapping[str, Reader] = {
    "address": address,
    "port": port,
    "user": text,
    "key": text,
    "host_key": host_key,
    "known_hosts": text,
}
_JUMP = re.compile(
    r"(?:(?P<user>[^@\s]+)@)?(?:\[(?P<six>[^\]]+)\]|(?P<four>[^:@\s]+))(?::(?P<port>\d+))?"
)
_JUMP_OPTIONS = ("-J", "-o ProxyJump=")

Hop = Mapping[str, object]
PathOf = Callable[[object], str | None]


@dataclass(frozen=True, slots=True)
class Way:
    """A further route as it was written: its end, and its jumps (None: those of the host)."""

    end: Hop
    jumps: tuple[Hop, ...] | None


def ways(value: object) -> tuple[Way, ...]:
    """`stressor_routes`. Raises ValueError with the first mistake."""
    return tuple(_way(one) for one in _items(value, "{address: 10.0.1.7, user: rescue}"))


def hops(value: object) -> tuple[Hop, ...]:
    """`stressor_jumps`, outermost first. Raises ValueError with the first mistake."""
    return tuple(_hop(one) for one in _items(value, "ops@192.0.2.1:22"))


def words(value: object) -> tuple[str, ...]:
    """An argv as a list: no shell ever reads it. Raises ValueError."""
    if isinstance(value, str):
        told = ", ".join(shlex.split(value)) if value.count("'") % 2 == 0 else value
        raise ValueError(f"must be a list of words, as no shell is used: [{told}]")
    found = tuple(text(one) for one in _items(value, "openstack, server, stop, node1"))
    if not found:
        raise ValueError("is empty: name the command, or leave it out")
    return found


def proxy_jump(value: object) -> tuple[Hop, ...]:
    """The jumps in ssh arguments that hold nothing else. Raises ValueError."""
    given = text(value)
    for option in _JUMP_OPTIONS:
        rest = given.removeprefix(option).strip().strip("'\"")
        if given.startswith(option) and " " not in rest and rest:
            return tuple(_hop(one) for one in rest.split(","))
    raise ValueError(
        "is read only where it is `-o ProxyJump=USER@IP` alone: use stressor_jumps, and ansible_*"
    )


HOST_VARIABLES: Mapping[str, Reader] = {
    **values.HOST_VARIABLES,
    "ansible_ssh_common_args": proxy_jump,
    "stressor_routes": ways,
    "stressor_jumps": hops,
    "stressor_fence": words,
}
"""Every variable of a host that is read, and how its value must look."""


def route(end: Hop, default: Route, path_of: PathOf, jumps: Iterable[Route]) -> Route:
    """A hop as a route. What it does not say is `default`'s, but for the pinned key."""
    found_port = end.get("port", default.port)
    known = path_of(end["known_hosts"]) if "known_hosts" in end else default.known_hosts_path
    return Route(
        address=str(end.get("address", default.address)),
        port=found_port if isinstance(found_port, int) else default.port,
        user=str(end.get("user", default.user)),
        key_path=path_of(end["key"]) if "key" in end else default.key_path,
        host_key=str(end["host_key"]) if "host_key" in end else None,
        known_hosts_path=known,
        jumps=tuple(jumps),
    )


def _items(value: object, example: str) -> list[object]:
    value = plain(value)
    if not isinstance(value, list):
        raise ValueError(f"must be a list: [{example}]")
    return value


def _way(value: object) -> Way:
    if not isinstance(value, Mapping):
        raise ValueError("each route must be a mapping: {address: 10.0.1.7, user: rescue}")
    rest = {key: one for key, one in value.items() if key != "jumps"}
    jumps = hops(value["jumps"]) if "jumps" in value else None
    return Way(_mapping(rest), jumps)


def _hop(value: object) -> Hop:
    if isinstance(value, Mapping):
        return _mapping(value)
    given = text(value)
    match = _JUMP.fullmatch(given)
    if match is None:
        raise ValueError(f"`{given}` is no jump host: USER@IP:PORT, or a mapping")
    named = {"address": match["six"] or match["four"], "user": match["user"], "port": match["port"]}
    return _mapping({key: one for key, one in named.items() if one is not None})


def _mapping(value: Mapping[object, object]) -> Hop:
    unknown = sorted(str(key) for key in value if key not in _HOP)
    if unknown:
        raise ValueError(f"unknown key `{unknown[0]}`: use {', '.join(_HOP)}")
    if "address" not in value:
        raise ValueError("a route or jump needs an `address`")
    return {str(key): _HOP[str(key)](one) for key, one in value.items()}
