"""Further routes, jump hosts, fence and hypervisor, as an inventory says them."""

from pathlib import Path

import pytest

from stressor.config.inventory import load_inventory
from stressor.errors import ConfigError
from stressor.model import Host, Route

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIJ3yLQ8p5T8y5v3m0r0bq4e2Vd4r7vI8m3d2b1c0a9Z"
HEAD = """\
all:
  vars: {stressor_cluster: c}
  children:
    control_plane:
      hosts:
        node1:
          ansible_host: 10.0.0.1
          ansible_port: 2201
          ansible_user: ops
          ansible_ssh_private_key_file: /keys/id
          stressor_known_hosts: /keys/known
          stressor_host_key: KEY
"""


def read(folder: Path, *lines: str) -> Host:
    path = folder / "inv.yaml"
    body = "".join(f"          {line}\n" for line in lines)
    path.write_text(HEAD.replace("KEY", KEY) + body)
    return load_inventory(path).hosts[0]


OWN = Route("10.0.0.1", 2201, "ops", "/keys/id", KEY, "/keys/known")


def test_without_them_there_is_one_route_and_no_fence(tmp_path: Path) -> None:
    host = read(tmp_path)
    assert host.routes == (OWN,)
    assert (host.fence, host.hypervisor) == ((), None)


def test_further_routes_come_after_and_take_over_what_they_do_not_say(tmp_path: Path) -> None:
    host = read(
        tmp_path,
        "stressor_routes:",
        "  - {address: 192.0.2.1}",
        f"  - {{address: 'fd00::1', port: 23, user: rescue, key: k2, host_key: {KEY}, jumps: []}}",
    )
    assert host.routes == (
        OWN,
        Route("192.0.2.1", 22, "ops", "/keys/id", None, "/keys/known"),
        Route("fd00::1", 23, "rescue", str(tmp_path / "k2"), KEY, "/keys/known"),
    )


@pytest.mark.parametrize(
    "line",
    [
        "stressor_jumps: ['gate@192.0.2.9:2222', {address: 'fd00::9', user: ops}]",
        "stressor_jumps: ['gate@192.0.2.9:2222', 'ops@[fd00::9]']",
        "ansible_ssh_common_args: '-o ProxyJump=gate@192.0.2.9:2222,ops@[fd00::9]'",
        "ansible_ssh_common_args: '-J gate@192.0.2.9:2222,[fd00::9]'",
        "ansible_ssh_common_args: -Jgate@192.0.2.9:2222,ops@[fd00::9]",
        "ansible_ssh_common_args: -J ssh://gate@192.0.2.9:2222,ops@[fd00::9]",
        "ansible_ssh_extra_args: -oProxyJump=gate@192.0.2.9:2222,ops@[fd00::9]",
        "ansible_ssh_extra_args: \"-o 'ProxyJump gate@192.0.2.9:2222,ops@[fd00::9]'\"",
        "ansible_ssh_common_args: '-o ProxyJump=\"gate@192.0.2.9:2222,ops@[fd00::9]\"'",
        "ansible_ssh_extra_args: -o proxyjump=gate@192.0.2.9:2222,ops@[fd00::9]",
    ],
)
def test_jumps_stand_before_every_route_that_has_none_of_its_own(tmp_path: Path, line: str) -> None:
    host = read(
        tmp_path, line, "stressor_routes: [{address: 192.0.2.1}, {address: 192.0.2.2, jumps: []}]"
    )
    jumps = (
        Route("192.0.2.9", 2222, "gate", "/keys/id", None, "/keys/known"),
        Route("fd00::9", 22, "ops", "/keys/id", None, "/keys/known"),
    )
    assert [route.jumps for route in host.routes] == [jumps, jumps, ()]


def test_fence_and_hypervisor_are_kept_as_written(tmp_path: Path) -> None:
    host = read(
        tmp_path, "stressor_fence: [openstack, server, stop, 'node 1']", "stressor_hypervisor: r1"
    )
    assert host.fence == ("openstack", "server", "stop", "node 1")
    assert host.hypervisor == "r1"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("stressor_fence: openstack server stop node1", "list of words"),
        ("stressor_fence: []", "is empty"),
        ("stressor_routes: {address: 10.0.0.2}", "must be a list"),
        ("stressor_routes: [10.0.0.2]", "must be a mapping"),
        ("stressor_routes: [{user: x}]", "needs an `address`"),
        ("stressor_routes: [{address: node1}]", "must be an IP address"),
        ("stressor_routes: [{address: 10.0.0.2, prot: 1}]", "unknown key `prot`"),
        ("stressor_jumps: [gate.example]", "must be an IP address"),
        ("stressor_jumps: ['a b']", "no jump host"),
        ("stressor_jumps: ['x@10.0.0.2:99999']", "is no port"),
        ("ansible_ssh_common_args: '-o ProxyJump=gate.example'", "must be an IP address"),
        ("ansible_ssh_common_args: '-o ProxyCommand=nc'", "read only where it is"),
        ("ansible_ssh_common_args: '-J 10.0.0.9 -o X=y'", "read only where it is"),
        ("ansible_ssh_common_args: '-J 10.0.0.9 -o X=y'", "`-o X=y` cannot be honoured"),
        ("ansible_ssh_extra_args: '-J 10.0.0.9 -A -F x'", "`-A -F x` cannot be honoured"),
        ("ansible_ssh_extra_args: -o ProxyCommand=nc", "`-o ProxyCommand=nc` cannot be"),
        ("ansible_ssh_extra_args: '-J 10.0.0.9 -J 10.0.0.8'", "names jump hosts 2 times"),
        ('ansible_ssh_extra_args: "-J \'10.0.0.9"', "No closing quotation"),
        ("ansible_ssh_extra_args: -J", "`-J` cannot be honoured"),
        ("ansible_ssh_common_args: -J ssh://gate.example:22", "must be an IP address"),
        ("ansible_ssh_args: '-J 10.0.0.9'", "is not read"),
        ("stressor_routes: [{address: 10.0.0.2, prot: 1}]", "did you mean `port`"),
        ("stressor_fence: [ipmitool, chassis, power, off]", "word 4: `False` must be text"),
        ('stressor_fence: "it\'s off"', "list of words"),
    ],
)
def test_what_cannot_be_honoured_is_told_and_never_dropped(
    tmp_path: Path, line: str, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, line)
    assert said in str(caught.value)
    assert "inv.yaml:13: " in str(caught.value)


def test_all_mistakes_in_routes_and_jumps_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(
            tmp_path,
            "stressor_routes:",
            "  - {address: node9, port: 0, usr: x}",
            "  - 10.0.0.2",
            "  - {address: 10.0.0.3, jumps: [gate, 'x@10.0.0.9']}",
            "stressor_jumps: [{user: x}, 'ops@10.0.0.8:x']",
        )
    said = [line.partition("inv.yaml:")[2] for line in str(caught.value).splitlines()]
    assert [line.split(": ", 2)[:2] for line in said] == [["13", "`stressor_routes`"]] * 5 + [
        ["17", "`stressor_jumps`"]
    ] * 2
    for part in (
        "route 1: address: `node9` must be an IP",
        "route 1: port: `0` is no port",
        "route 1: unknown key `usr` (did you mean `user`?)",
        "route 2: each route must be a mapping",
        "route 3: jump 1: address: `gate` must be an IP",
        "jump 1: a route or jump needs an `address`",
        "jump 2: `ops@10.0.0.8:x` is no jump host",
    ):
        assert any(part in line for line in said), part


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("stressor_jumps: [10.0.0.8]", "ansible_ssh_common_args: -J 10.0.0.9"),
        ("ansible_ssh_common_args: -J 10.0.0.8", "ansible_ssh_extra_args: -J 10.0.0.9"),
        ("stressor_jumps: [10.0.0.8]", "ansible_ssh_common_args: -J none"),
    ],
)
def test_two_variables_that_name_different_jumps_are_refused(
    tmp_path: Path, first: str, second: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, first, second)
    one, other = second.partition(":")[0], first.partition(":")[0]
    assert f"inv.yaml:14: `{one}` and `{other}` name different jump hosts" in str(caught.value)


def test_the_same_jumps_may_be_named_twice_and_none_means_none(tmp_path: Path) -> None:
    same = read(tmp_path, "stressor_jumps: [10.0.0.8]", "ansible_ssh_extra_args: -J 10.0.0.8")
    assert [jump.address for jump in same.routes[0].jumps] == ["10.0.0.8"]
    none = read(tmp_path, "ansible_ssh_common_args: -o ProxyJump=none")
    assert none.routes[0].jumps == ()
