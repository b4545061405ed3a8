"""Where this machine and the jump hosts stand."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from stressor.checks import blast_radius
from stressor.checks.base import Facts, Level, Reading
from stressor.checks.blast_radius import (
    Mount,
    Own,
    judge_host,
    judge_jumps,
    judge_own,
    mount_of,
)
from stressor.engine.orchestrator import disks, own
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
        (replace(HERE, filesystem="fuse.sshfs"), Level.FAIL, "suspect storage"),
        (replace(HERE, filesystem="fuse.ceph-fuse"), Level.FAIL, "suspect storage"),
        (replace(HERE, filesystem="virtiofs"), Level.WARN, "machine below this one"),
        (replace(HERE, filesystem="fuse.lxcfs"), Level.PASS, "fuse.lxcfs of"),
        (replace(HERE, filesystem="cramfs"), Level.PASS, "cramfs of"),
        (replace(HERE, disks=("/sys/devices/rbd/0",)), Level.WARN, "a Ceph image"),
        (
            replace(HERE, disks=("/sys/devices/platform/host2/session1/target2:0:0/sda",)),
            Level.WARN,
            "an iSCSI disk",
        ),
        (replace(HERE, disks=("/sys/devices/pci0/virtio1/block/vda",)), Level.PASS, "ext4"),
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
        ("/var/lib", Mount("ext4", "/dev/vda", "254:0")),
        ("/home", Mount("xfs", "/dev/vdb", "0:32")),
        ("/homes", Mount("ext4", "/dev/vda", "254:0")),
        ("/home/me x/y", Mount("tmpfs", "tmpfs", "0:31")),
    ],
)
def test_the_mount_of_a_path(path: str, found: Mount) -> None:
    assert mount_of(path, MOUNTS) == found
    assert mount_of(path, "") is None


def test_disks_are_followed_down_to_the_last_layer(tmp_path: Path) -> None:
    """As in sysfs: a logical volume on two paths to one disk, a partition of which it is."""
    devices, block = tmp_path / "devices", tmp_path / "dev" / "block"
    disk = devices / "session1" / "sda"
    for folder in (block, disk / "sda1", devices / "virtual" / "dm-0" / "slaves"):
        folder.mkdir(parents=True)
    (block / "253:0").symlink_to(devices / "virtual" / "dm-0")
    (devices / "virtual" / "dm-0" / "slaves" / "sda1").symlink_to(disk / "sda1")
    found = disks("253:0", tmp_path)
    assert found == (str(disk / "sda1"), str(devices / "virtual" / "dm-0"))
    (finding,) = judge_own(replace(HERE, disks=found))
    assert "an iSCSI disk" in finding.text
    assert disks("0:31", tmp_path) == ()
    # A loop, as no kernel makes one, ends.
    (disk / "sda1" / "slaves").mkdir()
    (disk / "sda1" / "slaves" / "dm-0").symlink_to(devices / "virtual" / "dm-0")
    assert disks("253:0", tmp_path) == found


def test_this_very_machine(tmp_path: Path) -> None:
    here = own(tmp_path, os.environ)
    assert here.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert here.filesystem
    assert not here.in_pod
    assert own(tmp_path, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}).in_pod
    assert blast_radius.NAME == "orchestrator"
