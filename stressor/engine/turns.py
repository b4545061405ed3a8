"""Turns at something that only few may do at once, and that may hang.

A semaphore would let the hanging ones keep everybody else out. Here a turn that lasts longer than
expected no longer counts: whoever hangs waits for somebody else and uses none of what is scarce.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Clock = Callable[[], float]
SLOWER = 3.0
"""So many times as long as the slowest turn that did not hang, another one may take. Where all are
slow, the machine is busy, and letting in more would make it worse."""


class Turns:
    """At most `limit` turns at once that are not taken to hang: those younger than `patience_s`, or
    than SLOWER times what others needed to show that they do not."""

    def __init__(self, limit: int, patience_s: float, now_s: Clock = time.monotonic) -> None:
        self._limit, self._patience_s, self._now_s = limit, patience_s, now_s
        self._began_s: dict[object, float] = {}
        self._changed = threading.Condition()

    @contextmanager
    def turn(self) -> Iterator[Callable[[], None]]:
        """Waits for a turn and takes it. It yields what its holder calls when he has shown that he
        does not hang: his time starts over."""
        me = object()
        self._enter(me)
        try:
            yield lambda: self._alive(me)
        finally:
            with self._changed:
                del self._began_s[me]
                self._changed.notify()

    def _enter(self, me: object) -> None:
        with self._changed:
            while True:
                now_s = self._now_s()
                ends_s = sorted(began_s + self._patience_s for began_s in self._began_s.values())
                young = [end_s for end_s in ends_s if end_s > now_s]
                if len(young) < self._limit:
                    self._began_s[me] = now_s
                    # The next one may find room, too: several turns can age at the same moment.
                    self._changed.notify()
                    return
                self._changed.wait(young[0] - now_s)

    def _alive(self, me: object) -> None:
        with self._changed:
            now_s = self._now_s()
            self._patience_s = max(self._patience_s, SLOWER * (now_s - self._began_s[me]))
            self._began_s[me] = now_s
