"""The cluster's lock while a run is on: a Lease, renewed; on the hosts the guards are the lock.

With the API dead the hosts' lock decides, so a renewal that fails changes nothing but a note.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from stressor.errors import StressorError
from stressor.kube.base import Kube, Lease

EXPIRES_S = 60
RENEW_S = 15.0
API_DEADLINE_S = 5.0


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
