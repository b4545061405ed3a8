"""Fetching a page from a host's own loopback, again and again.

A forwarded stream first, kept open between fetches (a login a second would cost the host more than
monitoring may, I10). Where sshd forbids forwarding: curl, wget or bash on the host. The way that
worked is remembered in the object.
"""

import io
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never
from urllib.parse import urlsplit

from stressor.errors import RemoteError
from stressor.remote.base import (
    Completed,
    Remote,
    Stream,
    TimedOut,
    Unreachable,
    UnreachableReason,
)
from stressor.remote.deadline import Deadline
from stressor.remote.http import HttpAnswer, HttpError, get, parse

_LOOPBACK = frozenset({"127.0.0.1", "localhost"})
_NOT_FOUND = frozenset({126, 127})
_CURL_SCRIPT = """\
exec env -u http_proxy -u HTTP_PROXY curl -q -sS --http1.0 --max-time "$1" -w '\\n%{http_code}' "$2"
"""
_WGET_SCRIPT = """\
exec env -u http_proxy -u HTTP_PROXY timeout "$1" wget -q -T "$1" -O - "$2"
"""
_BASH_SCRIPT = """\
exec 3<>"/dev/tcp/127.0.0.1/$2" || exit 1
printf 'GET %s HTTP/1.0\\r\\nHost: 127.0.0.1\\r\\n\\r\\n' "$3" >&3
exec timeout "$1" cat <&3
"""


class Way(StrEnum):
    """How a page is fetched."""

    FORWARD = "forward"
    CURL = "curl"
    WGET = "wget"
    BASH = "bash"


@dataclass(frozen=True, slots=True)
class Page:
    """A whole answer of the server; `status` is HTTP's (wget tells only 200 from the rest)."""

    status: int
    body: bytes
    way: Way
    took_s: float


@dataclass(frozen=True, slots=True)
class NoPage:
    """The host was reached, and no whole answer came: refused, cut, not HTTP, or no tool."""

    detail: str


Fetched = Page | NoPage | Unreachable | TimedOut


class Scraper:
    """One URL on one host's loopback. For one thread at a time."""

    def __init__(self, remote: Remote, url: str) -> None:
        """Raises ValueError unless `url` is plain HTTP to loopback."""
        parts = urlsplit(url)
        if parts.scheme != "http" or parts.hostname not in _LOOPBACK:
            raise ValueError(f"not an http URL on the host's loopback: {url}")
        self._remote, self._port = remote, parts.port or 80
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._ways: tuple[Way, ...] = tuple(Way)
        self._stream: Stream | None = None

    def fetch(self, *, deadline_s: float, limit_bytes: int = 8 * 1024 * 1024) -> Fetched:
        """The page, now."""
        deadline = Deadline.after(deadline_s)
        while self._ways:
            fetched = self._by(self._ways[0], deadline, limit_bytes)
            if fetched is not None:
                return fetched
            self._ways = self._ways[1:]
        self._ways = tuple(Way)
        return NoPage("forwarding is forbidden, and curl, wget and bash are missing")

    def close(self) -> None:
        """Close the stream that is kept open."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _by(self, way: Way, deadline: Deadline, limit_bytes: int) -> Fetched | None:
        """What this way brought; None when it does not exist on this host."""
        if way is Way.FORWARD:
            return self._forwarded(deadline, limit_bytes)
        outcome = self._remote.run(self._argv(way, deadline), deadline_s=deadline.remaining_s())
        match outcome:
            case Completed(returncode=code) if code in _NOT_FOUND:
                return None
            case Completed():
                return self._read(way, outcome, deadline, limit_bytes)
            case Unreachable() | TimedOut():
                return outcome
            case _:
                assert_never(outcome)

    def _argv(self, way: Way, deadline: Deadline) -> tuple[str, ...]:
        wait_s = str(max(1, round(deadline.remaining_s())))
        url = f"http://127.0.0.1:{self._port}{self._path}"
        if way is Way.BASH:
            return ("bash", "-c", _BASH_SCRIPT, "bash", wait_s, str(self._port), self._path)
        script = _CURL_SCRIPT if way is Way.CURL else _WGET_SCRIPT
        return ("sh", "-c", script, "sh", wait_s, url)

    def _read(self, way: Way, ended: Completed, deadline: Deadline, limit_bytes: int) -> Fetched:
        try:
            answer = _answer(way, ended, limit_bytes)
        except (HttpError, ValueError) as error:
            said = ended.stderr.decode("utf-8", "replace").strip()
            return NoPage(f"{way} ended with {ended.returncode}: {said or error}")
        return Page(answer.status, answer.body, way, deadline.took_s())

    def _forwarded(self, deadline: Deadline, limit_bytes: int) -> Fetched | None:
        kept = self._stream is not None
        fetched = self._once(deadline, limit_bytes)
        if kept and isinstance(fetched, NoPage) and not deadline.passed():
            # A server may close an idle connection at any time: ask once more on a new one.
            fetched = self._once(deadline, limit_bytes)
        forbidden = UnreachableReason.FORBIDDEN
        return None if isinstance(fetched, Unreachable) and fetched.reason is forbidden else fetched

    def _once(self, deadline: Deadline, limit_bytes: int) -> Fetched:
        stream = self._stream or self._remote.forward(self._port, deadline_s=deadline.remaining_s())
        if isinstance(stream, Unreachable) and stream.reason is UnreachableReason.REFUSED:
            return NoPage(stream.detail)
        if isinstance(stream, Unreachable | TimedOut):
            return stream
        self._stream = stream
        try:
            return self._ask(stream, deadline, limit_bytes)
        except TimeoutError:
            self.close()
            return TimedOut(self._remote.host.name, deadline.took_s())
        except RemoteError as error:
            self.close()
            return NoPage(str(error))

    def _ask(self, stream: Stream, deadline: Deadline, limit_bytes: int) -> Page:
        answer = get(
            stream,
            self._path,
            host=f"127.0.0.1:{self._port}",
            deadline_s=deadline.remaining_s(),
            limit_bytes=limit_bytes,
        )
        if not answer.reusable:
            self.close()
        return Page(answer.status, answer.body, Way.FORWARD, deadline.took_s())


def _answer(way: Way, ended: Completed, limit_bytes: int) -> HttpAnswer:
    if way is Way.BASH:
        return parse(io.BytesIO(ended.stdout), limit_bytes=limit_bytes)
    if ended.returncode != 0:
        raise HttpError("no answer")
    body, status = ended.stdout, b"200"
    if way is Way.CURL:
        body, _, status = ended.stdout.rpartition(b"\n")
    if len(body) > limit_bytes:
        raise HttpError(f"the body is longer than {limit_bytes} bytes")
    return HttpAnswer(int(status), body, reusable=False)
