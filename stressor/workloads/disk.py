"""Load on a disk: fio writing and syncing, and what its output means.

fio runs its workers as threads: as processes they leave the process group and write on after their
parent was killed (docs/signals.md). The files are bounded in size and the run in time. fio unlinks
them when it ends, after SIGTERM too; SIGKILL leaves them, in the run's emptyDir or in the storage
class's volume, which go with the pod, or in the host path under names that begin with
`stressor-<run>.`.
"""

import json
import posixpath
import re
from collections.abc import Iterator, Mapping

from stressor.model import Comparison, Gate, GateAction, LoadResult, ParamValue, Verdict
from stressor.workloads.job import MARK_MOUNT, SCRATCH_MOUNT
from stressor.workloads.needs import MIB, Needs
from stressor.workloads.params import Check, between, complaints, size_bytes, whole

KIND = "disk"
DEFAULTS: Mapping[str, ParamValue] = {"size": "64MiB", "block": "4KiB", "jobs": 1}
touches_storage = True

P99_MIN_COUNT = 500
"""Fewer syncs than this give no p99 worth its name (docs/signals.md)."""

_EXIT_WORDS = {
    1: "fio reported an error",
    124: "ended by its own time limit",
    128: "terminated by a signal",
    129: "hung up (SIGHUP)",
    137: "killed (SIGKILL)",
    143: "terminated (SIGTERM)",
}
_TIMING_SLACK_S = 1.0
_LEAST_CLAIM_BYTES = 1024 * MIB
"""The smallest volume that is asked for: mkfs.xfs refuses less than 300 MiB (xfsprogs 6.0), and the
block storage of clouds comes in whole GiB."""
# A DNS subdomain, as the API demands of the names of StorageClasses.
_CLASS = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def _storage_class(value: ParamValue) -> str | None:
    if isinstance(value, str) and len(value) <= 253 and _CLASS.fullmatch(value):
        return None
    return f"must be the name of a StorageClass: {value!r}"


def _host_path(value: ParamValue) -> str | None:
    if not isinstance(value, str) or not value.startswith("/"):
        return f"must be an absolute path: {value!r}"
    if posixpath.normpath(value) != value or value == "/" or value.startswith("//"):
        return f"must be a plain path below /, without '..' or a slash at its end: {value!r}"
    return None


_CHECKS: Mapping[str, Check] = {
    "size": between(size_bytes, "1MiB", "64GiB"),
    "block": between(size_bytes, "512B", "16MiB"),
    "jobs": between(whole, "1", "64"),
    "rate_iops": between(whole, "1", "1000000"),
    "host_path": _host_path,
    "storage_class": _storage_class,
}


def mistakes(params: Mapping[str, ParamValue]) -> tuple[str, ...]:
    """What is wrong with a step's merged parameters; each names its parameter in backticks."""
    found = dict(complaints(params, _CHECKS))
    merged = {**DEFAULTS, **params}
    sizes_read = "size" not in found and "block" not in found
    if sizes_read and size_bytes(merged["block"]) > size_bytes(merged["size"]):
        found["block"] = "`block` is larger than `size`"
    if "host_path" in params and "storage_class" in params:
        found.setdefault("storage_class", "`storage_class` and `host_path` exclude each other")
    return tuple(found.values())


def default_gates() -> tuple[Gate, ...]:
    """A warning above 16 ms, the bucket edge above the 10 ms that etcd's FAQ asks of a disk."""
    warn = GateAction.WARN
    return (Gate("etcd_wal_fsync_p99_s", Comparison.ABOVE, 0.016, hold_s=10.0, action=warn),)


def needs(params: Mapping[str, ParamValue]) -> Needs:
    """Scratch space for every job's file: in the run's emptyDir, in the named host path, or in a
    volume of the named storage class."""
    merged = {**DEFAULTS, **params}
    host_path, rate = merged.get("host_path"), merged.get("rate_iops")
    jobs = whole(merged["jobs"])
    file_bytes = size_bytes(merged["size"]) * jobs
    # fio's rate is each job's own.
    writes_per_s = None if rate is None else whole(rate) * jobs
    if "storage_class" in merged:
        return Needs(
            storage_class=str(merged["storage_class"]),
            claim_bytes=_claim_bytes(file_bytes),
            claim_file_bytes=file_bytes,
            writes_per_s=writes_per_s,
        )
    if host_path is None:
        return Needs(scratch_bytes=file_bytes + 16 * MIB, writes_per_s=writes_per_s)
    return Needs(host_path=str(host_path), host_path_bytes=file_bytes, writes_per_s=writes_per_s)


def _claim_bytes(file_bytes: int) -> int:
    """The files, and an eighth more: ext4 keeps 5 % for root, and its journal and inode tables take
    up to 3 % of a volume of this size."""
    return max(_LEAST_CLAIM_BYTES, file_bytes + file_bytes // 8)


def argv(params: Mapping[str, ParamValue], hold_s: float) -> tuple[str, ...]:
    """fio's command line for `hold_s` seconds.

    Kubernetes puts the run's id in the place of `$(STRESSOR_RUN)`: files in a host path are named
    after their run, because a folder of its own could not be made there without root.
    """
    merged = {**DEFAULTS, **params}
    elsewhere = "host_path" in merged or "storage_class" in merged
    folder = SCRATCH_MOUNT if elsewhere else MARK_MOUNT
    rate = merged.get("rate_iops")
    return (
        "fio",
        "--name=stressor-$(STRESSOR_RUN)",
        f"--directory={folder}",
        "--rw=write",
        "--ioengine=sync",
        "--fdatasync=1",
        f"--bs={size_bytes(merged['block'])}",
        f"--size={size_bytes(merged['size'])}",
        f"--numjobs={whole(merged['jobs'])}",
        *(() if rate is None else (f"--rate_iops={whole(rate)}",)),
        "--thread",
        "--group_reporting",
        "--time_based",
        f"--runtime={max(1, round(hold_s))}",
        "--unlink=1",
        "--output-format=json",
    )


def parse(stdout: str, exit_code: int | None, requested_s: float, node: str) -> LoadResult:
    """The result in the container's log and its exit code.

    FAIL is fio's own word that writing failed (a full disk: error 28). Missing, cut or early ended
    output is UNKNOWN, with whatever figures there are.
    """
    job = _job(stdout)
    if job is None:
        problems = (*_exit_problems(exit_code), "the output is missing or cut: no figures of fio")
        return LoadResult(node, Verdict.UNKNOWN, {}, problems)
    metrics, error = _metrics(job), job.get("error")
    problems = _exit_problems(exit_code)
    if error != 0:
        problems += (f"fio reported error {error}",)
        return LoadResult(node, Verdict.FAIL, metrics, problems)
    problems += _metric_problems(metrics, requested_s)
    verdict = Verdict.UNKNOWN if problems else Verdict.PASS
    return LoadResult(node, verdict, metrics, problems + _notes(metrics))


def _job(text: str) -> Mapping[str, object] | None:
    """The job of the last complete JSON document: fio writes one more on SIGUSR1, and puts notes
    before and between."""
    last = None
    for document in _documents(text):
        jobs = document.get("jobs")
        if isinstance(jobs, list) and jobs and isinstance(jobs[0], dict):
            last = jobs[0]
    return last


def _documents(text: str) -> Iterator[Mapping[str, object]]:
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            document, end = decoder.raw_decode(text, start)
        except ValueError:
            return
        if isinstance(document, dict):
            yield document
        start = text.find("{", end)


def _metrics(job: Mapping[str, object]) -> dict[str, float]:
    """Seconds, bytes and counts of a job. `sync.total_ios` is 0 where `lat_ns.N` counts (fio 3.33),
    so N it is."""
    latency = ("sync", "lat_ns")
    syncs = _figure(job, *latency, "N")
    scaled = {
        "runtime_s": _figure(job, "write", "runtime", scale=1e-3),
        "write_iops": _figure(job, "write", "iops"),
        "write_bytes": _figure(job, "write", "io_bytes"),
        "write_bytes_per_s": _figure(job, "write", "bw_bytes"),
        "fdatasync_count": syncs,
    }
    if syncs:
        scaled |= {
            "fdatasync_mean_s": _figure(job, *latency, "mean", scale=1e-9),
            "fdatasync_p50_s": _figure(job, *latency, "percentile", "50.000000", scale=1e-9),
            "fdatasync_p95_s": _figure(job, *latency, "percentile", "95.000000", scale=1e-9),
            "fdatasync_max_s": _figure(job, *latency, "max", scale=1e-9),
        }
    if syncs is not None and syncs >= P99_MIN_COUNT:
        p99 = _figure(job, *latency, "percentile", "99.000000", scale=1e-9)
        scaled["fdatasync_p99_s"] = p99
    return {name: value for name, value in scaled.items() if value is not None}


def _figure(job: Mapping[str, object], *path: str, scale: float = 1.0) -> float | None:
    value: object = job
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value * scale


def _exit_problems(exit_code: int | None) -> tuple[str, ...]:
    if exit_code is None:
        return ("the exit code is not known",)
    if exit_code == 0:
        return ()
    return (f"exit code {exit_code}: {_EXIT_WORDS.get(exit_code, 'not one of fio')}",)


def _metric_problems(metrics: Mapping[str, float], requested_s: float) -> tuple[str, ...]:
    problems = []
    runtime_s = metrics.get("runtime_s")
    if runtime_s is None or runtime_s < requested_s - _TIMING_SLACK_S:
        ran = "an unknown time" if runtime_s is None else f"{runtime_s:.1f} s"
        problems.append(f"ended early: ran {ran} of {requested_s:.1f} s")
    if not metrics.get("fdatasync_count"):
        problems.append("no fdatasync finished")
    return tuple(problems)


def _notes(metrics: Mapping[str, float]) -> tuple[str, ...]:
    count = metrics.get("fdatasync_count", 0.0)
    if 0 < count < P99_MIN_COUNT:
        return (f"no p99 of {count:.0f} fdatasyncs: {P99_MIN_COUNT} are needed",)
    return ()
