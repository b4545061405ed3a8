"""Inventories as Ansible reads them: by asking Ansible, wherever plain YAML is not all there is.

`ansible-inventory --list` gives groups and hosts with their merged variables, but leaves vault
values and Jinja templates as written (seen with ansible-core 2.19). Where stressor needs one of
those, the `debug` action, which connects to no host, gives the value. An answer that Ansible itself
has doubts about is refused: it must never become a smaller list of hosts.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stressor.config.ansible import Group, Groups, Variable
from stressor.config.ansible_needs import RESOLVED, ansible_needs, is_unread
from stressor.config.inventory import inventory_of, load_inventory
from stressor.config.values import CLUSTER_VARIABLES
from stressor.config.yamlfile import Mistake, Opaque, refuse
from stressor.errors import ConfigError
from stressor.model import Inventory
from stressor.playbooks import INVENTORY_PROGRAM, TEMPLATE_PROGRAM, Answer

Ask = Callable[[str, tuple[str, ...], float], Answer]
"""Asks a program of ansible-core, with its arguments, for an answer within so many seconds, as
`playbooks.Ansible.ask` does."""

DEADLINE_S = 60.0
"""For one answer. Usual is half a second to two; inventory plugins may ask a cloud's API."""

INSTALL = "pip install 'stressor[ansible]'"
_HARMLESS = (
    "Invalid characters were found in group names but not replaced",
    "Found variable using reserved name",
    "Ansible is being run in a world writable directory",
    "Collection ",
)
"""How warnings begin that say nothing of hosts or values. Every other one is refused: it may tell
of a part that was skipped."""
_TOLD = re.compile(r"^ ?(?:\[(?:DEPRECATION )?(?:WARNING|ERROR)\]|ERROR!)", re.MULTILINE)
_EXCERPT = re.compile(r"^Origin: .*\n[\s\S]*", re.MULTILINE)
_RESULT = re.compile(r"^(\S+) \| (SUCCESS|FAILED!|UNREACHABLE!) => (?=\{)", re.MULTILINE)
_VAULT, _UNSAFE = "__ansible_vault", "__ansible_unsafe"


def read_inventory(path: Path, ask: Ask | None, working_folder: Path | None = None) -> Inventory:
    """The inventory at `path`: plain YAML is read here, with its lines, everything else by `ask`.

    `ask` is None where ansible-core is not installed. `working_folder` is where Ansible runs (the
    current folder): it looks for group_vars and host_vars there, too. Raises ConfigError with all
    mistakes; without `ask`, with all that it would be needed for, and how to install it.
    """
    folder = path if path.is_dir() else path.parent
    reasons = ansible_needs(path, (folder, working_folder or Path()))
    if not reasons:
        return load_inventory(path)
    if ask is None:
        refuse(str(path), (Mistake(r.line, f"{r.message}: {_NEEDS}") for r in reasons))
        raise AssertionError("a reason is a mistake")
    return inventory_of(path, ansible_groups(path, ask))


_NEEDS = f"only Ansible can read that, and it is not installed: {INSTALL}"


def ansible_groups(path: Path, ask: Ask) -> Groups:
    """The groups as Ansible sees them, each host with its merged variables, none with a line.

    A variable for the whole cluster counts as one of `all` when every host has it with the same
    value. Raises ConfigError when Ansible fails, is late, or warns of something it left out.
    """
    asking = _Asking(str(path), ask)
    found = _groups(asking.path, asking.listing())
    asking.resolve(found)
    _lift_cluster_variables(found)
    return found


def _lift_cluster_variables(found: Groups) -> None:
    everywhere = found.groups.setdefault("all", Group("all")).vars
    for name in CLUSTER_VARIABLES:
        given = [variables.get(name) for variables in found.host_vars.values()]
        first = given[0] if given else None
        if first is not None and all(one is not None and one == first for one in given):
            everywhere[name] = first
            for variables in found.host_vars.values():
                del variables[name]


@dataclass(frozen=True, slots=True)
class _Asking:
    """The questions about one inventory."""

    path: str
    ask: Ask

    def listing(self) -> object:
        stdout = self._answer(INVENTORY_PROGRAM, ("-i", self._source(), "--list"), (0,), _doubts)
        try:
            return json.loads(stdout)
        except ValueError as error:
            raise self._wrong(f"the answer of {INVENTORY_PROGRAM} is not JSON: {error}") from error

    def resolve(self, found: Groups) -> None:
        """Puts values where stressor needs them and a vault or template stands."""
        unread = [
            (host, name)
            for host, own in found.host_vars.items()
            for name in RESOLVED
            if name in own and is_unread(own[name].value)
        ]
        left = self._fill(found, unread)
        names = sorted({name for _, name in left})
        if len({name for _, name in unread}) > 1:
            # One variable that fails takes the host's others with it: asked alone, it shows.
            alone = (self._fill(found, [one for one in left if one[1] == name]) for name in names)
            left = {one: why for some in alone for one, why in some.items()}
        refuse(
            self.path,
            (
                Mistake(0, f"host `{host}`: Ansible cannot resolve `{name}`: {why}")
                for (host, name), why in left.items()
            ),
        )

    def _fill(self, found: Groups, unread: list[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Fills in the values of these variables of hosts; why some stay as they are."""
        told = self._values(sorted({name for _, name in unread})) if unread else {}
        left = {}
        for host, name in unread:
            answer = told.get(host, _Told())
            if name in answer.values:
                found.host_vars[host][name] = Variable(answer.values[name], 0)
            else:
                left[host, name] = answer.why
        return left

    def _values(self, names: Iterable[str]) -> dict[str, "_Told"]:
        # The names are those of stressor's tables, never the inventory's. `omit` leaves out what a
        # host does not have; a template of undefined parts is missing then, and told as such.
        message = {name: f"{{{{ {name} | default(omit) }}}}" for name in names}
        task = ("-m", "ansible.builtin.debug", "-a", json.dumps({"msg": message}))
        # 2: some hosts failed, which their results tell.
        stdout = self._answer(TEMPLATE_PROGRAM, ("-i", self._source(), "all", *task), (0, 2), None)
        return dict(_results(stdout.decode("utf-8", "replace")))

    def _source(self) -> str:
        if "," in self.path:
            raise self._wrong("Ansible takes a path with a comma for a list of hosts: rename it")
        return os.path.abspath(self.path)

    def _answer(
        self,
        program: str,
        arguments: tuple[str, ...],
        good: tuple[int, ...],
        doubts: Callable[[bytes], tuple[str, ...]] | None,
    ) -> bytes:
        try:
            answer = self.ask(program, arguments, DEADLINE_S)
        except OSError as error:
            raise self._wrong(f"{program} cannot be started: {error.strerror}") from error
        if answer.returncode is None:
            raise self._wrong(f"{program} gave no answer within {DEADLINE_S:g} s")
        if answer.returncode not in good:
            why = "; ".join(_messages(answer.stderr)) or f"exit code {answer.returncode}"
            raise self._wrong(f"{program} failed: {why}")
        told = doubts(answer.stderr) if doubts else ()
        if told:
            raise ConfigError(tuple(f"{self.path}: Ansible warns: {one}" for one in told))
        return answer.stdout

    def _wrong(self, message: str) -> ConfigError:
        return ConfigError((f"{self.path}: {message}",))


@dataclass(frozen=True, slots=True)
class _Told:
    """What the debug action told of a host: values, or why there are none."""

    values: Mapping[str, object] = field(default_factory=dict)
    why: str = "it gave no value"


def _results(stdout: str) -> Iterator[tuple[str, _Told]]:
    for found in _RESULT.finditer(stdout):
        try:
            result, _ = json.JSONDecoder().raw_decode(stdout, found.end())
        except ValueError:
            continue  # no result for this host: told as unresolved
        message = result.get("msg")
        if found[2] == "SUCCESS" and isinstance(message, dict):
            values = {name: value for name, value in message.items() if not is_unread(value)}
            yield found[1], _Told(values, "a part of it is not defined")
        else:
            yield found[1], _Told({}, " ".join(str(message).split()))


def _messages(stderr: bytes) -> tuple[str, ...]:
    """Warnings and errors, each on one line and without the excerpt of a file behind "Origin:",
    which may hold more than the mistake."""
    text = stderr.decode("utf-8", "replace")
    starts = [found.start() for found in _TOLD.finditer(text)]
    parts = (text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=False))
    return tuple(" ".join(_EXCERPT.sub(_origin, part).split()) for part in parts)


def _origin(found: re.Match[str]) -> str:
    return f"({found[0].splitlines()[0]})"


def _doubts(stderr: bytes) -> tuple[str, ...]:
    """The warnings that may mean that something was left out."""
    told = (m.partition("]: ")[2] for m in _messages(stderr) if m.startswith("[WARNING]"))
    return tuple(message for message in told if not message.startswith(_HARMLESS))


def _groups(path: str, listing: object) -> Groups:
    """The answer of `ansible-inventory --list` as groups. Raises ConfigError on another shape."""
    try:
        return _Shape().groups(listing)
    except (TypeError, KeyError) as error:
        message = f"{path}: the answer of {INVENTORY_PROGRAM} has another shape than known: {error}"
        raise ConfigError((message,)) from error


@dataclass(frozen=True, slots=True)
class _Shape:
    """The walk over the answer: groups by name, each with `hosts` and `children`, and `_meta`."""

    def groups(self, listing: object) -> Groups:
        bodies = _mapping(listing, "the answer")
        hostvars = _mapping(_mapping(bodies["_meta"], "_meta")["hostvars"], "hostvars")
        found = Groups(top_line=0)
        for name in sorted((n for n in bodies if n != "_meta"), key=lambda n: (n != "all", n)):
            body = _mapping(bodies[name], f"group {name}")
            found.group_lines[name] = 0
            found.groups[name] = Group(
                name, hosts=_names(body, "hosts"), children=_names(body, "children")
            )
        for host in (*(h for g in found.groups.values() for h in g.hosts), *hostvars):
            found.host_lines.setdefault(host, 0)
        for host in found.host_lines:
            own = _mapping(hostvars.get(host, {}), f"variables of {host}")
            found.host_vars[host] = {name: Variable(_value(v), 0) for name, v in own.items()}
        return found


def _value(value: object) -> object:
    if isinstance(value, dict) and len(value) == 1:
        if _VAULT in value:
            return Opaque("!vault")
        return value.get(_UNSAFE, value)
    return value


def _mapping(value: object, what: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError(f"{what} is no mapping")
    return value


def _names(body: Mapping[str, object], key: str) -> list[str]:
    names = body.get(key, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{key} is no list of names")
    return names
