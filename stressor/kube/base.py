"""The seam to the Kubernetes API: a few verbs, every one with a deadline, facts as frozen records.

Raises KubeError when nothing usable came back within the deadline (the request may still take
effect), `KubeRefused` when the API answered no. `testing.FakeKube` and the real client pass one
contract suite (tests/contract/kube).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from stressor.errors import KubeError


class KubeRefused(KubeError):
    """The API answered with an error: it did not do what was asked. `status` is HTTP's."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node. `hostname` is its kubernetes.io/hostname label, which load is placed by.

    `ready` None: the node's own word is missing or "Unknown". Sizes are allocatable; None where the
    API's quantity could not be read. `addresses` are of every type, `internal_ips` those of type
    InternalIP; `roles` are the ends of its node-role.kubernetes.io/ labels.
    """

    name: str
    uid: str
    hostname: str
    ready: bool | None
    unschedulable: bool
    control_plane: bool
    addresses: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()
    cpu_cores: float | None = None
    memory_bytes: int | None = None
    kubelet_version: str = ""
    kernel_version: str = ""
    os_image: str = ""
    internal_ips: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A load pod. `container_state` is waiting, running, terminated, or empty before any.

    `exit_code` None: not ended, or the API does not know. `deleting` says that deletion was asked
    for. That a pod is gone from the API proves nothing about its processes (I5).
    """

    namespace: str
    name: str
    uid: str
    run: str
    step: str
    job: str
    node: str
    phase: str
    container_state: str = ""
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    deleting: bool = False


@dataclass(frozen=True, slots=True)
class JobFacts:
    """A load Job. `condition` is Complete, Failed, Suspended or empty; `reason` its cause."""

    namespace: str
    name: str
    uid: str
    run: str
    step: str
    node: str
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    suspended: bool = False
    condition: str = ""
    reason: str = ""
    deleting: bool = False


@dataclass(frozen=True, slots=True)
class Leftover:
    """An object of a run that is still in the API. `detail` says what keeps it, where known."""

    kind: str
    namespace: str
    name: str
    uid: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Deletion:
    """What `delete_run` saw: how many objects it found, and which were left at its deadline.

    `found` 0 is its own answer: "nothing found" is not "all deleted".
    """

    found: int
    left: tuple[Leftover, ...] = ()


@dataclass(frozen=True, slots=True)
class Lease:
    """The cluster's lock as the API has it; times are Unix seconds by the API server's clock."""

    holder: str
    run: str
    abort_command: str
    renewed_unix_s: float
    expires_unix_s: float
    uid: str
    version: str


class Kube(Protocol):
    """One cluster, through its API. Thread-safe. Every verb raises KubeError as said above.

    Verbs that take a `run` raise ValueError when it is no run id: an empty one would select more.
    """

    def cluster_uid(self, *, deadline_s: float) -> str:
        """The UID of the kube-system namespace, which names a cluster for its whole life."""
        ...

    def nodes(self, *, deadline_s: float) -> tuple[NodeFacts, ...]:
        """All nodes, by name."""
        ...

    def apply_namespace(
        self, manifests: Sequence[Mapping[str, object]], *, deadline_s: float
    ) -> None:
        """Create a run's namespace and what belongs in it, and wait until pods can start there.

        What exists already is left as it is when it belongs to the same run, and refused (409)
        otherwise.
        """
        ...

    def create_job(self, manifest: Mapping[str, object], *, deadline_s: float) -> JobFacts:
        """Create a Job. One of the same name and run is returned as it is: repeating is safe."""
        ...

    def jobs(self, run: str, *, deadline_s: float) -> tuple[JobFacts, ...]:
        """The run's Jobs in all namespaces, by name."""
        ...

    def pods(self, run: str, *, deadline_s: float) -> tuple[PodFacts, ...]:
        """The run's pods in all namespaces, by name."""
        ...

    def pod_log(self, namespace: str, name: str, *, limit_bytes: int, deadline_s: float) -> str:
        """The load container's log from its beginning, at most `limit_bytes`."""
        ...

    def suspend_jobs(self, run: str, *, deadline_s: float) -> tuple[str, ...]:
        """Suspend the run's unfinished Jobs, so that their controllers end their pods; their names.

        One failure does not keep the others from being tried; it is raised at the end.
        """
        ...

    def delete_run(self, run: str, *, deadline_s: float) -> Deletion:
        """Delete the run's Jobs, pods (without grace) and namespaces, and wait for their end.

        Each deletion is bound to the UID that was listed. Objects without the run's label are never
        touched, except those inside a namespace that has it.
        """
        ...

    def leftovers(self, run: str, *, deadline_s: float) -> tuple[Leftover, ...]:
        """The run's Jobs, pods and namespaces that exist now."""
        ...

    def read_lease(self, *, deadline_s: float) -> Lease | None:
        """The lock, whoever holds it, expired or not; None when there is none."""
        ...

    def acquire_lease(
        self, *, holder: str, run: str, abort_command: str, expires_s: int, deadline_s: float
    ) -> Lease:
        """Take the lock for `expires_s` from now.

        Free, expired, or held by this holder and run: taken. Otherwise raises LockHeld with holder,
        run and abort command. Of several that race, one wins.
        """
        ...

    def renew_lease(self, lease: Lease, *, expires_s: int, deadline_s: float) -> Lease:
        """Hold the lock for `expires_s` more. Raises LockHeld when another run took it, KubeRefused
        (404) when it is gone."""
        ...

    def release_lease(self, lease: Lease, *, deadline_s: float) -> None:
        """Give the lock back. Another's lock, or none, is left alone without complaint."""
        ...
