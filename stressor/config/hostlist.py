"""A list of hosts as people keep one: a text file with one host a line.

    cp1  192.0.2.11                          # a name and an address, then user and port
    cp2  192.0.2.12  ops  2222
    ops@192.0.2.13:2222                      # without a name, the address is the name
    w1   192.0.2.21  group=workers  stressor_host_key="ssh-ed25519 AAAA..."

`key=value` gives a host any variable of the inventory that is one word, and `group=` its group.
Nothing is asked of DNS, and no range is written out. docs/inventory.md has the whole form.
"""

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from stressor.config.ansible import has_port, is_range
from stressor.config.inventory import ROLES
from stressor.config.values import HOST_VARIABLES, REFUSED
from stressor.config.yamlfile import Mistake, did_you_mean, refuse
from stressor.model import Role

_WORD = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""")
_END = re.compile(
    r"(?:(?P<user>[^@]+)@)?(?:\[(?P<six>[^\]]+)\]|(?P<four>[^\[\]@:]+)|(?P<bare>[^\[\]@]*:[^\[\]@]*:[^\[\]@]*))"
    r"(?::(?P<port>\d+))?"
)
_GROUP = "group"
_NAME_LENGTH = 253
"""Of a DNS name (RFC 1035); YAML takes no key beyond 1024."""
_USED = frozenset({"all", "ungrouped", *ROLES})


@dataclass(frozen=True, slots=True)
class Described:
    """A host as its owner describes it, in a list or in an Ansible inventory.

    `address` None: none that is an IP address, and `told_address` is what stands there instead.
    `roles` empty: nobody said. `etcd`: it was said to carry an etcd. `variables` are those that the
    inventory writes for it, without `ansible_host`. `origin` is where it stands, as `file:line`.
    """

    name: str
    address: str | None
    roles: frozenset[Role] = frozenset()
    etcd: bool = False
    variables: Mapping[str, object] = field(default_factory=dict)
    origin: str = ""
    told_address: str = ""


@dataclass(frozen=True, slots=True)
class _End:
    address: str
    user: str | None = None
    port: str | None = None


def name_flaw(name: str) -> str | None:
    """Why no inventory can call a host so; None when it can."""
    if not name.strip() or name != name.strip() or not name.isprintable():
        return "is no printable word"
    if len(name) > _NAME_LENGTH:
        return f"is longer than {_NAME_LENGTH} characters"
    if is_range(name) or "[" in name or "]" in name:
        return "is a range: name each host on a line of its own"
    if has_port(name):
        return "has a port: write `name address user port`"
    if any(sign in name for sign in ("{{", "{%", "{#")):
        return "is a Jinja template: write it out"
    if name in _USED or name == "<<":
        return "is a word that inventories use otherwise: choose another name"
    return None


def parse_hosts(shown: str, text: str) -> tuple[Described, ...]:
    """The hosts in the text of the file that messages call `shown`, in its order.

    Raises ConfigError with every mistake of every line; for a list without any host, too.
    """
    mistakes: list[Mistake] = []
    found: list[tuple[int, Described]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            words = tuple(_words(line))
            if words:
                found.append((number, _host(words, f"{shown}:{number}")))
        except _Wrong as wrong:
            mistakes += (Mistake(number, one) for one in wrong.told)
    mistakes += _twice(found)
    if not found and not mistakes:
        mistakes.append(Mistake(1, "names no host: write `name address`, one host a line"))
    refuse(shown, mistakes)
    return tuple(host for _, host in found)


class _Wrong(Exception):
    """What is wrong in one line."""

    def __init__(self, *told: str) -> None:
        super().__init__(*told)
        self.told = told


def _words(line: str) -> Iterator[str]:
    """The words before a comment, which begins with a `#` that stands at the start of a word.
    Quotes keep spaces in a word, and are kept here."""
    place = 0
    while (place := len(line) - len(line[place:].lstrip())) < len(line):
        if line[place] == "#":
            return
        match = _WORD.match(line, place)
        if match is None:
            raise _Wrong("a quote is not closed")
        yield match[0]
        place = match.end()


def _bare(word: str) -> str:
    return re.sub(r""""([^"]*)"|'([^']*)'""", lambda found: found[1] or found[2] or "", word)


def _host(words: tuple[str, ...], origin: str) -> Described:
    plain = [_bare(word) for word in words if "=" not in word]
    if words and "=" in words[0]:
        raise _Wrong(f"begins with `{words[0]}`: write `name address` first")
    told: list[str] = []
    name, end, rest = _beginning(plain, told)
    variables = _variables([word for word in words if "=" in word], told)
    roles = variables.pop(_GROUP, frozenset())
    user, port = _user_and_port(rest, end, told)
    for key, value in (("ansible_user", user), ("ansible_port", port)):
        if value is not None and key in variables:
            told.append(f"`{key}` is given twice")
        elif value is not None:
            variables |= _variable(key, value, told)
    if told:
        raise _Wrong(*told)
    assert isinstance(roles, frozenset)
    return Described(name, end.address, roles, variables=variables, origin=origin)


def _beginning(words: list[str], told: list[str]) -> tuple[str, _End, list[str]]:
    """The name, the address, and the words behind them."""
    alone = _end(words[0])
    name = words[0] if alone is None else alone.address
    flaw = name_flaw(name)
    if flaw is not None:
        told.append(f"host name `{name}` {flaw}")
    if alone is not None:
        return name, alone, words[1:]
    if len(words) == 1:
        raise _Wrong(*told, f"`{words[0]}` needs an IP address: abort asks no DNS")
    end = _end(words[1])
    if end is None:
        raise _Wrong(*told, f"`{words[1]}` is no IP address: abort asks no DNS")
    return words[0], end, words[2:]


def _end(word: str) -> _End | None:
    """`[user@]address[:port]`; an IPv6 address with a port stands in brackets. None for others."""
    match = _END.fullmatch(word)
    if match is None:
        return None
    bare = match["bare"]
    if bare is not None:
        # Without brackets the last part of an IPv6 address is no port.
        bare = word.rpartition("@")[2]
    try:
        address = str(ipaddress.ip_address(str(match["six"] or match["four"] or bare)))
    except ValueError:
        return None
    return _End(address, match["user"], None if bare is not None else match["port"])


def _user_and_port(rest: list[str], end: _End, told: list[str]) -> tuple[str | None, str | None]:
    user, port = end.user, end.port
    for word in rest:
        if word.isdecimal() and port is None:
            port = word
        elif user is None and port is None and "@" not in word:
            user = word
        else:
            told.append(f"`{word}` is one word too many: name, address, user, port, key=value")
    return user, port


def _variables(words: list[str], told: list[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for word in words:
        key, _, value = word.partition("=")
        if key in found:
            told.append(f"`{key}` is given twice")
        else:
            found |= _roles(_bare(value), told) if key == _GROUP else {}
            found |= _variable(key, _bare(value), told) if key != _GROUP else {}
    return found


def _roles(value: str, told: list[str]) -> dict[str, object]:
    groups = value.split(",")
    unknown = [group for group in groups if group not in ROLES]
    if unknown:
        hint = did_you_mean(unknown[0], ROLES)
        told.append(f"unknown group `{unknown[0]}`{hint}: use {', '.join(ROLES)}")
        return {}
    roles = frozenset(ROLES[group] for group in groups)
    if Role.BYSTANDER in roles and len(roles) > 1:
        told.append("a bystander is no part of the cluster: choose one group")
    return {_GROUP: roles}


def _variable(key: str, value: str, told: list[str]) -> dict[str, object]:
    """The variable as the inventory reads it; what is wrong with it goes to `told`."""
    if key in REFUSED:
        told.append(f"`{key}` {REFUSED[key]}")
    elif key not in HOST_VARIABLES or key == "ansible_host":
        known = [name for name in HOST_VARIABLES if name != "ansible_host"]
        told.append(f"unknown key `{key}`{did_you_mean(key, (*known, _GROUP))}")
    else:
        try:
            read = HOST_VARIABLES[key](value)
        except ValueError as error:
            told.append(f"`{key}`: {error}")
        else:
            return {key: read if isinstance(read, bool | int) else str(read)}
    return {}


def _twice(found: list[tuple[int, Described]]) -> Iterator[Mistake]:
    names: dict[str, int] = {}
    ways: dict[tuple[str | None, object], int] = {}
    for line, host in found:
        first = names.setdefault(host.name, line)
        if first != line:
            yield Mistake(line, f"host `{host.name}` stands on line {first} already")
            continue
        way = (host.address, host.variables.get("ansible_port", 22))
        first = ways.setdefault(way, line)
        if first != line:
            yield Mistake(line, f"{host.address} is the address on line {first} already")
