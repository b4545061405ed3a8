"""Evidence must be of the code that is here: `make evidence-NAME` writes it anew."""

import json

import pytest

from tests.evidence.sources import CONCERNED, ROOT, digest, files


@pytest.mark.parametrize("name", sorted(CONCERNED))
def test_evidence_is_of_this_code(name: str) -> None:
    path = ROOT / "docs" / "evidence" / f"{name}.json"
    assert path.exists(), f"run `make evidence-{name}`"
    document = json.loads(path.read_text())
    assert document["figures"], "evidence without figures"
    assert document["sources"] == digest(name), f"older than its code: `make evidence-{name}`"


def test_evidence_reaches_what_its_trial_runs() -> None:
    latency = {str(path.relative_to(ROOT)) for path in files("abort-latency")}
    assert {
        "stressor/guard/guard.sh",
        "stressor/guard/protocol.py",
        "stressor/core/run.py",
        "stressor/engine/fleet.py",
        "stressor/engine/abort.py",
    } <= latency
    kill = {str(path.relative_to(ROOT)) for path in files("sigkill")}
    assert {"stressor/journal.py", "stressor/cli/abort.py", "stressor/engine/sweep.py"} <= kill
    assert "stressor/cli/status.py" not in kill
