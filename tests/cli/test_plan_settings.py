"""What config files and variables have to say on a plan: all of a new one, nothing of an old."""

from pathlib import Path

import pytest

from stressor.cli.plan_source import Asked, Source, open_source
from stressor.errors import ConfigError
from tests.cli.test_plan_source import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def _planned(
    folder: Folder, env: dict[str, str] | None = None, asked: Asked | None = None
) -> Source:
    named = {"STRESSOR_CONFIG": str(folder.path / "stressor.yaml"), "HOME": str(folder.path)}
    return open_source(folder.phases, asked or Asked(), {**named, **(env or {})})


def test_a_project_file_says_what_no_option_said_and_the_plan_shows_it(folder: Folder) -> None:
    config = folder.path / "stressor.yaml"
    config.write_text("inventory: inventory.yaml\nimage: file:1\nelection_timeout: 5s\n")
    source = _planned(folder)
    assert source.inventory_path == str(folder.inventory)
    assert (source.plan.image, source.election_timeout_s) == ("file:1", 5.0)
    assert source.footing.image == "file:1"
    assert source.notes == (
        f"election_timeout 5s (from {config}:3)",
        f"image file:1 (from {config}:2)",
        f"inventory {folder.inventory} (from {config}:1)",
    )


def test_variables_beat_the_file_and_options_beat_both(folder: Folder) -> None:
    (folder.path / "stressor.yaml").write_text("inventory: inventory.yaml\nimage: file:1\n")
    variables = {"STRESSOR_IMAGE": "env:1", "STRESSOR_ELECTION_TIMEOUT": "2s"}
    source = _planned(folder, variables)
    assert (source.plan.image, source.election_timeout_s) == ("env:1", 2.0)
    asked = Asked(image="option:1", election_timeout_s=3.0)
    source = _planned(folder, variables, asked)
    assert (source.plan.image, source.election_timeout_s) == ("option:1", 3.0)
    assert source.notes == (f"inventory {folder.inventory} (from {folder.path}/stressor.yaml:1)",)


def test_a_plan_file_stands_on_its_own(folder: Folder) -> None:
    folder.write()
    broken = folder.path / "stressor.yaml"
    broken.write_text("inventroy: x\n")
    env = {"STRESSOR_CONFIG": str(broken), "STRESSOR_IMAGE": "env:1"}
    source = open_source(folder.plan, Asked(), env)
    assert source.plan.image != "env:1"
    with pytest.raises(ConfigError, match="unknown key `inventroy`"):
        open_source(folder.phases, Asked(), env)


def test_an_election_time_out_of_nothing_is_a_mistake(folder: Folder) -> None:
    (folder.path / "stressor.yaml").write_text("inventory: inventory.yaml\n")
    with pytest.raises(ConfigError, match="--election-timeout: 0 s is no time-out"):
        _planned(folder, asked=Asked(election_timeout_s=0.0))
