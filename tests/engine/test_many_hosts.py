"""Preflight of a fleet: fifty real sshds' worth of logins, with dead hosts among them."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from stressor.checks.base import Level
from stressor.engine.preflight import WORKING, Inspector
from stressor.model import Host, Role
from stressor.remote.connect import connect
from tests.sshd import running_sshd

pytestmark = [pytest.mark.ssh, pytest.mark.slow, pytest.mark.timeout(120)]
HOSTS = 50
PER_SSHD = 13
LIMIT_S = 30.0
"""The acceptance line of the change that brought it."""


@contextmanager
def silent_port() -> Iterator[int]:
    """Connections are taken by the kernel, and nobody ever says a word."""
    with socket.socket() as mute:
        mute.bind(("127.0.1.1", 0))
        mute.listen(16)
        yield mute.getsockname()[1]


@contextmanager
def hung_port() -> Iterator[int]:
    """An sshd that hangs after its first line: it answers a knock, and nobody gets in."""
    kept: list[socket.socket] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                taken, _ = door.accept()
                kept.append(taken)
                taken.sendall(b"SSH-2.0-hung\r\n")

    with socket.socket() as door:
        door.bind(("127.0.1.1", 0))
        door.listen(64)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield door.getsockname()[1]
        door.shutdown(socket.SHUT_RDWR)
        thread.join(10)
    for one in kept:
        one.close()


@contextmanager
def fleet(folder: Path) -> Iterator[tuple[Host, ...]]:
    """Hosts on addresses of the loopback: to the client each is a host with handshake, login and
    scripts of its own. One sshd listens on 16 addresses at most."""
    with ExitStack() as stack:
        hosts: list[Host] = []
        for first in range(0, HOSTS, PER_SSHD):
            count = min(PER_SSHD, HOSTS - first)
            addresses = [f"127.0.{first + 1}.{at + 1}" for at in range(count)]
            options = (
                *(f"ListenAddress {one}" for one in addresses),
                "MaxStartups 500",
                # bash then leaves .bashrc out: what root keeps there is not what is measured here.
                "SetEnv SHLVL=1",
            )
            sshd = stack.enter_context(running_sshd(folder / f"sshd{first}", *options))
            hosts += [
                Host(f"n{first + at}", (sshd.route(address=one),), frozenset({Role.WORKER}))
                for at, one in enumerate(addresses)
            ]
        yield tuple(hosts)


def test_fifty_hosts_are_asked_in_time_and_dead_ones_delay_nobody(tmp_path: Path) -> None:
    with fleet(tmp_path) as living, silent_port() as dead, hung_port() as hung:
        (route,) = living[0].routes
        mute = [Host(f"dead{at}", (replace(route, port=dead),)) for at in range(4)]
        mute += [Host(f"hung{at}", (replace(route, port=hung),)) for at in range(WORKING)]
        inspector = Inspector(lambda host, way: connect(host, route=way))
        began_s, times = time.monotonic(), {}
        for host, found in inspector.inspect([*mute, *living]):
            times[host.name] = time.monotonic() - began_s
            # On a busy machine a login may be slow, which is said: a WARN.
            failed = [one for one in found if one.check == "login" and one.level is Level.FAIL]
            assert bool(failed) is (host in mute), found
    took_s = max(times[host.name] for host in living)
    assert took_s < LIMIT_S
    assert len(times) == HOSTS + len(mute)
    assert min(times[host.name] for host in living) < min(times[host.name] for host in mute)
