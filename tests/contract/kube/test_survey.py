"""What the verbs that only look make of answers as real servers send them."""

import json
from pathlib import Path
from typing import Any

from stressor.kube import facts

FIXTURES = Path(__file__).parent / "fixtures"


def recorded(name: str) -> dict[str, Any]:
    thing: dict[str, Any] = json.loads((FIXTURES / f"{name}.json").read_text())
    return thing


def test_a_node_names_its_images() -> None:
    node = facts.node_facts(recorded("node"))
    assert len(node.images) == 4
    assert node.images[1][1] == "registry.example/stressor-load:1"
    assert node.images[3] == ()
    assert facts.node_facts({"metadata": {"name": "bare"}}).images == ()
