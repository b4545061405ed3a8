"""Host lists: what a line means, and every mistake of every line at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stressor.config.hostlist import Described, name_flaw, parse_hosts
from stressor.errors import ConfigError
from stressor.model import Role

PUBLIC = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA=="


def one(line: str) -> Described:
    (host,) = parse_hosts("h", line)
    return host


def wrong(text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as error:
        parse_hosts("hosts.txt", text)
    return error.value.mistakes


@pytest.mark.parametrize(
    ("line", "name", "address", "variables"),
    [
        ("cp1 192.0.2.1", "cp1", "192.0.2.1", {}),
        ("cp1\t192.0.2.1  ops", "cp1", "192.0.2.1", {"ansible_user": "ops"}),
        ("cp1 192.0.2.1 2222", "cp1", "192.0.2.1", {"ansible_port": 2222}),
        (
            "cp1 192.0.2.1 ops 2222 # the first",
            "cp1",
            "192.0.2.1",
            {"ansible_user": "ops", "ansible_port": 2222},
        ),
        (
            "ops@192.0.2.1:2222",
            "192.0.2.1",
            "192.0.2.1",
            {"ansible_user": "ops", "ansible_port": 2222},
        ),
        ("cp1 ops@192.0.2.1", "cp1", "192.0.2.1", {"ansible_user": "ops"}),
        ("192.0.2.1", "192.0.2.1", "192.0.2.1", {}),
        ("cp1 2001:DB8:0::1", "cp1", "2001:db8::1", {}),
        ("2001:db8::22", "2001:db8::22", "2001:db8::22", {}),
        ("cp1 [2001:db8::1]:22", "cp1", "2001:db8::1", {"ansible_port": 22}),
        (
            "ops@2001:db8::1",
            "2001:db8::1",
            "2001:db8::1",
            {"ansible_user": "ops"},
        ),
        (
            "no 192.0.2.1 ansible_become=yes scratch_dir='/a b#c'",
            "no",
            "192.0.2.1",
            {"ansible_become": True, "scratch_dir": "/a b#c"},
        ),
        (
            f'a#b 192.0.2.1 stressor_host_key="{PUBLIC} a comment"',
            "a#b",
            "192.0.2.1",
            {"stressor_host_key": PUBLIC},
        ),
    ],
)
def test_what_a_line_means(
    line: str, name: str, address: str, variables: dict[str, object]
) -> None:
    host = one(line)
    assert (host.name, host.address, dict(host.variables)) == (name, address, variables)
    assert (host.roles, host.origin) == (frozenset(), "h:1")


def test_comments_empty_lines_and_windows_line_ends_mean_nothing() -> None:
    text = "# the cluster\r\n\r\n  \r\ncp1 192.0.2.1\r\n   # end\r\n"
    assert [host.name for host in parse_hosts("h", text)] == ["cp1"]


def test_a_group_is_a_role() -> None:
    assert one("a 192.0.2.1 group=control_plane,workers").roles == {
        Role.CONTROL_PLANE,
        Role.WORKER,
    }
    assert one("a 192.0.2.1 group=bystanders").roles == {Role.BYSTANDER}


def test_every_mistake_of_every_line_is_told_at_once() -> None:
    text = """\
cp1 192.0.2.1
cp1 192.0.2.2
cp2 192.0.2.1
cp3
cp4 cp4.example
node[1:3] 192.0.2.4
cp5 192.0.2.5 ops 2222 extra
cp6 192.0.2.6 99999 group=control-plane
cp7 192.0.2.7 ansible_usr=x ansible_password=x
cp8 192.0.2.8 "ops
group=workers
cp9 192.0.2.9 ops ansible_user=ops group=workers,bystanders
"""
    assert wrong(text) == (
        "hosts.txt:2: host `cp1` stands on line 1 already",
        "hosts.txt:3: 192.0.2.1 is the address on line 1 already",
        "hosts.txt:4: `cp3` needs an IP address: abort asks no DNS",
        "hosts.txt:5: `cp4.example` is no IP address: abort asks no DNS",
        "hosts.txt:6: host name `node[1:3]` is a range: name each host on a line of its own",
        "hosts.txt:7: `extra` is one word too many: name, address, user, port, key=value",
        "hosts.txt:8: `ansible_port`: `99999` is no port: use 1 to 65535",
        "hosts.txt:8: unknown group `control-plane` (did you mean `control_plane`?): "
        "use control_plane, workers, bystanders",
        "hosts.txt:9: `ansible_password` passwords are not read: log in with a key, and let "
        "`sudo -n` work",
        "hosts.txt:9: unknown key `ansible_usr` (did you mean `ansible_user`?)",
        "hosts.txt:10: a quote is not closed",
        "hosts.txt:11: begins with `group=workers`: write `name address` first",
        "hosts.txt:12: `ansible_user` is given twice",
        "hosts.txt:12: a bystander is no part of the cluster: choose one group",
    )


@pytest.mark.parametrize("line", ['"cp1 192.0.2.1', "cp1 192.0.2.1 o'ps", 'cp1 192.0.2.1 a="b" "'])
def test_a_quote_that_is_not_closed_is_a_mistake(line: str) -> None:
    assert wrong(line) == ("hosts.txt:1: a quote is not closed",)


def test_one_address_with_two_ports_is_two_hosts() -> None:
    assert len(parse_hosts("h", "a 192.0.2.1\nb 192.0.2.1:2222\n")) == 2
    assert wrong("a 192.0.2.1\nb 192.0.2.1:22\n")


def test_a_list_without_a_host_is_a_mistake() -> None:
    assert wrong("# nothing\n") == (
        "hosts.txt:1: names no host: write `name address`, one host a line",
    )


def test_a_password_is_never_repeated_in_a_message() -> None:
    assert "sesame" not in "".join(wrong("a 192.0.2.1 ansible_password=sesame"))


@pytest.mark.parametrize(
    "name", ["", " a", "n[1:3]", "a:22", "{{ x }}", "workers", "all", "<<", "a\nb", "a\x1b"]
)
def test_names_that_no_inventory_can_hold(name: str) -> None:
    assert name_flaw(name) is not None


@given(st.text())
def test_any_text_is_hosts_or_mistakes_with_a_line(text: str) -> None:
    hosts, told = told_of(text)
    assert hosts or told
    assert all(line.startswith("h:") for line in told)
    assert [host.name for host in hosts if name_flaw(host.name)] == []


def told_of(text: str) -> tuple[tuple[Described, ...], tuple[str, ...]]:
    try:
        return parse_hosts("h", text), ()
    except ConfigError as error:
        return (), error.mistakes
