"""The lab's pure parts: no root, no lab."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from stressor.lab import cgroups, cluster, golang, hostfiles, images, requirements
from stressor.lab import places as p
from stressor.lab.down import mounted_below
from stressor.lab.errors import LabError
from stressor.lab.ledger import Ledger, Process, Record, alive, start_time
from stressor.lab.spindle import DEFAULT_DELAY_MS, read_delay_ms, set_delay_ms

HYBRID = """\
30 1 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw
31 30 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
32 30 0:40 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
33 30 0:41 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""


def test_trees_stand_below_the_own_cgroup_of_every_hierarchy() -> None:
    found = cgroups.parse("9:name=systemd:/\n4:memory:/here\n0::/\n", HYBRID)
    assert cgroups.legacy(found)
    trees = {str(folder) for folder in cgroups.folders(found, "lab-node1")}
    assert trees == {
        "/sys/fs/cgroup/systemd/lab-node1",
        "/sys/fs/cgroup/memory/here/lab-node1",
        "/sys/fs/cgroup/unified/lab-node1",
    }


def test_version_2_alone_is_not_legacy() -> None:
    found = cgroups.parse(
        "0::/user.slice\n", "33 30 0:41 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    )
    assert not cgroups.legacy(found)


def test_the_ledger_survives_a_round_trip_and_names_other_versions(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "lab.json", Record(boot_id="b", phase="starting", nodes=3))
    ledger.append("mounts", "/a", "/b")
    ledger.append("mounts", "/a")
    ledger.enter(Process("spindle", 1, 2))
    again = Ledger.load(tmp_path / "lab.json")
    assert again is not None
    assert again.record == ledger.record
    assert again.record.mounts == ("/a", "/b")
    (tmp_path / "lab.json").write_text('{"schema_version": 99}')
    with pytest.raises(LabError, match="another version"):
        Ledger.load(tmp_path / "lab.json")


def test_a_pid_with_another_start_time_is_a_stranger() -> None:
    import os

    started = start_time(os.getpid())
    assert started is not None
    assert alive(Process("me", os.getpid(), started))
    assert not alive(Process("before me", os.getpid(), started - 1))


def test_mounts_are_undone_innermost_first_and_strangers_stay() -> None:
    text = (
        "1 0 8:1 / /s/a rw - x x rw\n2 1 8:1 / /s/a/b\\040c rw - x x rw\n3 0 8:1 / /s/ab rw - x x\n"
    )
    assert mounted_below(("/s/a",), text) == ("/s/a/b c", "/s/a")


def test_an_unreadable_knob_is_the_default(tmp_path: Path) -> None:
    knob = tmp_path / "delay_ms"
    assert read_delay_ms(knob) == DEFAULT_DELAY_MS
    set_delay_ms(knob, 20)
    assert read_delay_ms(knob) == 20
    knob.write_text("-3")
    assert read_delay_ms(knob) == DEFAULT_DELAY_MS
    with pytest.raises(ValueError, match="-1 ms"):
        set_delay_ms(knob, -1)


def test_every_node_knows_the_way_to_the_others_pods() -> None:
    from stressor.lab.network import host_commands

    hosts = p.hosts(3)
    assert [line for line in host_commands(hosts[0], hosts) if "10.244" in line] == [
        "route add 10.244.12.0/24 via 10.203.77.12",
        "route add 10.244.13.0/24 via 10.203.77.13",
    ]


def test_kubelets_leave_memory_to_each_other() -> None:
    total = 24 << 30
    config = cluster.kubelet_config(total, 3)
    reserved = int(config["systemReserved"]["memory"].removesuffix("Mi")) << 20
    assert 3 * (total - reserved) <= total - (4 << 30) + 3 * (1 << 20)


def test_health_answers_are_read_with_suspicion() -> None:
    well = json.dumps([{"endpoint": str(i), "health": True} for i in range(3)])
    assert cluster.sick_members(well, 3) == ""
    assert "2 of 3" in cluster.sick_members(json.dumps(json.loads(well)[:2]), 3)
    assert cluster.sick_members("", 3) != ""
    assert cluster.sick_members("no json", 3) != ""


def test_configuration_for_kubeadm_parses(tmp_path: Path) -> None:
    first, second = p.hosts(2)[:2]
    kinds = [d["kind"] for d in yaml.safe_load_all(cluster.init_config(first, 8 << 30, 2))]
    assert kinds == ["InitConfiguration", "ClusterConfiguration", "KubeletConfiguration"]
    assert yaml.safe_load(cluster.join_config(second))["nodeRegistration"]["name"] == "node2"


def test_images_are_the_same_bytes_every_time(tmp_path: Path) -> None:
    program = tmp_path / "pause"
    program.write_bytes(b"x")
    for name in ("one.tar", "two.tar"):
        images.write(images.pause_image(program), tmp_path / name)
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()


def test_links_in_a_root_are_followed_within_it(tmp_path: Path) -> None:
    (tmp_path / "usr/lib").mkdir(parents=True)
    (tmp_path / "usr/lib/real.so.1.2").write_text("x")
    (tmp_path / "usr/lib/real.so.1").symlink_to("real.so.1.2")
    (tmp_path / "lib").symlink_to("usr/lib")
    (tmp_path / "usr/lib/absolute").symlink_to("/lib/real.so.1")
    found = images.inside(tmp_path, "/lib/absolute")
    assert found == tmp_path / "usr/lib/real.so.1.2"
    with pytest.raises(LabError, match="missing"):
        images.inside(tmp_path, "/lib/nothing")


def test_missing_programs_are_named_with_their_package() -> None:
    lacking = requirements.lacking_programs(lambda name: None if name == "gcc" else name)
    assert lacking == ["program gcc is missing: apt-get install gcc"]


def test_the_toolchain_is_as_new_as_the_pins_ask() -> None:
    assert golang.wanted_go() >= (1, 24)


def test_hosts_have_no_name_server_and_one_key_each() -> None:
    hosts = p.hosts(3)
    identity = hostfiles.Identity("PRIVATE", "ssh-ed25519 AAAA")
    files = {f.path: f for f in hostfiles.host_files(hosts[0], hosts, identity)}
    assert files["etc/resolv.conf"].text == ""
    assert files["etc/ssh/ssh_host_ed25519_key"].mode == 0o600
    assert "UseDNS no" in files["etc/ssh/sshd_config.d/stressor.conf"].text


def test_places_follow_the_environment() -> None:
    places = p.places({"HOME": "/h"})
    assert str(places.cache) == "/h/.cache/stressor"
    assert str(places.state) == "/h/.local/state/stressor/lab"
    chosen = p.places({"STRESSOR_CACHE": "/c", "STRESSOR_STATE": "/s"})
    assert (str(chosen.cache), str(chosen.state), chosen.cache_chosen) == ("/c", "/s/lab", True)
