"""Real sshd processes on loopback, each with keys and a folder of its own."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stressor.model import Host, Route, Transport

_START_S = 10.0


@dataclass(frozen=True, slots=True)
class Started:
    """A process by pid and start time, so that nothing else is ever signalled."""

    pid: int
    start_ticks: int

    @classmethod
    def of(cls, pid: int) -> "Started":
        return cls(pid, start_ticks(pid))

    def signal(self, number: int) -> None:
        """Signal it, if it is still the same process."""
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            if start_ticks(self.pid) == self.start_ticks:
                os.kill(self.pid, number)


def start_ticks(pid: int) -> int:
    """Field 22 of /proc/PID/stat, proc(5)."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[19])


def children(pid: int) -> tuple[int, ...]:
    """The pids below `pid`, at any depth."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ()
    direct = tuple(int(word) for word in text.split())
    return tuple(found for child in direct for found in (child, *children(child)))


@dataclass(frozen=True, slots=True)
class Sshd:
    """One running sshd."""

    started: Started
    port: int
    host_key: str
    key_path: str

    def route(self, **changes: object) -> Route:
        """A route to it, pinned."""
        route = Route("127.0.0.1", self.port, "root", self.key_path, self.host_key)
        return replace(route, **changes)  # type: ignore[arg-type]

    def host(self, transport: Transport, **changes: object) -> Host:
        """A host behind it."""
        return Host("loop", (self.route(**changes),), transport=transport)

    def sessions(self) -> tuple[Started, ...]:
        """The processes of its open connections, whatever they run included."""
        found: list[Started] = []
        for pid in children(self.started.pid):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found.append(Started.of(pid))
        return tuple(found)

    @contextlib.contextmanager
    def frozen(self, *, whole: bool = False) -> Iterator[None]:
        """Every open connection stopped, as in a hung machine: TCP goes on acknowledging. `whole`:
        the listener too, so that new connections are silent."""
        stopped = (self.started, *self.sessions()) if whole else self.sessions()
        for process in stopped:
            process.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for process in stopped:
                process.signal(signal.SIGCONT)


def make_key(path: Path) -> str:
    """A new ed25519 key pair; the public key as `type base64`."""
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(argv, check=True, timeout=20, stdin=subprocess.DEVNULL)
    return " ".join(path.with_suffix(".pub").read_text().split()[:2])


@contextlib.contextmanager
def running_sshd(folder: Path, *options: str, keys: Sequence[Path] = ()) -> Iterator[Sshd]:
    """An sshd with its own host and client key, and `options` before the defaults (the first
    value of an option wins, sshd_config(5)). `keys`: these host keys instead of its own."""
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    host_key, client_key = make_key(folder / "host"), make_key(folder / "client")
    (folder / "authorized").write_text(client_key + "\n")
    (folder / "authorized").chmod(0o600)
    port = free_port()
    host_keys = keys or [folder / "host"]
    (folder / "config").write_text(_config(folder, port, options, host_keys))
    log = (folder / "log").open("wb")
    argv = ["/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "config")]
    with log, subprocess.Popen(argv, stderr=log, stdin=subprocess.DEVNULL) as process:
        started = Started.of(process.pid)
        sshd = Sshd(started, port, host_key, str(folder / "client"))
        try:
            _wait_for(port, process, folder / "log")
            yield sshd
        finally:
            for each in (*sshd.sessions(), started):
                each.signal(signal.SIGKILL)


def free_port() -> int:
    """A port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _config(folder: Path, port: int, options: tuple[str, ...], keys: Sequence[Path]) -> str:
    lines = [
        *options,
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        *(f"HostKey {key}" for key in keys),
        f"AuthorizedKeysFile {folder / 'authorized'}",
        "UsePAM no",
        "UseDNS no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "StrictModes no",
        "PidFile none",
        "PermitRootLogin prohibit-password",
        "MaxStartups 100",
        "PerSourcePenalties no" if _knows_penalties() else "",
    ]
    return "\n".join(lines) + "\n"


def _knows_penalties() -> bool:
    asked = ["/usr/sbin/sshd", "-T", "-f", "/dev/null", "-h", "/dev/null"]
    said = subprocess.run(asked, capture_output=True, timeout=20, check=False)
    return b"persourcepenalties" in said.stdout


def _wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end_s = time.monotonic() + _START_S
    while time.monotonic() < end_s and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise RuntimeError(f"sshd did not start: {log.read_text()}")
