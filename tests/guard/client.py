"""A client of the guard for tests: sends lines, waits for lines, with bounds on every wait."""

import inspect
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from pathlib import Path

from stressor.guard.protocol import Message, ProofLine, SurvivorLine, parse
from stressor.guard.script import Shell, guard_argv, kill_argv

BOUND = ("timeout", "-s", "KILL", "60")


class GuardClient:
    """One guard process and what it said."""

    def __init__(self, state: Path, shell: Shell, *, into: Path | None = None) -> None:
        self.state = state
        self.said: list[str] = []
        self._rest = b""
        argv = [*BOUND, *guard_argv(shell, state_dir=str(state))]
        if into is not None:
            argv = ["sh", "-c", f'echo $$ > {into}/cgroup.procs; exec "$@"', "sh", *argv]
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def hang_up(self) -> None:
        """Close both ends, as a channel does that breaks."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()

    def wait_for(self, start: str, *, within_s: float = 8.0) -> str:
        """The next line that starts with `start`; everything on the way is kept in `said`."""
        until = time.monotonic() + within_s
        while (left := until - time.monotonic()) > 0:
            line = self._next(left)
            if line is not None and line.startswith(start):
                return line
        raise AssertionError(f"no {start!r} in {within_s} s, but {self.said}")

    def _next(self, left_s: float) -> str | None:
        assert self.process.stdout is not None
        while b"\n" not in self._rest:
            if not select.select([self.process.stdout], [], [], left_s)[0]:
                return None
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise AssertionError(f"the guard closed its output after {self.said}")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        self.said.append(line.decode())
        return self.said[-1]

    def ask(self, line: str, *, within_s: float = 8.0) -> str:
        """Send, and return the answer to it."""
        self.send(line)
        return self.wait_for(f"{line.split()[0]} ", within_s=within_s)

    def arm(self, run: str, *, left_s: float = 40, beat_s: float = 30, who: str = "") -> str:
        answer = self.ask(f"1 arm {run} {left_s} {beat_s} {who}".rstrip(), within_s=15)
        assert answer.startswith("1 ok arm cgroup="), answer
        return answer

    def proof(self, sequence: int, *, within_s: float = 8.0) -> ProofLine:
        line = parse(self.wait_for(f"! proof {sequence} ", within_s=within_s))
        assert isinstance(line, ProofLine)
        return line

    def kill(self, sequence: int, reason: str = "test") -> ProofLine:
        assert self.ask(f"{sequence} kill {reason}") == f"{sequence} ok kill"
        return self.proof(sequence)

    def survivors(self, sequence: int) -> list[SurvivorLine]:
        lines = [parse(line) for line in self.said]
        return [m for m in lines if isinstance(m, SurvivorLine) and m.sequence == sequence]

    def messages(self) -> list[Message]:
        return [parse(line) for line in self.said]

    def children(self) -> list[int]:
        """The guard's own pid and those of its helpers: everything in its session."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and _session(entry) == self.process.pid:
                found.append(int(entry.name))
        return sorted(found)

    def end(self) -> None:
        for _ in range(2):
            for pid in self.children():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        self.process.wait(timeout=10)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:
                continue


def _session(entry: Path) -> int:
    try:
        text = (entry / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(text.rpartition(") ")[2].split()[3])


@contextmanager
def guard(state: Path, shell: Shell, *, into: Path | None = None) -> Iterator[GuardClient]:
    """A guard that is ended by pid, with all its helpers, whatever the test does."""
    client = GuardClient(state, shell, into=into)
    try:
        yield client
    finally:
        client.end()


def at_once(*shells: Shell) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A test of `state` and `shell` under several shells at the same time, each with a state folder
    of its own: for tests that mostly wait."""
    chosen = shells or (Shell.DASH, Shell.BUSYBOX, Shell.BASH)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def under_all(state: Path, **given: object) -> None:
            with ThreadPoolExecutor(len(chosen)) as pool:
                runs = [pool.submit(test, state / shell, shell, **given) for shell in chosen]
            failed = [(s, e) for s, r in zip(chosen, runs, strict=True) if (e := r.exception())]
            for shell, error in failed:
                error.add_note(f"under {shell}")
                raise error

        signature = inspect.signature(test)
        kept = [p for name, p in signature.parameters.items() if name != "shell"]
        under_all.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return under_all

    return decorate


def cold_kill(
    state: Path, run: str, shell: Shell, *, left_s: float = 0
) -> tuple[int, list[str], float]:
    """The one-shot kill: exit code, lines, seconds until it returned with its output closed."""
    argv = kill_argv(run, "test", left_s, shell=shell, state_dir=str(state))
    start = time.monotonic()
    done = subprocess.run([*BOUND, *argv], capture_output=True, timeout=30, check=False)
    return done.returncode, done.stdout.decode().splitlines(), time.monotonic() - start
