"""The ways into a host beyond Ansible's own variables: further routes, and jump hosts.

`stressor_routes` is a list of mappings, `stressor_jumps` one of mappings or of `USER@IP:PORT`. What
a route or a jump does not say is taken from the host's own variables, but for the host key: each
machine has its own. A ProxyJump in `ansible_ssh_common_args` or `ansible_ssh_extra_args` is read
where it is plain; anything else there is refused, never dropped.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from stressor.config import values
from stressor.config.values import Reader, Several, address, host_key, plain, port, text, told
from stressor.config.yamlfile import did_you_mean
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
    r"(?:ssh://)?(?:(?P<user>[^@\s]+)@)?(?:\[(?P<six>[^\]]+)\]|(?P<four>[^:@\s]+))"
    r"(?::(?P<port>\d+))?"
)
_OPTION = re.compile(r"(?P<name>\w+)(?:\s*=\s*|\s+)(?P<value>.*)")

Hop = Mapping[str, object]
PathOf = Callable[[object], str | None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Way:
    """A further route as it was written: its end, and its jumps (None: those of the host)."""

    end: Hop
    jumps: tuple[Hop, ...] | None


def ways(value: object) -> tuple[Way, ...]:
    """`stressor_routes`. Raises ValueError with all mistakes."""
    return _each("route", _items(value, "{address: 10.0.1.7, user: rescue}"), _way)


def hops(value: object) -> tuple[Hop, ...]:
    """`stressor_jumps`, outermost first. Raises ValueError with all mistakes."""
    return _each("jump", _items(value, "ops@192.0.2.1:22"), _hop)


def words(value: object) -> tuple[str, ...]:
    """An argv as a list: no shell ever reads it. Raises ValueError with all mistakes."""
    if isinstance(value, str):
        raise ValueError(f"must be a list of words, as no shell is used: [{_as_list(value)}]")
    found = _each("word", _items(value, "openstack, server, stop, node1"), text)
    if not found:
        raise ValueError("is empty: name the command, or leave it out")
    return found


def _as_list(command: str) -> str:
    try:
        return ", ".join(shlex.split(command))
    except ValueError:
        return command


def proxy_jump(value: object) -> tuple[Hop, ...]:
    """The jumps in arguments of ssh that hold nothing else. Raises ValueError, which names what
    else they hold: stressor dials by itself, and would do without it."""
    given = text(value)
    try:
        options = tuple(_options(shlex.split(given)))
    except ValueError as error:
        raise ValueError(f"`{given}`: {error}") from error
    lists = [jumps for jumps, _ in options if jumps is not None]
    others = [words for jumps, words in options if jumps is None]
    if others:
        how = "is read only where it is -J or -o ProxyJump alone: use stressor_jumps, and ansible_*"
        raise ValueError(f"`{' '.join(others)}` cannot be honoured: it {how}")
    if len(lists) != 1:
        raise ValueError(f"`{given}` names jump hosts {len(lists)} times: once, with commas")
    if lists[0].lower() == "none":
        return ()
    return _each("jump", lists[0].split(","), _hop)


def _options(words: Sequence[str]) -> Iterator[tuple[str | None, str]]:
    """The options among the arguments: its jump hosts where it names some, else None; and how it
    was written."""
    left = list(words)
    while left:
        word = left.pop(0)
        if word in ("-J", "-o") and left:
            word += left.pop(0)
        option = _OPTION.fullmatch(word.removeprefix("-o"))
        if word.startswith("-J") and len(word) > 2:
            yield word[2:], word
        elif word.startswith("-o") and option and option["name"].lower() == "proxyjump":
            yield option["value"].strip(), word
        else:
            yield None, f"{word[:2]} {word[2:]}" if word.startswith("-o") else word


_JUMPS = ("stressor_jumps", "ansible_ssh_common_args", "ansible_ssh_extra_args")


def jumps_of(found: Mapping[str, object]) -> object:
    """The jumps among a host's values, wherever they were written."""
    return next((found[name] for name in _JUMPS if name in found), ())


def contradiction(found: Mapping[str, object]) -> tuple[str, str] | None:
    """The variable that names other jumps than `jumps_of` takes, and what is wrong with it."""
    given = [name for name in _JUMPS if name in found]
    for name in given[1:]:
        if found[name] != found[given[0]]:
            return name, f"`{name}` and `{given[0]}` name different jump hosts: keep one of them"
    return None


HOST_VARIABLES: Mapping[str, Reader] = {
    **values.HOST_VARIABLES,
    "ansible_ssh_common_args": proxy_jump,
    "ansible_ssh_extra_args": proxy_jump,
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


def _each(what: str, items: Iterable[object], read: Callable[[object], T]) -> tuple[T, ...]:
    """Every item as `read` reads it. Raises ValueError with the mistakes of all of them, each with
    the number of its item."""
    found, wrong = list[T](), list[str]()
    for number, item in enumerate(items, 1):
        try:
            found.append(read(item))
        except ValueError as error:
            wrong += (f"{what} {number}: {one}" for one in told(error))
    if wrong:
        raise Several(wrong)
    return tuple(found)


def _way(value: object) -> Way:
    if not isinstance(value, Mapping):
        raise ValueError("each route must be a mapping: {address: 10.0.1.7, user: rescue}")
    rest = {key: one for key, one in value.items() if key != "jumps"}
    wrong, end, jumps = list[str](), dict[str, object](), None
    try:
        end = dict(_mapping(rest))
    except ValueError as error:
        wrong += told(error)
    try:
        jumps = hops(value["jumps"]) if "jumps" in value else None
    except ValueError as error:
        wrong += told(error)
    if wrong:
        raise Several(wrong)
    return Way(end, jumps)


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
    found, wrong = dict[str, object](), list[str]()
    for key, one in value.items():
        name = str(key)
        if name not in _HOP:
            wrong.append(f"unknown key `{name}`{did_you_mean(name, _HOP)}: use {', '.join(_HOP)}")
            continue
        try:
            found[name] = _HOP[name](one)
        except ValueError as error:
            wrong += (f"{name}: {message}" for message in told(error))
    if "address" not in value:
        wrong.append("a route or jump needs an `address`")
    if wrong:
        raise Several(wrong)
    return found
