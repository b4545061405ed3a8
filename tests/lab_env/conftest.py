"""The lab as tests find it and leave it, and what this machine holds before and after it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from stressor.lab import places as p
from stressor.lab.ledger import Ledger, start_time

UP_LIMIT_S = 3600
"""A cold build takes 15 minutes on 2 cores; a warm start under 90 s."""


@dataclass(frozen=True, slots=True)
class Traces:
    """What a lab could leave behind on a machine, by kind."""

    processes: frozenset[str]
    namespaces: frozenset[str]
    mounts: frozenset[str]
    cgroups: frozenset[str]
    interfaces: frozenset[str]
    loops: frozenset[str]


def _processes() -> frozenset[str]:
    """Processes with the marks of a lab: its cgroups, its spindle, or its hosts' launcher."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                groups = (entry / "cgroup").read_text()
            except OSError:
                continue
            started_by_lab = command.startswith("systemd-nspawn ") or "stressor.lab." in command
            # An ended process that init has not collected yet runs nothing and holds nothing.
            running = start_time(int(entry.name)) is not None
            if running and ("/lab-" in groups or started_by_lab):
                found.add(f"{entry.name} {command}")
    return frozenset(found)


def _cgroups() -> frozenset[str]:
    return frozenset(
        where
        for where, _, _ in os.walk("/sys/fs/cgroup")
        if any(part.startswith(("lab-", "stressor-lab")) for part in Path(where).parts)
    )


def _mounts(grounds: tuple[str, ...]) -> frozenset[str]:
    points = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    return frozenset(point for point in points if point.startswith(grounds))


def _loops(grounds: tuple[str, ...]) -> frozenset[str]:
    argv = ("losetup", "--list", "--noheadings", "--output", "BACK-FILE")
    listed = subprocess.run(argv, capture_output=True, text=True).stdout.splitlines()
    return frozenset(line for line in listed if line.strip().startswith(grounds))


def traces() -> Traces:
    """Everything of these kinds that is there right now, on the lab's grounds where they say.

    Other tests may mount and attach things of their own meanwhile; those are not the lab's.
    """
    netns = Path("/run/netns")
    places = p.places()
    grounds = (str(places.state), str(places.cache), "/run/netns/stressor-", "/run/systemd/nspawn")
    return Traces(
        processes=_processes(),
        namespaces=frozenset(os.listdir(netns)) if netns.exists() else frozenset(),
        mounts=_mounts(grounds),
        cgroups=_cgroups(),
        interfaces=frozenset(os.listdir("/sys/class/net")),
        loops=_loops(grounds),
    )


@dataclass(frozen=True, slots=True)
class Lab:
    """The lab's own command line, and what it knows about itself."""

    places: p.Places

    def verb(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        argv = (sys.executable, "-m", "stressor.lab", *words)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=UP_LIMIT_S)
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done

    @property
    def ledger(self) -> Ledger:
        found = Ledger.load(self.places.ledger)
        assert found is not None
        return found

    @property
    def hosts(self) -> tuple[p.Host, ...]:
        return p.hosts(self.ledger.record.nodes)

    def host(self, name: str) -> p.Host:
        return next(host for host in self.hosts if host.name == name)

    def is_up(self) -> bool:
        found = Ledger.load(self.places.ledger)
        return found is not None and found.record.phase == "up"

    def ssh(self, host: p.Host, command: str, limit_s: float = 10.0) -> str:
        options = (
            f"-oUserKnownHostsFile={self.places.known_hosts}",
            "-oStrictHostKeyChecking=yes",
            "-oBatchMode=yes",
            f"-i{self.places.client_key}",
        )
        argv = ("ssh", *options, f"root@{host.address}", command)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=limit_s)
        return done.stdout

    def kubectl(self, *words: str) -> str:
        program = self.ledger.record.facts["programs"]["kubectl"]
        argv = (program, f"--kubeconfig={self.places.kubeconfig}", *words)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout


def wait_until(true: Callable[[], bool], limit_s: float, what: str) -> None:
    """Poll every 100 ms; fails naming `what` after `limit_s`."""
    limit = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < limit, f"not within {limit_s:g} s: {what}"
        time.sleep(0.1)


@pytest.fixture(scope="session")
def lab_as_found() -> Iterator[Lab]:
    """The lab, up or down as it is; at the end it is up again if it was, else down."""
    lab = Lab(p.places())
    was_up = lab.is_up()
    yield lab
    lab.verb("up" if was_up else "down")


@pytest.fixture
def lab(lab_as_found: Lab) -> Iterator[Lab]:
    """The lab, up and well before the test, healed after it."""
    lab_as_found.verb("up")
    yield lab_as_found
    lab_as_found.verb("heal")
