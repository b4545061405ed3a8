"""`down` leaves nothing, however `up` ended; `up` copes with what a killed one left."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from tests.lab_env.conftest import Lab, traces

pytestmark = [pytest.mark.lab, pytest.mark.timeout(4000)]

STOPS = ("hosts: usually", "kubeadm init", "kubeadm join of node2")
"""Progress lines after which `up` is killed: while booting, in init, in a join."""


def _kill_up_after(line: str, delay_s: float) -> None:
    argv = (sys.executable, "-m", "stressor.lab", "up")
    with subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as up:
        assert up.stderr is not None
        for said in up.stderr:
            if line in said:
                break
        time.sleep(delay_s)
        up.send_signal(signal.SIGKILL)


def test_down_leaves_nothing_wherever_up_was_killed(lab_as_found: Lab) -> None:
    lab_as_found.verb("down")
    clean = traces()
    assert not clean.processes
    assert not clean.cgroups
    for line, delay_s in zip(STOPS, (0.2, 1.5, 3.0), strict=True):
        _kill_up_after(line, delay_s)
        assert traces() != clean, "up was killed before it had made anything"
        lab_as_found.verb("down")
        assert traces() == clean, line
    lab_as_found.verb("down")
    assert traces() == clean


def test_down_from_a_broken_lab_that_up_cleaned_first(lab_as_found: Lab) -> None:
    """A cut-off `up`, a whole `up` on its remains, faults that stop processes, then `down`."""
    lab_as_found.verb("down")
    clean = traces()
    _kill_up_after("hosts: usually", 1.0)
    lab_as_found.verb("up")
    lab_as_found.verb("break", "freeze", "node2")
    lab_as_found.verb("break", "sshd", "node3")
    lab_as_found.verb("break", "cut", "node3")
    lab_as_found.verb("break", "fsfreeze", "node1", check=False)
    lab_as_found.verb("down")
    assert traces() == clean
    assert not lab_as_found.places.breaks.exists()
