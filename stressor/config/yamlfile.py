"""A YAML file as plain data that remembers on which line each part stands.

Both loaders start here, so that every mistake, whoever finds it, can be told as `file:line`.
Anchors, merge keys and several documents in a file are refused: a value must stand where it is
read. Values with a tag of their own (`!vault`) become `Opaque`; the loader decides if they matter.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from stressor.errors import ConfigError

Place = tuple[str | int, ...]
_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null"))
_TEXT_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "timestamp", "value"))


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that only another program can read, like an Ansible vault: `tag` says which."""

    tag: str


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """One thing wrong in a file; `line` counts from 1, 0 where no line is known."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Document:
    """A file's data (dict, list, str, int, float, bool, None, Opaque) and where it stands."""

    path: str
    data: object
    lines: Mapping[Place, int]
    mistakes: tuple[Mistake, ...] = ()

    def line(self, place: Place) -> int:
        """The line of the key or item at `place`, or of the nearest part around it."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)

    def opaque(self) -> Iterator[tuple[Place, Opaque]]:
        """Every value in the file that needs another program."""
        yield from _opaque_in(self.data, ())


def refuse(path: str, mistakes: Iterable[Mistake]) -> None:
    """Raises ConfigError with all mistakes in the order of their lines; returns if there are none.

    The same mistake found twice is told once.
    """
    told = sorted(set(mistakes))
    if told:
        raise ConfigError(tuple(f"{path}{_colon(one.line)}: {one.message}" for one in told))


def _colon(line: int) -> str:
    return f":{line}" if line else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean X?)` for the nearest known word, or nothing when none is near."""
    near = difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    return f" (did you mean `{near[0]}`?)" if near else ""


def read_yaml(path: Path) -> Document:
    """The file as data with lines. Raises ConfigError when it is missing, not YAML, or empty."""
    return parse_yaml(str(path), _text(path))


def parse_yaml(shown: str, text: str) -> Document:
    """The text of the file that messages call `shown`, as `read_yaml`."""
    try:
        _refuse_aliases(shown, text)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ConfigError((_syntax_mistake(shown, text, error),)) from error
    except RecursionError as error:
        raise ConfigError((f"{shown}:1: nested too deeply to be read",)) from error
    if root is None:
        raise ConfigError((f"{shown}:1: the file is empty",))
    reading = _Reading()
    data = reading.value(root, ())
    return Document(shown, data, reading.lines, tuple(reading.mistakes))


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise ConfigError((f"{path}:1: cannot be read: {error.strerror}",)) from error
    except UnicodeDecodeError as error:
        raise ConfigError((f"{path}:1: is not UTF-8 text (byte {error.start})",)) from error


def _refuse_aliases(path: str, text: str) -> None:
    refuse(
        path,
        (
            Mistake(_line(event.start_mark), f"alias `*{event.anchor}`: write the value out")
            for event in yaml.parse(text, Loader=yaml.SafeLoader)
            if isinstance(event, yaml.AliasEvent)
        ),
    )


def _line(mark: object) -> int:
    line = getattr(mark, "line", 0)
    return line + 1 if isinstance(line, int) else 1


def _syntax_mistake(path: str, text: str, error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError):
        line = _line(error.problem_mark or error.context_mark)
        what = error.problem or error.context or "cannot be parsed"
        return f"{path}:{line}: not valid YAML: {what}"
    position = getattr(error, "position", 0)
    line = text.count("\n", 0, position if isinstance(position, int) else 0) + 1
    return f"{path}:{line}: not valid YAML: {getattr(error, 'reason', 'cannot be parsed')}"


def _opaque_in(value: object, place: Place) -> Iterator[tuple[Place, Opaque]]:
    if isinstance(value, Opaque):
        yield place, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _opaque_in(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _opaque_in(inner, (*place, index))


@dataclass(slots=True)
class _Reading:
    """One pass over the node tree, collecting lines and mistakes on its way."""

    lines: dict[Place, int] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def value(self, node: yaml.Node, place: Place) -> object:
        self.lines.setdefault(place, node.start_mark.line + 1)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if not node.tag.startswith("tag:yaml.org,2002:"):
            return Opaque(node.tag)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*place, index)) for index, item in enumerate(node.value)]
        return self._mapping(node, place)

    def _scalar(self, node: yaml.ScalarNode) -> object:
        if node.tag in _TEXT_TAGS:
            return node.value
        if node.tag not in _PLAIN_TAGS:
            return Opaque(node.tag)
        try:
            return yaml.SafeLoader("").construct_object(node)
        except ValueError:
            self._mistake(node, f"`{node.value}` is not a value that YAML knows")
            return None

    def _mapping(self, node: yaml.Node, place: Place) -> dict[str, object]:
        data: dict[str, object] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.value == "<<":
                self._mistake(key_node, "merge keys and keys that are not text are not read")
            elif key_node.value in data:
                first = self.lines[(*place, key_node.value)]
                self._mistake(key_node, f"duplicate key `{key_node.value}` (first on line {first})")
            else:
                self.lines[(*place, key_node.value)] = key_node.start_mark.line + 1
                data[key_node.value] = self.value(value_node, (*place, key_node.value))
        return data

    def _mistake(self, node: yaml.Node, message: str) -> None:
        self.mistakes.append(Mistake(node.start_mark.line + 1, message))
