"""Where this machine and the jump hosts stand."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from stressor.checks import blast_radius
from stressor.checks.base import Facts, Level, Reading
from stressor.checks.blast_radius import Own, judge_host, judge_jumps, judge_own, mount_of
from stressor.engine.orchestrator import own
from stressor.model import Host, Role, Route

HERE = Own("b-1", "ext4", "/dev/vda")
NODE = frozenset({Role.CONTROL_PLANE})


def said(boot: str) -> Reading:
    return Reading("n1", Facts({"boot": (boot,)}), 0.0, 0.0)


@pytest.mark.parametrize(
    ("boot", "disposable", "level", "text"),
    [
        ("b-2", False, Level.PASS, "another machine"),
        ("b-1", False, Level.FAIL, "a node of the tested cluster: one kernel"),
        ("b-1", True, Level.WARN, "disposable: true"),
        ("", False, Level.WARN, "unknown"),
    ],
)
def test_a_host_that_is_this_machine(boot: str, disposable: bool, level: Level, text: str) -> None:
    (found,) = judge_host(said(boot), NODE, HERE, disposable=disposable)
    assert found.level is level
    assert text in found.text


def test_a_bystander_on_this_machine_is_one_too() -> None:
    (found,) = judge_host(said("b-1"), frozenset({Role.BYSTANDER}), HERE, disposable=False)
    assert (found.level, "a bystander" in found.text) == (Level.FAIL, True)


@pytest.mark.parametrize(
    ("machine", "level", "text"),
    [
        (HERE, Level.PASS, "ext4 of /dev/vda"),
        (replace(HERE, filesystem="nfs4", source="store:/v"), Level.FAIL, "suspect storage"),
        (replace(HERE, filesystem="ceph"), Level.FAIL, "suspect storage"),
        (replace(HERE, filesystem=None), Level.WARN, "unknown: what the state folder"),
        (replace(HERE, in_pod=True), Level.FAIL, "runs in a pod"),
    ],
)
def test_this_machine_by_itself(machine: Own, level: Level, text: str) -> None:
    (found,) = judge_own(machine)
    assert found.level is level
    assert text in found.text


def test_jump_hosts_within_the_inventory_are_said() -> None:
    gate = Host("gate", (Route("10.0.0.9"),), NODE)
    far = Host("far", (Route("10.0.0.8"),), frozenset({Role.BYSTANDER}))
    behind = Host("n1", (Route("10.0.0.1", jumps=(Route("10.0.0.9"), Route("10.0.0.8"))),), NODE)
    outside = Host("n2", (Route("10.0.0.2", jumps=(Route("192.0.2.1"),)),), NODE)
    found = judge_jumps((gate, far, behind, outside))
    assert [(one.host, one.level) for one in found] == [
        ("gate", Level.WARN),
        ("far", Level.WARN),
    ]
    assert "the way to n1 leads over it" in found[0].text
    assert "is a bystander" in found[1].text


MOUNTS = """\
20 1 254:0 / / rw - ext4 /dev/vda rw
21 20 0:30 / /home rw - nfs4 store:/home rw
22 20 0:31 / /home/me\\040x rw - tmpfs tmpfs rw
23 21 0:32 / /home rw - xfs /dev/vdb rw
cut
"""


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/var/lib", ("ext4", "/dev/vda")),
        ("/home", ("xfs", "/dev/vdb")),
        ("/homes", ("ext4", "/dev/vda")),
        ("/home/me x/y", ("tmpfs", "tmpfs")),
    ],
)
def test_the_mount_of_a_path(path: str, found: tuple[str, str]) -> None:
    assert mount_of(path, MOUNTS) == found
    assert mount_of(path, "") is None


def test_this_very_machine(tmp_path: Path) -> None:
    here = own(tmp_path, os.environ)
    assert here.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert here.filesystem
    assert not here.in_pod
    assert own(tmp_path, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}).in_pod
    assert blast_radius.NAME == "orchestrator"
