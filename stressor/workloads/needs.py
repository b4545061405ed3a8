"""What a workload's pod may use on its node."""

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Needs:
    """Requests and limits of one load container.

    Requests are small on purpose: they are the load's weight against everything else on the node,
    and load should lose. `scratch_bytes` bounds the run's emptyDir. `host_path` is an existing
    directory of the node, mounted at /scratch, that uid 65534 may write to.

    `host_path_bytes` is the most that the load keeps there, and `writes_per_s` what it asks of a
    disk at most; None: as fast as the disk takes it. Both are the tool's own limits, for a plan to
    show; Kubernetes does not enforce them.

    `storage_class` names the StorageClass of a volume of `claim_bytes` that is made for the pod,
    goes with it, and is mounted at /scratch; `claim_file_bytes` is the most that the load keeps in
    it. Not together with `host_path`.
    """

    cpu_limit_cores: float = 1.0
    cpu_request_cores: float = 0.05
    memory_limit_bytes: int = 256 * MIB
    memory_request_bytes: int = 32 * MIB
    scratch_bytes: int = 16 * MIB
    host_path: str | None = None
    host_path_bytes: int = 0
    writes_per_s: int | None = None
    storage_class: str | None = None
    claim_bytes: int = 0
    claim_file_bytes: int = 0
