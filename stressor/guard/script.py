"""The guard's shell text, composed from package data into an argv for one channel or one command.

The text travels as one argument, because a channel's stdin belongs to the protocol, and because a
host under abort should not have to read a file that somebody put there earlier.
"""

from enum import StrEnum
from functools import cache
from importlib.resources import files

from stressor.model import StopReason

STATE_DIR = "/run/stressor"
_PIECES = ("lib", "cgroups", "marks", "proof", "kill", "arm", "sample", "worker", "guard", "main")


class Shell(StrEnum):
    """Which shell runs the guard. AUTO takes the best that the host has."""

    AUTO = "auto"
    BUSYBOX = "busybox"
    BASH = "bash"
    DASH = "dash"


def _piece(name: str) -> str:
    return files("stressor.guard").joinpath(f"{name}.sh").read_text(encoding="utf-8")


def _without_comments(text: str) -> str:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return "\n".join(line for line in lines if line.strip())


@cache
def script_text(state_dir: str = STATE_DIR) -> str:
    """The whole script, comments stripped. `state_dir` is the folder on the host that holds the
    runs' state; it must be an absolute path of plain characters (ValueError otherwise)."""
    plain = state_dir.replace("/", "").replace("-", "").replace("_", "").replace(".", "")
    if not (state_dir.startswith("/") and plain.isascii() and plain.isalnum()):
        raise ValueError(f"not a plain absolute path: {state_dir!r}")
    body = "\n".join(_without_comments(_piece(name)) for name in _PIECES)
    return f"#!/bin/sh\nBASE={state_dir}\n{body}\n"


@cache
def _launcher() -> str:
    return _without_comments(_piece("launch"))


def guard_argv(shell: Shell = Shell.AUTO, *, state_dir: str = STATE_DIR) -> tuple[str, ...]:
    """The resident guard: give it to `Remote.open_channel`; the protocol is on stdin and stdout."""
    return ("sh", "-c", _launcher(), "stressor-guard", shell.value, script_text(state_dir))


def kill_argv(
    run: str,
    reason: StopReason | str,
    left_s: float,
    *,
    shell: Shell = Shell.AUTO,
    state_dir: str = STATE_DIR,
) -> tuple[str, ...]:
    """The one-shot kill of `run` ("all": of every run) on a host where no guard answers.

    `left_s` is how long late-comers are looked for afterwards, by a detached loop; 0 for not at
    all. Exits 0 for CLEAN or STOPPED, 4 otherwise, 2 on misuse; its words are in docs/
    guard-protocol.md.
    """
    text = script_text(state_dir)
    head = ("sh", "-c", _launcher(), "stressor-kill", shell.value, text)
    return (*head, run, str(reason), f"{max(0.0, left_s):.2f}")
