"""The only builder of load: Jobs with deadlines, never a thing that restarts.

A Job made here ends by four clocks of its own: the entry point's absolute end, the pod's and the
Job's activeDeadlineSeconds, and it never starts late (STRESSOR_START_BY). It carries two marks by
which a guard knows it without Kubernetes: STRESSOR_RUN in its environment and a volume named after
the run, which /proc/PID/mountinfo shows.
"""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence

from stressor.model import Step
from stressor.workloads.needs import Needs

RUN_LABEL = "stressor.dev/run"
STEP_LABEL = "stressor.dev/step"
PHASE_ANNOTATION = "stressor.dev/phase"
NODE_ANNOTATION = "stressor.dev/node"
ABORT_ANNOTATION = "stressor.dev/abort-command"
ENTRY_POINT = "/usr/local/bin/stressor-entry"
MARK_MOUNT = "/stressor"
SCRATCH_MOUNT = "/scratch"
SCRATCH_VOLUME = "scratch"
IMAGE_PULL_POLICY = "IfNotPresent"
CONTAINER = "load"
LEASE_NAME = "stressor"
NOBODY = 65534

_RUN = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
_GRACE_S = 2
# Kinds that bring load back after it was stopped: none of them may exist in a run's namespace.
_RESTARTING = (
    "count/replicationcontrollers",
    "count/deployments.apps",
    "count/replicasets.apps",
    "count/statefulsets.apps",
    "count/daemonsets.apps",
    "count/cronjobs.batch",
)

Manifest = dict[str, object]


def checked_run(run: str) -> str:
    """`run`, when it can be part of object names and label values. Raises ValueError otherwise:
    an empty one would select everything that has the label."""
    if not _RUN.fullmatch(run):
        raise ValueError(f"not a run id (a-z, 0-9, '-', at most 40): {run!r}")
    return run


def mark_volume(run: str) -> str:
    """The name of the volume that marks the run's processes in /proc/PID/mountinfo."""
    return f"stressor-{checked_run(run)}"


def job_name(run: str, step: int, node: str) -> str:
    """Unique per run, step and node; node names may be too long for an object name."""
    digest = hashlib.sha256(node.encode()).hexdigest()[:8]
    return f"stressor-{checked_run(run)}-{step}-{digest}"


def job_manifest(
    *,
    run: str,
    namespace: str,
    image: str,
    step: Step,
    node: str,
    argv: Sequence[str],
    start_by_unix_s: int,
    end_by_unix_s: int,
    deadline_s: float,
    needs: Needs,
) -> Manifest:
    """The Job that puts one step's load on one node.

    `node` is the node's kubernetes.io/hostname label. `deadline_s` counts from the Job's start,
    `start_by_unix_s` and `end_by_unix_s` are absolute. Raises ValueError for load without a bound.
    """
    if not argv:
        raise ValueError("no command")
    if not (math.isfinite(deadline_s) and deadline_s > 0 and end_by_unix_s > start_by_unix_s > 0):
        raise ValueError("load needs a deadline, a start-by and a later end-by")
    pod = _pod(run, node, needs)
    pod["activeDeadlineSeconds"] = math.ceil(deadline_s)
    pod["containers"] = [_container(run, image, argv, start_by_unix_s, end_by_unix_s, needs)]
    labels = _labels(run) | {STEP_LABEL: str(step.index)}
    about = {PHASE_ANNOTATION: step.phase, NODE_ANNOTATION: node}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(run, step.index, node),
            "namespace": namespace,
            "labels": labels,
            "annotations": about,
        },
        "spec": {
            "activeDeadlineSeconds": math.ceil(deadline_s),
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "template": {"metadata": {"labels": labels, "annotations": about}, "spec": pod},
        },
    }


def namespace_manifests(
    *, run: str, namespace: str, jobs: int, host_path: bool
) -> tuple[Manifest, ...]:
    """The run's own namespace and the quota that keeps everything but `jobs` Jobs out of it.

    Pods live under the restricted security level; a phase that names a `host_path` needs
    privileged, because no lower level allows hostPath volumes.
    """
    level = "privileged" if host_path else "restricted"
    security = {f"pod-security.kubernetes.io/{mode}": level for mode in ("enforce", "warn")}
    hard = {"pods": str(jobs), "count/jobs.batch": str(jobs), "services": "0"}
    return (
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": namespace, "labels": _labels(run) | security},
        },
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "stressor", "namespace": namespace, "labels": _labels(run)},
            "spec": {"hard": hard | dict.fromkeys(_RESTARTING, "0")},
        },
    )


def lease_manifest(
    *,
    namespace: str,
    holder: str,
    run: str,
    abort_command: str,
    duration_s: int,
    acquired: str,
    renewed: str,
) -> Manifest:
    """The cluster's lock. `acquired` and `renewed` are RFC 3339 with microseconds, in UTC."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": LEASE_NAME,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/name": "stressor"},
            "annotations": {RUN_LABEL: run, ABORT_ANNOTATION: abort_command},
        },
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": duration_s,
            "acquireTime": acquired,
            "renewTime": renewed,
        },
    }


def _labels(run: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": "stressor", RUN_LABEL: checked_run(run)}


def _pod(run: str, node: str, needs: Needs) -> Manifest:
    mark = {"name": mark_volume(run), "emptyDir": {"sizeLimit": str(needs.scratch_bytes)}}
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": _GRACE_S,
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "nodeSelector": {"kubernetes.io/hostname": node},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NOBODY,
            "runAsGroup": NOBODY,
            "fsGroup": NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumes": [mark, *_scratch(run, needs)],
    }


def _scratch(run: str, needs: Needs) -> tuple[Manifest, ...]:
    """The volume at SCRATCH_MOUNT where there is one. Raises ValueError for two at once."""
    if needs.host_path is not None and needs.storage_class is not None:
        raise ValueError("scratch is a host path or a storage class's volume, not both")
    if needs.host_path is not None:
        # Type Directory: a missing path must fail, not appear on the root disk.
        path = {"path": needs.host_path, "type": "Directory"}
        return ({"name": SCRATCH_VOLUME, "hostPath": path},)
    if needs.storage_class is not None:
        claim = {"volumeClaimTemplate": _claim(run, needs.storage_class, needs.claim_bytes)}
        return ({"name": SCRATCH_VOLUME, "ephemeral": claim},)
    return ()


def _claim(run: str, storage_class: str, size_bytes: int) -> Manifest:
    """A claim that its pod owns: it is deleted with the pod, and never used by another."""
    return {
        "metadata": {"labels": _labels(run)},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": str(size_bytes)}},
        },
    }


def _container(
    run: str,
    image: str,
    argv: Sequence[str],
    start_by_unix_s: int,
    end_by_unix_s: int,
    needs: Needs,
) -> Manifest:
    environment: Mapping[str, str] = {
        "STRESSOR_RUN": run,
        "STRESSOR_START_BY": str(start_by_unix_s),
        "STRESSOR_END_BY": str(end_by_unix_s),
    }
    mark = {"name": mark_volume(run), "mountPath": MARK_MOUNT}
    scratch = ({"name": v["name"], "mountPath": SCRATCH_MOUNT} for v in _scratch(run, needs))
    return {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": IMAGE_PULL_POLICY,
        "command": [ENTRY_POINT, *argv],
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "resources": _resources(needs),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [mark, *scratch],
    }


def _resources(needs: Needs) -> Manifest:
    # Room for logs and the container's own files beside the volume.
    storage = str(needs.scratch_bytes + 64 * 1024 * 1024)
    return {
        "requests": {
            "cpu": f"{math.ceil(needs.cpu_request_cores * 1000)}m",
            "memory": str(needs.memory_request_bytes),
        },
        "limits": {
            "cpu": f"{math.ceil(needs.cpu_limit_cores * 1000)}m",
            "memory": str(needs.memory_limit_bytes),
            "ephemeral-storage": storage,
        },
    }
