"""SIGKILL of the run's process at any moment: the journal reads, nothing is left after cleaning."""

import json
import os
import random
import signal
import time
from collections.abc import Callable

import pytest

from stressor.lifeline import journal_path, state_dir
from tests.lab.bed import Bed, Run

pytestmark = [pytest.mark.lab, pytest.mark.timeout(2400)]

Launch = Callable[..., Run]

SEED = 20261201
MOMENTS = 20
SAMPLED = 3
LATEST_S = 16.0
"""A run with this file is armed after about 2 s, loads from about 8 s on, and is over by 16 s."""


def moments_s() -> list[float]:
    """Twenty moments after the run has named itself, the same in every process."""
    seeded = random.Random(SEED)
    return [round(seeded.uniform(0.0, LATEST_S), 2) for _ in range(MOMENTS)]


def kill_at(bed: Bed, launch: Launch, moment_s: float) -> dict[str, object]:
    """Run, SIGKILL at the moment, abort, clean up; what was seen. Fails where anything is left."""
    run = launch("disk", hold="4s", deadline="60s", jobs=2)
    time.sleep(moment_s)
    run.signal(signal.SIGKILL)
    run.process.wait(10)
    journal = journal_path(state_dir(os.environ), run.name)
    seen: dict[str, object] = {"moment_s": moment_s, "records": 0}
    if journal.exists():
        report = bed.stressor("report", run.name, "-o", "json")
        assert report.returncode == 0, report.stderr
        folded = json.loads(report.stdout)
        seen |= {"records": len(list(run.records())), "stage": folded["stage"]}
    aborted = bed.stressor("abort", "--run", run.name)
    assert aborted.returncode == 0, aborted.stdout + aborted.stderr
    assert all(not bed.marked(host, run.name) for host in bed.load_hosts)
    cleaned = bed.stressor("cleanup", "--run", run.name)
    assert cleaned.returncode == 0, cleaned.stdout + cleaned.stderr
    for host in bed.inventory.hosts:
        left = bed.ssh(
            host.name,
            "sh",
            "-c",
            'ls -d "/run/stressor/$1" 2>/dev/null; '
            'systemctl list-units --all --plain --no-legend "stressor-*$1*"',
            "sh",
            run.name,
        )
        assert left.strip() == "", f"{host.name}: {left}"
    return seen


@pytest.mark.parametrize("moment_s", sorted(random.Random(SEED).sample(moments_s(), SAMPLED)))
def test_sigkill_at_a_sampled_moment(bed: Bed, launch: Launch, moment_s: float) -> None:
    kill_at(bed, launch, moment_s)


@pytest.mark.evidence
def test_evidence_sigkill(bed: Bed, launch: Launch, record: Callable[[object], None]) -> None:
    record({"seed": SEED, "moments": [kill_at(bed, launch, m) for m in moments_s()]})
