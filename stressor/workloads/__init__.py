"""Kinds of load. A workload is one module that owns its parameters, command line, pod needs,
default gates and the reading of its tool's output; `job` is the only builder of Jobs.
"""

from stressor.workloads import cpu, disk
from stressor.workloads.base import Workload

WORKLOADS: tuple[Workload, ...] = (cpu, disk)


def workload(kind: str) -> Workload:
    """The workload that a phase's `kind` names. Raises KeyError when there is none."""
    for one in WORKLOADS:
        if kind == one.KIND:
            return one
    raise KeyError(kind)
