"""The cluster's lock while a run is on: a Lease, renewed; on the hosts the guards are the lock.

With the API dead the hosts' lock decides, so a renewal that fails changes nothing but a note.
"""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from stressor.checks import leftovers
from stressor.checks.base import Answer, Reading, read
from stressor.errors import LockHeld, StressorError
from stressor.kube.base import Kube, Lease
from stressor.model import Host
from stressor.remote.base import Completed, Remote

EXPIRES_S = 60
RENEW_S = 15.0
API_DEADLINE_S = 5.0
HOST_DEADLINE_S = 8.0
AT_ONCE = 32


def refuse_held_hosts(hosts: Iterable[Host], connect: Callable[[Host], Remote]) -> None:
    """Raise LockHeld when another run's guard lives on one of `hosts`, by that host's own word.

    Asked over SSH, so that it is seen with the API down, too. A host that does not answer is passed
    over here: arming it will fail, and arming looks again.
    """
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        told = tuple(pool.map(lambda host: _owners(host, connect), hosts))
    held: dict[str, list[str]] = {}
    who: dict[str, str] = {}
    for name, owners in told:
        for owner in owners:
            held.setdefault(owner.run, []).append(name)
            who[owner.run] = owner.who
    if held:
        lines = (
            f"run {run} of {who[run]} holds {', '.join(names)}: {leftovers.abort_command(run)}"
            for run, names in held.items()
        )
        raise LockHeld("\n".join(("another run is on; nothing was started", *lines)))


def holds(
    hosts: Iterable[Host], run: str, connect: Callable[[Host], Remote]
) -> dict[str, leftovers.Hold | None]:
    """What `run` is to each host, by that host's own word; None: it gave none."""
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        readings = tuple(pool.map(lambda host: _reading(host, connect), hosts))
    return {
        name: None if reading is None else leftovers.hold(reading, run)
        for name, reading in readings
    }


def _owners(
    host: Host, connect: Callable[[Host], Remote]
) -> tuple[str, tuple[leftovers.Owner, ...]]:
    name, reading = _reading(host, connect)
    return name, () if reading is None else leftovers.owners(reading)


def _reading(host: Host, connect: Callable[[Host], Remote]) -> tuple[str, Reading | None]:
    try:
        remote = connect(host)
    except IndexError:  # no route
        return host.name, None
    try:
        outcome = remote.run(leftovers.argv(host), deadline_s=HOST_DEADLINE_S)
    finally:
        remote.close()
    if not isinstance(outcome, Completed):
        return host.name, None
    text = outcome.stdout.decode("utf-8", "replace")
    reading = read(leftovers.NAME, Answer(host.name, text, 0.0, 0.0))
    return host.name, None if isinstance(reading, str) else reading


@dataclass(slots=True)
class ClusterLock:
    """Holds the lease of one run."""

    kube: Kube
    lease: Lease
    note: Callable[[str, str], None]
    _stopping: threading.Event = field(default_factory=threading.Event, init=False)

    @classmethod
    def take(
        cls, kube: Kube, holder: str, run: str, note: Callable[[str, str], None]
    ) -> "ClusterLock":
        """Take the lock and keep it. Raises LockHeld or KubeError."""
        lease = kube.acquire_lease(
            holder=holder,
            run=run,
            abort_command=f"stressor abort --run {run}",
            expires_s=EXPIRES_S,
            deadline_s=API_DEADLINE_S,
        )
        lock = cls(kube, lease, note)
        threading.Thread(target=lock._renew, name="lease", daemon=True).start()
        return lock

    def release(self) -> None:
        """Give it back; a lease that cannot be given back expires by itself."""
        self._stopping.set()
        try:
            self.kube.release_lease(self.lease, deadline_s=API_DEADLINE_S)
        except StressorError as error:
            self.note("lock", f"not released, expires in {EXPIRES_S} s: {error}")

    def _renew(self) -> None:
        while not self._stopping.wait(RENEW_S):
            try:
                self.lease = self.kube.renew_lease(
                    self.lease, expires_s=EXPIRES_S, deadline_s=API_DEADLINE_S
                )
            except StressorError as error:
                self.note("lock", f"not renewed: {error}")
