"""`abort-CLUSTER.sh`: the cold abort of a cluster as a file of plain sh, beside the lifeline file.

For machines without Python. It is written anew whenever stressor learns of a cluster's hosts, and
carries what it needs: the kill script, an ssh_config and the host keys of every route. Data reaches
the shell through `shlex.quote` and nowhere else.
"""

import itertools
import os
import re
import shlex
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from stressor.errors import ConfigError
from stressor.guard.script import kill_argv
from stressor.lifeline import Lifeline, path_of, read, refresh
from stressor.model import Host, Route, Transport
from stressor.remote.command import elevated
from stressor.remote.fault import Fault, hops, require_literals
from stressor.remote.openssh_config import known_hosts_text, open_config_text
from stressor.remote.trust import fingerprints, required_trust

_TAIL = ("all", "script", "0.00")
"""The last words of the kill's argv; the script puts its own run and seconds there."""


def script_path(state: Path, cluster: str) -> Path:
    """Where the script of `cluster` is. Raises ConfigError for a name that cannot be a file's."""
    return path_of(state, cluster).with_name(f"abort-{cluster}.sh")


def publish(state: Path, cluster: str, hosts: tuple[Host, ...], now_unix_s: float) -> Path:
    """Write what is known of the cluster's hosts: the lifeline file, and the script beside it.
    The lifeline file's path. Raises ConfigError as `lifeline.refresh`, and for a full disk."""
    path = refresh(state, cluster, hosts, now_unix_s)
    write_script(state, read(path))
    return path


def write_script(state: Path, lifeline: Lifeline) -> Path:
    """Write the script of a lifeline, whole or not at all; mode 0700. Raises ConfigError."""
    path = script_path(state, lifeline.cluster)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o700)
        with open(fd, "w", encoding="utf-8") as file:
            file.write(script_text(lifeline))
            file.flush()
            os.fsync(fd)
        temporary.replace(path)
    except OSError as error:
        raise ConfigError((f"{path}: cannot be written: {error.strerror}",)) from error
    return path


def script_text(lifeline: Lifeline) -> str:
    """The script for all hosts of the lifeline file. A route that cannot be written into it (no
    known host key, a key under a fingerprint alone) is said as such when the script runs."""
    head = files("stressor.engine").joinpath("abort_head.sh").read_text(encoding="utf-8")
    return "\n".join(("#!/bin/sh", head, *_body(lifeline)))


def _body(lifeline: Lifeline) -> Iterator[str]:
    kill = kill_argv("all", "script", 0.0)
    assert kill[-3:] == _TAIL
    yield f"kill_root={shlex.quote(shlex.join(kill[:-3]))}"
    sudo = elevated(Host("", (), become=True), kill[:-3])
    yield f"kill_sudo={shlex.quote(shlex.join(sudo))}"
    count = len(lifeline.hosts)
    yield f"echo {shlex.quote(shown(f'ABORT  cluster {lifeline.cluster}, {count} hosts'))}"
    for number, host in enumerate(lifeline.hosts, 1):
        yield from _host(number, host)
    yield "wait"
    yield f"verdict {count}\n"


def _host(number: int, host: Host) -> Iterator[str]:
    """A background job of this host: its routes in order, until one of them brings an answer."""
    yield f"# {shown(host.name)}"
    yield from (f"#   {shown(line)}" for line in by_hand(host))
    yield "("
    yield f": >{_work(number, 'log')}"
    yield "STATE='' STOPPED=''"
    prefix = '"$kill_sudo"' if host.become else '"$kill_root"'
    if host.transport is Transport.LOCAL:
        yield f"here {number} {prefix}"
    else:
        yield " || ".join([*(_way(number, route, prefix) for route in host.routes), ":"])
    yield f"told {number} {shlex.quote(shown(host.name))}"
    yield ") &"


def by_hand(host: Host) -> Iterator[str]:
    """For each route of `host` with known keys all along the way, the abort that needs no file of
    this machine. It has one private key for the jump hosts and one for the host itself."""
    for route in host.routes:
        chain = hops(route)
        known = [fingerprints(hop) for hop in chain]
        keys = {hop.key_path for hop in chain[:-1]}
        if not all(known) or len(keys) > 1:
            continue
        words = ["stressor", "abort", "--host", route.address, "--user", route.user]
        words += ["--port", str(route.port)] if route.port != 22 else []
        words += ["--key", route.key_path] if route.key_path else []
        words += ["--sudo"] if host.become else []
        for hop in chain[:-1]:
            words += ["--jump", _jump(hop)]
        for key in keys - {None, route.key_path}:
            words += ["--jump-key", str(key)]
        for one in dict.fromkeys(itertools.chain(*known)):
            words += ["--host-key", one]
        yield shlex.join(words)


def _jump(hop: Route) -> str:
    address = f"[{hop.address}]" if ":" in hop.address else hop.address
    return f"{hop.user}@{address}:{hop.port}"


def _way(number: int, route: Route, prefix: str) -> str:
    try:
        chain = hops(route)
        require_literals(hop.address for hop in chain)
        trusts = tuple(required_trust(hop) for hop in chain)
        if not all(trust.keys for trust in trusts):
            return _impossible(number, "only a fingerprint of its host key is known")
        config, known = open_config_text(chain), known_hosts_text(trusts)
    except Fault as fault:
        return _impossible(number, fault.detail)
    return f"way {number} {shlex.quote(config.rstrip())} {shlex.quote(known.rstrip())} {prefix}"


def _impossible(number: int, why: str) -> str:
    """A route that cannot be gone from here, and says so."""
    return f"{{ echo {shlex.quote(shown(why))} >{_work(number, 'log')}; false; }}"


def _work(number: int, name: str) -> str:
    return f'"$work/{number}.{name}"'


def shown(text: str) -> str:
    """Fit for a comment or a line of the screen: no control characters, nothing but ASCII."""
    return re.sub(r"[^ -~]", "?", text)
