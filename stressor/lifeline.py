"""The lifeline file: what an emergency needs to know of a cluster, in one JSON file.

`abort`, `diagnose` and `recover` read it with nothing but the standard library, no DNS and no
prompt (I6). It holds IP addresses and the paths of keys, never a key: reading it needs no secret,
using it needs the operator's own. Preflight writes it; a run adds itself before its first load.
"""

import fcntl
import hashlib
import ipaddress
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from stressor.errors import ConfigError
from stressor.model import Host, Role, Route, Transport

SCHEMA = 1
RUNS_KEPT = 20
DRILLS_KEPT = 1000
LOCK_WAIT_S = 2.0
_CLUSTER = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run that may have load on the cluster: `hosts` are those with a guard. `deadline_unix_s` is
    the worst-case end of its load. `closed_unix_s` is None while nobody has proven it over.
    `kubeconfig_path` is a list as in KUBECONFIG: the files that the run's API was found in."""

    run: str
    started_unix_s: float
    deadline_unix_s: float
    journal_path: str
    namespace: str
    kubeconfig_path: str | None
    hosts: tuple[str, ...]
    closed_unix_s: float | None = None
    context: str | None = None


@dataclass(frozen=True, slots=True)
class DrillEntry:
    """The last drill of a host in which every way of `ways` was proven. `access` is `access_of` the
    host as it was drilled: another way in than that has not been tried."""

    host: str
    at_unix_s: float
    ways: tuple[str, ...]
    access: str


@dataclass(frozen=True, slots=True)
class Lifeline:
    """One cluster. `runs` are the latest RUNS_KEPT, oldest first; `drills` has one entry a host."""

    cluster: str
    written_unix_s: float
    hosts: tuple[Host, ...]
    runs: tuple[RunEntry, ...] = ()
    drills: tuple[DrillEntry, ...] = ()

    @property
    def open_runs(self) -> tuple[RunEntry, ...]:
        """The runs that nobody has proven over."""
        return tuple(run for run in self.runs if run.closed_unix_s is None)


def access_of(host: Host) -> str:
    """A short digest of the ways into a host: routes, keys, sudo, transport."""
    known = (asdict(host)["routes"], host.become, str(host.transport))
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:16]


def state_dir(env: Mapping[str, str]) -> Path:
    """`$STRESSOR_STATE`, else `$XDG_STATE_HOME/stressor`, else `~/.local/state/stressor`. A
    relative XDG folder is ignored, as the XDG Base Directory Specification asks."""
    if env.get("STRESSOR_STATE"):
        return Path(env["STRESSOR_STATE"]).absolute()
    base = env.get("XDG_STATE_HOME", "")
    if base.startswith("/"):
        return Path(base) / "stressor"
    home = Path(env["HOME"]) if env.get("HOME") else Path("~").expanduser()
    return home / ".local" / "state" / "stressor"


def runs_dir(state: Path) -> Path:
    """Where the folders of all runs are."""
    return state / "runs"


def journal_path(state: Path, run: str) -> Path:
    """The journal of `run`, whether it exists or not."""
    return runs_dir(state) / run / "journal.jsonl"


def path_of(state: Path, cluster: str) -> Path:
    """Where the file of `cluster` is. Raises ConfigError for a name that cannot be a file's."""
    if not _CLUSTER.fullmatch(cluster):
        raise ConfigError((f"`{cluster}` is no cluster name",))
    return state / "lifeline" / f"{cluster}.json"


def known_clusters(state: Path) -> tuple[str, ...]:
    """The clusters that have a lifeline file, by name."""
    return tuple(sorted(path.stem for path in (state / "lifeline").glob("*.json")))


def read(path: Path) -> Lifeline:
    """The file at `path`. Raises ConfigError, with the remedy, when it is missing or damaged."""
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError((f"{path}: cannot be read: {error.strerror}",)) from error
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "not JSON") from error
    try:
        return _lifeline(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(path, f"{type(error).__name__} {error}") from error


def permission_warning(path: Path) -> str | None:
    """What is wrong with who may change the file, as the rest of a sentence that begins with its
    name; None for one that is not there. Whoever can change it, chooses where abort logs in.
    Raises nothing: a warning must not keep an abort from its work."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"cannot be checked: {error.strerror}"
    return permission_flaw(status.st_uid, status.st_mode, os.geteuid())


def permission_flaw(owner_uid: int, mode: int, own_uid: int) -> str | None:
    """`permission_warning` for a file that is there. Short enough for a line of abort's screen."""
    if owner_uid not in (0, own_uid):
        return f"belongs to uid {owner_uid}: is it yours?"
    if stat.S_IMODE(mode) & 0o077:
        return "is open to others: chmod 600 it"
    return None


def write(state: Path, lifeline: Lifeline) -> Path:
    """Write the file as a whole, or leave the old one: temporary name, fsync, rename. Mode 0600.
    Raises ConfigError for an address that is no IP address or a disk that refuses."""
    path = path_of(state, lifeline.cluster)
    try:
        for host in lifeline.hosts:
            _check_addresses(host.name, host.routes)
    except ValueError as error:
        raise ConfigError((f"{path}: {error}",)) from error
    kept = replace(lifeline, runs=lifeline.runs[-RUNS_KEPT:])
    text = json.dumps({"schema": SCHEMA, **asdict(kept)}, indent=1, default=_plain)
    try:
        _replace_file(path, text.encode("ascii") + b"\n")
    except OSError as error:
        raise ConfigError((f"{path}: cannot be written: {error.strerror}",)) from error
    return path


def refresh(state: Path, cluster: str, hosts: tuple[Host, ...], now_unix_s: float) -> Path:
    """Write what is known of the hosts now. The runs of an existing file stay, and so do the hosts
    of its open runs that `hosts` lacks: an abort has to reach them. Raises ConfigError when the
    file is damaged: its runs would be lost in silence."""
    path = path_of(state, cluster)
    with _locked(path):
        known = read(path) if path.exists() else Lifeline(cluster, now_unix_s, ())
        named = {host.name for host in hosts}
        needed = {name for run in known.open_runs for name in run.hosts} - named
        kept = tuple(host for host in known.hosts if host.name in needed)
        # Drills stay, those of hosts that are not named now as well: each is bound to its access.
        drilled = known.drills[-DRILLS_KEPT:]
        return write(state, Lifeline(cluster, now_unix_s, (*hosts, *kept), known.runs, drilled))


def record_run(state: Path, cluster: str, entry: RunEntry) -> Path:
    """Add the run, or replace what is known of it. Raises ConfigError as `read` and `write`."""
    return _with_runs(
        state, cluster, lambda runs: (*(r for r in runs if r.run != entry.run), entry)
    )


def close_run(state: Path, cluster: str, run: str, now_unix_s: float) -> Path:
    """Say that the run is proven over; an unknown run changes nothing."""
    return _with_runs(
        state,
        cluster,
        lambda runs: tuple(
            replace(r, closed_unix_s=now_unix_s) if r.run == run else r for r in runs
        ),
    )


def record_drills(state: Path, cluster: str, entries: tuple[DrillEntry, ...]) -> Path:
    """Put these drills in place of what is known of their hosts. Raises as `read` and `write`."""
    path, drilled = path_of(state, cluster), {entry.host for entry in entries}
    with _locked(path):
        known = read(path)
        kept = tuple(drill for drill in known.drills if drill.host not in drilled)
        return write(state, replace(known, drills=(*kept, *entries)))


_Runs = tuple[RunEntry, ...]


def _with_runs(state: Path, cluster: str, change: Callable[[_Runs], _Runs]) -> Path:
    path = path_of(state, cluster)
    with _locked(path):
        known = read(path)
        return write(state, replace(known, runs=change(known.runs)))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Two writers of one file take turns. Readers never lock: abort waits for nobody."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError((f"{path}: cannot be written: {error.strerror}",)) from error
    try:
        _lock(fd, path)
        yield
    finally:
        os.close(fd)


def _lock(fd: int, path: Path) -> None:
    give_up = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > give_up:
                raise ConfigError((f"{path}: another process holds its lock",)) from error
            time.sleep(0.02)


def _replace_file(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(fd)
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _plain(value: object) -> object:
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"a {type(value).__name__} has no place in a lifeline file")


def _check_addresses(name: str, routes: tuple[Route, ...]) -> None:
    for route in routes:
        try:
            ipaddress.ip_address(route.address)
        except ValueError as error:
            message = f"host {name}: `{route.address}` is no IP address: abort asks no DNS"
            raise ValueError(message) from error
        _check_addresses(name, route.jumps)


def _damaged(path: Path, what: str) -> ConfigError:
    remedy = "move it aside and run `stressor run`; meanwhile `stressor abort --host IP` works"
    return ConfigError((f"{path}: damaged ({what}): {remedy}",))


def _lifeline(data: dict[str, object]) -> Lifeline:
    if data["schema"] != SCHEMA:
        raise ValueError(f"schema {data['schema']}, this program knows {SCHEMA}")
    kept = _known(Lifeline, data)
    hosts, runs = _list(kept.pop("hosts")), _list(kept.pop("runs", []))
    drills = _list(kept.pop("drills", []))
    return Lifeline(
        **kept,
        hosts=tuple(_host(host) for host in hosts),
        runs=tuple(_run(run) for run in runs),
        drills=tuple(_drill(drill) for drill in drills),
    )


def _host(data: dict[str, object]) -> Host:
    kept = _known(Host, data)
    host = Host(
        **{
            **kept,
            "routes": tuple(_route(route) for route in _list(kept["routes"])),
            "roles": frozenset(Role(role) for role in _list(kept["roles"])),
            "transport": Transport(kept["transport"]),
            "fence": tuple(str(word) for word in _list(kept.get("fence", []))),
        }
    )
    _check_addresses(host.name, host.routes)
    return host


def _route(data: dict[str, object]) -> Route:
    kept = _known(Route, data)
    jumps = tuple(_route(jump) for jump in _list(kept.pop("jumps", [])))
    route = Route(**kept, jumps=jumps)
    if not isinstance(route.address, str) or not isinstance(route.port, int):
        raise TypeError(f"route to {route.address!r} port {route.port!r}")
    return route


def _run(data: dict[str, object]) -> RunEntry:
    kept = _known(RunEntry, data)
    return RunEntry(**{**kept, "hosts": tuple(_list(kept["hosts"]))})


def _drill(data: dict[str, object]) -> DrillEntry:
    kept = _known(DrillEntry, data)
    return DrillEntry(**{**kept, "ways": tuple(_list(kept["ways"]))})


def _list(value: object) -> list:  # type: ignore[type-arg]
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value


def _known(record: type, data: dict[str, object]) -> dict:  # type: ignore[type-arg]
    """The fields that this program knows: a newer one may have written more."""
    names = {field.name for field in fields(record)}
    return {name: value for name, value in data.items() if name in names}
