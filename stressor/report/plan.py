"""What a plan would do, for somebody who has to say yes to it: every object, node, ceiling,
privilege, gate and end, the undo, and the way to stop it. Nothing was asked of a host for it."""

import json
import math
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from stressor.errors import ExitCode
from stressor.journal import encode
from stressor.model import Comparison, Gate, Plan, Step
from stressor.report.lines import RULE, ascii_only, item, number, row
from stressor.workloads import workload
from stressor.workloads.job import LEASE_NAME
from stressor.workloads.needs import MIB, Needs

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Outlook:
    """A plan and what is known of it. `flaws`: why a run would refuse it for what the files say.
    `storage`: it writes to a disk on purpose, so a run compares mounts before it starts."""

    plan: Plan
    phasefile: str
    flaws: tuple[str, ...]
    storage: bool

    @property
    def exit_code(self) -> ExitCode:
        """3 when a run of this plan would be refused."""
        return ExitCode.REFUSED if self.flaws else ExitCode.PASS

    @property
    def next_command(self) -> str:
        verb = "plan" if self.flaws else "run"
        return shlex.join(("stressor", verb, self.phasefile))


def as_json(outlook: Outlook) -> str:
    """One JSON object, ending in a newline."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "verdict": "refused" if outlook.flaws else "pass",
        "exit_code": int(outlook.exit_code),
        "next_command": outlook.next_command,
        "flaws": list(outlook.flaws),
        "storage_is_compared_by_run": outlook.storage,
        "objects": list(_objects(outlook.plan)),
        "plan": encode(outlook.plan),
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def as_text(outlook: Outlook) -> str:
    """The plan for a terminal, ending in a newline; verdict and next command last."""
    return "\n".join(_lines(outlook)) + "\n"


def _lines(outlook: Outlook) -> Iterator[str]:
    plan = outlook.plan
    yield from row("PLAN", f"suite {plan.suite}  cluster {plan.cluster}  ({outlook.phasefile})")
    yield from row("image", plan.image)
    yield from row("guarded", ", ".join(plan.guarded))
    yield from row("baseline", f"{plan.baseline_s:g} s watched without load")
    for step in plan.steps:
        yield ""
        yield from _step(plan, step)
    yield ""
    yield from row("OBJECTS", "; ".join(_objects(plan)))
    yield from row("END", f"all load is gone {plan.deadline_s:g} s after the start at the latest")
    yield from row("STOP", "stressor abort   (any terminal; needs no API)")
    yield from row("UNDO", "stressor cleanup --run RUN   (RUN is drawn when the run starts)")
    if outlook.storage:
        yield from row("STORAGE", "where load and etcd keep their data is compared by run, first")
    yield RULE
    for flaw in outlook.flaws:
        yield from row("REFUSED", flaw)
    if not outlook.flaws:
        yield from row("PLANNED", "nothing was touched: no host, no API")
    # Never wrapped: it is there to be copied.
    yield ascii_only(f"{'NEXT':<9} {outlook.next_command}")


def _step(plan: Plan, step: Step) -> Iterator[str]:
    kind = workload(step.kind)
    needs = kind.needs(step.params)
    yield from row("STEP", f"{step.index} {step.phase}: {step.kind} on {', '.join(step.nodes)}")
    yield from item(f"runs: {' '.join(kind.argv(step.params, step.warm_up_s + step.hold_s))}")
    yield from item(
        f"for: {step.warm_up_s:g} s warm-up, {step.hold_s:g} s hold, {step.cool_down_s:g} s "
        f"cool-down; ends by its own clocks {step.deadline_s:g} s after its start"
    )
    yield from item(f"each pod: {_ceiling(needs)}")
    yield from item(f"privilege: {_privilege(needs)}")
    for gate in step.gates:
        yield from item(f"{gate.action}: {_gate(gate)} at {_sources(plan, gate)}")


def _ceiling(needs: Needs) -> str:
    return (
        f"at most {needs.cpu_limit_cores:g} CPU, {math.ceil(needs.memory_limit_bytes / MIB)} MiB "
        f"of memory, {math.ceil(needs.scratch_bytes / MIB)} MiB of scratch"
    )


def _privilege(needs: Needs) -> str:
    path = "no hostPath" if needs.host_path is None else f"hostPath {needs.host_path}"
    return f"uid 65534, no capabilities, {path}"


def _gate(gate: Gate) -> str:
    sign = ">" if gate.comparison is Comparison.ABOVE else "<"
    held = f" for {gate.hold_s:g} s" if gate.hold_s else ""
    window = f" within {gate.window_s:g} s" if gate.window_s else ""
    return f"{gate.signal} {sign} {number(gate.limit)}{held}{window}"


def _sources(plan: Plan, gate: Gate) -> str:
    return ", ".join(plan.sources.get(gate.signal, ())) or "no host"


def _objects(plan: Plan) -> Iterator[str]:
    """What the run creates in the cluster. The run's name stands as RUN: it is drawn later."""
    needs = ((step, workload(step.kind).needs(step.params)) for step in plan.steps)
    hosted = ", ".join(dict.fromkeys(step.phase for step, need in needs if need.host_path))
    level = f"privileged, for the hostPath of {hosted}" if hosted else "restricted"
    jobs = sum(len(step.nodes) for step in plan.steps)
    yield f"Namespace stressor-RUN ({level}) with a ResourceQuota"
    yield f"{jobs} Job{'s' if jobs != 1 else ''} in it, one a step and node, never restarted"
    yield f"Lease {LEASE_NAME}, the cluster's lock"
