"""Where a setting may stand (options, environment, three files), and reading it there.

A project file decides which cluster gets load. So a file that somebody else may write is refused,
not passed over: without it another inventory would win, and nobody would have said so.
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from stressor.config.units import duration_s
from stressor.config.values import plain, text
from stressor.config.yamlfile import Document, Mistake, did_you_mean, read_yaml, refuse
from stressor.errors import ConfigError
from stressor.log import Level

PROJECT_FILE = "stressor.yaml"
SYSTEM_FILE = Path("/etc/stressor/config.yaml")
CONFIG_VARIABLE = "STRESSOR_CONFIG"
"""Names the project file instead of a search; whoever names it vouches for it."""
ELECTION_TIMEOUT_S = 1.0
"""etcd's default, as kubeadm leaves it."""
STATE_ELSEWHERE = (
    "`state` is not read from files, because an abort reads none and would look elsewhere: "
    "export STRESSOR_STATE=FOLDER"
)

Value = str | float
"""Seconds where the key is a time, else text."""


class Layer(StrEnum):
    """Highest first: what a layer says beats all below it."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    PROJECT = "project"
    USER = "user"
    SYSTEM = "system"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Origin:
    """Who said it: an option, `$VARIABLE` or a file's path, with its line (0: it has none)."""

    layer: Layer
    name: str = ""
    line: int = 0

    def __str__(self) -> str:
        if self.layer is Layer.DEFAULT:
            return "default"
        return f"{self.name}:{self.line}" if self.line else self.name


@dataclass(frozen=True, slots=True)
class Given:
    """A value and who said it; None: nobody said one, and there is no default."""

    value: Value | None
    origin: Origin


@dataclass(frozen=True, slots=True)
class Key:
    """One setting. `read` raises ValueError with the remedy. `meaning` is what holds when nothing
    is set and there is no default value."""

    name: str
    flag: str
    read: Callable[[object], Value]
    default: Value | None = None
    meaning: str = ""
    is_path: bool = False

    @property
    def variable(self) -> str:
        """The environment variable of the key."""
        return f"STRESSOR_{self.name.upper()}"

    def shown(self, value: Value | None) -> str:
        """The value as a config file may have it."""
        if value is None:
            return f"({self.meaning})"
        return f"{value:g}s" if isinstance(value, float) else value


def _timeout_s(value: object) -> float:
    return _positive_s(duration_s(plain(value)))


def _positive_s(seconds: float) -> float:
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{seconds:g} s is no time-out: it must be above 0")
    return seconds


def _level(value: object) -> str:
    word = text(value)
    if word not in tuple(Level):
        raise ValueError(f"`{word}` is no level: use one of {', '.join(Level)}")
    return word


KEYS = (
    Key("election_timeout", "--election-timeout", _timeout_s, ELECTION_TIMEOUT_S),
    Key("image", "--image", text, meaning="stressor_load_image of the inventory"),
    Key("inventory", "--inventory", text, meaning="none: name one", is_path=True),
    Key("log_file", "--log-file", text, meaning="none", is_path=True),
    Key("log_level", "-v, -q", _level, Level.WARNING.value),
)
"""Every key that a file may have, by name."""
KEY_NAMES = tuple(key.name for key in KEYS)


def read_flag(key: Key, value: object) -> Value:
    """The value of an option: a number is in seconds there, files and the environment write the
    unit. Raises ValueError."""
    return _positive_s(value) if isinstance(value, float) else key.read(value)


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file that counts or would count. `path` is None where no project file was found. `trusted`:
    the operator named it, so who may write it is not asked."""

    layer: Layer
    path: Path | None
    exists: bool
    trusted: bool = False


def config_files(
    env: Mapping[str, str], cwd: Path | None, system: Path = SYSTEM_FILE
) -> tuple[ConfigFile, ...]:
    """The project's, the user's and the system's file, in this order. Raises ConfigError for a
    place that cannot be looked at."""
    user = _user_file(env)
    return (
        _project(env.get(CONFIG_VARIABLE), cwd),
        ConfigFile(Layer.USER, user, _exists(user)),
        ConfigFile(Layer.SYSTEM, system, _exists(system)),
    )


def find_project(cwd: Path) -> Path | None:
    """The nearest `stressor.yaml` in `cwd` or above, up to the first folder that holds `.git`
    (a project ends there), else up to the root. Folders that cannot be looked into have none."""
    for folder in (cwd, *cwd.parents):
        try:
            if (folder / PROJECT_FILE).is_file():
                return folder / PROJECT_FILE
            if (folder / ".git").exists():
                return None
        except OSError:
            continue
    return None


def _project(named: str | None, cwd: Path | None) -> ConfigFile:
    if named:
        path = Path(named) if cwd is None else cwd / named
        return ConfigFile(Layer.PROJECT, path, exists=True, trusted=True)
    found = None if cwd is None else find_project(cwd)
    return ConfigFile(Layer.PROJECT, found, found is not None)


def _user_file(env: Mapping[str, str]) -> Path:
    """A relative XDG folder is ignored, as the XDG Base Directory Specification asks."""
    base = env.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if base.startswith("/") else home(env) / ".config"
    return folder / "stressor" / "config.yaml"


def home(env: Mapping[str, str]) -> Path:
    """The operator's home folder."""
    return Path(env["HOME"]) if env.get("HOME") else Path("~").expanduser()


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise ConfigError((f"{path}: cannot be read: {error.strerror}",)) from error


def permission_flaw(owner_uid: int, mode: int, folder_mode: int, own_uid: int) -> str | None:
    """Why a config file cannot be believed, as the rest of a line that begins with its path."""
    if owner_uid not in (0, own_uid):
        return (
            f"belongs to uid {owner_uid}, and would decide for you which cluster gets load: "
            f"make it yours (chown), or vouch for it: export {CONFIG_VARIABLE}=FILE"
        )
    if mode & stat.S_IWOTH:
        return "may be written by anybody: chmod o-w it"
    if folder_mode & stat.S_IWOTH and not folder_mode & stat.S_ISVTX:
        return "may be replaced by anybody: chmod o-w its folder"
    return None


def group_warning(file: ConfigFile) -> str | None:
    """A word on a file that its group may write: usual where each user has an own group, and not
    seen from the mode whether it is so here."""
    if file.path is None or file.trusted or not file.exists:
        return None
    if file.path.stat().st_mode & stat.S_IWGRP:
        return f"{file.path}: may be written by its group: chmod g-w it"
    return None


def read_file(file: ConfigFile, env: Mapping[str, str]) -> dict[str, Given]:
    """What the file sets, by key; nothing where it does not exist or has comments only. Raises
    ConfigError with every mistake in it."""
    path = file.path
    if path is None or not file.exists:
        return {}
    if not file.trusted:
        _refuse_writable(path)
    if _blank(path):
        return {}
    document = read_yaml(path)
    given: dict[str, Given] = {}
    mistakes = list(_take(document, file, env, given))
    refuse(str(path), (*document.mistakes, *mistakes))
    return given


def _refuse_writable(path: Path) -> None:
    try:
        own, folder = path.stat(), path.parent.stat()
    except OSError as error:
        raise ConfigError((f"{path}: cannot be read: {error.strerror}",)) from error
    flaw = permission_flaw(own.st_uid, own.st_mode, folder.st_mode, os.geteuid())
    if flaw is not None:
        raise ConfigError((f"{path}: {flaw}",))


def _blank(path: Path) -> bool:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigError((f"{path}: cannot be read: {error.strerror}",)) from error
    return all(not line.strip() or line.lstrip().startswith(b"#") for line in lines)


def _take(
    document: Document, file: ConfigFile, env: Mapping[str, str], given: dict[str, Given]
) -> Iterator[Mistake]:
    """Puts what is right into `given`, and tells what is wrong."""
    if not isinstance(document.data, dict):
        yield Mistake(document.line(()), "the file must be a mapping of names to values")
        return
    known = {key.name: key for key in KEYS}
    for name, value in document.data.items():
        line = document.line((name,))
        if name not in known:
            yield Mistake(line, _unknown(str(name)))
            continue
        try:
            found = known[name].read(value)
        except ValueError as error:
            yield Mistake(line, f"`{name}`: {error}")
            continue
        if known[name].is_path:
            found = _beside(document.path, str(found), env)
        given[name] = Given(found, Origin(file.layer, document.path, line))


def _unknown(name: str) -> str:
    if name == "state":
        return STATE_ELSEWHERE
    return f"unknown key `{name}`{did_you_mean(name, KEY_NAMES)}"


def _beside(document: str, written: str, env: Mapping[str, str]) -> str:
    """A path in a file is relative to that file; `~/` is the home folder, no shell was there."""
    if written.startswith("~/"):
        return str(home(env) / written[2:])
    return str(Path(document).parent / written)
