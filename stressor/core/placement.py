"""Storage isolation: may this phase load this storage? Unknown counts as shared.

The outage that this product answers had two pools on the same two disks: a different guest device
proves nothing. So the answer here is never "isolated" from the guest's own view; only a written
reason lifts *unknown*, and only a disposable lab lifts *shared*.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from stressor.model import Inventory, Role, Suite


class Isolation(StrEnum):
    """What is known about load storage against the storage of any etcd that a run watches."""

    SHARED = "shared"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Mount:
    """What a path stands on, by the host's own word: the device number and the source that
    /proc/self/mountinfo names. Two mounts of one device, or of one named source, are shared."""

    device: str
    source: str


@dataclass(frozen=True, slots=True)
class Place:
    """A path on a host. `path` None: nobody said where, which counts as unknown.

    `storage_class`: the volume comes from there. Its name says nothing of the disks behind it, and
    what the node's kubelet stands on says nothing either, so no mount is compared.
    """

    host: str
    path: str | None
    storage_class: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One pair of load storage and etcd, and what is known of it."""

    load_host: str
    etcd_host: str
    isolation: Isolation
    why: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether storage load may start: `refusals` forbid it, `notes` head the report."""

    refusals: tuple[str, ...]
    notes: tuple[str, ...]


def compare(
    load: Mapping[Place, Mount | None], etcd: Mapping[Place, Mount | None]
) -> tuple[Finding, ...]:
    """Each load host's mount against each etcd's. A mount that could not be read is unknown, and so
    is a storage class, whatever mount was read for it."""
    return tuple(
        _finding(here.host, mount, there.host, other)
        if here.storage_class is None
        else _classed(here.host, here.storage_class, there.host)
        for here, mount in load.items()
        for there, other in etcd.items()
    )


def judge(
    findings: Iterable[Finding], inventory: Inventory, *, unknown_reason: str | None
) -> Judgement:
    """What the findings mean here. `unknown_reason` is the operator's written reason why storage
    that cannot be compared is not shared; it never lifts a proven sharing."""
    refusals, notes = list(bystander_flaws(inventory)), []
    for finding in findings:
        pair = f"storage of load on {finding.load_host} and of etcd on {finding.etcd_host}"
        text = f"{pair}: {finding.isolation} ({finding.why})"
        if inventory.disposable:
            notes.append(f"{text}; allowed because the inventory says disposable: true")
        elif finding.isolation is Isolation.UNKNOWN and unknown_reason:
            notes.append(f"{text}; allowed by the operator: {unknown_reason}")
        else:
            refusals.append(text)
    return Judgement(tuple(refusals), tuple(notes))


def etcd_places(inventory: Inventory) -> tuple[Place, ...]:
    """Where each etcd that may share storage keeps its data: on every host of the control plane,
    on every bystander, and wherever the inventory names one. A missing path is not a missing
    etcd: it is an unknown."""
    roles = {Role.CONTROL_PLANE, Role.BYSTANDER}
    return tuple(
        Place(host.name, host.etcd_data_dir)
        for host in inventory.hosts
        if host.roles & roles or host.etcd_data_dir or host.etcd_metrics_url
    )


def touches_storage(suite: Suite, storage_kinds: frozenset[str]) -> bool:
    """Whether any phase of the suite writes to storage on purpose."""
    return any(phase.kind in storage_kinds for phase in suite.phases)


def bystander_flaws(inventory: Inventory) -> tuple[str, ...]:
    """Why storage load may not start whatever the hosts say: nobody has answered the question of
    bystanders. Empty when somebody has."""
    if inventory.with_role(Role.BYSTANDER) or inventory.bystanders_none_reason:
        return ()
    return (
        "no bystanders are listed: name the hosts of other clusters that may share storage, or "
        'write stressor_bystanders_none: "why there are none"',
    )


def _classed(load_host: str, storage_class: str, etcd_host: str) -> Finding:
    why = f"nobody has said which disks are behind StorageClass {storage_class}"
    return Finding(load_host, etcd_host, Isolation.UNKNOWN, why)


def _finding(load_host: str, load: Mount | None, etcd_host: str, etcd: Mount | None) -> Finding:
    if load is None or etcd is None:
        who = load_host if load is None else etcd_host
        why = f"the mount on {who} could not be read"
        return Finding(load_host, etcd_host, Isolation.UNKNOWN, why)
    if load_host == etcd_host and load.device == etcd.device:
        why = f"same device {load.device}"
        return Finding(load_host, etcd_host, Isolation.SHARED, why)
    if load.source == etcd.source and not load.source.startswith("/dev/"):
        why = f"same source {load.source} on both hosts"
        return Finding(load_host, etcd_host, Isolation.SHARED, why)
    why = "different guest devices may stand on the same disks"
    return Finding(load_host, etcd_host, Isolation.UNKNOWN, why)
