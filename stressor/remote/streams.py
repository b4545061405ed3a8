"""Byte streams with the errors of this house."""

import socket
from collections.abc import Callable

from stressor.errors import ChannelClosed, RemoteError


class SocketStream:
    """A socket as a Stream. Raises TimeoutError past the time-out, RemoteError when it breaks."""

    def __init__(self, raw: socket.socket, release: Callable[[], object]) -> None:
        self._raw = raw
        self._release = release
        self._closed = False

    def settimeout(self, timeout: float | None) -> None:
        """Seconds that one call may wait."""
        self._raw.settimeout(timeout)

    def sendall(self, data: bytes) -> None:
        """Send everything."""
        try:
            self._raw.sendall(data)
        except TimeoutError:
            raise
        except OSError as error:
            raise self._broken(error) from error

    def recv(self, size: int) -> bytes:
        """Up to `size` bytes, b"" at the end."""
        try:
            return self._raw.recv(size)
        except TimeoutError:
            raise
        except OSError as error:
            raise self._broken(error) from error

    def close(self) -> None:
        """Close, and release what carried the stream."""
        if not self._closed:
            self._closed = True
            self._raw.close()
            self._release()

    def _broken(self, error: OSError) -> RemoteError:
        if self._closed:
            return ChannelClosed("the stream was closed here")
        return RemoteError(f"the stream broke: {error.strerror or error}")
