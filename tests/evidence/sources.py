"""Which code a piece of evidence speaks for, as one digest: of other code it says nothing."""

import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONCERNED = {
    "abort-latency": ("stressor/guard", "stressor/core", "stressor/engine"),
    "sigkill": ("stressor/guard", "stressor/engine", "stressor/journal.py", "stressor/cli"),
}
"""Evidence name to the files and folders whose change makes it old."""


def digest(name: str) -> str:
    """SHA-256 over the names and bytes of the code that the evidence `name` concerns."""
    found = hashlib.sha256()
    for entry in CONCERNED[name]:
        for path in _files(ROOT / entry):
            found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(p for p in path.rglob("*") if p.suffix in {".py", ".sh"})
