"""What a plan would do, for somebody who has to say yes to it: every object, node, ceiling,
privilege, gate and end, the undo, and the way to stop it."""

import json
import math
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from stressor.checks.base import Finding, Level, repeated
from stressor.core.drift import ClusterFooting
from stressor.core.nodes import is_node
from stressor.core.schedule import step_ends_s
from stressor.errors import ExitCode
from stressor.journal import encode
from stressor.kube.verbs import LOCK_NAMESPACE
from stressor.model import Comparison, Gate, Host, Inventory, Plan, Step, Transport
from stressor.report.lines import RULE, ascii_only, item, number, row
from stressor.workloads import workload
from stressor.workloads.job import LEASE_NAME, MARK_MOUNT, SCRATCH_MOUNT, job_name
from stressor.workloads.needs import MIB, Needs

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Outlook:
    """A plan and what is known of it.

    `source` is the file that was read; `words` are the options without which a run of it would be
    another one. `flaws`: why a run would refuse it for what the files say. `findings`: what the API
    says of it, and `cluster` what that is; none and None: it was not asked. `storage`: it writes to
    a disk on purpose, so a run compares mounts before it starts. `written_to` is the plan file that
    was written, `notes` are worth a line.
    """

    plan: Plan
    inventory: Inventory
    source: str
    flaws: tuple[str, ...]
    storage: bool
    words: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    cluster: ClusterFooting | None = None
    written_to: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether a run of this plan would be refused, as far as was looked."""
        return bool(self.flaws) or any(f.level is Level.FAIL for f in self.findings)

    @property
    def exit_code(self) -> ExitCode:
        """3 when a run of this plan would be refused."""
        return ExitCode.REFUSED if self.refused else ExitCode.PASS

    @property
    def next_command(self) -> str:
        if self.written_to is not None and not self.refused:
            return shlex.join(("stressor", "run", self.written_to))
        verb = "plan" if self.refused else "run"
        return shlex.join(("stressor", verb, self.source, *self.words))


def as_json(outlook: Outlook) -> str:
    """One JSON object, ending in a newline."""
    plan = outlook.plan
    ends_s = step_ends_s(plan.baseline_s, plan.steps)
    document = {
        "schema_version": SCHEMA_VERSION,
        "verdict": "refused" if outlook.refused else "pass",
        "exit_code": int(outlook.exit_code),
        "next_command": outlook.next_command,
        "flaws": list(outlook.flaws),
        "notes": list(outlook.notes),
        "storage_is_compared_by_run": outlook.storage,
        "api_was_asked": bool(outlook.findings),
        "findings": [encode(finding) for finding in outlook.findings],
        "plan_file": outlook.written_to,
        "objects": list(_objects(outlook)),
        "node_names_are_of": "inventory" if outlook.cluster is None else "api",
        "steps": [_step_facts(outlook, s, e) for s, e in zip(plan.steps, ends_s, strict=True)],
        "guards": [encode(host) for host in _guarded(outlook)],
        "abort_command": "stressor abort",
        "undo_command": "stressor cleanup --run RUN",
        "plan": encode(plan),
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def as_text(outlook: Outlook) -> str:
    """The plan for a terminal, ending in a newline; verdict and next command last."""
    return "\n".join(_lines(outlook)) + "\n"


def _lines(outlook: Outlook) -> Iterator[str]:
    plan = outlook.plan
    yield from row("PLAN", f"suite {plan.suite}  cluster {plan.cluster}  ({outlook.source})")
    yield from row("image", plan.image)
    yield from row("guarded", ", ".join(plan.guarded))
    yield from row("baseline", f"{plan.baseline_s:g} s watched without load")
    for step, end_s in zip(plan.steps, step_ends_s(plan.baseline_s, plan.steps), strict=True):
        yield ""
        yield from _step(outlook, step, end_s)
    yield ""
    yield from _guards(outlook)
    yield ""
    yield from row("OBJECTS", "in the cluster; RUN is drawn when the run starts")
    for thing in _objects(outlook):
        yield from item(thing)
    if outlook.cluster is None:
        # The digest at the end of a Job's name is that of the node's hostname label.
        yield from item("(Jobs as they are named where nodes are called as in the inventory)")
    yield ""
    yield from row(
        "END",
        f"all load is gone {_span(plan.deadline_s)} after the start at the latest; guards and host "
        f"timers end it then, whatever else fails",
    )
    yield from row("STOP", "stressor abort   (any terminal; needs no API)")
    yield from row("UNDO", "stressor cleanup --run RUN   (the namespace, its Jobs, and on hosts")
    yield from item("/run/stressor/RUN and the host timer)", 10)
    for left in _not_undone(outlook):
        yield from item(left, 10)
    if outlook.storage:
        yield from row("STORAGE", "where load and etcd keep their data is compared by run, first")
    yield from _verdict(outlook)


def _verdict(outlook: Outlook) -> Iterator[str]:
    yield RULE
    for note in outlook.notes:
        yield from row("NOTE", note)
    for finding in repeated(outlook.findings):
        where = f"{finding.host}: " if finding.host else ""
        yield from row(finding.level.upper(), f"{where}{finding.check}: {finding.text}")
        yield from item(f"-> {finding.remedy}", 10)
    for flaw in outlook.flaws:
        yield from row("REFUSED", flaw)
    if outlook.refused and not outlook.flaws:
        yield from row("REFUSED", "the API shows that it could not be carried out")
    if outlook.written_to is not None:
        yield from row("WRITTEN", outlook.written_to)
    if not outlook.refused and outlook.findings:
        yield from row("PLANNED", "nothing was started; the API was read, no host was asked")
    elif not outlook.refused:
        yield from row("PLANNED", "nothing was touched: no host, no API")
    # Never wrapped: it is there to be copied.
    yield ascii_only(f"{'NEXT':<9} {outlook.next_command}")


def _step(outlook: Outlook, step: Step, end_s: float) -> Iterator[str]:
    kind = workload(step.kind)
    needs = kind.needs(step.params)
    yield from row("STEP", f"{step.index} {step.phase}: {step.kind} on {', '.join(step.nodes)}")
    yield from item(f"runs: {' '.join(kind.argv(step.params, step.warm_up_s + step.hold_s))}")
    yield from item(
        f"for: {step.warm_up_s:g} s warm-up, {step.hold_s:g} s hold, {step.cool_down_s:g} s "
        f"cool-down; ends by its own clocks {step.deadline_s:g} s after its start"
    )
    yield from item(f"worst case: its load is gone {_span(end_s)} after the run's start")
    yield from item(f"each pod: {_ceiling(needs)}")
    yield from item(f"asks for: {_request(needs)}; load loses against everything else")
    yield from item(f"I/O: {_io(needs, kind.touches_storage)}")
    yield from item(f"privilege: {_privilege(needs)}")
    yield from item(f"volumes: {_volumes(needs)}")
    for gate in step.gates:
        yield from item(f"{gate.action}: {_gate(gate)} at {_sources(outlook.plan, gate)}")


def _ceiling(needs: Needs) -> str:
    return (
        f"at most {needs.cpu_limit_cores:g} CPU, {_mib(needs.memory_limit_bytes)} "
        f"of memory, {_mib(needs.scratch_bytes)} of scratch"
    )


def _request(needs: Needs) -> str:
    return f"{needs.cpu_request_cores:g} CPU, {_mib(needs.memory_request_bytes)} of memory"


def _io(needs: Needs, touches_storage: bool) -> str:
    if not touches_storage:
        return "none on purpose"
    rate = needs.writes_per_s
    speed = "as fast as the disk takes it" if rate is None else f"at most {rate} writes a second"
    kept = needs.host_path_bytes if needs.host_path else needs.scratch_bytes
    kept = needs.claim_file_bytes if needs.storage_class else kept
    return f"{speed}, over and over the same {_mib(kept)}"


def _privilege(needs: Needs) -> str:
    path = "no hostPath" if needs.host_path is None else f"hostPath {needs.host_path}"
    return (
        f"uid 65534, no capabilities, {path}; read-only root, seccomp RuntimeDefault, no service "
        f"account token, no host network"
    )


def _volumes(needs: Needs) -> str:
    mark = f"emptyDir stressor-RUN of {_mib(needs.scratch_bytes)} at {MARK_MOUNT}"
    if needs.storage_class is not None:
        claim = f"a volume of {_mib(needs.claim_bytes)} of StorageClass {needs.storage_class}"
        return f"{mark}; {claim} at {SCRATCH_MOUNT}, deleted with its pod"
    if needs.host_path is None:
        return mark
    kept = f"at most {_mib(needs.host_path_bytes)} in files stressor-RUN.*"
    return f"{mark}; hostPath {needs.host_path} at {SCRATCH_MOUNT}, {kept}"


def _gate(gate: Gate) -> str:
    sign = ">" if gate.comparison is Comparison.ABOVE else "<"
    held = f" for {gate.hold_s:g} s" if gate.hold_s else ""
    window = f" within {gate.window_s:g} s" if gate.window_s else ""
    return f"{gate.signal} {sign} {number(gate.limit)}{held}{window}"


def _sources(plan: Plan, gate: Gate) -> str:
    return ", ".join(plan.sources.get(gate.signal, ())) or "no host"


@dataclass(frozen=True, slots=True)
class _Guarded:
    """A host that gets a guard: `load`, it carries some; `signals`, what it must report."""

    name: str
    login: str
    roles: tuple[str, ...]
    load: bool
    signals: tuple[str, ...]


def _guarded(outlook: Outlook) -> Iterator[_Guarded]:
    plan = outlook.plan
    for host in outlook.inventory.hosts:
        if host.name in plan.guarded:
            yield _Guarded(
                name=host.name,
                login=_login(host),
                roles=tuple(sorted(host.roles)),
                load=any(host.name in step.nodes for step in plan.steps),
                signals=tuple(s for s, hosts in plan.sources.items() if host.name in hosts),
            )


def _login(host: Host) -> str:
    """Each way in, in the order in which they are tried."""
    if host.transport is Transport.LOCAL:
        return "this machine"
    ways = ", ".join(f"{r.user}@{r.address}:{r.port}" for r in host.routes)
    return f"{ways}, {host.transport}{', sudo' if host.become else ''}"


def _guards(outlook: Outlook) -> Iterator[str]:
    yield from row(
        "GUARDS",
        "one on each of these hosts, armed before any load. It kills the load on its own at the "
        f"end of its channel, after {outlook.plan.beat_timeout_s:g} s without a beat, at the "
        "worst-case end, and where somebody else aborted",
    )
    for host in _guarded(outlook):
        roles = ", ".join((*host.roles, "carries load")) if host.load else ", ".join(host.roles)
        yield from item(f"{host.name} ({host.login}): {roles}")
        yield from item(f"must report: {', '.join(host.signals) or 'nothing'}", 6)


def _objects(outlook: Outlook) -> Iterator[str]:
    """What the run creates in the cluster. The run's name stands as RUN: it is drawn later."""
    plan = outlook.plan
    needs = ((step, workload(step.kind).needs(step.params)) for step in plan.steps)
    hosted = ", ".join(dict.fromkeys(step.phase for step, need in needs if need.host_path))
    level = f"privileged, for the hostPath of {hosted}" if hosted else "restricted"
    jobs = sum(len(step.nodes) for step in plan.steps)
    yield f"Namespace stressor-RUN ({level}) with a ResourceQuota"
    yield f"ResourceQuota stressor-RUN/stressor: {jobs} pods, {jobs} Jobs, nothing that restarts"
    yield f"{jobs} Job{'s' if jobs != 1 else ''} in it, one a step and node, never restarted"
    for step in plan.steps:
        for node in step.nodes:
            yield f"Job stressor-RUN/{_job(outlook, step, node)}: step {step.index} on {node}"
    yield f"Lease {LOCK_NAMESPACE}/{LEASE_NAME}, the cluster's lock"


def _job(outlook: Outlook, step: Step, node: str) -> str:
    name = job_name("r", step.index, _hostname(outlook, node))
    return f"stressor-RUN-{name.removeprefix('stressor-r-')}"


def _hostname(outlook: Outlook, name: str) -> str:
    """The node's hostname label where the API was asked, else the inventory's name for it."""
    nodes = outlook.cluster.nodes if outlook.cluster else ()
    host = outlook.inventory.host(name)
    own = (n.hostname for n in nodes if is_node(host, n.name, n.addresses))
    return next(own, name)


def _not_undone(outlook: Outlook) -> Iterator[str]:
    """Files of a killed fio stay, and cleanup looks for them in the inventory's scratch_dir."""
    seen: dict[str, list[str]] = {}
    for step in outlook.plan.steps:
        path = workload(step.kind).needs(step.params).host_path
        for node in step.nodes if path else ():
            if outlook.inventory.host(node).scratch_dir != path:
                seen.setdefault(str(path), []).append(node)
    for path, nodes in seen.items():
        where = ", ".join(dict.fromkeys(nodes))
        yield (
            f"but for files stressor-RUN.* that a kill leaves in {path} on {where}: there, too, "
            f"with scratch_dir: {path} in the inventory"
        )


def _step_facts(outlook: Outlook, step: Step, end_s: float) -> dict[str, object]:
    kind = workload(step.kind)
    needs = kind.needs(step.params)
    return {
        "step": step.index,
        "phase": step.phase,
        "pods": len(step.nodes),
        "jobs": [_job(outlook, step, node) for node in step.nodes],
        "gone_by_s": end_s,
        "touches_storage": kind.touches_storage,
        "pod": encode(needs),
        "security_level": "privileged" if needs.host_path else "restricted",
    }


def _mib(size_bytes: int) -> str:
    return f"{math.ceil(size_bytes / MIB)} MiB"


def _span(span_s: float) -> str:
    """Seconds, and hours and minutes beside them where that is easier to read."""
    if span_s < 120:
        return f"{span_s:g} s"
    minutes, seconds = divmod(math.ceil(span_s), 60)
    hours, minutes = divmod(minutes, 60)
    long = f"{hours}h{minutes:02}m" if hours else f"{minutes}m{seconds:02}s"
    return f"{span_s:g} s ({long})"
