"""The sleep of a drill: marked, bounded, in a scope where there is one, and honest where not."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from stressor.engine.sleeper import Place, Sleeper, begin, gone
from stressor.model import Host
from stressor.remote.base import Completed, TimedOut, Unreachable, UnreachableReason
from stressor.testing.remote import Command, FakeFault, FakeHost, FakeRemote
from tests.guard.trees import eventually

BUSYBOX = shutil.which("busybox")
SECONDS = 20
OTHER_WORDS = 'while :; do case $1 in -*) shift ;; *) break ;; esac; done; exec "$@"'
"""A program that runs the words behind its options, as systemd-run and unshare do."""


def locally(programs: Path) -> Command:
    """Runs what is asked of a host on this machine, with these programs before its own."""

    def run(argv: tuple[str, ...], stdin: bytes) -> Completed:
        words = [word.replace(" PATH=", f" PATH={programs}:", 1) for word in argv]
        done = subprocess.run(words, input=stdin, capture_output=True, timeout=40, check=False)
        return Completed(done.returncode, done.stdout, done.stderr, 0.0)

    return run


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder of programs: no systemd, and an unshare that needs no root."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program(folder, "unshare", OTHER_WORDS)
    program(
        folder, "systemd-run", "echo first; echo 'Unknown assignment: RuntimeMaxSec=20' >&2; exit 1"
    )
    return folder


def program(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "$@" >>{folder}/{name}.words\n{body}\n')
    path.chmod(0o755)


def host(programs: Path) -> FakeRemote:
    return FakeRemote(FakeHost(Host("n1", ()), {("sh", "-c"): locally(programs)}))


def end(sleeper: Sleeper) -> None:
    os.kill(sleeper.pid, signal.SIGKILL)


def started(remote: FakeRemote) -> Sleeper:
    sleeper = begin(remote, "dtestc", seconds=SECONDS)
    assert isinstance(sleeper, Sleeper), sleeper
    return sleeper


def test_a_sleep_is_marked_and_bounded_and_its_end_is_seen(programs: Path) -> None:
    remote = host(programs)
    sleeper = started(remote)
    try:
        said = Path(f"/proc/{sleeper.pid}/cmdline").read_bytes().split(b"\0")
        assert said[:5] == [b"timeout", b"-s", b"KILL", b"20", b"sleep"]
        assert b"STRESSOR_RUN=dtestc" in Path(f"/proc/{sleeper.pid}/environ").read_bytes()
        assert sleeper.place is Place.NAMESPACE
        assert gone(remote, sleeper) is False
    finally:
        end(sleeper)
    assert eventually(lambda: gone(remote, sleeper) is True)


def test_i2_where_there_is_systemd_the_scope_is_the_runs_and_has_a_limit(programs: Path) -> None:
    program(programs, "systemd-run", OTHER_WORDS)
    sleeper = started(host(programs))
    end(sleeper)
    tried, used = (programs / "systemd-run.words").read_text().splitlines()
    assert sleeper.place is Place.SCOPE
    assert tried.endswith("--scope --property=RuntimeMaxSec=20 true")
    assert "--scope --unit=stressor-dtestc --property=RuntimeMaxSec=20 env STRESSOR_RUN=" in used


@pytest.mark.skipif(BUSYBOX is None, reason="no busybox here")
def test_busyboxs_timeout_that_becomes_the_sleep_is_recognised(programs: Path) -> None:
    for name in ("timeout", "sleep", "env", "setsid"):
        (programs / name).symlink_to(str(BUSYBOX))
    sleeper = started(host(programs))
    try:
        assert Path(f"/proc/{sleeper.pid}/comm").read_text() == "sleep\n"
    finally:
        end(sleeper)


def test_where_nothing_starts_every_reason_is_said(programs: Path) -> None:
    program(programs, "unshare", "exit 1")
    assert begin(host(programs), "dtestc", seconds=SECONDS) == (
        "no sleep could be started: systemd-run: Unknown assignment: RuntimeMaxSec=20, "
        "no sleep in a namespace of its own"
    )


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (TimedOut("n1", 20.0), "no answer within 20 s"),
        (Unreachable("n1", UnreachableReason.REFUSED, "port 22"), "refused: port 22"),
        (Completed(0, b"stressor-facts drill\npid=1\n", b"", 0.0), "the answer was cut off"),
        (Completed(0, b"stressor-facts drill\npid=1\nend drill\n", b"", 0.0), "ended at once"),
    ],
)
def test_i4_without_a_whole_answer_there_is_no_sleep(
    outcome: Completed | TimedOut | Unreachable, words: str
) -> None:
    said = begin(FakeRemote(FakeHost(Host("n1", ()), {("sh",): outcome})), "dtestc")
    assert isinstance(said, str)
    assert words in said


@pytest.mark.parametrize("fault", [FakeFault.UNREACHABLE, FakeFault.FROZEN, FakeFault.LYING])
def test_i4_no_answer_does_not_say_that_the_sleep_is_gone(fault: FakeFault) -> None:
    remote = FakeRemote(FakeHost(Host("n1", ()), fault=fault))
    assert gone(remote, Sleeper(remote.host, "dtestc", 4242, "777")) is None
