"""Hosts by way of the system's OpenSSH client.

One master connection a host carries `run`, `put`, `get` and `forward` as sessions of a multiplexed
connection; it has ServerAlive on it, because a multiplexed client waits for a frozen peer without
end when its master does not notice (measured). A resident channel has an `ssh` of its own.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from stressor.model import Host, Route
from stressor.remote.base import (
    Channel,
    Outcome,
    Stream,
    TimedOut,
    Unreachable,
    UnreachableReason,
)
from stressor.remote.child import (
    Begun,
    Child,
    Ended,
    PipeChannel,
    await_begin,
    end,
    run_child,
    start,
    wait_until,
)
from stressor.remote.command import (
    FilesByRun,
    command_line,
    completed,
    not_begun,
    own_output,
)
from stressor.remote.deadline import Deadline
from stressor.remote.fault import Fault, hops, require_literals
from stressor.remote.openssh_config import (
    KNOWN_SCRIPT,
    TARGET,
    config_text,
    known_hosts_text,
    prints_name,
    prints_text,
)
from stressor.remote.openssh_log import authenticated, fault_in, fault_or_protocol
from stressor.remote.streams import SocketStream
from stressor.remote.trust import Trust, required_trust

T = TypeVar("T")

_SSH_FAILED = 255
_LOOK_S = 0.005
_SETTLE_S = 0.2
_SESSIONS = 8
"""Sessions side by side on one connection; sshd's MaxSessions is 10 by default (sshd_config(5))."""


class Folder:
    """The temporary folder of one route: config, known_hosts, control socket, logs."""

    def __init__(self, route: Route) -> None:
        chain = hops(route)
        require_literals(hop.address for hop in chain)
        self.trusts: tuple[Trust, ...] = tuple(required_trust(hop) for hop in chain)
        self.path = Path(tempfile.mkdtemp(prefix="stressor-ssh-"))
        prints = prints_text(self.trusts, self.path)
        self._write("config", prints + config_text(chain, self.path))
        self._write("known_hosts", known_hosts_text(self.trusts))
        self._write("known.sh", KNOWN_SCRIPT)
        for index, trust in enumerate(self.trusts):
            self._write(prints_name(index), "".join(f"{one}\n" for one in trust.prints))

    def log(self) -> Path:
        """A new, empty file for the messages of one ssh."""
        descriptor, name = tempfile.mkstemp(prefix="log-", dir=self.path)
        os.close(descriptor)
        return Path(name)

    def remove(self) -> None:
        """Delete it."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _write(self, name: str, text: str) -> None:
        descriptor = os.open(self.path / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)


class Master:
    """The connection that carries the sessions of one host."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.socket = Path(tempfile.mktemp(prefix="mux-", dir=folder.path))
        self.log = folder.log()
        self.child = _spawn_master(folder, self.socket, self.log)

    def alive(self) -> bool:
        """Whether the connection is there, as far as ssh has noticed."""
        return self.child.poll() is None

    def up(self, deadline: Deadline) -> None:
        """Wait until it carries sessions. Raises Fault."""
        wait_until(lambda: self.socket.exists() or not self.alive(), deadline, _look_again)
        if not self.alive():
            raise _honest(fault_or_protocol(self.log.read_text(errors="replace")))
        if not self.socket.exists():
            raise Fault(UnreachableReason.SILENT, "no login within the deadline")

    def close(self) -> None:
        """End it without waiting for the peer."""
        end(self.child)


class OpenSshRemote(FilesByRun):
    """A host behind `ssh`. Threads may call side by side."""

    def __init__(self, host: Host, route: Route) -> None:
        self._host, self._route = host, route
        self._lock = threading.Lock()
        self._sessions = threading.BoundedSemaphore(_SESSIONS)
        self._folder: Folder | None = None
        self._master: Master | None = None

    @property
    def host(self) -> Host:
        return self._host

    def run(self, argv: Sequence[str], *, deadline_s: float, stdin: bytes = b"") -> Outcome:
        """See Remote.run. A command that a signal ended has returncode 255, as ssh says it."""
        deadline = Deadline.after(deadline_s)
        command = command_line(self._host, argv)
        try:
            with self._session(deadline):
                return self._run(command, stdin, deadline)
        except Fault as fault:
            return fault.at(self._host)

    def open_channel(
        self, argv: Sequence[str], *, deadline_s: float
    ) -> Channel | Unreachable | TimedOut:
        """See Remote.open_channel. Returns once the process has started."""
        deadline = Deadline.after(deadline_s)
        command = command_line(self._host, argv)
        try:
            return self._open_channel(command, deadline)
        except Fault as fault:
            return fault.at(self._host)

    def forward(self, port: int, *, deadline_s: float) -> Stream | Unreachable | TimedOut:
        """See Remote.forward."""
        deadline = Deadline.after(deadline_s)
        try:
            return self._forward(port, self._up(deadline), deadline)
        except Fault as fault:
            return fault.at(self._host)

    def close(self) -> None:
        """End the connection and remove the temporary folder."""
        with self._lock:
            master, self._master = self._master, None
            folder, self._folder = self._folder, None
        if master is not None:
            master.close()
        if folder is not None:
            folder.remove()

    def _run(self, command: str, stdin: bytes, deadline: Deadline) -> Outcome:
        master, folder = self._up(deadline), self._opened()
        log = folder.log()
        try:
            ended = _run_ssh([*_ssh(folder, log, master.socket), command], stdin, deadline)
            return self._outcome(ended, master, log.read_text(errors="replace"), deadline)
        finally:
            log.unlink(missing_ok=True)

    def _outcome(self, ended: Ended, master: Master, log: str, deadline: Deadline) -> Outcome:
        if ended.returncode is None:
            own = own_output(ended.stdout) or b""
            return TimedOut(self._host.name, deadline.took_s(), own)
        if ended.returncode == _SSH_FAILED:
            _require_connection(master, log)
        took_s = deadline.took_s()
        return completed(self._host, ended.returncode, ended.stdout, ended.stderr, took_s)

    def _open_channel(self, command: str, deadline: Deadline) -> Channel | TimedOut:
        folder = self._opened()
        log = folder.log()
        child = _start_ssh([*_ssh(folder, log, None), command])
        first = await_begin(child, deadline)
        if first.begun:
            return PipeChannel(child, kill=True)
        end(child)
        text = log.read_text(errors="replace")
        if first.exited:
            raise self._why_not(child, first, text)
        if authenticated(text, self._route.address):
            return TimedOut(self._host.name, deadline.took_s())
        raise Fault(UnreachableReason.SILENT, "no login within the deadline")

    def _why_not(self, child: Child, first: Begun, log: str) -> Fault:
        if child.returncode != _SSH_FAILED:
            return not_begun(self._host, child.returncode or 0, first.stderr)
        return _honest(fault_or_protocol(log + first.stderr.decode("utf-8", "replace")))

    def _forward(self, port: int, master: Master, deadline: Deadline) -> Stream:
        folder = self._opened()
        log, before = folder.log(), master.log.stat().st_size
        argv = [*_ssh(folder, log, master.socket, "-v", "-W", f"127.0.0.1:{port}")]
        ours, child = _spawn_forward(argv)
        stream = SocketStream(ours, lambda: _release(child, log))
        # The master answers its client once the host has opened or refused the port, and only
        # `-v` makes the client say so.
        opened = wait_until(
            lambda: _says_opened(log) or child.poll() is not None, deadline, _look_again
        )
        if _says_opened(log):
            return stream
        stream.close()
        if not opened:
            raise Fault(UnreachableReason.SILENT, f"port {port} was not opened in time")
        raise _refused_forward(port, master.log.read_bytes()[before:])

    def _up(self, deadline: Deadline) -> Master:
        if not self._lock.acquire(timeout=deadline.remaining_s()):
            raise Fault(UnreachableReason.SILENT, "another call is still logging in")
        try:
            return self._connected(deadline)
        finally:
            self._lock.release()

    def _connected(self, deadline: Deadline) -> Master:
        master = self._master
        if master is not None and master.alive():
            return master
        self._master = None
        if master is not None:
            master.close()
        fresh = Master(self._require_folder())
        try:
            fresh.up(deadline)
        except Fault:
            fresh.close()
            raise
        self._master = fresh
        return fresh

    def _opened(self) -> Folder:
        with self._lock:
            return self._require_folder()

    def _require_folder(self) -> Folder:
        if self._folder is None:
            self._folder = Folder(self._route)
        return self._folder

    @contextlib.contextmanager
    def _session(self, deadline: Deadline) -> Iterator[None]:
        if not self._sessions.acquire(timeout=deadline.remaining_s()):
            raise Fault(UnreachableReason.SILENT, f"{_SESSIONS} sessions are still busy")
        try:
            yield
        finally:
            self._sessions.release()


def _ssh(folder: Folder, log: Path, mux: Path | None, *options: str) -> list[str]:
    control = "none" if mux is None else str(mux)
    return [
        "ssh", "-F", str(folder.path / "config"), "-E", str(log), "-S", control, "-T",
        *options, TARGET,
    ]  # fmt: skip


def _spawn_master(folder: Folder, mux: Path, log: Path) -> Child:
    argv = _ssh(folder, log, mux, "-M", "-N")
    with log.open("ab") as stderr:
        return _popen(argv, subprocess.DEVNULL, subprocess.DEVNULL, stderr.fileno())


def _spawn_forward(argv: list[str]) -> tuple[socket.socket, Child]:
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            return ours, _popen(argv, theirs.fileno(), theirs.fileno(), subprocess.DEVNULL)
        except Fault:
            ours.close()
            raise


def _popen(argv: list[str], stdin: int, stdout: int, stderr: int) -> Child:
    def spawn() -> Child:
        return subprocess.Popen(
            argv, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
        )

    return _needs_ssh(spawn)


def _start_ssh(argv: list[str]) -> Child:
    return _needs_ssh(lambda: start(argv))


def _run_ssh(argv: list[str], stdin: bytes, deadline: Deadline) -> Ended:
    return _needs_ssh(lambda: run_child(argv, stdin, deadline))


def _needs_ssh(work: Callable[[], T]) -> T:
    try:
        return work()
    except OSError as error:
        detail = f"cannot start ssh: {error.strerror}"
        raise Fault(UnreachableReason.PROTOCOL, detail) from error


def _require_connection(master: Master, log: str) -> None:
    """Raise Fault when status 255 was ssh's own: it says so, or its master is about to be gone
    (the client of a master that lost its peer ends without a word)."""
    fault = fault_in(log)
    if fault is not None:
        raise _honest(fault)
    if wait_until(lambda: not master.alive(), Deadline.after(_SETTLE_S), _look_again):
        raise Fault(UnreachableReason.LOST, "the connection was lost while the command ran")


def _says_opened(log: Path) -> bool:
    return "master session id" in log.read_text(errors="replace")


def _release(child: Child, log: Path) -> None:
    end(child)
    log.unlink(missing_ok=True)


def _refused_forward(port: int, log: bytes) -> Fault:
    fault = fault_or_protocol(log.decode("utf-8", "replace"))
    if fault.reason is UnreachableReason.PROTOCOL and b"connect failed" in log:
        return Fault(UnreachableReason.REFUSED, fault.detail)
    return Fault(fault.reason, f"port {port}: {fault.detail}")


def _honest(fault: Fault) -> Fault:
    # Hosts without any trusted key are refused before ssh starts: where ssh finds none for the
    # type that was shown, the host shows another key than the trusted one.
    if fault.reason is UnreachableReason.KEY_UNKNOWN:
        return Fault(UnreachableReason.KEY_CHANGED, fault.detail)
    return fault


def _look_again() -> None:
    time.sleep(_LOOK_S)
