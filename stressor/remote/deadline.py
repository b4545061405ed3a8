"""Wall-clock bounds for calls into libraries that may never return."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

GRACE_S = 0.15
"""How long a call may overrun its deadline before its work is abandoned: the usual end is that the
work notices the deadline by itself, and abandoning costs the connection."""


def now_s() -> float:
    """Seconds on CLOCK_BOOTTIME, which goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point on CLOCK_BOOTTIME, and when the wait for it began."""

    started_s: float
    at_s: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """The deadline `seconds` from now."""
        start = now_s()
        return cls(start, start + seconds)

    def remaining_s(self) -> float:
        """Seconds left, never below 0."""
        return max(0.0, self.at_s - now_s())

    def passed(self) -> bool:
        """Whether no time is left."""
        return self.remaining_s() <= 0.0

    def took_s(self) -> float:
        """Seconds since the wait began."""
        return now_s() - self.started_s


class Overrun(Exception):
    """The work did not come back in time and was abandoned."""


class Attempt(Generic[T]):
    """Work on a daemon thread, waited for until a deadline and then left behind.

    paramiko waits without bound in places (the reply to an exec request, a write into a full
    socket), so no caller's thread may stand there. `discard` receives a result that came too late,
    so that a connection made for nobody is closed.
    """

    def __init__(self, work: Callable[[], T], discard: Callable[[T], None] | None = None) -> None:
        self._work = work
        self._discard = discard
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._abandoned = False
        self._value: T | None = None
        self._error: BaseException | None = None

    def wait(self, deadline: Deadline) -> T:
        """The work's value or exception. Raises Overrun `GRACE_S` after the deadline."""
        threading.Thread(target=self._run, name="stressor-remote", daemon=True).start()
        if not self._done.wait(deadline.remaining_s() + GRACE_S) and self._abandon():
            raise Overrun
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # set whenever _error is not

    def _abandon(self) -> bool:
        with self._lock:
            self._abandoned = not self._done.is_set()
            return self._abandoned

    def _run(self) -> None:
        value: T | None = None
        error: BaseException | None = None
        try:
            value = self._work()
        except BaseException as caught:  # noqa: BLE001  handed to the waiting thread as it is
            error = caught
        self._finish(value, error)

    def _finish(self, value: T | None, error: BaseException | None) -> None:
        with self._lock:
            self._value, self._error = value, error
            self._done.set()
            late = self._abandoned and error is None
        if late and self._discard is not None:
            self._discard(value)  # type: ignore[arg-type]  # without an error it is a T
