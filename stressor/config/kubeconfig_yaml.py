"""YAML as kubectl reads it: Go's rules for plain scalars, and typed readers over the nodes.

kubectl turns YAML into JSON (with Go's YAML 1.1 reader, to which a plain `y`, `1e5` or `0o17` is no
text) and JSON into typed records. So the last of two equal keys counts, unknown keys are no
mistake, a wrong type of a known key is, and everything after the first document is not read.
Source: go.yaml.in/yaml/v2 as of kubectl v1.34; the likeness is tested against kubectl.

No message quotes a value: a kubeconfig is full of secrets.
"""

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping

import yaml

from stressor.errors import ConfigError

Fields = Mapping[str, yaml.Node]

_CORE = "tag:yaml.org,2002:"
_NO_TEXT = frozenset(f"{_CORE}{kind}" for kind in ("bool", "int", "float"))
_TRUE = frozenset("y Y yes Yes YES true True TRUE on On ON".split())
_FALSE = frozenset("n N no No NO false False FALSE off Off OFF".split())
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_NOT_FINITE = frozenset(
    f"{sign}.{word}" for sign in ("", "+", "-") for word in ("inf", "Inf", "INF")
) | {".nan", ".NaN", ".NAN"}
_INT = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


class WrongNode(Exception):
    """The first thing in a file that kubectl would stumble over."""

    def __init__(self, node: yaml.Node, message: str) -> None:
        super().__init__(message)
        self.line = node.start_mark.line + 1


class _GoLoader(yaml.SafeLoader):
    """Gives plain scalars the types that Go's YAML reader gives them."""

    def resolve(self, kind: type[yaml.Node], value: str, implicit: tuple[bool, bool]) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return _CORE + _plain_type(value)
        return super().resolve(kind, value, implicit)  # type: ignore[no-any-return,no-untyped-call]


def _plain_type(value: str) -> str:
    """A date is text here: Go leaves it as it is written."""
    if value in _TRUE | _FALSE:
        return "bool"
    if value in _NULL:
        return "null"
    if value == "<<":
        return "merge"
    return "float" if value in _NOT_FINITE or _number(value) else "str"


def _number(value: str) -> bool:
    """Numbers of more than 64 bits, and beyond a double, are text."""
    if value[0] not in "+-.0123456789":
        return False
    plain = value.replace("_", "")
    if _FLOAT.fullmatch(plain):
        return math.isfinite(float(plain))
    if not _INT.fullmatch(plain):
        return False
    return -(2**63) <= int(plain, 0) < 2**64


def read_text(path: str) -> str:
    """The file's text. Raises FileNotFoundError when there is none, ConfigError when there is one
    that cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8-sig")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError((f"{path}:1: cannot be read: {error.strerror}",)) from error
    except UnicodeDecodeError as error:
        raise ConfigError((f"{path}:1: is not UTF-8 text (byte {error.start})",)) from error


def first_document(path: str, text: str) -> yaml.Node | None:
    """The first document's node; None when there is none. Raises ConfigError."""
    try:
        return next(yaml.compose_all(_without_tabs(text), Loader=_GoLoader), None)
    except yaml.YAMLError as error:
        raise ConfigError((f"{path}:{_line(error)}: is not valid YAML",)) from error


def _line(error: yaml.YAMLError) -> int:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    return mark.line + 1 if isinstance(mark, yaml.Mark) else 1


def _without_tabs(text: str) -> str:
    """JSON indented with tabs is YAML to Go and not to PyYAML; then all stands on line 1."""
    if "\t" in text and text.lstrip().startswith("{"):
        try:
            return json.dumps(json.loads(text), ensure_ascii=False)
        except ValueError:
            return text
    return text


def is_null(node: yaml.Node | None) -> bool:
    """Whether there is no value, or null."""
    return node is None or node.tag == f"{_CORE}null"


def fields(node: yaml.Node | None) -> dict[str, yaml.Node]:
    """A mapping's values by key; later ones win, also over a merge key that stood before them."""
    found: dict[str, yaml.Node] = {}
    if node is None or is_null(node):
        return found
    if not isinstance(node, yaml.MappingNode):
        raise WrongNode(node, "must be a mapping")
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise WrongNode(key, "a key must be text")
        if key.tag == f"{_CORE}merge":
            for one in reversed(value.value) if isinstance(value, yaml.SequenceNode) else (value,):
                found.update(fields(one))
        else:
            found[key.value] = value
    return found


def items(node: yaml.Node | None) -> list[yaml.Node]:
    """A list's items; nothing and null have none."""
    if node is None or is_null(node):
        return []
    if not isinstance(node, yaml.SequenceNode):
        raise WrongNode(node, "must be a list")
    return list(node.value)


def text_of(node: yaml.Node | None) -> str:
    """Text; nothing and null are empty. A plain number or truth value is none: it needs quotes."""
    if node is None or is_null(node):
        return ""
    if not isinstance(node, yaml.ScalarNode):
        raise WrongNode(node, "must be text")
    if node.tag == f"{_CORE}binary":
        return _decoded(node, node.value).decode("utf-8", "replace")
    if node.tag in _NO_TEXT:
        raise WrongNode(node, "must be text: put it in quotes, as YAML takes it for something else")
    return str(node.value)


def texts_of(node: yaml.Node | None) -> tuple[str, ...]:
    """A list of texts."""
    return tuple(text_of(item) for item in items(node))


def flag_of(node: yaml.Node | None) -> bool:
    """True or false; nothing and null are false."""
    if node is None or is_null(node):
        return False
    if not isinstance(node, yaml.ScalarNode) or node.tag != f"{_CORE}bool":
        raise WrongNode(node, "must be true or false, without quotes")
    return node.value in _TRUE


def bytes_of(node: yaml.Node | None) -> bytes:
    """The bytes that base64 text stands for."""
    return b"" if node is None else _decoded(node, text_of(node))


def _decoded(node: yaml.Node, text: str) -> bytes:
    """Base64 as Go decodes it: line ends are passed over, blanks are not."""
    try:
        return base64.b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
    except (binascii.Error, ValueError) as error:
        raise WrongNode(node, "is not base64") from error
