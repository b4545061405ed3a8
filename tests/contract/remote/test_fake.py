"""The fake keeps the contract as far as a host made of values can."""

import select

import pytest

from stressor.errors import ChannelClosed
from stressor.model import Host
from stressor.remote.base import Completed, Remote, TimedOut, Unreachable, UnreachableReason
from stressor.remote.scrape import NoPage, Page, Scraper, Way
from stressor.testing.remote import FakeChannel, FakeFault, FakeHost, FakeRemote

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nup\n"


def machine() -> FakeHost:
    return FakeHost(
        Host("fake", ()),
        commands={
            ("echo",): lambda argv, stdin: Completed(0, " ".join(argv[1:]).encode(), stdin, 0.0),
            ("echo", "odd"): Completed(3, b"", b"odd\n", 0.0),
        },
        channels={("guard",): lambda line: (f"ack {line}",)},
        ports={2381: lambda request: ANSWER},
    )


def opened(host: FakeHost) -> FakeChannel:
    channel = FakeRemote(host).open_channel(["guard"], deadline_s=1)
    assert isinstance(channel, FakeChannel)
    return channel


def readable(channel: FakeChannel) -> bool:
    return bool(select.select([channel.fileno()], [], [], 0)[0])


def test_the_longest_beginning_of_a_command_wins_and_calls_are_recorded() -> None:
    host = machine()
    remote: Remote = FakeRemote(host)
    assert remote.run(["echo", "a", "b"], deadline_s=1, stdin=b"in") == Completed(
        0, b"a b", b"in", 0.0
    )
    odd = remote.run(["echo", "odd", "more"], deadline_s=1)
    assert isinstance(odd, Completed)
    assert odd.returncode == 3
    missing = remote.run(["no-such-program"], deadline_s=1)
    assert isinstance(missing, Completed)
    assert missing.returncode == 127
    assert host.calls == [("echo", "a", "b"), ("echo", "odd", "more"), ("no-such-program",)]


def test_files_are_kept_with_their_modes() -> None:
    host = machine()
    remote = FakeRemote(host)
    remote.put(b"data", "/run/x", mode=0o600, deadline_s=1)
    assert (host.files, host.modes) == ({"/run/x": b"data"}, {"/run/x": 0o600})
    got, missing = remote.get("/run/x", deadline_s=1), remote.get("/run/y", deadline_s=1)
    assert isinstance(got, Completed)
    assert got.stdout == b"data"
    assert isinstance(missing, Completed)
    assert missing.returncode != 0


def test_a_channel_answers_is_readable_and_ends_after_its_last_line() -> None:
    host = machine()
    channel = opened(host)
    assert not readable(channel)
    channel.send("beat 1")
    assert readable(channel)
    assert channel.receive() == ("ack beat 1",)
    assert not readable(channel)
    channel.send("beat 2")
    host.drop_channels()
    assert channel.receive() == ("ack beat 2",)
    assert readable(channel)
    with pytest.raises(ChannelClosed):
        channel.receive()
    with pytest.raises(ChannelClosed):
        channel.send("beat 3")
    assert channel.sent == ["beat 1", "beat 2"]
    channel.close()
    channel.close()


def test_a_frozen_host_takes_lines_and_answers_nothing() -> None:
    host = machine()
    channel = opened(host)
    host.fault = FakeFault.FROZEN
    channel.send("kill 1")
    assert channel.receive() == ()
    assert FakeRemote(host).run(["echo"], deadline_s=2.5) == TimedOut("fake", 2.5)
    channel.close()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (FakeFault.UNREACHABLE, UnreachableReason.SILENT),
        (FakeFault.KEY_CHANGED, UnreachableReason.KEY_CHANGED),
    ],
)
def test_a_host_that_cannot_be_talked_to_says_so_on_every_verb(
    fault: FakeFault, reason: UnreachableReason
) -> None:
    host = machine()
    host.fault = fault
    remote = FakeRemote(host)
    outcomes = (
        remote.run(["echo"], deadline_s=1),
        remote.put(b"", "/x", mode=0o600, deadline_s=1),
        remote.get("/x", deadline_s=1),
        remote.open_channel(["guard"], deadline_s=1),
        remote.forward(2381, deadline_s=1),
    )
    assert {each.reason for each in outcomes if isinstance(each, Unreachable)} == {reason}
    assert all(isinstance(each, Unreachable) for each in outcomes)
    assert host.files == {}


def test_a_lying_host_ends_with_0_and_does_nothing() -> None:
    host = machine()
    host.fault = FakeFault.LYING
    remote = FakeRemote(host)
    assert remote.run(["echo", "odd"], deadline_s=1) == Completed(0, b"", b"", 0.0)
    remote.put(b"data", "/run/x", mode=0o600, deadline_s=1)
    assert host.files == {}


def test_ports_are_scraped_unless_forwarding_is_forbidden() -> None:
    host = machine()
    page = Scraper(FakeRemote(host), "http://127.0.0.1:2381/metrics").fetch(deadline_s=5)
    assert isinstance(page, Page)
    assert (page.status, page.body, page.way) == (200, b"up\n", Way.FORWARD)
    host.forwards = False
    refused = Scraper(FakeRemote(host), "http://127.0.0.1:2381/metrics").fetch(deadline_s=5)
    assert isinstance(refused, NoPage)
    assert [argv[0] for argv in host.calls] == ["sh", "sh", "bash"]
