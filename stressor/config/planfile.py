"""The plan file: what `stressor plan --out` wrote, for `stressor run` to carry out.

One JSON object whose first key, `stressor_plan`, is the version of its format. It is read strictly:
whatever is missing, unknown or of another type is an error, and `sha256` is compared, so that a
file that was cut or edited is not carried out. The digest is no signature: who may write the file
can compute it anew. The file holds addresses and paths of keys, never a key; its mode is 0600.
"""

import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from stressor.config.phases import LOAD_ROLES
from stressor.config.schema import DEADLINE_LIMIT_S
from stressor.core.drift import Footing
from stressor.errors import ConfigError
from stressor.model import Host, Phase
from stressor.probes import SIGNALS
from stressor.workloads import WORKLOADS

SCHEMA = 1
MARKER = "stressor_plan"
_DIGEST = "sha256"
_BEGINNING = re.compile(rb'\s*\{\s*"stressor_plan"\s*:')
_REMEDY = "make it anew: stressor plan PHASEFILE --out FILE"


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan that somebody may agree to: `footing` holds its suite, its steps and what they stand
    on.

    Paths are absolute. `phases` are those that --phases chose, none for all. `max_duration_s` is
    the limit of --max-duration, None without one. `written_unix_s` is by the wall clock of the
    machine that planned.
    """

    written_unix_s: float
    phasefile: str
    inventory_path: str
    phases: tuple[str, ...]
    max_duration_s: float | None
    footing: Footing


def is_plan_file(path: Path) -> bool:
    """Whether the file at `path` is a plan, whole or damaged, by its content. Raises ConfigError
    when it cannot be read, and for the report of `stressor plan -o json`, which is no plan."""
    raw = _bytes(path)
    if _BEGINNING.match(raw):
        return True
    document = _object(raw)
    if document is not None and "plan" in document and "schema_version" in document:
        message = f"{path}: is a report of `stressor plan -o json`, not a plan file: {_REMEDY}"
        raise ConfigError((message,))
    return document is not None and MARKER in document


def read_plan(path: Path) -> PlanFile:
    """The plan in the file at `path`. Raises ConfigError, with the remedy, for one that is damaged,
    was edited, or has a format that this program does not know."""
    document = _object(_bytes(path))
    if document is None:
        raise _damaged(path, "not JSON, or cut off")
    schema = document.pop(MARKER, None)
    if schema != SCHEMA or isinstance(schema, bool):
        message = f"{path}: plan format {schema!r}, this program knows {SCHEMA}: {_REMEDY}"
        raise ConfigError((message,))
    digest = document.pop(_DIGEST, None)
    if digest != _digest(document):
        raise _damaged(path, f"its content does not match its {_DIGEST}")
    return _plan(path, document)


def write_plan(path: Path, plan: PlanFile, *, force: bool = False) -> None:
    """Write the plan as a whole or not at all, with mode 0600. Raises ConfigError when `path`
    exists, unless `force` and it is a plan file, and when the disk refuses."""
    if force and path.exists() and not is_plan_file(path):
        # A phase file named by mistake would be gone.
        raise ConfigError((f"{path}: is no plan file, and is not replaced: name another file",))
    document = _data(plan)
    assert isinstance(document, dict)
    whole = {MARKER: SCHEMA, **document, _DIGEST: _digest(document)}
    text = json.dumps(whole, indent=1, allow_nan=False) + "\n"
    try:
        _put(path, text.encode("ascii"), force)
    except FileExistsError as error:
        raise ConfigError((f"{path}: exists already: name another file, or --force",)) from error
    except OSError as error:
        raise ConfigError((f"{path}: cannot be written: {error.strerror}",)) from error


def _plan(path: Path, document: dict[str, object]) -> PlanFile:
    text = json.dumps(document, allow_nan=False)
    try:
        plan = TypeAdapter(PlanFile).validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _damaged(path, f"{place}: {first['msg']}") from error
    # pydantic passes over keys that it does not know, and fills in those that have a default.
    if json.loads(json.dumps(_data(plan))) != document:
        raise _damaged(path, "it has keys that this program does not know, or lacks some")
    wrong = tuple(_mistakes(plan.footing))
    if wrong:
        raise _damaged(path, "; ".join(wrong))
    return plan


def _mistakes(footing: Footing) -> Iterator[str]:
    """What no phase file may say either: the suite comes from a file that somebody may have made
    in another way than through a phase file's checks."""
    hosts = {host.name: host for host in footing.inventory.hosts}
    for phase in footing.suite.phases:
        told = (*_bounds(phase), *_load(phase), *_places(phase, hosts))
        yield from (f"phase {phase.name}: {text}" for text in told)


def _bounds(phase: Phase) -> Iterator[str]:
    if min(phase.warm_up_s, phase.cool_down_s) < 0 or phase.hold_s <= 0:
        yield "a duration is below 0, or `hold` is 0"
    if not phase.warm_up_s + phase.hold_s <= phase.deadline_s <= DEADLINE_LIMIT_S:
        yield "`deadline` is shorter than warm_up + hold, or above 24h"


def _load(phase: Phase) -> Iterator[str]:
    kind = next((one for one in WORKLOADS if phase.kind == one.KIND), None)
    if kind is None:
        yield f"unknown kind `{phase.kind}`"
        return
    for step in phase.steps:
        yield from kind.mistakes({**phase.params, **step})
    known = {signal.name for signal in SIGNALS}
    yield from (f"unknown signal `{g.signal}`" for g in phase.gates if g.signal not in known)


def _places(phase: Phase, hosts: Mapping[str, Host]) -> Iterator[str]:
    if not phase.nodes or len(set(phase.nodes)) < len(phase.nodes):
        yield "it names no node, or one twice"
    for node in phase.nodes:
        if node not in hosts or not hosts[node].roles.intersection(LOAD_ROLES):
            yield f"no load is placed on `{node}`: not in this cluster"


def _digest(document: Mapping[str, object]) -> str:
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _data(value: object) -> object:
    """Records as what JSON has, floats exactly. Raises ValueError for anything that it has not."""
    if isinstance(value, Enum):
        return _data(value.value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _data(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _data(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [_data(item) for item in value]
    if isinstance(value, frozenset):
        return sorted((_data(item) for item in value), key=str)
    raise ValueError(f"{value!r} has no place in a plan file")


def _put(path: Path, data: bytes, force: bool) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(os.open(temporary, flags, 0o600), "wb") as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if force:
                temporary.replace(path)
            else:
                # A link, unlike a rename, never replaces what somebody else has just put there.
                os.link(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError((f"{path}: cannot be read: {error.strerror}",)) from error


def _object(raw: bytes) -> dict[str, object] | None:
    """The JSON object in `raw`; None when it is none, says NaN, or says one name twice."""
    try:
        value = json.loads(raw, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no value of a plan")


def _damaged(path: Path, what: str) -> ConfigError:
    return ConfigError((f"{path}: damaged plan file ({what}): {_REMEDY}",))
