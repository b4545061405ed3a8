"""The shape of a phase file, as pydantic models, and pydantic's complaints in an operator's words.

pydantic stays inside this package: the models here are read once and turned into the records of
`stressor.model`. Every check that needs one field only is made here, so that one pass over a file
finds all of them; checks over several fields are in `phases`.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic_core import ErrorDetails

from stressor.config.units import duration_s
from stressor.config.yamlfile import Place, did_you_mean
from stressor.model import GateAction, ParamValue

DEADLINE_LIMIT_S = 24 * 3600.0
"""No load is planned for longer in one step: a forgotten run must end within a day."""

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$")]
Duration = Annotated[float, BeforeValidator(duration_s)]
Params = dict[str, ParamValue]


def _one_empty_step() -> list[Params]:
    return [{}]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class PlacementEntry(_Strict):
    """Either `nodes`, or `role` with an optional `count`."""

    nodes: list[str] | None = Field(default=None, min_length=1)
    role: str | None = None
    count: int | None = Field(default=None, ge=1)


class GateEntry(_Strict):
    """`above` and `below` stay as written: their unit depends on the signal."""

    signal: str
    above: Any = None
    below: Any = None
    hold: Duration = 0.0
    window: Duration = 0.0
    action: Annotated[GateAction, Field(strict=False)] = GateAction.STOP


class PhaseEntry(_Strict):
    """One item under `phases`."""

    name: Name
    kind: str
    placement: PlacementEntry
    hold: Duration
    deadline: Duration
    warm_up: Duration = 0.0
    cool_down: Duration = 0.0
    params: Params = Field(default_factory=dict)
    steps: list[Params] = Field(default_factory=_one_empty_step, min_length=1)
    gates: list[GateEntry] = Field(default_factory=list)


class SuiteEntry(_Strict):
    """The whole file."""

    suite: Name
    baseline: Duration = 0.0
    phases: list[PhaseEntry] = Field(min_length=1)


_PARTS: Mapping[tuple[str, ...], type[BaseModel]] = {
    (): SuiteEntry,
    ("phases",): PhaseEntry,
    ("phases", "placement"): PlacementEntry,
    ("phases", "gates"): GateEntry,
}
_TYPES = {
    "string_type": "must be text (put it in quotes if it is)",
    "int_type": "must be a whole number",
    "list_type": "must be a list",
    "dict_type": "must be a mapping of names to values",
    "model_type": "must be a mapping of names to values",
    "model_attributes_type": "must be a mapping of names to values",
    "string_pattern_mismatch": "must be lower-case letters, digits and dashes, at most 40",
    "too_short": "must not be empty",
    "greater_than_equal": "must be at least 1",
}


def complaint(error: ErrorDetails) -> tuple[Place, str]:
    """Where a pydantic error stands and what it means, in the words of the file."""
    place = _without_unions(error["loc"])
    key = str(place[-1]) if place else "the file"
    if error["type"] == "extra_forbidden":
        return place, f"unknown key `{key}`{did_you_mean(key, _known_keys(place))}"
    if error["type"] == "missing":
        return place[:-1], f"missing `{key}`"
    if error["type"] == "enum":
        word = str(error["input"])
        known = tuple(GateAction)
        return place, f"`{key}` is `{word}`: use one of {', '.join(known)}"
    if error["type"] == "value_error":
        return place, f"`{key}`: {error['msg'].removeprefix('Value error, ')}"
    if place != error["loc"]:
        return place, f"{_named(place)} must be text, a number, true or false"
    what = _TYPES.get(error["type"], error["msg"])
    return place, f"{_named(place)} {what}"


def _without_unions(loc: tuple[int | str, ...]) -> Place:
    """Values of `params` and `steps` are unions; pydantic adds the member's type to the place."""
    for depth, part in enumerate(loc):
        if part in ("params", "steps") and depth == 2:
            return loc[: depth + (2 if part == "params" else 3)]
    return loc


def _known_keys(place: Place) -> tuple[str, ...]:
    part = tuple(p for p in place[:-1] if isinstance(p, str))
    return tuple(_PARTS[part].model_fields) if part in _PARTS else ()


def _named(place: Place) -> str:
    if not place:
        return "the file"
    last = place[-1]
    return f"`{last}`" if isinstance(last, str) else f"item {last + 1} of `{place[-2]}`"
