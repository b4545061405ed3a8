"""Settings: flag, then environment, and no guess at the end."""

from pathlib import Path

import pytest

from stressor.config.settings import settings
from stressor.errors import ConfigError

ENV = {"STRESSOR_STATE": "/state", "STRESSOR_INVENTORY": "/env.yaml"}


def test_a_flag_beats_the_environment() -> None:
    found = settings(ENV, inventory_flag="/flag.yaml")
    assert (found.inventory_path, found.inventory_origin) == (Path("/flag.yaml"), "--inventory")
    found = settings(ENV)
    assert (found.inventory_path, found.inventory_origin) == (
        Path("/env.yaml"),
        "$STRESSOR_INVENTORY",
    )
    assert found.state_dir == Path("/state")


def test_no_inventory_is_no_default() -> None:
    with pytest.raises(ConfigError, match="name one with --inventory"):
        settings({**ENV, "STRESSOR_INVENTORY": ""})
