"""The seam to the Kubernetes API: a few verbs, every one with a deadline, facts as frozen records.

Raises KubeError when nothing usable came back within the deadline (the request may still take
effect), `KubeRefused` when the API answered no. `testing.FakeKube` and the real client pass one
contract suite (tests/contract/kube).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    API's quantity could not be read.
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
    acquired_unix_s: float | None = None


@dataclass(frozen=True, slots=True)
class AccessQuestion:
    """May this login do `verb` to `resource`? `group` empty: the core group. `namespace` empty: in
    all namespaces, or a resource that has none. `name` empty: to any."""

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Access:
    """The API's answer to a question. `allowed` None: unknown, and `reason` says why."""

    question: AccessQuestion
    allowed: bool | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DryRun:
    """What the API says to the creation of an object that it does not store.

    `accepted` False: `message` is the refusal. None: it was not decided, and `message` says why; so
    it is with an object whose namespace does not exist yet. `labels` are those that the object
    would have, after whatever changes objects on their way in.
    """

    kind: str
    namespace: str
    name: str
    accepted: bool | None
    message: str = ""
    warnings: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeImages:
    """The names of a node's images (tags and digests), and how many images it `listed`.

    A kubelet lists the largest 50 unless its nodeStatusMaxImages says otherwise: of an image that
    is not in a full list, and of any where none is listed, nothing is known.
    """

    node: str
    names: tuple[str, ...]
    listed: int


@dataclass(frozen=True, slots=True)
class StorageClassFacts:
    """A StorageClass. `binding` is Immediate or WaitForFirstConsumer, `reclaim` Delete or Retain;
    empty where the API does not say."""

    name: str
    provisioner: str
    binding: str
    reclaim: str
    default: bool


@dataclass(frozen=True, slots=True)
class QuotaFacts:
    """A ResourceQuota, or a ClusterResourceQuota (`namespace` empty). Figures are in the resource's
    base unit, None where they could not be read. `scopes` narrow the pods that it counts."""

    namespace: str
    name: str
    hard: Mapping[str, float | None]
    used: Mapping[str, float | None]
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LimitFacts:
    """One item of a LimitRange. `kind` is Container, Pod or PersistentVolumeClaim."""

    kind: str
    most: Mapping[str, float | None]
    least: Mapping[str, float | None]
    most_ratio: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class LimitRangeFacts:
    """A LimitRange: what a container, pod or claim may ask for in its namespace."""

    namespace: str
    name: str
    limits: tuple[LimitFacts, ...]


@dataclass(frozen=True, slots=True)
class RunNamespace:
    """A namespace with the label of a run. `live_jobs` counts the Jobs in it that have pods or may
    start some: neither ended nor suspended.

    `terminating_since` is the API's time stamp, empty when nobody asked for its deletion;
    `finalizers` and `conditions` say what keeps it then.
    """

    name: str
    run: str
    phase: str
    live_jobs: int
    terminating_since: str = ""
    finalizers: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeRequests:
    """What the unfinished pods of a node ask for, as the scheduler counts it. None: a quantity of
    one of them could not be read."""

    node: str
    cpu_cores: float | None
    memory_bytes: float | None
    pods: int


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

    def api_groups(self, *, deadline_s: float) -> frozenset[str]:
        """The names of the API's groups, the core group not among them."""
        ...

    def may(self, questions: Sequence[AccessQuestion], *, deadline_s: float) -> tuple[Access, ...]:
        """Whether this login may do each of `questions`, in their order.

        Raises nothing: a question without an answer within the deadline has an unknown one.
        """
        ...

    def dry_run(
        self, manifests: Sequence[Mapping[str, object]], *, deadline_s: float
    ) -> tuple[DryRun, ...]:
        """What the API would say to each creation, in their order; nothing is created.

        Raises no KubeError: what got no answer within the deadline is undecided. ValueError for a
        kind that stressor does not make.
        """
        ...

    def node_images(self, *, deadline_s: float) -> tuple[NodeImages, ...]:
        """The images that each node says it has, by node."""
        ...

    def node_requests(self, *, deadline_s: float) -> tuple[NodeRequests, ...]:
        """What the unfinished pods of each node that has any ask for, by node."""
        ...

    def storage_classes(self, *, deadline_s: float) -> tuple[StorageClassFacts, ...]:
        """All StorageClasses, by name."""
        ...

    def quotas(self, *, deadline_s: float) -> tuple[QuotaFacts, ...]:
        """The ResourceQuotas of all namespaces, by namespace and name."""
        ...

    def cluster_quotas(
        self, labels: Mapping[str, str], *, deadline_s: float
    ) -> tuple[QuotaFacts, ...]:
        """OpenShift's ClusterResourceQuotas that select a namespace with `labels` and without
        annotations. Empty where the API has no such thing."""
        ...

    def limit_ranges(self, *, deadline_s: float) -> tuple[LimitRangeFacts, ...]:
        """The LimitRanges of all namespaces, by namespace and name."""
        ...

    def run_namespaces(self, *, deadline_s: float) -> tuple[RunNamespace, ...]:
        """The namespaces of any run that exist now, by name."""
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
