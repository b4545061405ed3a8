"""The settings of one call: flags, then STRESSOR_*, then project, user and system file, then
defaults. docs/configuration.md is the table.

Never imported by the verbs of an emergency: those know `lifeline.state_dir` and nothing else. That
is why the state folder is no key of the files.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from stressor.config.layers import (
    KEYS,
    SYSTEM_FILE,
    ConfigFile,
    Given,
    Key,
    Layer,
    Origin,
    Value,
    config_files,
    group_warning,
    read_file,
    read_flag,
)
from stressor.errors import ConfigError
from stressor.lifeline import state_dir
from stressor.log import Level

NO_INVENTORY = (
    "no inventory: name one with --inventory FILE or $STRESSOR_INVENTORY, "
    "or write `inventory: FILE` into stressor.yaml"
)
_NO_FLAGS: Mapping[str, object] = MappingProxyType({})
_LOUD = ("election_timeout", "image", "inventory")
"""Keys that change what a run does to which cluster: one from a file is worth a line."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One key: what holds, and what it beat, highest first."""

    key: Key
    given: Given
    overridden: tuple[Given, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolved:
    """Every key of KEYS in its order, the state folder and who said it, and the files that count.
    `warnings` are lines on files that others may write."""

    settings: tuple[Setting, ...]
    state_dir: Path
    state_origin: Origin
    files: tuple[ConfigFile, ...]
    warnings: tuple[str, ...] = ()

    def given(self, name: str) -> Given:
        """What holds for the key `name` of KEYS."""
        return next(one.given for one in self.settings if one.key.name == name)

    @property
    def log_file(self) -> Path | None:
        """The file of the log, None for none."""
        return _path(self.given("log_file").value)

    @property
    def log_level(self) -> Level:
        """The lowest level that stderr shows."""
        return Level(str(self.given("log_level").value))

    @property
    def notes(self) -> tuple[str, ...]:
        """What an operator should see before anything starts: which file decided what, since it
        may lie far above the folder that the command was called in."""
        return (
            *self.warnings,
            *(
                f"{one.key.name} {one.key.shown(one.given.value)} (from {one.given.origin})"
                for one in self.settings
                if one.key.name in _LOUD and one.given.origin.line
            ),
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a verb that needs an inventory.

    `inventory_origin` says where the path came from, for messages about it. `image` is None where
    the inventory's own counts. `notes` are lines for the operator, none where options and variables
    said all.
    """

    state_dir: Path
    inventory_path: Path
    inventory_origin: str
    image: str | None
    election_timeout_s: float
    log_file: Path | None
    log_level: Level
    notes: tuple[str, ...] = ()


def settings(
    env: Mapping[str, str],
    *,
    inventory_flag: str | None = None,
    flags: Mapping[str, object] = _NO_FLAGS,
    cwd: Path | None = None,
    system: Path = SYSTEM_FILE,
) -> Settings:
    """The settings of one call; `flags` and the rest as for `resolve`. Raises ConfigError as that
    does, and when nobody named an inventory: guessing which cluster is meant is no default."""
    given = flags if inventory_flag is None else {**flags, "inventory": inventory_flag}
    found = resolve(env, flags=given, cwd=cwd, system=system)
    inventory = found.given("inventory")
    if inventory.value is None:
        raise ConfigError((NO_INVENTORY,))
    image, timeout_s = found.given("image").value, found.given("election_timeout").value
    assert isinstance(timeout_s, float)
    return Settings(
        state_dir=found.state_dir,
        inventory_path=Path(str(inventory.value)),
        inventory_origin=str(inventory.origin),
        image=None if image is None else str(image),
        election_timeout_s=timeout_s,
        log_file=found.log_file,
        log_level=found.log_level,
        notes=found.notes,
    )


def resolve(
    env: Mapping[str, str],
    *,
    flags: Mapping[str, object] = _NO_FLAGS,
    cwd: Path | None = None,
    system: Path = SYSTEM_FILE,
) -> Resolved:
    """What holds for every key, and who said it. `flags` has values by key, None or empty for an
    option that was not given; `cwd` (default: this process's) is where the search for the project
    file begins. Raises ConfigError with every mistake of every layer."""
    files = config_files(env, cwd or _cwd(), system)
    mistakes: list[str] = []
    layers = [_flags(flags, mistakes), _environment(env, mistakes)]
    layers += _read_all(files, env, mistakes)
    if mistakes:
        raise ConfigError(tuple(mistakes))
    warnings = tuple(line for file in files if (line := group_warning(file)) is not None)
    chosen = tuple(_setting(key, layers) for key in KEYS)
    return Resolved(chosen, state_dir(env), _state_origin(env), files, warnings)


def _cwd() -> Path | None:
    """None in a folder that was removed: there is nothing to search in."""
    try:
        return Path.cwd()
    except OSError:
        return None


def _read_all(
    files: tuple[ConfigFile, ...], env: Mapping[str, str], mistakes: list[str]
) -> list[dict[str, Given]]:
    layers: list[dict[str, Given]] = []
    for file in files:
        try:
            layers.append(read_file(file, env))
        except ConfigError as error:
            mistakes += error.mistakes
    return layers


def _flags(flags: Mapping[str, object], mistakes: list[str]) -> dict[str, Given]:
    named = {key: Origin(Layer.FLAG, key.flag) for key in KEYS}
    return _from(named, {key: flags.get(key.name) for key in KEYS}, mistakes)


def _environment(env: Mapping[str, str], mistakes: list[str]) -> dict[str, Given]:
    named = {key: Origin(Layer.ENVIRONMENT, f"${key.variable}") for key in KEYS}
    return _from(named, {key: env.get(key.variable) for key in KEYS}, mistakes)


def _from(
    origins: Mapping[Key, Origin], values: Mapping[Key, object], mistakes: list[str]
) -> dict[str, Given]:
    given: dict[str, Given] = {}
    for key, value in values.items():
        if value in (None, ""):
            continue
        try:
            read: Value = read_flag(key, value)
        except ValueError as error:
            mistakes.append(f"{origins[key]}: {error}")
            continue
        given[key.name] = Given(read, origins[key])
    return given


def _setting(key: Key, layers: list[dict[str, Given]]) -> Setting:
    default = Given(key.default, Origin(Layer.DEFAULT))
    first, *rest = (*(layer[key.name] for layer in layers if key.name in layer), default)
    return Setting(key, first, tuple(one for one in rest if one.value is not None))


def _state_origin(env: Mapping[str, str]) -> Origin:
    if env.get("STRESSOR_STATE"):
        return Origin(Layer.ENVIRONMENT, "$STRESSOR_STATE")
    if env.get("XDG_STATE_HOME", "").startswith("/"):
        return Origin(Layer.ENVIRONMENT, "$XDG_STATE_HOME")
    return Origin(Layer.DEFAULT)


def _path(value: Value | None) -> Path | None:
    return None if value is None else Path(str(value))
