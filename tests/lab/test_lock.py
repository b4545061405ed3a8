"""Two operators with a state folder each: the second is refused, told who holds the cluster, and
can abort the other's run from where it is."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from stressor.errors import ExitCode
from tests.lab.bed import Bed, Run

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]


def dead_api(bed: Bed, folder: Path) -> Path:
    """The lab's inventory with an API that nobody answers for."""
    kubeconfig = folder / "kubeconfig"
    assert bed.inventory.kubeconfig_path is not None
    text = Path(bed.inventory.kubeconfig_path).read_text()
    kubeconfig.write_text(re.sub(r"server: https://\S+", "server: https://127.0.0.1:1", text))
    document = yaml.safe_load(bed.inventory_path.read_text())
    document["all"]["vars"]["stressor_kubeconfig"] = str(kubeconfig)
    path = folder / "inventory.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


@pytest.mark.parametrize("api", ["up", "down"])
def test_the_second_of_two_runs_is_told_who_holds_the_cluster(
    bed: Bed, launch: Callable[..., Run], tmp_path: Path, api: str
) -> None:
    first = launch("cpu")
    first.wait_loading()
    other = bed.env(STRESSOR_STATE=str(tmp_path / "other"))
    if api == "down":
        other["STRESSOR_INVENTORY"] = str(dead_api(bed, tmp_path))
    phases = tmp_path / "cpu-0.yaml"
    second = bed.stressor("run", str(phases), env=other)
    assert second.returncode == ExitCode.LOCK_HELD, second.stderr
    assert re.search(
        rf"run {first.name} of \w+@\S+:{first.process.pid} holds node1, node2, node3, bystander: "
        rf"stressor abort --run {first.name}",
        second.stderr,
    ), second.stderr
    assert first.process.poll() is None
    stopped = bed.stressor("abort", "--run", first.name, env=other)
    assert stopped.returncode == 0, stopped.stdout
    assert first.end() == ExitCode.BREACH
