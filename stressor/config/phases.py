"""Phase files: YAML in, a `Suite` out, or every mistake at once with its line.

Nothing is decided here about whether a phase may run; this only says whether the file means
something, and what. The format is described in docs/phase-file.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from pydantic import ValidationError

from stressor.config.schema import (
    DEADLINE_LIMIT_S,
    GateEntry,
    PhaseEntry,
    PlacementEntry,
    SuiteEntry,
    complaint,
)
from stressor.config.units import duration_s, in_unit_of
from stressor.config.yamlfile import (
    Document,
    Mistake,
    Opaque,
    Place,
    did_you_mean,
    read_yaml,
    refuse,
)
from stressor.errors import ConfigError
from stressor.model import (
    Comparison,
    Gate,
    Host,
    Inventory,
    ParamValue,
    Phase,
    Role,
    SignalSpec,
    Suite,
)
from stressor.probes import SIGNALS
from stressor.workloads import WORKLOADS

LOAD_ROLES = (Role.CONTROL_PLANE, Role.WORKER)
"""Where load may be placed. Bystanders carry none: they belong to other clusters."""


class Workload(Protocol):
    """What a phase file needs to know of a workload module."""

    @property
    def KIND(self) -> str:  # noqa: N802 - a module's constant
        """The word that `kind` uses for it."""
        ...

    def mistakes(self, params: Mapping[str, ParamValue]) -> tuple[str, ...]:
        """What is wrong with a step's merged parameters; each names its parameter in backticks."""
        ...


def load_suite(
    path: Path,
    *,
    inventory: Inventory | None,
    signals: Iterable[SignalSpec] = SIGNALS,
    workloads: Iterable[Workload] = WORKLOADS,
) -> Suite:
    """The suite in the file at `path`, its nodes chosen from `inventory`.

    Raises ConfigError with all mistakes. Without an inventory the file alone is checked: node names
    are taken as they are, a `role` gives no nodes, and no plan may be made of the result.
    """
    document = read_yaml(path)
    check = _Check(
        document,
        inventory,
        {signal.name for signal in signals},
        {workload.KIND: workload for workload in workloads},
    )
    mistakes = [*document.mistakes, *check.mistakes()]
    entry: SuiteEntry | None = None
    try:
        entry = SuiteEntry.model_validate(document.data)
    except ValidationError as error:
        told = error.errors(include_url=False)
        places = [complaint(one) for one in told if not isinstance(one["input"], Opaque)]
        mistakes += [Mistake(document.line(place), text) for place, text in places]
    refuse(document.path, mistakes)
    if entry is None:
        raise ConfigError((f"{document.path}:1: cannot be read",))
    return _suite(entry, inventory, document.path)


def _suite(entry: SuiteEntry, inventory: Inventory | None, path: str) -> Suite:
    phases = tuple(_phase(phase, inventory) for phase in entry.phases)
    return Suite(entry.suite, entry.baseline, phases, source_path=path)


def _phase(entry: PhaseEntry, inventory: Inventory | None) -> Phase:
    return Phase(
        name=entry.name,
        kind=entry.kind,
        nodes=_nodes(entry.placement, inventory),
        hold_s=entry.hold,
        deadline_s=entry.deadline,
        warm_up_s=entry.warm_up,
        cool_down_s=entry.cool_down,
        gates=tuple(_gate(gate) for gate in entry.gates),
        params=MappingProxyType(entry.params),
        steps=tuple(MappingProxyType(step) for step in entry.steps),
    )


def _nodes(placement: PlacementEntry, inventory: Inventory | None) -> tuple[str, ...]:
    if placement.nodes is not None:
        return tuple(placement.nodes)
    if inventory is None or placement.role is None:
        return ()
    names = tuple(host.name for host in inventory.with_role(Role(placement.role)))
    return names[: placement.count]


def _gate(entry: GateEntry) -> Gate:
    comparison = Comparison.BELOW if entry.above is None else Comparison.ABOVE
    limit = entry.below if entry.above is None else entry.above
    return Gate(
        signal=entry.signal,
        comparison=comparison,
        limit=in_unit_of(entry.signal, limit),
        hold_s=entry.hold,
        window_s=entry.window,
        action=entry.action,
    )


@dataclass(frozen=True, slots=True)
class _Check:
    """What pydantic cannot say: words that other files define, and fields that must fit together.

    It walks the data as written and steps over whatever has the wrong shape (the schema tells
    that), so that one broken field hides no other mistake.
    """

    document: Document
    inventory: Inventory | None
    signals: set[str]
    workloads: Mapping[str, Workload]

    def mistakes(self) -> Iterator[Mistake]:
        for place, value in self.document.opaque():
            yield self._at(place, f"a value tagged `{value.tag}` is not read here")
        seen: dict[str, int] = {}
        for place, phase in self._items(self.document.data, ("phases",)):
            yield from self._name(place, phase, seen)
            yield from self._kind(place, phase)
            yield from self._placement((*place, "placement"), phase.get("placement"))
            yield from self._deadline(place, phase)
            for gate_place, gate in self._items(phase, (*place, "gates")):
                yield from self._gate(gate_place, gate)

    def _at(self, place: Place, message: str) -> Mistake:
        return Mistake(self.document.line(place), message)

    def _items(self, data: object, place: Place) -> Iterator[tuple[Place, dict[str, object]]]:
        """The mappings in the list under the last key of `place`."""
        items = data.get(place[-1]) if isinstance(data, dict) else None
        for index, item in enumerate(items if isinstance(items, list) else ()):
            if isinstance(item, dict):
                yield (*place, index), item

    def _name(
        self, place: Place, phase: dict[str, object], seen: dict[str, int]
    ) -> Iterator[Mistake]:
        name = phase.get("name")
        if not isinstance(name, str):
            return
        line = self.document.line((*place, "name"))
        if name in seen:
            yield Mistake(line, f"duplicate phase name `{name}` (first on line {seen[name]})")
        seen.setdefault(name, line)

    def _kind(self, place: Place, phase: dict[str, object]) -> Iterator[Mistake]:
        kind = phase.get("kind")
        if not isinstance(kind, str):
            return
        if kind not in self.workloads:
            hint = did_you_mean(kind, self.workloads)
            yield self._at((*place, "kind"), f"unknown kind `{kind}`{hint}")
            return
        yield from self._params(place, phase, self.workloads[kind])

    def _params(
        self, place: Place, phase: dict[str, object], workload: Workload
    ) -> Iterator[Mistake]:
        """Each step's merged parameters, judged by their workload; a mistake that a step did not
        bring is told once, where the phase says it."""
        params, steps = phase.get("params", {}), phase.get("steps", [{}])
        if not isinstance(params, dict) or not isinstance(steps, list):
            return
        for index, step in enumerate(steps):
            if not isinstance(step, dict):
                continue
            for text in workload.mistakes(_scalars({**params, **step})):
                said = text.split(" (", 1)[0]
                named = next((key for key in step if f"`{key}`" in said), None)
                if named is not None:
                    yield self._at((*place, "steps", index, named), text)
                    continue
                named = next((key for key in params if f"`{key}`" in said), "")
                yield self._at((*place, "params", named), text)

    def _placement(self, place: Place, placement: object) -> Iterator[Mistake]:
        if not isinstance(placement, dict):
            return
        nodes, role = placement.get("nodes"), placement.get("role")
        if (nodes is None) == (role is None):
            yield self._at(place, "`placement` needs either `nodes` or `role`")
        if nodes is not None and placement.get("count") is not None:
            yield self._at((*place, "count"), "`count` goes with `role`, not with `nodes`")
        if isinstance(nodes, list):
            yield from self._named_nodes((*place, "nodes"), nodes)
        if isinstance(role, str):
            yield from self._role(place, role, placement.get("count"))

    def _named_nodes(self, place: Place, nodes: list[object]) -> Iterator[Mistake]:
        hosts = {h.name: h for h in self.inventory.hosts} if self.inventory else None
        for index, name in enumerate(nodes):
            if not isinstance(name, str):
                continue
            if name in nodes[:index]:
                yield self._at((*place, index), f"node `{name}` is named twice")
            elif hosts is not None and name not in hosts:
                hint = did_you_mean(name, hosts)
                yield self._at((*place, index), f"unknown node `{name}`{hint}")
            elif hosts is not None and not _may_carry_load(hosts[name]):
                yield self._at(
                    (*place, index), f"no load is placed on `{name}`: not in this cluster"
                )

    def _role(self, place: Place, role: str, count: object) -> Iterator[Mistake]:
        if role not in LOAD_ROLES:
            hint = did_you_mean(role, LOAD_ROLES) or f": use one of {', '.join(LOAD_ROLES)}"
            yield self._at((*place, "role"), f"no load is placed on role `{role}`{hint}")
        elif self.inventory is not None:
            there = len(self.inventory.with_role(Role(role)))
            if there < (count if isinstance(count, int) else 1):
                message = f"{there} nodes have role `{role}`, {count or 'at least 1'} wanted"
                yield self._at((*place, "count"), message)

    def _deadline(self, place: Place, phase: dict[str, object]) -> Iterator[Mistake]:
        deadline, hold = _duration(phase.get("deadline")), _duration(phase.get("hold"))
        warm_up = _duration(phase.get("warm_up", 0))
        at = (*place, "deadline")
        if deadline is not None and deadline > DEADLINE_LIMIT_S:
            yield self._at(at, "`deadline` is above 24h, the longest that a step may take")
        if hold == 0:
            yield self._at((*place, "hold"), "`hold` must be above 0")
        if deadline is None or hold is None or warm_up is None:
            return
        if deadline < warm_up + hold:
            need = f"warm_up + hold = {warm_up + hold:g}s"
            yield self._at(at, f"`deadline` of {deadline:g}s is shorter than {need}")

    def _gate(self, place: Place, gate: dict[str, object]) -> Iterator[Mistake]:
        signal = gate.get("signal")
        known = isinstance(signal, str) and signal in self.signals
        if isinstance(signal, str) and not known:
            hint = did_you_mean(signal, self.signals)
            yield self._at((*place, "signal"), f"unknown signal `{signal}`{hint}")
        sides = [side for side in ("above", "below") if gate.get(side) is not None]
        if len(sides) != 1:
            yield self._at(place, "a gate needs either `above` or `below`")
        for side in sides if known else ():
            try:
                in_unit_of(str(signal), gate[side])
            except ValueError as error:
                yield self._at((*place, side), f"`{side}` of `{signal}`: {error}")


def _scalars(params: Mapping[str, object]) -> dict[str, ParamValue]:
    return {k: v for k, v in params.items() if isinstance(v, str | int | float | bool)}


def _may_carry_load(host: Host) -> bool:
    return any(role in host.roles for role in LOAD_ROLES)


def _duration(value: object) -> float | None:
    try:
        return duration_s(value)
    except ValueError:
        return None
