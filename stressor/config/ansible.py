"""The plain YAML subset of Ansible inventories: groups, hosts, and variables with their precedence.

This knows Ansible's structure and nothing of stressor's variables (`inventory` does). Precedence is
Ansible's: all, then groups from the top down, by name within one depth, then the host itself.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from stressor.config.yamlfile import Document, Mistake, Place, did_you_mean

_PARTS = ("hosts", "vars", "children")
_RANGE = re.compile(r"\[[^\]]*:[^\]]*\]")
_PORT = re.compile(r"[^:]+:\d+")


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable's value and the line on which it was set, 0 where that is not known."""

    value: object
    line: int


@dataclass(slots=True)
class Group:
    """A group as all of its mentions together describe it."""

    name: str
    vars: dict[str, Variable] = field(default_factory=dict)
    hosts: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Groups:
    """Every group and host of a file. `host_lines` holds each host's first mention, in order.
    `top_line` is where mistakes about the whole are told: 0 where lines are not known."""

    groups: dict[str, Group] = field(default_factory=dict)
    group_lines: dict[str, int] = field(default_factory=dict)
    host_vars: dict[str, dict[str, Variable]] = field(default_factory=dict)
    host_lines: dict[str, int] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    top_line: int = 1

    def members(self, name: str) -> frozenset[str]:
        """The hosts in the group and in its children, or none when there is no such group."""
        found: set[str] = set()
        for group in self._down(name, ()):
            found.update(group.hosts)
        return frozenset(found)

    def variables(self, host: str) -> Mapping[str, Variable]:
        """What Ansible would give the host, nearest definition last and therefore valid."""
        merged: dict[str, Variable] = {}
        over = [name for name in self.groups if host in self.members(name)]
        for name in sorted({"all", *over}, key=lambda n: (n != "all", self._depth(n), n)):
            merged.update(self.groups[name].vars if name in self.groups else {})
        merged.update(self.host_vars.get(host, {}))
        return merged

    def cycle(self) -> str | None:
        """A group that is its own descendant, if there is one."""
        return next((name for name in self.groups if _reaches(self.groups, name)), None)

    def _down(self, name: str, above: tuple[str, ...]) -> Iterator[Group]:
        if name in self.groups and name not in above:
            yield self.groups[name]
            for child in self.groups[name].children:
                yield from self._down(child, (*above, name))

    def _depth(self, name: str) -> int:
        parents = [g.name for g in self.groups.values() if name in g.children and g.name != "all"]
        return 1 + max((self._depth(parent) for parent in parents), default=0)


def is_range(name: str) -> bool:
    """Whether Ansible would make several hosts of the name, like `node[1:3]`."""
    return _RANGE.search(name) is not None


def has_port(name: str) -> bool:
    """Whether Ansible would split the name into host and port, like `node1:2222`."""
    return _PORT.fullmatch(name) is not None


def read_groups(document: Document) -> Groups:
    """The groups of a document, with every structural mistake in `mistakes`."""
    found = Groups(mistakes=list(document.mistakes))
    reading = _Reading(document, found)
    if isinstance(document.data, dict):
        for name, body in document.data.items():
            reading.group(name, body, (name,))
    else:
        reading.wrong((), "an inventory is a mapping of groups; this is none")
    loop = found.cycle()
    if loop is not None:
        found.mistakes.append(
            Mistake(found.group_lines[loop], f"group `{loop}` is a child of itself")
        )
        found.groups.clear()
    return found


def _reaches(groups: Mapping[str, Group], start: str) -> bool:
    waiting, seen = list(groups[start].children), set[str]()
    while waiting:
        name = waiting.pop()
        if name == start:
            return True
        if name not in seen and name in groups:
            seen.add(name)
            waiting += groups[name].children
    return False


@dataclass(frozen=True, slots=True)
class _Reading:
    """The walk over one document; what it cannot read becomes a mistake, never a smaller list."""

    document: Document
    found: Groups

    def wrong(self, place: Place, message: str) -> None:
        self.found.mistakes.append(Mistake(self.document.line(place), message))

    def group(self, name: str, body: object, place: Place) -> None:
        group = self.found.groups.setdefault(name, Group(name))
        self.found.group_lines.setdefault(name, self.document.line(place))
        for key, part in self._mapping(body, place, f"group `{name}`").items():
            inner = (*place, key)
            match key:
                case "vars":
                    group.vars.update(self._variables(part, inner, f"vars of group `{name}`"))
                case "hosts":
                    self._hosts(group, part, inner)
                case "children":
                    self._children(group, part, inner)
                case _:
                    hint = did_you_mean(key, _PARTS)
                    self.wrong(inner, f"unknown key `{key}` in group `{name}`{hint}")

    def _children(self, group: Group, part: object, place: Place) -> None:
        for child, body in self._mapping(part, place, f"children of `{group.name}`").items():
            if child not in group.children:
                group.children.append(child)
            self.group(child, body, (*place, child))

    def _hosts(self, group: Group, part: object, place: Place) -> None:
        for name, body in self._mapping(part, place, f"hosts of `{group.name}`").items():
            here = (*place, name)
            if is_range(name):
                self.wrong(here, f"host range `{name}` is not read: name each host")
                continue
            if has_port(name):
                self.wrong(here, f"port in host name `{name}` is not read: use `ansible_port`")
                continue
            if "{{" in name or "{%" in name:
                self.wrong(here, f"host name `{name}` is a Jinja template: write it out")
                continue
            self.found.host_lines.setdefault(name, self.document.line(here))
            if name not in group.hosts:
                group.hosts.append(name)
            own = self.found.host_vars.setdefault(name, {})
            own.update(self._variables(body, here, f"host `{name}`"))

    def _variables(self, part: object, place: Place, what: str) -> dict[str, Variable]:
        return {
            key: Variable(value, self.document.line((*place, key)))
            for key, value in self._mapping(part, place, what).items()
        }

    def _mapping(self, part: object, place: Place, what: str) -> dict[str, object]:
        if part is None:
            return {}
        if isinstance(part, dict):
            return part
        self.wrong(place, f"{what} must be a mapping of names to values")
        return {}
