"""Resident channels, the same on every backend."""

import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from stressor.errors import ChannelClosed
from stressor.model import Host, Transport
from stressor.remote.base import Channel, Remote, TimedOut, Unreachable
from tests.sshd import Sshd

DEADLINE_S = 15.0
ECHO = ["sh", "-c", 'echo ready; while read -r line; do echo "got $line"; done; echo bye']


def channel(remote: Remote, argv: list[str]) -> Channel:
    opened = remote.open_channel(argv, deadline_s=DEADLINE_S)
    assert not isinstance(opened, Unreachable | TimedOut), opened
    return opened


def lines(peer: Channel, count: int, within_s: float = DEADLINE_S) -> list[str]:
    """The next `count` lines, waiting on the descriptor alone."""
    got: list[str] = []
    end_s = time.monotonic() + within_s
    while len(got) < count and (left_s := end_s - time.monotonic()) > 0:
        select.select([peer.fileno()], [], [], left_s)
        got += peer.receive()
    return got


def talk_on(peer: Channel) -> None:
    for _ in range(50):
        peer.send("anybody there")
        time.sleep(0.02)


def flood(peer: Channel) -> None:
    """Send 64 MiB to a peer that does not read; no send may take its time."""
    for _ in range(8192):
        before_s = time.monotonic()
        peer.send("x" * 8191)
        assert time.monotonic() - before_s < 0.5


def test_a_channel_speaks_in_lines(remote: Remote) -> None:
    peer = channel(remote, ECHO)
    try:
        assert lines(peer, 1) == ["ready"]
        peer.send("one")
        assert lines(peer, 1) == ["got one"]
        peer.send("zwei 'ü' $HOME")
        assert lines(peer, 1) == ["got zwei 'ü' $HOME"]
        assert peer.receive() == ()
    finally:
        peer.close()


def test_many_lines_arrive_whole_and_in_order(remote: Remote) -> None:
    peer = channel(remote, ECHO)
    try:
        lines(peer, 1)
        for number in range(500):
            peer.send(f"{number} {'x' * 60}")
        assert lines(peer, 500) == [f"got {n} {'x' * 60}" for n in range(500)]
    finally:
        peer.close()


def test_the_end_comes_after_the_last_line(remote: Remote) -> None:
    peer = channel(remote, ["sh", "-c", "echo last words; echo why >&2"])
    try:
        assert lines(peer, 1) == ["last words"]
        with pytest.raises(ChannelClosed):
            lines(peer, 1)
        with pytest.raises(ChannelClosed):
            talk_on(peer)
    finally:
        peer.close()


def test_nothing_goes_through_a_channel_that_was_closed_here(remote: Remote) -> None:
    peer = channel(remote, ECHO)
    peer.close()
    peer.close()
    with pytest.raises(ChannelClosed):
        peer.send("one")
    with pytest.raises(ChannelClosed):
        peer.receive()


def test_the_process_sees_the_end_of_its_input_when_the_channel_closes(
    remote: Remote, tmp_path: Path
) -> None:
    seen = tmp_path / "eof"
    peer = channel(remote, ["sh", "-c", 'echo ready; cat; echo eof > "$1"', "sh", str(seen)])
    lines(peer, 1)
    peer.close()
    end_s = time.monotonic() + DEADLINE_S
    while not seen.exists() and time.monotonic() < end_s:
        time.sleep(0.02)
    assert seen.exists()


def test_a_line_end_inside_a_line_is_a_mistake_of_the_caller(remote: Remote) -> None:
    peer = channel(remote, ECHO)
    try:
        with pytest.raises(ValueError, match="line end"):
            peer.send("one\ntwo")
    finally:
        peer.close()


def test_a_peer_that_does_not_read_blocks_nobody_and_is_gone_at_the_limit(remote: Remote) -> None:
    peer = channel(remote, ["sh", "-c", "echo $$; exec sleep 60"])
    pid = int(lines(peer, 1)[0])
    try:
        with pytest.raises(ChannelClosed, match="has not read"):
            flood(peer)
    finally:
        peer.close()
        os.kill(pid, signal.SIGKILL)


@pytest.mark.ssh
def test_sends_to_a_frozen_session_return_at_once(
    own_sshd: Sshd, transport: Transport, opened: Callable[[Host], Remote]
) -> None:
    peer = channel(opened(own_sshd.host(transport)), ECHO)
    try:
        lines(peer, 1)
        with own_sshd.frozen():
            start_s = time.monotonic()
            for _ in range(1000):
                peer.send("x" * 50)
            assert peer.receive() == ()
            assert time.monotonic() - start_s < 1.0
    finally:
        peer.close()


@pytest.mark.ssh
def test_closing_a_channel_to_a_frozen_session_does_not_wait(
    own_sshd: Sshd, transport: Transport, opened: Callable[[Host], Remote]
) -> None:
    peer = channel(opened(own_sshd.host(transport)), ECHO)
    with own_sshd.frozen():
        start_s = time.monotonic()
        peer.close()
        assert time.monotonic() - start_s < 0.5


@pytest.mark.ssh
def test_a_killed_session_closes_the_channel(
    own_sshd: Sshd, transport: Transport, opened: Callable[[Host], Remote]
) -> None:
    peer = channel(opened(own_sshd.host(transport)), ECHO)
    try:
        assert lines(peer, 1) == ["ready"]
        for process in own_sshd.sessions():
            process.signal(signal.SIGKILL)
        with pytest.raises(ChannelClosed):
            lines(peer, 1)
    finally:
        peer.close()


@pytest.mark.ssh
def test_a_channel_does_not_share_the_connection_of_commands(
    own_sshd: Sshd, transport: Transport, opened: Callable[[Host], Remote]
) -> None:
    remote = opened(own_sshd.host(transport))
    remote.run(["true"], deadline_s=DEADLINE_S)
    before = {process.pid for process in own_sshd.sessions()}
    peer = channel(remote, ECHO)
    try:
        lines(peer, 1)
        for process in own_sshd.sessions():
            if process.pid in before:
                process.signal(signal.SIGKILL)
        peer.send("still here")
        assert lines(peer, 1) == ["got still here"]
    finally:
        peer.close()


def test_a_process_that_says_nothing_has_begun_at_once(remote: Remote) -> None:
    start_s = time.monotonic()
    channel(remote, ["cat"]).close()
    assert time.monotonic() - start_s < 3.0
