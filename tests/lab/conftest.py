"""The lab, up and well, and runs that are cleared whatever a test did to them."""

import datetime
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import DEFAULT_SPINDLE_MS
from tests.evidence.sources import digest
from tests.lab.bed import Bed, Run

CPU = """\
suite: cpu
baseline: 3s
phases:
  - name: cpu
    kind: cpu
    placement: {nodes: [node1, node2]}
    hold: HOLD
    deadline: DEADLINE
    params: {workers: 1, load: 30%}
"""
DISK = """\
suite: disk
baseline: 3s
phases:
  - name: disk
    kind: disk
    placement: {nodes: [NODES]}
    hold: HOLD
    deadline: DEADLINE
    params: {host_path: /var/lib/stressor-scratch, jobs: JOBS, block: 4KiB, size: 16MiB}
"""


@pytest.fixture
def bed(lab: Bed) -> Iterator[Bed]:
    """The lab; whatever a test broke is healed, and etcd is at rest before the next one."""
    yield lab
    lab.heal()
    lab.stressor("lab", "break", "spindle", "--ms", DEFAULT_SPINDLE_MS)


@pytest.fixture
def launch(bed: Bed, tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Start runs: `launch("cpu" or "disk", hold=…, …)`; each is cleared at the end."""
    runs: list[Run] = []

    def start(
        kind: str,
        *options: str,
        hold: str = "60s",
        deadline: str = "120s",
        jobs: int = 2,
        nodes: str = "node1, node2",
    ) -> Run:
        text = {"cpu": CPU, "disk": DISK}[kind]
        text = text.replace("HOLD", hold).replace("DEADLINE", deadline)
        text = text.replace("JOBS", str(jobs)).replace("NODES", nodes)
        phases = tmp_path / f"{kind}-{len(runs)}.yaml"
        phases.write_text(text)
        run = bed.start(
            phases, *options, log=tmp_path / f"run-{len(runs)}.log", nodes=tuple(nodes.split(", "))
        )
        runs.append(run)
        return run

    yield start
    bed.heal()
    for run in runs:
        run.make_sure()


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Callable[[object], None]:
    """Write an evidence file: docs/evidence/NAME.json, with date and revision."""

    def write(figures: object) -> None:
        name = request.node.name.removeprefix("test_evidence_").replace("_", "-")
        revision = subprocess.run(
            ("git", "rev-parse", "--short", "HEAD"), capture_output=True, text=True, check=True
        ).stdout.strip()
        today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        document = {
            "evidence": name,
            "date": today,
            "revision": revision,
            "sources": digest(name),
            "figures": figures,
        }
        folder = Path(__file__).resolve().parents[2] / "docs" / "evidence"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")
        print(json.dumps(document), file=sys.stderr)

    return write
