"""Preflight's checks: scripts for hosts, and pure judgements from what they print to findings.

A check of a host is one module here (see `base.Check`). `login`, `sshd` and `routes` judge access
and need more than a host's answer, so they are called by name. Nothing in this package does I/O or
reads a clock.
"""

from stressor.checks import (
    cgroups,
    clock,
    flush,
    free_disk,
    host_timer,
    leftovers,
    own_name,
    pressure,
    privileges,
    run_folder,
    snapshot,
    tools,
)
from stressor.checks.base import Check

CHECKS: tuple[Check, ...] = (
    leftovers,
    run_folder,
    privileges,
    tools,
    own_name,
    cgroups,
    host_timer,
    pressure,
    flush,
    clock,
    free_disk,
    snapshot,
)


def check(name: str) -> Check:
    """The check of a host called `name`. Raises KeyError when there is none."""
    return {found.NAME: found for found in CHECKS}[name]
