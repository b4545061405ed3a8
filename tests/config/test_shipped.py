"""The files that come with stressor mean something to it."""

from pathlib import Path

import pytest

from stressor.config.inventory import load_inventory
from stressor.config.phases import load_suite
from stressor.config.routes import HOST_VARIABLES
from stressor.config.values import CLUSTER_VARIABLES
from stressor.model import Host, Inventory, Role, Route

ROOT = Path(__file__).parents[2]
LAB = Inventory(
    "lab",
    tuple(
        Host(f"node{n}", (Route(f"10.0.0.{n}"),), frozenset({Role.CONTROL_PLANE, Role.WORKER}))
        for n in (1, 2, 3)
    ),
)


@pytest.mark.parametrize(
    ("name", "phases"),
    [("demo-cpu", ["cpu"]), ("demo-disk", ["disk"]), ("demo", ["cpu", "disk"])],
)
def test_the_demos_load_on_the_lab(name: str, phases: list[str]) -> None:
    suite = load_suite(ROOT / "phases" / f"{name}.yaml", inventory=LAB)
    assert suite.name == name
    assert [phase.name for phase in suite.phases] == phases


def test_no_phase_file_is_left_untested() -> None:
    shipped = {path.stem for path in (ROOT / "phases").glob("*.yaml")}
    assert {"demo", "demo-cpu", "demo-disk"} <= shipped
    for path in (ROOT / "phases").glob("*.yaml"):
        assert load_suite(path, inventory=None).phases


def test_the_example_inventory_is_one() -> None:
    inventory = load_inventory(ROOT / "inventories" / "example.yaml")
    assert [len(inventory.with_role(role)) for role in Role] == [3, 2, 1]
    assert not inventory.disposable


@pytest.mark.parametrize("name", [*HOST_VARIABLES, *CLUSTER_VARIABLES])
def test_every_variable_that_is_read_is_explained(name: str) -> None:
    page = (ROOT / "docs" / "inventory.md").read_text()
    assert f"| `{name}` |" in page
