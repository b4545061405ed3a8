"""Streams to a host's loopback, and pages over them or without them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from stressor.model import Host, Transport
from stressor.remote.base import Remote, Stream, TimedOut, Unreachable, UnreachableReason
from stressor.remote.http import HttpError, get
from stressor.remote.scrape import NoPage, Page, Scraper, Way
from tests.contract.remote.conftest import CountingServer
from tests.sshd import Sshd, free_port, running_sshd

DEADLINE_S = 15.0


def stream(remote: Remote, port: int) -> Stream:
    opened = remote.forward(port, deadline_s=DEADLINE_S)
    assert not isinstance(opened, Unreachable | TimedOut), opened
    return opened


def url(web: CountingServer, path: str = "/metrics?x=1") -> str:
    return f"http://127.0.0.1:{web.server_address[1]}{path}"


def page(fetched: object) -> Page:
    assert isinstance(fetched, Page), fetched
    return fetched


def test_a_stream_carries_requests_one_after_the_other(remote: Remote, web: CountingServer) -> None:
    carrier = stream(remote, web.server_address[1])
    for path in ("/one", "/two"):
        answer = get(carrier, path, host="x", deadline_s=DEADLINE_S, limit_bytes=1000)
        assert (answer.status, answer.body) == (200, f"path {path}\n".encode() * 3)
        assert answer.reusable
    carrier.close()
    assert web.accepted == 1


def test_an_answer_that_is_cut_or_too_long_is_no_answer(
    remote: Remote, web: CountingServer
) -> None:
    for path, limit in (("/cut", 2000), ("/long", 10)):
        carrier = stream(remote, web.server_address[1])
        with pytest.raises(HttpError):
            get(carrier, path, host="x", deadline_s=DEADLINE_S, limit_bytes=limit)
        carrier.close()


def test_a_closed_port_of_the_host_is_refused(remote: Remote) -> None:
    refused = remote.forward(free_port(), deadline_s=DEADLINE_S)
    assert isinstance(refused, Unreachable)
    assert refused.reason is UnreachableReason.REFUSED


def test_a_scraper_keeps_its_stream(remote: Remote, web: CountingServer) -> None:
    scraper = Scraper(remote, url(web))
    for _ in range(3):
        fetched = page(scraper.fetch(deadline_s=DEADLINE_S))
        assert fetched.body == b"path /metrics?x=1\n" * 3
        assert (fetched.status, fetched.way) == (200, Way.FORWARD)
    scraper.close()
    assert web.accepted == 1


def test_a_server_that_does_not_listen_is_no_page(remote: Remote) -> None:
    scraper = Scraper(remote, f"http://127.0.0.1:{free_port()}/metrics")
    assert isinstance(scraper.fetch(deadline_s=DEADLINE_S), NoPage)


def test_only_plain_http_to_loopback_is_scraped(remote: Remote) -> None:
    for bad in ("https://127.0.0.1:1/", "http://10.0.0.1/", "file:///etc/passwd"):
        with pytest.raises(ValueError, match="loopback"):
            Scraper(remote, bad)


@pytest.mark.ssh
def test_forbidden_forwarding_has_its_own_reason(
    transport: Transport, forbidding: Sshd, opened: Callable[[Host], Remote], web: CountingServer
) -> None:
    refused = opened(forbidding.host(transport)).forward(
        web.server_address[1], deadline_s=DEADLINE_S
    )
    assert isinstance(refused, Unreachable)
    assert refused.reason is UnreachableReason.FORBIDDEN


@pytest.mark.ssh
@pytest.mark.parametrize(
    ("way", "tools"),
    [
        (Way.CURL, ("curl", "wget", "bash", "timeout")),
        (Way.WGET, ("wget", "bash", "timeout")),
        (Way.BASH, ("bash", "timeout")),
    ],
)
def test_without_forwarding_the_hosts_own_tools_fetch(
    transport: Transport,
    opened: Callable[[Host], Remote],
    web: CountingServer,
    tmp_path: Path,
    way: Way,
    tools: tuple[str, ...],
) -> None:
    tool_path = _path_with(tmp_path / "bin", (*tools, "sh", "env", "cat", "printf"))
    options = ("AllowTcpForwarding no", f"SetEnv PATH={tool_path}")
    with running_sshd(tmp_path / "sshd", *options) as server:
        scraper = Scraper(opened(server.host(transport)), url(web))
        for _ in range(2):
            fetched = page(scraper.fetch(deadline_s=DEADLINE_S))
            assert (fetched.way, fetched.status) == (way, 200)
            assert fetched.body == b"path /metrics?x=1\n" * 3
        missing = Scraper(opened(server.host(transport)), url(web, "/missing"))
        answer = missing.fetch(deadline_s=DEADLINE_S)
        assert isinstance(answer, NoPage) or page(answer).status == 404
        closed = Scraper(opened(server.host(transport)), f"http://127.0.0.1:{free_port()}/")
        assert isinstance(closed.fetch(deadline_s=DEADLINE_S), NoPage)


def _path_with(folder: Path, tools: tuple[str, ...]) -> Path:
    folder.mkdir()
    for tool in tools:
        found = next(p for p in (Path("/usr/bin") / tool, Path("/bin") / tool) if p.exists())
        (folder / tool).symlink_to(found)
    return folder


@pytest.mark.ssh
def test_without_any_tool_there_is_no_page(
    transport: Transport, opened: Callable[[Host], Remote], web: CountingServer, tmp_path: Path
) -> None:
    path = _path_with(tmp_path / "bin", ("sh", "env"))
    options = ("AllowTcpForwarding no", f"SetEnv PATH={path}")
    with running_sshd(tmp_path / "sshd", *options) as server:
        fetched = Scraper(opened(server.host(transport)), url(web)).fetch(deadline_s=DEADLINE_S)
    assert isinstance(fetched, NoPage)
