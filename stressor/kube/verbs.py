"""The verbs of `Kube` over a transport: paths, preconditions and waiting, without any library.

Every write is bound to what was read (UID, resourceVersion), so that nothing is done to an object
that took another's name meanwhile.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from stressor.errors import KubeError, LockHeld
from stressor.kube import facts
from stressor.kube.base import (
    Deletion,
    JobFacts,
    KubeRefused,
    Lease,
    Leftover,
    NodeFacts,
    PodFacts,
)
from stressor.kube.calls import CONFLICT, NOT_FOUND, Budget
from stressor.kube.paths import JOBS, NAMESPACES, PODS, collection_of, item_of, path_of
from stressor.kube.survey import Survey
from stressor.kube.transport import Request, Response, document, refuse_errors
from stressor.workloads.job import LEASE_NAME, RUN_LABEL, checked_run, lease_manifest

LOCK_NAMESPACE = "kube-system"

_LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{LOCK_NAMESPACE}/leases"
_LEASE = f"{_LEASES}/{LEASE_NAME}"


class ApiKube(Survey):
    """`Kube` over any transport: the client's for real clusters, memory for tests."""

    def cluster_uid(self, *, deadline_s: float) -> str:
        budget = Budget("read namespace kube-system", deadline_s)
        namespace = self._read(Request("GET", f"{NAMESPACES}/kube-system"), budget)
        uid = facts.metadata(namespace).get("uid")
        if not isinstance(uid, str) or not uid:
            raise KubeError("read namespace kube-system: it has no UID")
        return uid

    def nodes(self, *, deadline_s: float) -> tuple[NodeFacts, ...]:
        budget = Budget("list nodes", deadline_s)
        found = map(facts.node_facts, self._list("/api/v1/nodes", "", budget))
        return tuple(sorted(found, key=lambda node: node.name))

    def apply_namespace(
        self, manifests: Sequence[Mapping[str, object]], *, deadline_s: float
    ) -> None:
        budget = Budget("create namespace", deadline_s)
        created = [self._create_or_own(manifest, budget) for manifest in manifests]
        for thing in created:
            if thing.get("kind") == "Namespace":
                name = facts.metadata(thing)["name"]
                self._await(f"{NAMESPACES}/{name}/serviceaccounts/default", _exists, budget)
        for manifest in manifests:
            # Until its status is filled in, a quota refuses every pod.
            if manifest.get("kind") == "ResourceQuota":
                self._await(item_of(manifest), _quota_counts, budget)

    def create_job(self, manifest: Mapping[str, object], *, deadline_s: float) -> JobFacts:
        budget = Budget("create job", deadline_s)
        return facts.job_facts(self._create_or_own(manifest, budget))

    def jobs(self, run: str, *, deadline_s: float) -> tuple[JobFacts, ...]:
        found = map(facts.job_facts, self._of_run(JOBS, run, Budget("list jobs", deadline_s)))
        return tuple(sorted(found, key=lambda job: (job.namespace, job.name)))

    def pods(self, run: str, *, deadline_s: float) -> tuple[PodFacts, ...]:
        found = map(facts.pod_facts, self._of_run(PODS, run, Budget("list pods", deadline_s)))
        return tuple(sorted(found, key=lambda pod: (pod.namespace, pod.name)))

    def pod_log(self, namespace: str, name: str, *, limit_bytes: int, deadline_s: float) -> str:
        path = f"{NAMESPACES}/{namespace}/pods/{name}/log"
        request = Request("GET", path, {"limitBytes": str(limit_bytes)})
        response = self._transport.send(request, deadline_s=deadline_s)
        refuse_errors(request, response, deadline_s=deadline_s)
        return response.body[:limit_bytes].decode("utf-8", "replace")

    def suspend_jobs(self, run: str, *, deadline_s: float) -> tuple[str, ...]:
        budget = Budget("suspend jobs", deadline_s)
        suspended, problems = [], []
        for job in map(facts.job_facts, self._of_run(JOBS, run, budget)):
            if job.condition in ("Complete", "Failed"):
                continue
            patch = {"metadata": {"uid": job.uid}, "spec": {"suspend": True}}
            path = f"/apis/batch/v1/namespaces/{job.namespace}/jobs/{job.name}"
            request = Request("PATCH", path, {}, patch, "application/merge-patch+json")
            try:
                self._read(request, budget)
                suspended.append(job.name)
            except KubeError as error:
                problems.append(error)
        if problems:
            done = f"suspended {len(suspended)}, failed {len(problems)}"
            raise KubeError(f"suspend jobs: {done}: {problems[0]}") from problems[0]
        return tuple(suspended)

    def delete_run(self, run: str, *, deadline_s: float) -> Deletion:
        budget = Budget("delete run", deadline_s)
        found = self._leftovers(run, budget)
        problems = {thing.uid: said for thing in found if (said := self._delete(thing, budget))}
        left = found
        while left:
            left = self._leftovers(run, budget)
            if not left or not budget.pause():
                break
        told = (replace(thing, detail=problems.get(thing.uid, thing.detail)) for thing in left)
        return Deletion(len(found), tuple(told))

    def leftovers(self, run: str, *, deadline_s: float) -> tuple[Leftover, ...]:
        return self._leftovers(run, Budget("list leftovers", deadline_s))

    def read_lease(self, *, deadline_s: float) -> Lease | None:
        return self._lease(Budget("read lock", deadline_s))[0]

    def acquire_lease(
        self, *, holder: str, run: str, abort_command: str, expires_s: int, deadline_s: float
    ) -> Lease:
        budget = Budget("acquire lock", deadline_s)
        current, now_s = self._lease(budget)
        wanted = lease_manifest(
            namespace=LOCK_NAMESPACE,
            holder=holder,
            run=checked_run(run),
            abort_command=abort_command,
            duration_s=expires_s,
            acquired=_micro_time(now_s),
            renewed=_micro_time(now_s),
        )
        if current is not None and not _takeable(current, holder, run, now_s):
            raise _held(current)
        return self._write_lease(wanted, current, budget)

    def renew_lease(self, lease: Lease, *, expires_s: int, deadline_s: float) -> Lease:
        budget = Budget("renew lock", deadline_s)
        request = Request("GET", _LEASE)
        response = self._transport.send(request, deadline_s=budget.left_s())
        thing = document(request, response, deadline_s=deadline_s)
        current = facts.lease(thing)
        if (current.holder, current.run) != (lease.holder, lease.run):
            raise _held(current)
        renewal = {"renewTime": _micro_time(_clock_s(response)), "leaseDurationSeconds": expires_s}
        spec = {**thing["spec"], **renewal}
        return self._write_lease({**thing, "spec": spec}, current, budget)

    def release_lease(self, lease: Lease, *, deadline_s: float) -> None:
        budget = Budget("release lock", deadline_s)
        current, _ = self._lease(budget)
        if current is None or (current.holder, current.run) != (lease.holder, lease.run):
            return
        bound = {"preconditions": {"uid": current.uid, "resourceVersion": current.version}}
        try:
            self._read(Request("DELETE", _LEASE, {}, bound), budget)
        except KubeRefused as error:
            # Taken over or removed between read and delete: it is no longer ours to give back.
            if error.status not in (CONFLICT, NOT_FOUND):
                raise

    def _of_run(self, path: str, run: str, budget: Budget) -> list[dict[str, Any]]:
        return self._list(path, f"{RUN_LABEL}={checked_run(run)}", budget)

    def _leftovers(self, run: str, budget: Budget) -> tuple[Leftover, ...]:
        kinds = (("Job", JOBS), ("Pod", PODS), ("Namespace", NAMESPACES))
        return tuple(
            facts.leftover(kind, thing)
            for kind, path in kinds
            for thing in self._of_run(path, run, budget)
        )

    def _delete(self, thing: Leftover, budget: Budget) -> str:
        """What went wrong, or nothing. Gone already, or replaced by another, is no failure."""
        options: dict[str, object] = {"preconditions": {"uid": thing.uid}}
        options["propagationPolicy"] = "Background"
        if thing.kind == "Pod":
            options["gracePeriodSeconds"] = 0
        path = path_of(thing.kind, thing.namespace) + f"/{thing.name}"
        try:
            self._read(Request("DELETE", path, {}, options), budget)
        except KubeRefused as error:
            return "" if error.status in (NOT_FOUND, CONFLICT) else str(error)
        except KubeError as error:
            return str(error)
        return ""

    def _create_or_own(self, manifest: Mapping[str, object], budget: Budget) -> dict[str, Any]:
        request = Request("POST", collection_of(manifest), {}, manifest)
        try:
            return self._read(request, budget)
        except KubeRefused as error:
            if error.status != CONFLICT:
                raise
            existing = self._read(Request("GET", item_of(manifest)), budget)
            if facts.labels(existing).get(RUN_LABEL) != facts.labels(manifest).get(RUN_LABEL):
                raise
            return existing

    def _await(self, path: str, ready: Callable[[Mapping[str, Any]], bool], budget: Budget) -> None:
        while True:
            try:
                if ready(self._read(Request("GET", path), budget)):
                    return
            except KubeRefused as error:
                if error.status != NOT_FOUND:
                    raise
            if not budget.pause():
                raise KubeError(f"{budget.what}: {path} not ready in {budget.deadline_s:g} s")

    def _lease(self, budget: Budget) -> tuple[Lease | None, float]:
        """(the lock if there is one, the server's time)."""
        request = Request("GET", _LEASE)
        response = self._transport.send(request, deadline_s=budget.left_s())
        now_s = _clock_s(response)
        if response.status == NOT_FOUND:
            return None, now_s
        return facts.lease(document(request, response, deadline_s=budget.deadline_s)), now_s

    def _write_lease(
        self, wanted: Mapping[str, Any], current: Lease | None, budget: Budget
    ) -> Lease:
        """Create the lock, or replace just what was read. Losing the race raises LockHeld."""
        request = Request("POST", _LEASES, {}, wanted)
        if current is not None:
            bound = {"uid": current.uid, "resourceVersion": current.version}
            body = {**wanted, "metadata": {**wanted["metadata"], **bound}}
            request = Request("PUT", _LEASE, {}, body)
        try:
            return facts.lease(self._read(request, budget))
        except KubeRefused as error:
            winner = self._lease(budget)[0] if error.status == CONFLICT else None
            if winner is None:
                raise
            raise _held(winner) from error


def _takeable(lease: Lease, holder: str, run: str, now_s: float) -> bool:
    ours = (lease.holder, lease.run) == (holder, run)
    return ours or not lease.holder or lease.expires_unix_s <= now_s


def _held(lease: Lease) -> LockHeld:
    until = "for ever"
    if lease.expires_unix_s != float("inf"):
        until = "until " + _micro_time(lease.expires_unix_s)
    how = f"; abort it with: {lease.abort_command}" if lease.abort_command else ""
    who = f"{lease.holder or 'somebody'} for run {lease.run or '(unnamed)'}"
    return LockHeld(f"the cluster is locked by {who} {until}{how}")


def _clock_s(response: Response) -> float:
    """The API server's clock: two operators' own clocks may differ by more than an expiry."""
    return time.time() if response.server_unix_s is None else response.server_unix_s


def _micro_time(unix_s: float) -> str:
    moment = datetime.fromtimestamp(unix_s, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _exists(_: Mapping[str, Any]) -> bool:
    return True


def _quota_counts(quota: Mapping[str, Any]) -> bool:
    return bool((quota.get("status") or {}).get("hard"))
