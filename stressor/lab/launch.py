"""Starting the lab's long-lived processes so that none can run unrecorded.

The child waits on its standard input until its pid and start time are in the ledger and it
stands in its cgroups; only then does it become the program.  If this process dies first, the
child reads end of file and ends.  Pid and start time stay the same across exec.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from stressor.lab.errors import LabError
from stressor.lab.ledger import Ledger, Process, alive, start_time

_GATE = 'read -r word && [ "$word" = go ] && exec "$@" </dev/null'


def launch(
    ledger: Ledger,
    role: str,
    argv: Sequence[str],
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    prepare: Callable[[int], None] = lambda pid: None,
) -> Process:
    """Start `argv` in a session of its own, its output in `log`; returns its ledger entry.

    `prepare` gets the pid before the program runs (to place it in cgroups).
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        child = subprocess.Popen(
            ["/bin/sh", "-c", _GATE, "lab-gate", *argv],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **(env or {})},
            cwd="/",
        )
    started = start_time(child.pid)
    if started is None or child.stdin is None:
        raise LabError(f"{role}: the new process ended at once; see {log}")
    process = Process(role, child.pid, started)
    ledger.enter(process)
    prepare(child.pid)
    child.stdin.write(b"go\n")
    child.stdin.close()
    return process


def signal_process(process: Process, number: signal.Signals) -> bool:
    """Send `number` to exactly this process; False when it is gone."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        if not alive(process):
            return False
        signal.pidfd_send_signal(handle, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)


def reap() -> None:
    """Collect ended children, so that they do not look like living processes."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def wait_ended(processes: Sequence[Process], timeout_s: float) -> tuple[Process, ...]:
    """Wait until all have ended; returns those that still run after `timeout_s`."""
    limit = time.monotonic() + timeout_s
    while True:
        reap()
        left = tuple(process for process in processes if alive(process))
        if not left or time.monotonic() > limit:
            return left
        time.sleep(0.05)
