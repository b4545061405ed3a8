"""An event that is also a descriptor, for loops that wait on many channels at once."""

import contextlib
import os
import threading


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
