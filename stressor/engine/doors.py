"""Knocking at each door once, however many hosts lie behind it.

sshd counts who goes away without a login: above MaxStartups it drops newcomers by chance, and
from OpenSSH 9.8 on it refuses an address for as many seconds as there were such visits
(PerSourcePenalties, noauth:1, from min:15 on). A knock for each of 64 hosts behind one jump host
would shut it.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future

from stressor.checks.routes import Door, hops
from stressor.model import Route
from stressor.remote.base import UnreachableReason

Knock = Callable[[Route, float], UnreachableReason | None]


class Doors:
    """Asks `knock`; everybody who comes to the same door gets the answer that the first one got."""

    def __init__(self, knock: Knock) -> None:
        self._knock = knock
        self._lock = threading.Lock()
        self._answers: dict[Door, Future[UnreachableReason | None]] = {}

    def knock(self, route: Route, deadline_s: float) -> UnreachableReason | None:
        """As `remote.knock.knock`. Whoever waits for somebody else's answer waits `deadline_s` at
        most, too, and then calls the door silent."""
        first = next(hops(route))
        with self._lock:
            known = self._answers.get((first.address, first.port))
            answer = known or self._answers.setdefault((first.address, first.port), Future())
        if known is None:
            try:
                answer.set_result(self._knock(route, deadline_s))
            except BaseException as error:
                answer.set_exception(error)
                raise
        try:
            return answer.result(deadline_s)
        except TimeoutError:
            return UnreachableReason.SILENT
