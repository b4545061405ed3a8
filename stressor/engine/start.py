"""Starting the load of one step: journal on disk, every guard answering, and only then the API.

Runs in a thread of its own. Whatever happens becomes one event: LoadCreated, or StartDropped with
the number of Jobs that may exist. A stop that comes meanwhile ends it before the next request; a
Job whose request was already on its way is what late-comer killing and clean-up are for.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from stressor.core import effects as fx
from stressor.core import events as ev
from stressor.core.schedule import START_MARGIN_S
from stressor.engine.clock import Clock
from stressor.engine.loop import EventQueue
from stressor.errors import KubeError
from stressor.kube.base import Kube, KubeRefused
from stressor.model import Plan, Step
from stressor.workloads import workload
from stressor.workloads.job import job_manifest, namespace_manifests

START_AGE_LIMIT_S = 2.0
"""A start effect older than this is void: what it was decided on may be true no longer."""
API_DEADLINE_S = 5.0


class Synced(Protocol):
    """What starting needs of the journal."""

    def sync(self, timeout_s: float) -> bool: ...


class Answering(Protocol):
    """What starting needs of the guards: who of `hosts` does not answer in time."""

    def round_trip(self, hosts: tuple[str, ...], deadline_s: float) -> tuple[str, ...]: ...


class Dropped(Exception):
    """Why a start was not carried out."""


@dataclass(slots=True)
class Starter:
    """Starts steps of one plan. `halted` is set for good by the first stop (I3)."""

    plan: Plan
    clock: Clock
    events: EventQueue
    journal: Synced
    guards: Answering
    kube: Kube
    hostname: Callable[[str], str]
    halted: threading.Event = field(default_factory=threading.Event)
    idle: threading.Event = field(default_factory=threading.Event, init=False)

    def __post_init__(self) -> None:
        self.idle.set()

    def start(self, effect: fx.StartLoad) -> None:
        """Carry out `effect` in a thread."""
        self.idle.clear()
        threading.Thread(target=self._run, args=(effect,), name="start", daemon=True).start()

    def _run(self, effect: fx.StartLoad) -> None:
        try:
            self.events.put(self._started(effect))
        finally:
            self.idle.set()

    def _started(self, effect: fx.StartLoad) -> ev.Event:
        created = 0
        try:
            self._check(effect)
            self._namespace(effect)
            for node in effect.step.nodes:
                self._halt()
                created += 1
                self._create(effect.step, node)
            return ev.LoadCreated(self.clock.now_s(), effect.step.index)
        except KubeRefused as error:
            return self._dropped(effect, str(error), created - 1)
        except (Dropped, KubeError) as error:
            return self._dropped(effect, str(error), created)

    def _dropped(self, effect: fx.StartLoad, why: str, created: int) -> ev.StartDropped:
        return ev.StartDropped(self.clock.now_s(), effect.step.index, why, max(created, 0))

    def _check(self, effect: fx.StartLoad) -> None:
        if not self.journal.sync(START_AGE_LIMIT_S):
            raise Dropped("the journal is not on disk")
        silent = self.guards.round_trip(self.plan.guarded, START_AGE_LIMIT_S)
        if silent:
            raise Dropped(f"the guard of {', '.join(silent)} did not answer")
        age_s = self.clock.now_s() - effect.issued_at_s
        if age_s > START_AGE_LIMIT_S:
            raise Dropped(f"the order to start is {age_s:.1f} s old")
        self._halt()

    def _halt(self) -> None:
        if self.halted.is_set():
            raise Dropped("the run was stopped meanwhile")

    def _namespace(self, effect: fx.StartLoad) -> None:
        if effect.step.index > 0:
            return
        steps = self.plan.steps
        host_path = any(workload(s.kind).needs(s.params).host_path for s in steps)
        manifests = namespace_manifests(
            run=self.plan.run,
            namespace=self.plan.namespace,
            jobs=sum(len(s.nodes) for s in steps),
            host_path=host_path,
        )
        self.kube.apply_namespace(manifests, deadline_s=API_DEADLINE_S)

    def _create(self, step: Step, node: str) -> None:
        kind = workload(step.kind)
        now_unix_s = self.clock.unix_s()
        end_by_unix_s = int(now_unix_s + step.deadline_s)
        manifest = job_manifest(
            run=self.plan.run,
            namespace=self.plan.namespace,
            image=self.plan.image,
            step=step,
            node=self.hostname(node),
            argv=kind.argv(step.params, step.warm_up_s + step.hold_s),
            start_by_unix_s=min(int(now_unix_s + START_MARGIN_S), end_by_unix_s - 1),
            end_by_unix_s=end_by_unix_s,
            deadline_s=step.deadline_s,
            needs=kind.needs(step.params),
        )
        self.kube.create_job(manifest, deadline_s=API_DEADLINE_S)
