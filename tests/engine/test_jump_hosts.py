"""Preflight over real jump hosts, also one that runs nothing and one that lets nobody through."""

from pathlib import Path
from shutil import which

import pytest

from stressor.checks.base import Finding, Level, worst
from stressor.checks.blast_radius import Own
from stressor.engine.preflight import Inspector
from stressor.model import Host, Transport
from stressor.remote.connect import connect
from tests.sshd import running_sshd

pytestmark = [pytest.mark.ssh, pytest.mark.timeout(120)]
BACKENDS = (Transport.PARAMIKO, Transport.OPENSSH)


def findings(
    folder: Path, transport: Transport, *options: str, become: bool = False
) -> dict[tuple[str, str], Level]:
    """The worst level of each check, of the host and of the jump host."""
    with running_sshd(folder / "gate", *options) as gate, running_sshd(folder / "host") as sshd:
        host = Host("n1", (sshd.route(jumps=(gate.route(),)),), transport=transport, become=become)
        asked = Inspector(
            lambda one, route: connect(one, route=route),
            frozenset({"login", "sshd", "clock", "guard", "privileges", "orchestrator"}),
            Own("elsewhere", "ext4", "/dev/vda"),
        )
        found: dict[tuple[str, str], list[Finding]] = {}
        for who, some in asked.inspect([host]):
            for one in some:
                found.setdefault((who.name.split()[0], one.check), []).append(one)
        return {key: worst(some) for key, some in found.items()}


@pytest.mark.parametrize("transport", BACKENDS)
@pytest.mark.parametrize(
    "become",
    [False, pytest.param(True, marks=pytest.mark.skipif(not which("sudo"), reason="no sudo"))],
)
def test_a_host_behind_a_jump_host_is_asked_over_it(
    tmp_path: Path, transport: Transport, become: bool
) -> None:
    found = findings(tmp_path, transport, become=become)
    assert {key for key, level in found.items() if level is Level.FAIL} == set()
    assert found["jump", "sshd"] is Level.PASS
    assert found["n1", "clock"] is Level.PASS
    assert found["n1", "guard"] is Level.PASS
    assert ("n1", "privileges") in found


@pytest.mark.parametrize("transport", BACKENDS)
def test_a_jump_host_that_runs_nothing_lets_through(tmp_path: Path, transport: Transport) -> None:
    found = findings(tmp_path, transport, "ForceCommand /usr/sbin/nologin")
    assert found["jump", "sshd"] is Level.WARN
    assert ("jump", "login") not in found
    assert found["n1", "clock"] is Level.PASS


@pytest.mark.parametrize("transport", BACKENDS)
def test_a_jump_host_that_forbids_forwarding_is_named(tmp_path: Path, transport: Transport) -> None:
    # The setting is asked of the sshd that its own configuration names: /etc/ssh/sshd_config,
    # which is not this one's. What the host says is enough.
    found = findings(tmp_path, transport, "AllowTcpForwarding no")
    assert found["n1", "login"] is Level.FAIL
    assert ("n1", "clock") not in found
