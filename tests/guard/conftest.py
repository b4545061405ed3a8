"""Fixtures of the guard's tests: each shell that hosts have, and a state folder of one's own."""

from pathlib import Path

import pytest

from stressor.guard.script import Shell


@pytest.fixture(params=[Shell.DASH, Shell.BUSYBOX, Shell.BASH], ids=str)
def shell(request: pytest.FixtureRequest) -> Shell:
    chosen: Shell = request.param
    return chosen


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Never the host's own /run/stressor: an armed host would refuse, or be buried."""
    return tmp_path / "state"
