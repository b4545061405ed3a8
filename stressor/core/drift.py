"""What a plan stands on, and what of it is different now.

A plan is read and agreed to by somebody, and carried out later. Between the two a host may get
another address or key, a node another kubelet, the program other default gates: then what was
agreed to is not what would happen. Every field of a `Footing` is compared, however deep it lies, so
that a field added to a record of the model is compared from that day on.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum

from stressor.model import Inventory, Step, Suite

PASSED_OVER = frozenset({"source_path"})
"""Where a file was read from is no part of what it says."""
ABSENT = "(none)"
EMPTY = "(empty)"
_NAMED = {"inventory hosts": "", "suite phases": "phase ", "cluster nodes": "cluster node "}
"""How an item of a list is called, with its name behind."""
_UNORDERED = frozenset({"inventory hosts"})
"""Lists whose order says nothing: nodes were chosen, by name, when the plan was made."""


@dataclass(frozen=True, slots=True)
class NodeFooting:
    """A node as the API had it. `hostname` is its kubernetes.io/hostname label. Readiness is no
    part of it: it comes and goes, and every run asks for it. Sizes are allocatable; None: unknown.
    """

    name: str
    uid: str
    hostname: str
    control_plane: bool
    unschedulable: bool
    addresses: tuple[str, ...]
    taints: tuple[str, ...]
    cpu_cores: float | None
    memory_bytes: int | None
    kubelet_version: str
    kernel_version: str
    os_image: str


@dataclass(frozen=True, slots=True)
class ClusterFooting:
    """The cluster as its API had it. `uid` is that of the kube-system namespace."""

    uid: str
    nodes: tuple[NodeFooting, ...]


@dataclass(frozen=True, slots=True)
class Footing:
    """What a plan stands on. `steps` are what the program made of `suite`, its own gates included.

    `known_hosts` are, for each host without a pinned key, the keys that its known_hosts file
    vouches for ("ssh-ed25519 AAAA…"); none: nothing does. `cluster` None: its API was not asked.
    """

    stressor_version: str
    election_timeout_s: float
    image: str
    inventory: Inventory
    known_hosts: Mapping[str, tuple[str, ...]]
    suite: Suite
    steps: tuple[Step, ...]
    cluster: ClusterFooting | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it was: `place` in words ("node3 address")."""

    place: str
    then: str
    now: str

    def __str__(self) -> str:
        return f"{self.place} {self.then} -> {self.now}"


def drift(then: Footing, now: Footing) -> tuple[Difference, ...]:
    """What differs, in the order of the records; empty when nothing does.

    A cluster that the plan did not ask is not compared; one that it asked and that is unknown now
    differs (I4).
    """
    return tuple(
        difference
        for field in fields(Footing)
        if field.name != "cluster"
        for difference in _different(field.name, *_both(field.name, then, now))
    ) + cluster_drift(then.cluster, now.cluster)


def cluster_drift(
    then: ClusterFooting | None, now: ClusterFooting | None
) -> tuple[Difference, ...]:
    """`drift` of the part that only the API knows."""
    if then is None:
        return ()
    if now is None:
        return (Difference("cluster uid", then.uid, "unknown"),)
    return tuple(_different("cluster", then, now))


def suite_drift(then: Suite, now: Suite) -> tuple[Difference, ...]:
    """`drift` of two suites: of a plan's, and of what its phase file says now."""
    return tuple(_different("suite", then, now))


def _different(place: str, then: object, now: object) -> Iterator[Difference]:
    if is_dataclass(then) and type(then) is type(now):
        yield from _records(place, then, now)
    elif isinstance(then, Mapping) and isinstance(now, Mapping):
        yield from _mappings(place, then, now)
    elif isinstance(then, tuple) and isinstance(now, tuple) and _many(then, now):
        yield from _sequences(place, then, now)
    elif then != now or isinstance(then, bool) != isinstance(now, bool):
        # True equals 1 in Python, and is no parameter's 1.
        yield Difference(place, _shown(then), _shown(now))


def _both(name: str, then: object, now: object) -> tuple[object, object]:
    return getattr(then, name), getattr(now, name)


def _records(place: str, then: object, now: object) -> Iterator[Difference]:
    assert is_dataclass(then)
    for field in fields(then):
        if field.name not in PASSED_OVER:
            yield from _different(f"{place} {field.name}", *_both(field.name, then, now))


def _mappings(
    place: str, then: Mapping[str, object], now: Mapping[str, object]
) -> Iterator[Difference]:
    for key in dict.fromkeys((*then, *now)):
        if key in then and key in now:
            yield from _different(f"{place} {key}", then[key], now[key])
        else:
            yield Difference(f"{place} {key}", _shown(then.get(key)), _shown(now.get(key)))


def _many(then: Sequence[object], now: Sequence[object]) -> bool:
    """Whether the items have parts of their own; plain ones are shown as one list."""
    return any(is_dataclass(item) or isinstance(item, Mapping) for item in (*then, *now))


def _sequences(
    place: str, then: tuple[object, ...], now: tuple[object, ...]
) -> Iterator[Difference]:
    """Items with names are matched by name, wherever they stand; others by their position."""
    # A host with one route has an address, not a first address.
    alone = place.endswith(" routes") and len(then) == len(now) == 1
    base = place.removesuffix(" routes") if alone else place
    old, new = _keyed(base, then, alone), _keyed(base, now, alone)
    for key in dict.fromkeys((*old, *new)):
        if key in old and key in new:
            yield from _different(key, old[key], new[key])
        else:
            yield Difference(key, *("there" if key in one else "gone" for one in (old, new)))
    if place not in _UNORDERED:
        yield from _order(place, [k for k in old if k in new], [k for k in new if k in old])


def _order(place: str, then: list[str], now: list[str]) -> Iterator[Difference]:
    if then != now:
        yield Difference(f"{place} order", ", ".join(then), ", ".join(now))


def _keyed(place: str, items: tuple[object, ...], alone: bool) -> dict[str, object]:
    names = [getattr(item, "name", None) for item in items]
    if None in names or len(set(names)) < len(names):
        return {place if alone else f"{place} {index}": item for index, item in enumerate(items)}
    return {f"{_NAMED.get(place, f'{place} ')}{n}": i for n, i in zip(names, items, strict=True)}


def _shown(value: object) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, frozenset | tuple):
        parts = map(_shown, value)
        ordered = sorted(parts) if isinstance(value, frozenset) else parts
        return ", ".join(ordered) or EMPTY
    return str(value) or '""'
