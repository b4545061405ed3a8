"""What in an inventory only Ansible can read: each such thing becomes a reason to ask it.

A reason that is missed would be a host or a value lost, so everything that is not proven to be
plain counts as one.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from stressor.config.ansible import Groups, Variable, has_port, is_range, read_groups
from stressor.config.routes import HOST_VARIABLES
from stressor.config.values import CLUSTER_VARIABLES, ONLY, REFUSED
from stressor.config.yamlfile import Document, Mistake, Opaque, read_yaml
from stressor.errors import ConfigError

RESOLVED = (*HOST_VARIABLES, *CLUSTER_VARIABLES, *ONLY)
"""Variables whose values stressor uses or checks."""

_NEEDED = frozenset((*RESOLVED, *REFUSED))
_YAML_SUFFIXES = (".yaml", ".yml", ".json")
_OTHER_SUFFIXES = (".ini", ".cfg", ".toml")
_OTHER = Mistake(1, "an inventory that is not a YAML mapping (ini, for example)")
_BESIDE = ("group_vars", "host_vars")
_VAULT_FILE = b"$ANSIBLE_VAULT;"


def is_unread(value: object) -> bool:
    """Whether a value is a vault's or a Jinja template, which only Ansible turns into a value."""
    return isinstance(value, Opaque) or (
        isinstance(value, str) and ("{{" in value or "{%" in value or "{#" in value)
    )


def ansible_needs(path: Path, folders: tuple[Path, ...]) -> tuple[Mistake, ...]:
    """Why Ansible is needed for the inventory at `path`; empty when its plain YAML is all of it.

    `folders` are those in which Ansible looks for group_vars and host_vars: the inventory's own,
    and the one in which it runs.
    """
    return (*_of_inventory(path), *_of_folders(folders))


def _of_inventory(path: Path) -> tuple[Mistake, ...]:
    if path.is_dir():
        return (Mistake(0, "a folder of inventories"),)
    text = _bytes(path)
    if text.startswith(b"#!"):
        return (Mistake(1, "an inventory script"),)
    if text.startswith(_VAULT_FILE):
        return (Mistake(1, "a file encrypted by ansible-vault"),)
    if path.suffix in _OTHER_SUFFIXES:
        return (_OTHER,)
    alias = _first_alias(text)
    if alias is not None:
        return (alias,)
    try:
        document = read_yaml(path)
    except ConfigError:
        document = None
    if document is not None and isinstance(document.data, dict):
        return tuple(_of_document(document, document.data))
    plain = path.suffix in _YAML_SUFFIXES or not text.strip()
    return () if plain else (_OTHER,)


def _of_document(document: Document, data: Mapping[str, object]) -> Iterator[Mistake]:
    if isinstance(data.get("plugin"), str):
        yield Mistake(document.line(("plugin",)), f"inventory plugin `{data['plugin']}`")
    for place in document.lines:
        *above, last = place[1::2] or ("",)
        if len(place) % 2 and last == "hosts" and all(part == "children" for part in above):
            yield from _of_host_name(str(place[-1]), document.line(place))
    groups = read_groups(document)
    for variables in _scopes(groups):
        for name, variable in variables.items():
            yield from _of_variable(name, variable)


def _of_host_name(name: str, line: int) -> Iterator[Mistake]:
    if is_range(name):
        yield Mistake(line, f"host range `{name}`")
    elif has_port(name):
        yield Mistake(line, f"a port in host name `{name}`")


def _scopes(groups: Groups) -> Iterator[Mapping[str, Variable]]:
    yield from (group.vars for group in groups.groups.values())
    yield from groups.host_vars.values()


def _of_variable(name: str, variable: Variable) -> Iterator[Mistake]:
    if name == "ansible_group_priority":
        yield Mistake(variable.line, f"`{name}`")
    if name not in RESOLVED or not is_unread(variable.value):
        return
    vault = isinstance(variable.value, Opaque)
    yield Mistake(variable.line, f"`{name}` is a {'vault value' if vault else 'Jinja template'}")


def _of_folders(folders: tuple[Path, ...]) -> Iterator[Mistake]:
    for folder in dict.fromkeys(folder.absolute() for folder in folders):
        for beside in (folder / name for name in _BESIDE):
            if beside.is_dir():
                yield from _of_vars_folder(beside)


def _of_vars_folder(beside: Path) -> Iterator[Mistake]:
    for at, folders, files in os.walk(beside, onerror=_cannot_list):
        for link in (Path(at) / name for name in folders):
            if link.is_symlink():
                yield Mistake(0, f"a linked folder of variables, {link}")
        for file in (Path(at) / name for name in sorted(files)):
            told = _of_vars_file(file) if _is_read(file) else None
            if told is not None:
                yield Mistake(0, f"{told} in {file}")


def _cannot_list(error: OSError) -> None:
    raise ConfigError((f"{error.filename}: cannot be read: {error.strerror}",)) from error


def _is_read(file: Path) -> bool:
    """Whether Ansible would take the file for one of variables (it goes by suffix and dot)."""
    plain = not file.name.startswith(".") and not file.name.endswith("~")
    return plain and file.suffix in ("", *_YAML_SUFFIXES) and file.is_file()


def _of_vars_file(file: Path) -> str | None:
    if _bytes(file).startswith(_VAULT_FILE):
        return "variables encrypted by ansible-vault"
    try:
        data = yaml.compose(_bytes(file), Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return "variables that are not plain YAML"
    if data is None:
        return None
    if not isinstance(data, yaml.MappingNode):
        return "variables that are not a mapping"
    needed = [key.value for key, _ in data.value if _is_needed(key)]
    return f"variable `{needed[0]}`" if needed else None


def _is_needed(key: yaml.Node) -> bool:
    """Also names that only look like stressor's, so that a slip is found, and merge keys."""
    if not isinstance(key, yaml.ScalarNode):
        return True
    return key.value in _NEEDED or key.value == "<<" or key.value.startswith("stressor_")


def _first_alias(text: bytes) -> Mistake | None:
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                line = event.start_mark.line + 1 if event.start_mark else 1
                return Mistake(line, f"alias `*{event.anchor}`")
    except yaml.YAMLError:
        pass
    return None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError((f"{path}:1: cannot be read: {error.strerror}",)) from error
