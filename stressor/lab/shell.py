"""Running other programs: always an argument list, always a time limit, errors with context."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from stressor.lab.errors import LabError

_SHOWN_OUTPUT = 2000
"""Characters of a failed program's output that an error quotes, from the end."""


def attempt(
    argv: Sequence[str],
    *,
    timeout_s: float = 60.0,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `argv` and return how it ended, whatever the exit code.

    Raises LabError when the program cannot be started or outlives `timeout_s`.
    """
    try:
        return subprocess.run(
            list(argv),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            env=None if env is None else dict(env),
            cwd=cwd,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise LabError(f"`{' '.join(argv)}` did not end within {timeout_s:g} s") from late
    except OSError as missing:
        raise LabError(f"`{argv[0]}` cannot be started: {missing}") from missing


def run(
    argv: Sequence[str],
    *,
    timeout_s: float = 60.0,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> str:
    """Run `argv` and return its standard output.

    Raises LabError with the end of its output when it fails or outlives `timeout_s`.
    """
    done = attempt(argv, timeout_s=timeout_s, stdin=stdin, env=env, cwd=cwd)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()[-_SHOWN_OUTPUT:]
        raise LabError(f"`{' '.join(argv)}` ended with {done.returncode}: {said}")
    return done.stdout
