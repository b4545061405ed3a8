"""What an abort found, for programs. Standard library only (I6); made and written after all hosts
had their last word, so that nothing here can hold an abort up."""

import contextlib
import json
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from stressor.errors import ExitCode
from stressor.model import PROVEN, HostProof, HostState

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of an abort. `cluster` is None for hosts from the command line. `jobs_suspended` is
    the API's word after the kill: None where it was not asked, or did not answer in time."""

    code: ExitCode
    cluster: str | None
    run: str
    proofs: Mapping[str, HostProof]
    took_s: float
    jobs_suspended: bool | None
    next_command: str


def repeated() -> str:
    """The command as it was called: an abort is safe to repeat."""
    return shlex.join(("stressor", *sys.argv[1:]))


def render(ending: Ending) -> str:
    """One JSON object, ending in a newline. The verdict is `fail` with survivors, `unknown` while
    any other host is not proven, else `pass`; `run` is null for all runs."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "verdict": _verdict(ending.proofs),
        "exit_code": int(ending.code),
        "next_command": ending.next_command,
        "cluster": ending.cluster,
        "run": None if ending.run == "all" else ending.run,
        "took_s": round(ending.took_s, 3),
        "jobs_suspended": ending.jobs_suspended,
        "hosts": [{**asdict(p), "proven": p.state in PROVEN} for p in ending.proofs.values()],
    }
    return json.dumps(document, indent=2) + "\n"


def _verdict(proofs: Mapping[str, HostProof]) -> str:
    states = {proof.state for proof in proofs.values()}
    if HostState.SURVIVORS in states:
        return "fail"
    return "pass" if states and states <= PROVEN else "unknown"


def put(text: str) -> None:
    """Write to stdout. One that was closed, is full or has no reader costs the text, not the exit
    code: Python would end with 120 when it fails to flush once more."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), sys.stdout.fileno())
