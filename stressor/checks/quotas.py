"""Whether quotas, limit ranges and the room on the nodes let a plan's pods exist.

A run's namespace is new, so no quota but its own is in it, unless something puts quotas into every
new namespace. That cannot be asked beforehand: one of the same name and content in three namespaces
or more is taken for a sign of it. OpenShift's cluster quotas bind a namespace before it exists.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stressor.checks.base import Finding, Level, unknown

NAME = "quotas"
TEMPLATE_FROM = 3
"""The same quota in so many namespaces was put there by a rule; in two, it may be by hand."""
_OF_PODS: Mapping[str, bool] = {
    "Terminating": True,
    "NotBestEffort": True,
    "NotTerminating": False,
    "BestEffort": False,
    "CrossNamespacePodAffinity": False,
}
"""Whether a scope of quotas counts load pods: they have a deadline, and ask for resources."""
_OWN_NAME = "stressor"
"""The quota in each run's namespace: those of earlier runs are nobody's rule for new namespaces."""
_TOLERANCE = 1e-6
"""Sums of floats are not exact; Kubernetes counts in thousandths of a core, and in bytes."""
_SHOW = {"quota": "kubectl describe quota --all-namespaces", "range": "kubectl describe limits -A"}


@dataclass(frozen=True, slots=True)
class PodDemand:
    """What one load pod asks for, in cores and bytes; `claim_bytes` 0: no volume claim."""

    cpu_request_cores: float
    cpu_limit_cores: float
    memory_request_bytes: int
    memory_limit_bytes: int
    ephemeral_limit_bytes: int
    claim_bytes: int = 0
    storage_class: str = ""


@dataclass(frozen=True, slots=True)
class StepDemand:
    """One step: a pod on each of `nodes` (inventory names). Steps follow each other, so pods of
    only one of them run; the objects of all stay until clean-up."""

    index: int
    nodes: tuple[str, ...]
    pod: PodDemand


@dataclass(frozen=True, slots=True)
class Quota:
    """A ResourceQuota, or a cluster quota that selects the run's namespace (`namespace` empty).
    Figures are in base units, None where they could not be read."""

    namespace: str
    name: str
    hard: Mapping[str, float | None]
    used: Mapping[str, float | None]
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limit:
    """One item of a limit range; `kind` is Container, Pod or PersistentVolumeClaim."""

    kind: str
    most: Mapping[str, float | None]
    least: Mapping[str, float | None]
    most_ratio: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class LimitRange:
    """A LimitRange of a namespace."""

    namespace: str
    name: str
    limits: tuple[Limit, ...]


@dataclass(frozen=True, slots=True)
class Room:
    """A load node: what it can give to pods, and what its pods ask for now. None: unknown."""

    host: str
    node: str
    cpu_cores: float | None
    memory_bytes: float | None
    cpu_asked_cores: float | None
    memory_asked_bytes: float | None


@dataclass(frozen=True, slots=True)
class _Objection:
    """Why a quota or range refuses the plan. `sure` is false where a figure could not be read."""

    text: str
    sure: bool = True


def judge(
    steps: Sequence[StepDemand], quotas: Sequence[Quota], ranges: Sequence[LimitRange], *, own: str
) -> tuple[Finding, ...]:
    """`own`: the run's namespace. What binds there and would refuse a pod, Job or claim: FAIL.
    Where a figure is unknown, or a rule only seems to put it there: WARN."""
    if not steps:
        return (Finding(NAME, "", Level.SKIP, "no plan: nothing is asked of a quota"),)
    found = (*_of_quotas(steps, quotas, own), *_of_ranges(steps, ranges, own))
    text = "no quota and no limit range is in the plan's way"
    return found or (Finding(NAME, "", Level.PASS, text),)


def unread(why: str) -> tuple[Finding, ...]:
    """The finding where quotas or limit ranges could not be listed. WARN, as `rbac` has it of a
    login without that right: a pod that a quota refuses does not start, and harms nobody."""
    why = f"quotas and limit ranges: {why}"
    return (unknown(NAME, "", Level.WARN, why, "kubectl auth can-i list resourcequotas -A"),)


def _of_quotas(steps: Sequence[StepDemand], quotas: Sequence[Quota], own: str) -> Iterator[Finding]:
    demand = _demand(steps)
    alike: dict[object, list[Quota]] = defaultdict(list)
    for quota in quotas:
        if quota.namespace in ("", own):
            name = f"quota {quota.name}" if quota.namespace else f"cluster quota {quota.name}"
            objections = _refusals(quota.hard, quota.used, demand, quota.scopes)
            yield from _said(name, objections, _SHOW["quota"])
        elif quota.name != _OWN_NAME:
            key = (quota.name, tuple(sorted(quota.hard.items(), key=str)), quota.scopes)
            alike[key].append(quota)
    for group in alike.values():
        if len(group) >= TEMPLATE_FROM:
            empty = dict.fromkeys(group[0].hard, 0.0)
            objections = _refusals(group[0].hard, empty, demand, group[0].scopes)
            yield from _template("quota", group[0].name, len(group), objections)


def _of_ranges(
    steps: Sequence[StepDemand], ranges: Sequence[LimitRange], own: str
) -> Iterator[Finding]:
    alike: dict[object, list[LimitRange]] = defaultdict(list)
    for one in ranges:
        if one.namespace == own:
            name = f"limit range {one.name}"
            yield from _said(name, _out_of_range(steps, one), _SHOW["range"])
        else:
            alike[one.name, str(one.limits)].append(one)
    for group in alike.values():
        if len(group) >= TEMPLATE_FROM:
            objections = _out_of_range(steps, group[0])
            yield from _template("limit range", group[0].name, len(group), objections)


def _said(name: str, objections: Iterator[_Objection], show: str) -> Iterator[Finding]:
    for objection in objections:
        text = f"{name}: {objection.text}"
        if objection.sure:
            yield Finding(NAME, "", Level.FAIL, text, f"raise it, or lower the params: {show}")
        else:
            yield unknown(NAME, "", Level.WARN, text, show)


def _template(
    kind: str, name: str, count: int, objections: Iterator[_Objection]
) -> Iterator[Finding]:
    for objection in objections:
        text = f"{kind} {name} is in {count} namespaces, perhaps soon in the run's: "
        text += objection.text
        remedy = "exempt namespaces with the label stressor.dev/run from that rule"
        if objection.sure:
            yield Finding(NAME, "", Level.WARN, text, remedy)
        else:
            yield unknown(NAME, "", Level.WARN, text, remedy)


def _demand(steps: Sequence[StepDemand]) -> Mapping[str, float]:
    """What the plan asks of a quota at its worst moment, by the quota's words. Pods that ended
    count for none of the pod's resources, but as objects."""
    most: dict[str, float] = defaultdict(float)
    total: dict[str, float] = defaultdict(float)
    for step in steps:
        pods = len(step.nodes)
        for name, figure in _compute(step.pod).items():
            most[name] = max(most[name], pods * figure)
        for name, figure in _objects(step.pod).items():
            total[name] += pods * figure
    return {**most, **total}


def _compute(pod: PodDemand) -> Mapping[str, float]:
    return {
        "pods": 1.0,
        "cpu": pod.cpu_request_cores,
        "requests.cpu": pod.cpu_request_cores,
        "limits.cpu": pod.cpu_limit_cores,
        "memory": pod.memory_request_bytes,
        "requests.memory": pod.memory_request_bytes,
        "limits.memory": pod.memory_limit_bytes,
        # A limit without a request is the request, too.
        "ephemeral-storage": pod.ephemeral_limit_bytes,
        "requests.ephemeral-storage": pod.ephemeral_limit_bytes,
        "limits.ephemeral-storage": pod.ephemeral_limit_bytes,
    }


def _objects(pod: PodDemand) -> Mapping[str, float]:
    jobs = {"count/jobs.batch": 1.0, "count/pods": 1.0}
    if not pod.claim_bytes:
        return jobs
    of_class = f"{pod.storage_class}.storageclass.storage.k8s.io/"
    count, size = 1.0, float(pod.claim_bytes)
    return jobs | {
        "persistentvolumeclaims": count,
        "count/persistentvolumeclaims": count,
        "requests.storage": size,
        f"{of_class}persistentvolumeclaims": count,
        f"{of_class}requests.storage": size,
    }


def _refusals(
    hard: Mapping[str, float | None],
    used: Mapping[str, float | None],
    demand: Mapping[str, float],
    scopes: tuple[str, ...],
) -> Iterator[_Objection]:
    counted = [_OF_PODS.get(scope.removesuffix(" Exists")) for scope in scopes]
    if False in counted:
        return
    for name in sorted(hard.keys() & demand.keys()):
        limit, taken, wanted = hard[name], used.get(name), demand[name]
        if limit is None or taken is None:
            yield _Objection(f"{name}: how much is left?", sure=False)
        elif wanted - (limit - taken) > _TOLERANCE:
            text = f"{name}: the plan asks for {wanted:g}, {limit - taken:g} of {limit:g} are left"
            yield _Objection(text, sure=None not in counted)


def _out_of_range(steps: Sequence[StepDemand], one: LimitRange) -> Iterator[_Objection]:
    seen = set()
    for step in steps:
        for limit in one.limits:
            for objection in _beyond(limit, step):
                if objection not in seen:
                    seen.add(objection)
                    yield objection


def _beyond(limit: Limit, step: StepDemand) -> Iterator[_Objection]:
    for name, (request, bound) in _bounds(limit.kind, step.pod).items():
        who = f"{name} of a {limit.kind} of step {step.index}"
        ratio = bound / request if request else 0.0
        most, least = f"its limit is {bound:g}, at most", f"it requests {request:g}, at least"
        times = f"its limit is {ratio:g} times its request, at most"
        yield from _compared(f"{who}: {most}", bound, limit.most, name)
        yield from _compared(f"{who}: {times}", ratio, limit.most_ratio, name)
        yield from _compared(f"{who}: {least}", request, limit.least, name, lower=True)


def _compared(
    words: str,
    figure: float,
    rule: Mapping[str, float | None],
    name: str,
    *,
    lower: bool = False,
) -> Iterator[_Objection]:
    if name not in rule:
        return
    bound = rule[name]
    if bound is None:
        yield _Objection(f"{words}?", sure=False)
        return
    beyond = bound - figure if lower else figure - bound
    if beyond > _TOLERANCE:
        yield _Objection(f"{words} {bound:g}")


def _bounds(kind: str, pod: PodDemand) -> Mapping[str, tuple[float, float]]:
    """(request, limit) by resource. A pod is its one container."""
    if kind == "PersistentVolumeClaim":
        return {"storage": (pod.claim_bytes, pod.claim_bytes)} if pod.claim_bytes else {}
    ephemeral = pod.ephemeral_limit_bytes
    return {
        "cpu": (pod.cpu_request_cores, pod.cpu_limit_cores),
        "memory": (pod.memory_request_bytes, pod.memory_limit_bytes),
        "ephemeral-storage": (ephemeral, ephemeral),
    }


def judge_room(steps: Sequence[StepDemand], rooms: Sequence[Room]) -> tuple[Finding, ...]:
    """Whether each load node has room for what its pod requests: without, it waits until it may no
    longer start. FAIL, and WARN where a figure is unknown."""
    return tuple(finding for room in rooms for finding in _room(steps, room))


def _room(steps: Sequence[StepDemand], room: Room) -> Iterator[Finding]:
    pods = [step.pod for step in steps if room.host in step.nodes]
    if not pods:
        return
    figures = (
        ("CPU", max(p.cpu_request_cores for p in pods), room.cpu_cores, room.cpu_asked_cores),
        (
            "bytes of memory",
            float(max(p.memory_request_bytes for p in pods)),
            room.memory_bytes,
            room.memory_asked_bytes,
        ),
    )
    found = tuple(finding for figure in figures for finding in _short(room, *figure))
    text = f"node {room.node} has room for what load requests"
    yield from found or (Finding(NAME, room.host, Level.PASS, text),)


def _short(
    room: Room, what: str, wanted: float, there: float | None, asked: float | None
) -> Iterator[Finding]:
    remedy = f"kubectl describe node {room.node}"
    if there is None or asked is None:
        yield unknown(NAME, room.host, Level.WARN, f"{what} left on node {room.node}", remedy)
    elif wanted - (there - asked) > _TOLERANCE:
        text = f"node {room.node}: {there - asked:g} {what} left, load requests {wanted:g}"
        yield Finding(NAME, room.host, Level.FAIL, text, remedy)
