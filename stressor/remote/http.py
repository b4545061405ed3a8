"""HTTP/1.1 GET over a Stream, bounded in time and size, for metrics on a host's loopback."""

import http.client
import io
from dataclasses import dataclass

from stressor.errors import RemoteError
from stressor.remote.base import Stream
from stressor.remote.deadline import Deadline


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Status and body. `reusable`: the stream may carry another request."""

    status: int
    body: bytes
    reusable: bool


class HttpError(RemoteError):
    """No whole answer: what was sent is not HTTP, ended early, or is longer than allowed."""


def get(stream: Stream, path: str, *, host: str, deadline_s: float, limit_bytes: int) -> HttpAnswer:
    """One GET. `host` is the Host header. Raises TimeoutError past `deadline_s`, HttpError, and
    RemoteError when the stream breaks."""
    if any(ord(letter) <= 32 or ord(letter) >= 127 for letter in path + host):
        raise ValueError(f"not a path of an HTTP request: {path!r}")
    reader = _Reader(stream, Deadline.after(deadline_s))
    stream.settimeout(deadline_s)
    stream.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n\r\n".encode())
    return parse(io.BufferedReader(reader), limit_bytes=limit_bytes)


def parse(file: io.BufferedIOBase, *, limit_bytes: int) -> HttpAnswer:
    """Read one answer, head and body. Raises HttpError."""
    try:
        response = http.client.HTTPResponse(_File(file), method="GET")  # type: ignore[arg-type]
        response.begin()
        body = response.read(limit_bytes + 1)
        if len(body) > limit_bytes:
            raise HttpError(f"the body is longer than {limit_bytes} bytes")
        _require_whole(response)
        return HttpAnswer(response.status, body, reusable=not response.will_close)
    except (http.client.HTTPException, ValueError) as error:
        raise HttpError(f"not a whole HTTP answer: {error!r}") from error


def _require_whole(response: http.client.HTTPResponse) -> None:
    # `read` with a size gives what there is when the peer hangs up early: half a page of metrics
    # would read like a whole one.
    if not response.chunked and response.length:
        raise HttpError(f"the answer ended {response.length} bytes early")
    if response.chunked and not response.isclosed() and response.read(1):
        raise HttpError("the answer did not end")


class _File:
    """What HTTPResponse wants of a socket."""

    def __init__(self, file: io.BufferedIOBase) -> None:
        self._file = file

    def makefile(self, *_: object) -> io.BufferedIOBase:
        return self._file


class _Reader(io.RawIOBase):
    """The reading side of a Stream as a raw file, under one deadline for all reads."""

    def __init__(self, stream: Stream, deadline: Deadline) -> None:
        super().__init__()
        self._stream, self._deadline = stream, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self._deadline.passed():
            raise TimeoutError("the answer did not end within the deadline")
        self._stream.settimeout(self._deadline.remaining_s())
        data = self._stream.recv(len(buffer))
        buffer[: len(data)] = data
        return len(data)
