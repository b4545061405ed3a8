"""Plain text for any terminal, pager or phone: printable ASCII, at most 80 columns.

What hosts and tools said is hostile until it went through here: control characters would move the
cursor, and other letters may not exist where this is read.
"""

import shlex
import textwrap
from datetime import UTC, datetime

WIDTH = 80
RULE = "-" * 62


def ascii_only(text: str) -> str:
    """The text with everything but printable ASCII escaped, on one line."""
    flat = " ".join(text.splitlines())
    shown = flat.encode("ascii", "backslashreplace").decode("ascii")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in shown)


def row(label: str, text: str) -> list[str]:
    """A label of up to nine columns and its text, wrapped below itself."""
    return _wrapped(text, f"{label:<9} ", " " * 10) or [label]


def folded(text: str, indent: int) -> list[str]:
    """The text as it is, what does not fit below it with `indent` columns before it."""
    return _wrapped(text, "", " " * indent)


def item(text: str, indent: int = 2) -> list[str]:
    """An indented line, wrapped with a deeper indent."""
    return _wrapped(text, " " * indent, " " * (indent + 4))


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    """Lines of at most WIDTH; none for a text without a word."""
    return textwrap.wrap(
        ascii_only(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
    )


def number(value: float | None) -> str:
    """Four digits at most; `?` for unknown, which is never a zero (I4)."""
    return "?" if value is None else f"{value:.4g}"


def seconds(value: float | None) -> str:
    """A time since the anchor or a span: `12.34 s`; `?` for unknown."""
    return "?" if value is None else f"{value:.2f} s"


def moment(unix_s: float | None) -> str:
    """A wall-clock time in UTC, to the second; `?` for unknown."""
    if unix_s is None:
        return "?"
    try:
        return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return "?"


def command(line: str) -> list[str]:
    """A command line, folded with backslashes so that it can be copied as it stands. What no shell
    could read is shown as text."""
    try:
        words = shlex.split(ascii_only(line))
    except ValueError:
        return item(line)
    lines = ["  "]
    for word in map(shlex.quote, words):
        if len(lines[-1]) + len(word) > WIDTH - 2 and lines[-1].strip():
            lines[-1] += "\\"
            lines.append("    ")
        lines[-1] += f"{word} "
    return [one.rstrip(" ") for one in lines]
