"""The cold abort of a whole cluster: every host at once, again until proven, one budget."""

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stressor.engine.abort import ColdKiller
from stressor.model import PROVEN, Host, HostProof, HostState

RETRY_S = 1.5
"""Between two tries at a host without proof: sshd's penalties start where retries storm."""
FINAL = frozenset({HostState.KEY_CHANGED})
"""States that another try cannot better: a host that is not who it was stays that."""


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened at one host; `last` when nothing more will come from it."""

    at_s: float
    proof: HostProof
    attempt: int
    last: bool


@dataclass(frozen=True, slots=True)
class Sweep:
    """`now_s` is seconds since the abort began; `pause` sleeps."""

    killer: ColdKiller
    now_s: Callable[[], float]
    pause: Callable[[float], None]
    budget_s: float

    def run(self, hosts: tuple[Host, ...], run: str, reason: str, left_s: float) -> Iterator[Line]:
        """Kill on all hosts at once, and yield what happens as it happens.

        Ends when every host has said its last word, or at the budget; hosts that are missing then
        have no line with `last`: nothing is known of them.
        """
        lines: queue.SimpleQueue[Line] = queue.SimpleQueue()
        for host in hosts:
            work = (host, run, reason, left_s, lines.put)
            threading.Thread(target=self._host, args=work, name=host.name, daemon=True).start()
        open_hosts = {host.name for host in hosts}
        while open_hosts:
            try:
                line = lines.get(timeout=max(0.01, self.budget_s - self.now_s()))
            except queue.Empty:
                return
            yield line
            if line.last:
                open_hosts.discard(line.proof.host)

    def _host(
        self, host: Host, run: str, reason: str, left_s: float, say: Callable[[Line], None]
    ) -> None:
        attempt = 0
        while True:
            attempt += 1
            proof = self.killer.kill(host, run, reason, left_s)
            over = self.now_s() + RETRY_S > self.budget_s
            last = proof.state in PROVEN or proof.state in FINAL or over
            say(Line(self.now_s(), proof, attempt, last))
            if last:
                return
            self.pause(RETRY_S)
