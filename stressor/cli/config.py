"""`stressor config`: which settings hold, and who set them."""

import difflib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click

from stressor.cli.logs import given
from stressor.config.layers import KEYS, ConfigFile, Given, Key, Layer, Origin
from stressor.config.settings import Resolved, resolve
from stressor.errors import ExitCode
from stressor.report.lines import ascii_only

SCHEMA_VERSION = 1
PREFIX = "STRESSOR_"
OTHER_VARIABLES = ("STRESSOR_CACHE", "STRESSOR_CONFIG", "STRESSOR_STATE")
"""Variables of stressor that set no key of a file."""


@click.group()
def config() -> None:
    """Which settings hold, and who set them."""


@config.command()
@click.option("--show-origin", is_flag=True, help="Who set each value, and what it overrides.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def view(show_origin: bool, output: str) -> None:
    """Every setting as a verb called here would find it. Reads files, nothing else.

    Order: options, STRESSOR_* variables, the project's stressor.yaml, the user's and the system's
    config file, defaults. Exit 2, with every mistake, for a file that no verb would accept.
    """
    found = resolve(os.environ, flags=given())
    warnings = (*found.warnings, *strangers(os.environ))
    if output == "json":
        click.echo(as_json(found, warnings), nl=False)
        return
    for line in as_text(found, show_origin):
        click.echo(line)
    for warning in warnings:
        click.echo(f"WARNING  {ascii_only(warning)}", err=True)


def strangers(env: Mapping[str, str]) -> Iterator[str]:
    """Lines on variables that are misspelt, as it seems. Others with our prefix may be anybody's:
    Kubernetes makes some for a Service of that name."""
    known = {*(key.variable for key in KEYS), *OTHER_VARIABLES}
    words = sorted(name.removeprefix(PREFIX) for name in known)
    for name in sorted(env):
        near = difflib.get_close_matches(name.removeprefix(PREFIX), words, n=1)
        if name.startswith(PREFIX) and name not in known and near:
            yield f"${name} sets nothing (did you mean ${PREFIX}{near[0]}?)"


def as_text(found: Resolved, show_origin: bool) -> Iterator[str]:
    """A line a key, `key = value`; with origins, who set it before that, what it beats below it,
    and at the end the files that count."""
    rows = list(_rows(found, overridden=show_origin))
    if not show_origin:
        yield from (line for _, line in rows)
        return
    width = max(len(origin) for origin, _ in rows)
    yield from (f"{origin:<{width}}  {line}" for origin, line in rows)
    yield ""
    yield from map(_file_line, found.files)


def _rows(found: Resolved, overridden: bool) -> Iterator[tuple[str, str]]:
    for setting in found.settings:
        key = setting.key
        yield _row(setting.given.origin, f"{key.name} = {key.shown(setting.given.value)}")
        for one in setting.overridden if overridden else ():
            yield _row(one.origin, f"  overrides {key.shown(one.value)}")
    yield _row(found.state_origin, f"state = {found.state_dir}")


def _row(origin: Origin, line: str) -> tuple[str, str]:
    return ascii_only(str(origin)), ascii_only(line)


def _file_line(file: ConfigFile) -> str:
    if file.path is None:
        return f"{file.layer:<8} no stressor.yaml in this folder or above"
    state = "" if file.exists else "  (does not exist)"
    return f"{file.layer:<8} {ascii_only(str(file.path))}{state}"


def as_json(found: Resolved, warnings: Iterable[str]) -> str:
    """One JSON object, ending in a newline. Times are in seconds; null: nobody set it."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "verdict": "pass",
        "exit_code": int(ExitCode.PASS),
        "next_command": _next(found),
        "settings": [
            *(
                {
                    **_given(one.key, one.given),
                    "overrides": [_given(one.key, lower) for lower in one.overridden],
                }
                for one in found.settings
            ),
            {"key": "state", "value": str(found.state_dir), **_origin(found.state_origin)},
        ],
        "files": [
            {"layer": f.layer, "path": _text(f.path), "exists": f.exists} for f in found.files
        ],
        "warnings": list(warnings),
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _next(found: Resolved) -> str:
    if found.given("inventory").value is None:
        return "export STRESSOR_INVENTORY=FILE"
    return "stressor preflight"


def _given(key: Key, one: Given) -> dict[str, object]:
    return {"key": key.name, "value": one.value, **_origin(one.origin)}


def _origin(origin: Origin) -> dict[str, object]:
    """`file` and `line` are null where no file said it."""
    in_file = origin.layer in (Layer.PROJECT, Layer.USER, Layer.SYSTEM)
    return {
        "layer": origin.layer,
        "origin": str(origin),
        "file": origin.name if in_file else None,
        "line": origin.line if in_file else None,
    }


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
