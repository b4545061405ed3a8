"""Running a page of documentation: its commands are typed, and what they print is compared.

In a block that begins with three backticks and `console`, a line that begins with `$ ` is a command
and what follows is what it printed. In the output `...` stands for anything, also over several
lines (as in doctest), because times, names of runs and figures differ from day to day.
"""

import doctest
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True, slots=True)
class Exchange:
    """A command, and what the page says that it prints on both streams."""

    command: str
    output: str


def exchanges(page: str) -> Iterator[Exchange]:
    """Every command of the page, in order. Lines that begin with `> ` belong to the command."""
    for block in _BLOCK.findall(page):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            first, *rest = part.splitlines(keepends=True)
            more = [line.removeprefix("> ") for line in rest if line.startswith("> ")]
            output = "".join(line for line in rest if not line.startswith("> "))
            yield Exchange("".join((first, *more)), output)


@dataclass(frozen=True, slots=True)
class Operator:
    """Somebody who is not root, with a folder and an environment."""

    uid: int
    folder: Path
    env: Mapping[str, str]

    def type(self, command: str, *, timeout_s: float) -> str:
        """What a command of the page prints, both streams as a terminal mixes them."""
        done = subprocess.run(
            ("/bin/sh", "-c", command),
            cwd=self.folder,
            env=dict(self.env),
            user=self.uid,
            group=self.uid,
            extra_groups=[],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        return done.stdout


def difference(wanted: str, got: str) -> str | None:
    """None when `got` is what the page says; else both, for somebody to read."""
    if doctest.OutputChecker().check_output(wanted, got, OPTIONS):
        return None
    return f"--- the page\n{wanted}--- the command\n{got}"
