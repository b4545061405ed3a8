"""API objects (parsed JSON) to facts. Pure; anything missing becomes empty or None, never a guess.

The typed models of the kubernetes client refuse objects that real servers send (nulls in required
fields) and cost 5 to 15 times the time, so they are not used for reading.
"""

import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from stressor.kube.base import JobFacts, Lease, Leftover, NodeFacts, PodFacts
from stressor.workloads.job import (
    ABORT_ANNOTATION,
    CONTAINER,
    NODE_ANNOTATION,
    RUN_LABEL,
    STEP_LABEL,
)

Object = Mapping[str, Any]

_QUANTITY = re.compile(r"([+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)([a-zA-Z]*)")
_SCALES: Mapping[str, Decimal] = {
    **{unit: Decimal(10) ** power for unit, power in zip("num", (-9, -6, -3), strict=True)},
    **{unit: Decimal(1000) ** power for power, unit in enumerate(("", "k", "M", "G", "T", "P"))},
    **{f"{unit}i": Decimal(1024) ** (power + 1) for power, unit in enumerate("KMGTP")},
}


def quantity(text: object) -> float | None:
    """A Kubernetes quantity (`1900m`, `16Gi`) as a number of its base unit; None if it is none."""
    match = _QUANTITY.fullmatch(str(text)) if text is not None else None
    if match is None or match[2] not in _SCALES:
        return None
    return float(Decimal(match[1]) * _SCALES[match[2]])


def metadata(thing: Object) -> Mapping[str, Any]:
    """The object's metadata; empty when it has none."""
    return thing.get("metadata") or {}


def labels(thing: Object) -> Mapping[str, str]:
    """The object's labels; empty when it has none."""
    return metadata(thing).get("labels") or {}


def annotations(thing: Object) -> Mapping[str, str]:
    """The object's annotations; empty when it has none."""
    return metadata(thing).get("annotations") or {}


def node_facts(node: Object) -> NodeFacts:
    """A Node."""
    meta, spec, status = metadata(node), node.get("spec") or {}, node.get("status") or {}
    allocatable, info = status.get("allocatable") or {}, status.get("nodeInfo") or {}
    memory = quantity(allocatable.get("memory"))
    taints = spec.get("taints") or []
    return NodeFacts(
        name=meta.get("name", ""),
        uid=meta.get("uid", ""),
        hostname=labels(node).get("kubernetes.io/hostname", ""),
        ready={"True": True, "False": False}.get(_condition(status, "Ready").get("status", "")),
        unschedulable=bool(spec.get("unschedulable")),
        control_plane="node-role.kubernetes.io/control-plane" in labels(node),
        addresses=tuple(a.get("address", "") for a in status.get("addresses") or []),
        taints=tuple(f"{t.get('key', '')}:{t.get('effect', '')}" for t in taints),
        cpu_cores=quantity(allocatable.get("cpu")),
        memory_bytes=None if memory is None else math.floor(memory),
        kubelet_version=info.get("kubeletVersion", ""),
        kernel_version=info.get("kernelVersion", ""),
        os_image=info.get("osImage", ""),
    )


def pod_facts(pod: Object) -> PodFacts:
    """A load Pod. The container's own reason (OOMKilled) comes before the pod's (Evicted)."""
    meta, status = metadata(pod), pod.get("status") or {}
    state, detail = _container(status)
    return PodFacts(
        namespace=meta.get("namespace", ""),
        name=meta.get("name", ""),
        uid=meta.get("uid", ""),
        run=labels(pod).get(RUN_LABEL, ""),
        step=labels(pod).get(STEP_LABEL, ""),
        job=labels(pod).get("batch.kubernetes.io/job-name") or labels(pod).get("job-name", ""),
        node=(pod.get("spec") or {}).get("nodeName") or "",
        phase=status.get("phase", ""),
        container_state=state,
        reason=detail.get("reason") or status.get("reason") or _unscheduled(status, "reason"),
        message=detail.get("message") or status.get("message") or _unscheduled(status, "message"),
        exit_code=detail.get("exitCode"),
        deleting=meta.get("deletionTimestamp") is not None,
    )


def job_facts(job: Object) -> JobFacts:
    """A load Job."""
    meta, status = metadata(job), job.get("status") or {}
    ends = (_condition(status, kind) for kind in ("Failed", "Complete", "Suspended"))
    end: Mapping[str, Any] = next((one for one in ends if one.get("status") == "True"), {})
    return JobFacts(
        namespace=meta.get("namespace", ""),
        name=meta.get("name", ""),
        uid=meta.get("uid", ""),
        run=labels(job).get(RUN_LABEL, ""),
        step=labels(job).get(STEP_LABEL, ""),
        node=annotations(job).get(NODE_ANNOTATION, ""),
        active=status.get("active") or 0,
        succeeded=status.get("succeeded") or 0,
        failed=status.get("failed") or 0,
        suspended=bool((job.get("spec") or {}).get("suspend")),
        condition=end.get("type", ""),
        reason=end.get("reason") or "",
        deleting=meta.get("deletionTimestamp") is not None,
    )


def leftover(kind: str, thing: Object) -> Leftover:
    """What an object that should be gone says about why it is not."""
    meta, status = metadata(thing), thing.get("status") or {}
    held = list(meta.get("finalizers") or [])
    words = [f"terminating since {since}"] if (since := meta.get("deletionTimestamp")) else []
    words += [f"finalizers: {', '.join(held)}"] if held else []
    words += [
        one["message"]
        for one in status.get("conditions") or []
        if kind == "Namespace" and one.get("status") == "True" and one.get("message")
    ]
    return Leftover(
        kind,
        meta.get("namespace", ""),
        meta.get("name", ""),
        meta.get("uid", ""),
        "; ".join(words),
    )


def lease(thing: Object) -> Lease:
    """The lock. One without a readable renewal time never expires: unknown is not "free"."""
    meta, spec = metadata(thing), thing.get("spec") or {}
    renewed = _unix_s(spec.get("renewTime"))
    duration_s = spec.get("leaseDurationSeconds")
    expires = math.inf
    if renewed is not None and isinstance(duration_s, int):
        expires = renewed + duration_s
    return Lease(
        holder=spec.get("holderIdentity") or "",
        run=annotations(thing).get(RUN_LABEL, ""),
        abort_command=annotations(thing).get(ABORT_ANNOTATION, ""),
        renewed_unix_s=renewed or 0.0,
        expires_unix_s=expires,
        uid=meta.get("uid", ""),
        version=meta.get("resourceVersion", ""),
        acquired_unix_s=_unix_s(spec.get("acquireTime")),
    )


def _unix_s(text: object) -> float | None:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    conditions: Iterable[Mapping[str, Any]] = status.get("conditions") or []
    return next((one for one in conditions if one.get("type") == kind), {})


def _container(status: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """(state, its details) of the load container."""
    for container in status.get("containerStatuses") or []:
        if container.get("name") == CONTAINER:
            for state in ("terminated", "running", "waiting"):
                if state in (container.get("state") or {}):
                    return state, container["state"][state] or {}
    return "", {}


def _unscheduled(status: Mapping[str, Any], field: str) -> str:
    condition = _condition(status, "PodScheduled")
    return str(condition.get(field) or "") if condition.get("status") == "False" else ""
