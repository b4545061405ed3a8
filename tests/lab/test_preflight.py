"""Preflight on the lab: what is well passes, and what is broken is named on its host."""

import json

import pytest

from tests.lab.bed import Bed

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]


def findings(bed: Bed) -> tuple[int, dict[tuple[str, str], str]]:
    """The exit code, and the worst level of each check on each host."""
    done = bed.stressor("preflight", "-o", "json")
    document = json.loads(done.stdout)
    assert document["exit_code"] == done.returncode, done.stderr
    order = ("pass", "skip", "warn", "fail")
    worst: dict[tuple[str, str], str] = {}
    for one in document["findings"]:
        key = (one["host"], one["check"])
        worst[key] = max(worst.get(key, "pass"), one["level"], key=order.index)
    return done.returncode, worst


def test_a_healthy_lab_may_be_loaded(bed: Bed) -> None:
    code, found = findings(bed)
    assert code == 0, found
    assert found["", "nodes"] == "pass"
    for host in bed.inventory.hosts:
        for check in ("login", "clock", "psi", "host-timer", "leftovers", "cgroup"):
            assert found[host.name, check] == "pass", (host.name, check)
    assert [found[f"node{n}", "api"] for n in (1, 2, 3)] == ["pass"] * 3


def test_an_api_server_that_is_down_fails_on_its_host_alone(bed: Bed) -> None:
    assert bed.stressor("lab", "break", "apiserver", "node2").returncode == 0
    code, found = findings(bed)
    assert code == 3
    assert [found[f"node{n}", "api"] for n in (1, 2, 3)] == ["pass", "fail", "pass"]


def test_a_host_whose_sshd_is_silent_delays_no_other(bed: Bed) -> None:
    assert bed.stressor("lab", "break", "sshd", "node3").returncode == 0
    done = bed.stressor("preflight")
    assert done.returncode == 3
    order = [line.split()[1] for line in done.stdout.splitlines() if line.split()[0].endswith("s")]
    assert set(order[:3]) == {"node1", "node2", "bystander"}
    assert "node3: login: " in done.stdout
