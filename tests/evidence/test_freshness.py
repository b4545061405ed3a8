"""Evidence must be of the code that is here: `make evidence-NAME` writes it anew."""

import json

import pytest

from tests.evidence.sources import CONCERNED, ROOT, digest


@pytest.mark.parametrize("name", sorted(CONCERNED))
def test_evidence_is_of_this_code(name: str) -> None:
    path = ROOT / "docs" / "evidence" / f"{name}.json"
    assert path.exists(), f"run `make evidence-{name}`"
    document = json.loads(path.read_text())
    assert document["figures"], "evidence without figures"
    assert document["sources"] == digest(name), f"older than its code: `make evidence-{name}`"
