"""From a suite and an inventory to a plan: every step, host, source and deadline, before anything
is touched. Pure: the run's name comes in, and all times are relative to the run's anchor."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from stressor.core.stopping import BUDGET_S
from stressor.model import (
    Gate,
    GateAction,
    Host,
    Inventory,
    ParamValue,
    Phase,
    Plan,
    Role,
    SignalSpec,
    Step,
    Subject,
    Suite,
)

START_MARGIN_S = 60.0
"""Between creation and the last moment at which the entry point starts load (design.md)."""
SETTLING_S = 60.0
"""Arming, appearing and proving, per step, at worst (limits of core.run)."""


def plan(
    suite: Suite,
    inventory: Inventory,
    *,
    run: str,
    image: str,
    signals: Iterable[SignalSpec],
    safety_gates: tuple[Gate, ...],
    kind_gates: Mapping[str, tuple[Gate, ...]] = MappingProxyType({}),
    storage_notes: tuple[str, ...] = (),
) -> Plan:
    """The whole run as one value. `safety_gates` hold for every phase and `kind_gates` for those of
    a kind, unless the phase has gates of its own on the same signal with the same action."""
    specs = tuple(signals)
    phases = suite.phases
    steps = tuple(
        _step(index, phase, params, (*safety_gates, *kind_gates.get(phase.kind, ())))
        for index, (phase, params) in enumerate((p, s) for p in phases for s in p.steps)
    )
    guarded = guarded_hosts(inventory, (n for step in steps for n in step.nodes))
    return Plan(
        run=run,
        cluster=inventory.cluster,
        suite=suite.name,
        baseline_s=suite.baseline_s,
        steps=steps,
        guarded=guarded,
        sources=sources(specs, inventory, guarded),
        periods_s={spec.name: spec.period_s for spec in specs},
        deadline_s=worst_case_end_s(suite.baseline_s, steps),
        namespace=f"stressor-{run}",
        image=image,
        storage_notes=storage_notes,
    )


def guarded_hosts(inventory: Inventory, load_nodes: Iterable[str]) -> tuple[str, ...]:
    """Control plane, bystanders and load hosts, in inventory order (I1)."""
    wanted = set(load_nodes)
    for role in (Role.CONTROL_PLANE, Role.BYSTANDER):
        wanted |= {host.name for host in inventory.with_role(role)}
    return tuple(host.name for host in inventory.hosts if host.name in wanted)


def sources(
    signals: Iterable[SignalSpec], inventory: Inventory, guarded: tuple[str, ...]
) -> Mapping[str, tuple[str, ...]]:
    """For each signal the guarded hosts that must report it."""
    hosts = [host for host in inventory.hosts if host.name in guarded]
    return {
        spec.name: tuple(h.name for h in hosts if _reports(h, spec.subject)) for spec in signals
    }


def worst_case_end_s(baseline_s: float, steps: Iterable[Step]) -> float:
    """When the last load is gone at the latest, seconds from the run's anchor: guards and host
    timers are armed for this moment (I2)."""
    spans = (SETTLING_S + step.deadline_s + step.cool_down_s for step in steps)
    return SETTLING_S + baseline_s + sum(spans) + BUDGET_S


def step_ends_s(baseline_s: float, steps: Iterable[Step]) -> tuple[float, ...]:
    """When each step's load is gone at the latest by its own clocks, seconds from the run's anchor.
    The last one is earlier than `worst_case_end_s`, which adds an abort with its whole budget."""
    ends_s = []
    at_s = SETTLING_S + baseline_s
    for step in steps:
        at_s += SETTLING_S + step.deadline_s
        ends_s.append(at_s)
        at_s += step.cool_down_s
    return tuple(ends_s)


def late_flaws(plan: Plan, max_duration_s: float | None) -> tuple[str, ...]:
    """Why the plan may take too long: its worst-case end is later than `max_duration_s` after its
    start. Empty when it is not, and when nobody set a limit."""
    if max_duration_s is None or plan.deadline_s <= max_duration_s:
        return ()
    over_s = plan.deadline_s - max_duration_s
    return (
        f"the worst-case end is {plan.deadline_s:g} s after the start, --max-duration allows "
        f"{max_duration_s:g} s: {over_s:g} s too late; choose fewer --phases or shorter deadlines",
    )


def flaws(plan: Plan) -> tuple[str, ...]:
    """Why load of this plan could not be watched or stopped (I1); empty for a sound plan. A plan
    may come from a file, so it is judged again before a run touches anything."""
    if not plan.steps:
        return ("the plan has no steps",)
    return tuple(
        f"step {position} ({step.phase}): {flaw}"
        for position, step in enumerate(plan.steps)
        for flaw in (*_step_flaws(plan, position, step), *_gate_flaws(plan, step))
    )


def _step_flaws(plan: Plan, position: int, step: Step) -> Iterable[str]:
    if step.index != position:
        yield f"its index is {step.index}"
    if not step.nodes:
        yield "it has no nodes"
    for node in step.nodes:
        if node not in plan.guarded:
            yield f"{node} is to carry load, but is not guarded"


def _gate_flaws(plan: Plan, step: Step) -> Iterable[str]:
    stops = [gate for gate in step.gates if gate.action is GateAction.STOP]
    if not stops:
        yield "no gate can stop it"
    for gate in stops:
        if not plan.sources.get(gate.signal):
            yield f"no host reports {gate.signal}, on which a stopping gate hangs"
    for gate in step.gates:
        if plan.sources.get(gate.signal) and gate.signal not in plan.periods_s:
            yield f"nothing says how often {gate.signal} is reported"


def _reports(host: Host, subject: Subject) -> bool:
    match subject:
        case Subject.ETCD:
            return host.etcd_metrics_url is not None
        case Subject.APISERVER:
            return host.apiserver_url is not None
        case Subject.HOST:
            return True


def _step(
    index: int, phase: Phase, params: Mapping[str, ParamValue], safety_gates: tuple[Gate, ...]
) -> Step:
    own = {(gate.signal, gate.action) for gate in phase.gates}
    added = tuple(g for g in safety_gates if (g.signal, g.action) not in own)
    return Step(
        index=index,
        phase=phase.name,
        kind=phase.kind,
        nodes=phase.nodes,
        params={**phase.params, **params},
        warm_up_s=phase.warm_up_s,
        hold_s=phase.hold_s,
        cool_down_s=phase.cool_down_s,
        deadline_s=phase.deadline_s,
        gates=(*phase.gates, *added),
    )
