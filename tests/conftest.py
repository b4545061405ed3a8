"""What tests of several folders stand on."""

import subprocess
import sys

import pytest

from tests.lab.bed import Bed

DEFAULT_SPINDLE_MS = "1"


@pytest.fixture(scope="session")
def lab() -> Bed:
    """The lab, brought up if it is not, with nothing broken. It stays up for the next test."""
    for words in (("up",), ("heal",), ("break", "spindle", "--ms", DEFAULT_SPINDLE_MS)):
        subprocess.run((sys.executable, "-m", "stressor", "lab", *words), check=True, timeout=1500)
    bed = Bed.of_lab()
    # A run is refused where no abort was tried; one drill is good for a month.
    if bed.stressor("preflight", "--only", "drill").returncode != 0:
        drilled = bed.stressor("drill")
        assert drilled.returncode == 0, drilled.stdout
    return bed
