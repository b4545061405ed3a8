"""Events for paramiko's buffers, in place of the pipe behind its `Channel.fileno`.

That pipe is shared by a channel's two buffers without a lock (paramiko 5.1, pipe.py, OrPipe): by
the code, output on one while the other is being emptied can leave it unreadable with data waiting,
and a lost wake-up would be a lost acknowledgement. It also costs two descriptors a channel, and
closing it can race with a write to a number that somebody else has got by then.
"""

import contextlib
import os
import threading


class News(threading.Event):
    """Set whenever a buffer gets something; only the reader takes it back, before it looks."""

    def clear(self) -> None:
        """Buffers call this when they are empty; it must not undo the other buffer's set."""

    def take(self) -> None:
        """Forget what was told so far."""
        super().clear()


class Readable(threading.Event):
    """Set while one buffer has data or has ended, and readable as a descriptor for as long."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._closed = False

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def set(self) -> None:
        """There is something to read."""
        with self._lock:
            if not self._closed and not self.is_set():
                os.eventfd_write(self._descriptor, 1)
            super().set()

    def clear(self) -> None:
        """There is nothing to read."""
        with self._lock:
            if not self._closed:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._descriptor)
            super().clear()

    def close(self) -> None:
        """Give the descriptor back; safe to repeat."""
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._descriptor)
