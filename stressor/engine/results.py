"""Watching the Jobs of a run through the API, for their results only.

That a pod ended, or is gone, proves nothing about its processes (I5): hosts are proven by guards.
An API that does not answer delays results and changes no decision.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from stressor.core import events as ev
from stressor.engine.clock import Clock
from stressor.engine.loop import EventQueue
from stressor.errors import KubeError
from stressor.kube.base import Kube, PodFacts
from stressor.model import LoadResult, Plan, Step, Verdict
from stressor.workloads import workload
from stressor.workloads.job import job_name

POLL_S = 1.0
POLL_DEADLINE_S = 2.0
LOG_LIMIT_BYTES = 4 * 1024 * 1024
ENDED = frozenset({"Succeeded", "Failed"})


@dataclass(slots=True)
class Results:
    """Polls the run's pods once a second; each ended pod becomes one LoadFinished."""

    plan: Plan
    clock: Clock
    events: EventQueue
    kube: Kube
    hostname: Callable[[str], str]
    note: Callable[[str, str], None]
    _reported: set[str] = field(default_factory=set, init=False)
    _stopping: threading.Event = field(default_factory=threading.Event, init=False)

    def start(self) -> None:
        threading.Thread(target=self._run, name="results", daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()

    def _run(self) -> None:
        jobs = self._jobs()
        while not self._stopping.wait(POLL_S):
            try:
                for pod in self.kube.pods(self.plan.run, deadline_s=POLL_DEADLINE_S):
                    self._report(pod, jobs)
            except KubeError as error:
                self.note("results", str(error))

    def _jobs(self) -> dict[str, tuple[Step, str]]:
        return {
            job_name(self.plan.run, step.index, self.hostname(node)): (step, node)
            for step in self.plan.steps
            for node in step.nodes
        }

    def _report(self, pod: PodFacts, jobs: dict[str, tuple[Step, str]]) -> None:
        if pod.phase not in ENDED or pod.uid in self._reported or pod.job not in jobs:
            return
        step, node = jobs[pod.job]
        result = self._result(pod, step, node)
        self._reported.add(pod.uid)
        self.events.put(ev.LoadFinished(self.clock.now_s(), step.index, result))

    def _result(self, pod: PodFacts, step: Step, node: str) -> LoadResult:
        try:
            text = self.kube.pod_log(
                pod.namespace, pod.name, limit_bytes=LOG_LIMIT_BYTES, deadline_s=POLL_DEADLINE_S
            )
        except KubeError as error:
            return LoadResult(
                node, Verdict.UNKNOWN, {}, (f"its output could not be read: {error}",)
            )
        requested_s = step.warm_up_s + step.hold_s
        return workload(step.kind).parse(text, pod.exit_code, requested_s, node)
