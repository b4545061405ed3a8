"""What a plan will ask of the cluster, in the words of the checks that judge it."""

from collections.abc import Iterator

from stressor.checks.quotas import PodDemand, StepDemand
from stressor.model import Plan, Step
from stressor.workloads import workload
from stressor.workloads.job import job_manifest, namespace_manifests
from stressor.workloads.needs import Needs

TRIED_AGAIN_S = 3600


def needs_of(step: Step) -> Needs:
    """What one pod of the step may use."""
    return workload(step.kind).needs(step.params)


def steps_of(plan: Plan) -> tuple[StepDemand, ...]:
    """What each step asks of quotas and nodes."""
    return tuple(StepDemand(step.index, step.nodes, _pod(needs_of(step))) for step in plan.steps)


def _pod(needs: Needs) -> PodDemand:
    return PodDemand(
        cpu_request_cores=needs.cpu_request_cores,
        cpu_limit_cores=needs.cpu_limit_cores,
        memory_request_bytes=needs.memory_request_bytes,
        memory_limit_bytes=needs.memory_limit_bytes,
        ephemeral_limit_bytes=needs.scratch_bytes,
        claim_bytes=needs.claim_bytes,
        storage_class=needs.storage_class or "",
    )


def storage_classes(plan: Plan) -> tuple[str, ...]:
    """The StorageClasses that the plan's phases name."""
    named = (needs_of(step).storage_class for step in plan.steps)
    return tuple(dict.fromkeys(name for name in named if name is not None))


def manifests(plan: Plan, namespace: str) -> tuple[dict[str, object], ...]:
    """The run's namespace as it would be, and a Job of each step as it would be in `namespace`,
    for a dry run: the times in them lie far ahead."""
    host_path = any(needs_of(step).host_path for step in plan.steps)
    jobs = sum(len(step.nodes) for step in plan.steps)
    own, *_ = namespace_manifests(
        run=plan.run, namespace=plan.namespace, jobs=jobs, host_path=host_path
    )
    return (dict(own), *_jobs(plan, namespace))


def _jobs(plan: Plan, namespace: str) -> Iterator[dict[str, object]]:
    far_unix_s = 4_000_000_000
    for step in plan.steps:
        kind = workload(step.kind)
        yield dict(
            job_manifest(
                run=plan.run,
                namespace=namespace,
                image=plan.image,
                step=step,
                node=step.nodes[0],
                argv=kind.argv(step.params, step.warm_up_s + step.hold_s),
                start_by_unix_s=far_unix_s - TRIED_AGAIN_S,
                end_by_unix_s=far_unix_s,
                deadline_s=step.deadline_s,
                needs=kind.needs(step.params),
            )
        )
