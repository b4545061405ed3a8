"""From files to a Plan: what `run` and `plan` share, so that one cannot show what the other does
not do. Nothing here talks to a host or an API."""

from collections.abc import Iterable

from stressor.core import schedule
from stressor.errors import ConfigError
from stressor.model import Inventory, Plan, Suite
from stressor.probes import SIGNALS
from stressor.workloads import WORKLOADS
from stressor.workloads.gates import safety_gates

ELECTION_TIMEOUT_S = 1.0
"""etcd's default, as kubeadm leaves it."""


def make_plan(
    suite: Suite,
    inventory: Inventory,
    *,
    run: str,
    image: str | None,
    election_timeout_s: float,
    storage_notes: Iterable[str] = (),
) -> Plan:
    """The plan of `suite` under the name `run`. Raises ConfigError when no load image is named."""
    chosen = image or inventory.load_image
    if chosen is None:
        raise ConfigError(("no load image: --image, or stressor_load_image in the inventory",))
    return schedule.plan(
        suite,
        inventory,
        run=run,
        image=chosen,
        signals=SIGNALS,
        safety_gates=safety_gates(election_timeout_s),
        kind_gates={kind.KIND: kind.default_gates() for kind in WORKLOADS},
        storage_notes=tuple(storage_notes),
    )


def storage_kinds() -> frozenset[str]:
    """The kinds of load that write to a disk."""
    return frozenset(kind.KIND for kind in WORKLOADS if kind.touches_storage)
