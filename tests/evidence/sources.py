"""Which code a piece of evidence speaks for, as one digest: of other code it says nothing.

The modules are those that the verbs of the trial import, function bodies included, within the rooms
that the evidence is about; the guard's shell pieces always belong to it.
"""

import ast
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Concern:
    """`verbs` are the modules that the trial runs; `rooms` what of their imports it is about."""

    verbs: tuple[str, ...]
    rooms: tuple[str, ...]


CONCERNED: Mapping[str, Concern] = {
    "abort-latency": Concern(
        ("stressor.cli.run",), ("stressor/guard/", "stressor/core/", "stressor/engine/")
    ),
    "sigkill": Concern(
        tuple(f"stressor.cli.{verb}" for verb in ("run", "abort", "cleanup", "report")),
        ("stressor/guard/", "stressor/engine/", "stressor/journal.py", "stressor/cli/"),
    ),
}
"""Evidence name to the code whose change makes it old."""


def digest(name: str) -> str:
    """SHA-256 over the names and bytes of the code that the evidence `name` concerns."""
    found = hashlib.sha256()
    for path in files(name):
        found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def files(name: str) -> tuple[Path, ...]:
    """The files that the digest of `name` is over, sorted."""
    concern = CONCERNED[name]
    paths = {*(ROOT / "stressor" / "guard").glob("*.sh"), *_reached(concern.verbs)}
    return tuple(
        path for path in sorted(paths) if str(path.relative_to(ROOT)).startswith(concern.rooms)
    )


def _reached(verbs: tuple[str, ...]) -> Iterator[Path]:
    """The files of `verbs` and of all that they import, directly or not."""
    seen: set[str] = set()
    waiting = list(verbs)
    while waiting:
        module = waiting.pop()
        path = None if module in seen else _path(module)
        seen.add(module)
        if path is not None:
            yield path
            waiting += _imports(path)


def _path(module: str) -> Path | None:
    base = ROOT.joinpath(*module.split("."))
    return next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.exists()), None)


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            # `from package import module`: what is no module has no file, and is left out.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
