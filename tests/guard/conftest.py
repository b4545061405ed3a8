"""Fixtures of the guard's tests: each shell that hosts have, and a state folder of one's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stressor.guard.script import Shell
from tests.guard.client import state_folder


@pytest.fixture(params=[Shell.DASH, Shell.BUSYBOX, Shell.BASH], ids=str)
def shell(request: pytest.FixtureRequest) -> Shell:
    chosen: Shell = request.param
    return chosen


@pytest.fixture
def state() -> Iterator[Path]:
    with state_folder() as folder:
        yield folder
