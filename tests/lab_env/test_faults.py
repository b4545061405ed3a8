"""Every fault shows where it should, and healing takes it away, once or twice."""

from __future__ import annotations

import json
import re
import urllib.request

import pytest

from stressor.lab import host as hosting
from tests.lab_env.conftest import Lab, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.timeout(4000)]


def _ready(lab: Lab, name: str) -> bool:
    import ssl

    unverified = ssl._create_unverified_context()
    url = f"{lab.host(name).api_url}/livez"
    try:
        with urllib.request.urlopen(url, timeout=2, context=unverified) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _speaks(lab: Lab, name: str) -> bool:
    return hosting.banner(lab.host(name), 1.5).startswith("SSH-")


@pytest.mark.parametrize(("fault", "name"), [("sshd", "node2"), ("freeze", "node3")])
def test_silent_but_listening(lab: Lab, fault: str, name: str) -> None:
    """The kernel still accepts connections; nobody answers them."""
    lab.verb("break", fault, name)
    lab.verb("break", fault, name)
    assert not _speaks(lab, name)
    assert _speaks(lab, "node1")
    lab.verb("heal")
    wait_until(lambda: _speaks(lab, name), 5, "sshd answers again")
    assert "nothing was broken" in lab.verb("heal").stdout


def test_a_cut_cable_reaches_only_its_host(lab: Lab) -> None:
    lab.verb("break", "cut", "bystander")
    assert not _speaks(lab, "bystander")
    assert _speaks(lab, "node2")
    lab.verb("heal")
    wait_until(lambda: _speaks(lab, "bystander"), 5, "the cable works again")


def test_a_killed_api_server_stays_away(lab: Lab) -> None:
    lab.verb("break", "apiserver", "node2")
    wait_until(lambda: not _ready(lab, "node2"), 2, "the API server is gone")
    assert _ready(lab, "node1")
    lab.verb("heal")
    wait_until(lambda: _ready(lab, "node2"), 60, "the API server is back")


def test_a_stopped_kubelet_starts_again(lab: Lab) -> None:
    lab.verb("break", "kubelet", "node3")
    assert lab.ssh(lab.host("node3"), "systemctl is-active kubelet").strip() == "inactive"
    lab.verb("heal")
    assert lab.ssh(lab.host("node3"), "systemctl is-active kubelet").strip() == "active"


def test_a_frozen_filesystem_holds_its_writers_in_state_d(lab: Lab) -> None:
    node = lab.host("node1")
    if not any(point.endswith("node1/frozen") for point in lab.ledger.record.mounts):
        pytest.skip("no loop devices here")
    lab.verb("break", "fsfreeze", "node1")
    lab.ssh(node, "(dd if=/dev/zero of=/var/lib/stressor-frozen/t count=1 &) >/dev/null 2>&1")
    stuck = "ps -eo stat,args | grep -c '^D.*[s]tressor-frozen/t'"
    wait_until(lambda: lab.ssh(node, stuck).strip() == "1", 5, "the writer is stuck")
    lab.verb("heal")
    wait_until(lambda: lab.ssh(node, stuck).strip() == "0", 5, "the writer is free")


def _fsync_mean_s(lab: Lab, name: str, seconds: float) -> float:
    """Mean of etcd's own WAL fsync histogram over `seconds`, from two scrapes on the host."""
    read = "curl -s http://127.0.0.1:2381/metrics | grep -E ^etcd_disk_wal_fsync.*_'(sum|count)'"
    said = lab.ssh(lab.host(name), f"{read}; sleep {seconds:g}; {read}", seconds + 10)
    values = [float(re.split(r"\s+", line)[1]) for line in said.splitlines()]
    total_s, count = values[2] - values[0], values[3] - values[1]
    return total_s / count if count else 0.0


def test_the_spindle_knob_slows_every_etcd_on_it(lab: Lab) -> None:
    before_s = _fsync_mean_s(lab, "node1", 3)
    lab.verb("break", "spindle", "--ms", "40")
    slow_s = {name: _fsync_mean_s(lab, name, 4) for name in ("node1", "bystander")}
    lab.verb("heal")
    assert before_s < 0.04
    assert min(slow_s.values()) >= 0.04, slow_s
    assert json.loads(lab.verb("status", "-o", "json").stdout)["breaks"] == []


def test_refusals_name_what_is_wrong(lab: Lab) -> None:
    unknown = lab.verb("break", "cut", "node9", check=False)
    assert (unknown.returncode, "node9" in unknown.stderr) == (3, True)
    etcd_only = lab.verb("break", "kubelet", "bystander", check=False)
    assert (etcd_only.returncode, "no kubelet" in etcd_only.stderr) == (3, True)
    assert lab.verb("break", "spindle", check=False).returncode == 3
