"""Where load and etcds store things, asked of the hosts: what `run` and `preflight` share, so that
one cannot allow what the other forbids."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from stressor.cli.planning import storage_kinds
from stressor.core import placement
from stressor.engine.storage import mounts
from stressor.model import Inventory, Role, Suite
from stressor.remote.connect import connect
from stressor.workloads import workload

KUBELET_PODS = "/var/lib/kubelet"


@dataclass(frozen=True, slots=True)
class Isolation:
    """The pairs of load storage and etcd, and what they mean for a run."""

    pairs: tuple[placement.Finding, ...]
    judgement: placement.Judgement


def storage_load(suite: Suite) -> tuple[placement.Place, ...]:
    """What the suite's storage load writes to."""
    kinds = storage_kinds()
    return tuple(
        placement.Place(node, needs.host_path, needs.storage_class)
        for phase in suite.phases
        if phase.kind in kinds
        for step in phase.steps
        for needs in (workload(phase.kind).needs({**phase.params, **step}),)
        for node in phase.nodes
    )


def possible_load(inventory: Inventory) -> tuple[placement.Place, ...]:
    """What storage load could write to here: the scratch folder of each node that may carry load,
    else where the kubelet keeps its volumes."""
    nodes = (h for h in inventory.hosts if h.roles & {Role.WORKER, Role.CONTROL_PLANE})
    return tuple(placement.Place(host.name, host.scratch_dir) for host in nodes)


def ask(
    load: tuple[placement.Place, ...], inventory: Inventory, unknown_reason: str | None
) -> Isolation:
    """Ask the hosts over SSH. A mount that could not be read is unknown."""
    pairs = placement.compare(
        mounts(_kubelet(load), inventory.hosts, connect),
        mounts(placement.etcd_places(inventory), inventory.hosts, connect),
    )
    judgement = placement.judge(pairs, inventory, unknown_reason=unknown_reason)
    return Isolation(pairs, judgement)


def _kubelet(places: tuple[placement.Place, ...]) -> Iterator[placement.Place]:
    return (replace(place, path=place.path or KUBELET_PODS) for place in places)
