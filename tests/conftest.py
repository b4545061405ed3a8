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
    return Bed.of_lab()
