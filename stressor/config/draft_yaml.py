"""Lines of YAML that mean what was put in, whatever it is, and comments that stay comments."""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence

import yaml

_PLAIN = re.compile(r"[A-Za-z0-9_/~][A-Za-z0-9_/~.+@-]*")
_WIDTH = 96


def scalar(value: object) -> str:
    """The value on one line. Text stays text: whatever a YAML reader might take for a number, a
    date or a truth value is quoted. Raises TypeError for what an inventory cannot hold."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return _text(value)
        case Mapping():
            return f"{{{', '.join(f'{scalar(key)}: {scalar(one)}' for key, one in value.items())}}}"
        case Sequence():
            return f"[{', '.join(map(scalar, value))}]"
        case _:
            raise TypeError(f"{value!r} has no place in an inventory")


def _text(value: str) -> str:
    if _PLAIN.fullmatch(value) and yaml.safe_load(value) == value:
        return value
    dumped = yaml.safe_dump(value, default_style='"', allow_unicode=True, width=float("inf"))
    return str(dumped).removesuffix("\n")


def entry(indent: int, key: str, value: object) -> Iterator[str]:
    """A line of a mapping."""
    yield f"{' ' * indent}{scalar(key)}: {scalar(value)}"


def comment(text: str, indent: int = 0) -> Iterator[str]:
    """The text as comment lines. It may come from anywhere: what would end a line, or could not be
    read as YAML at all, is replaced."""
    clean = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    wrapped = textwrap.wrap(clean, _WIDTH - indent, break_long_words=False, break_on_hyphens=False)
    yield from (f"{' ' * indent}# {line}" for line in wrapped)


def example(indent: int, line: str) -> str:
    """A line that means nothing until somebody takes its first word out."""
    return f"{' ' * indent}# example: {line}"
