"""Storage isolation as preflight says it: what a disk phase would meet, before anybody writes one.

The rule is `core.placement`'s: shared and unknown both forbid storage load. Here pairs of hosts
with one cause share a line, for twelve lines that say the same are read by nobody.
"""

from collections.abc import Iterator, Sequence

from stressor.checks.base import Finding, Level
from stressor.core.placement import Finding as Pair
from stressor.core.placement import Isolation, bystander_flaws
from stressor.model import Inventory

NAME = "storage"
_UNKNOWN = '`run --accept-unknown-storage "WHY"`, or load elsewhere'
_SHARED = "load storage that no etcd stands on"
_NAMES_SHOWN = 3


def judge(
    pairs: Sequence[Pair], inventory: Inventory, *, needed: bool, unknown_reason: str | None
) -> tuple[Finding, ...]:
    """One finding a cause. `needed`: the plan has storage load, so what forbids it is a FAIL;
    else it is a WARN, for load that writes to no disk may still start. What the inventory or
    `unknown_reason` allows is a WARN as well: it heads the report."""
    forbids = Level.FAIL if needed else Level.WARN
    found = tuple(
        Finding(NAME, "", forbids, flaw, "group bystanders, or stressor_bystanders_none")
        for flaw in bystander_flaws(inventory)
    )
    found = (*found, *_causes(pairs, inventory, forbids, unknown_reason))
    return found or (Finding(NAME, "", Level.SKIP, "no etcd and no load in the inventory"),)


def _causes(
    pairs: Sequence[Pair], inventory: Inventory, forbids: Level, unknown_reason: str | None
) -> Iterator[Finding]:
    for isolation, why in dict.fromkeys((pair.isolation, pair.why) for pair in pairs):
        own = [pair for pair in pairs if (pair.isolation, pair.why) == (isolation, why)]
        load, etcd = _names(p.load_host for p in own), _names(p.etcd_host for p in own)
        text = f"load on {load}, etcd on {etcd}: {isolation} ({why})"
        unknown = isolation is Isolation.UNKNOWN
        remedy = _UNKNOWN if unknown else _SHARED
        if inventory.disposable:
            text = f"{text}; allowed: disposable: true"
            yield Finding(NAME, "", Level.WARN, text, remedy, unknown)
        elif unknown and unknown_reason:
            yield Finding(NAME, "", Level.WARN, f"{text}; allowed: {unknown_reason}", remedy, True)
        else:
            yield Finding(NAME, "", forbids, text, remedy, unknown)


def _names(hosts: Iterator[str]) -> str:
    names = tuple(dict.fromkeys(hosts))
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
