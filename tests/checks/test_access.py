"""Judgements of logins, of sshd's settings and of routes."""

from dataclasses import replace

import pytest

from stressor.checks import login, routes, sshd
from stressor.checks.base import Finding, Level
from stressor.checks.login import LoginTrial, judge_login
from stressor.checks.routes import RouteLife, judge_lifetimes, judge_shared
from stressor.checks.sshd import Load
from stressor.model import Host, Role, Route
from stressor.remote.base import UnreachableReason
from tests.checks.readings import COLUMNS, framed, reading, recorded

PASS, WARN, FAIL = Level.PASS, Level.WARN, Level.FAIL
GOOD = LoginTrial(
    "cp-1", "ops@10.0.0.1", login_s=0.2, command_s=0.05, sudo_s=0.08, noise_bytes=0, become=True
)


def short(found: tuple[Finding, ...]) -> tuple[Finding, ...]:
    assert found
    for finding in found:
        assert len(finding.text) <= COLUMNS, finding.text
        assert len(finding.remedy) <= COLUMNS, finding.remedy
    return found


def trial(**changes: float | str | bool | None) -> list[tuple[Level, str, str]]:
    found = short(judge_login(replace(GOOD, **changes)))  # type: ignore[arg-type]
    return [(f.level, f.text, f.remedy) for f in found]


def test_a_quick_quiet_login_passes() -> None:
    assert trial() == [(PASS, "ops@10.0.0.1: login 0.20 s, sudo 0.08 s", "")]
    assert trial(become=False, sudo_s=None) == [(PASS, "ops@10.0.0.1: login 0.20 s", "")]


@pytest.mark.parametrize(
    ("changes", "text", "remedy"),
    [
        ({"login_s": 5.2}, "login took 5.2 s", "UseDNS no, GSSAPIAuthentication no"),
        ({"login_s": 5.2, "command_s": 5.1, "sudo_s": 5.2}, "shell took 5.1 s", ".bashrc"),
        ({"sudo_s": 5.1}, "sudo -n took 5.0 s", "own host name into /etc/hosts"),
        ({"noise_bytes": 12}, "12 bytes before our output", "noisy .bashrc"),
    ],
)
def test_what_makes_a_login_slow_or_noisy_is_named(
    changes: dict[str, float | str | bool | None], text: str, remedy: str
) -> None:
    ((level, said, advice),) = trial(**changes)
    assert (level, said.endswith(text), remedy in advice) == (WARN, True, True)


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({"login_s": 2.0, "command_s": 0.0, "sudo_s": 0.0}, PASS),
        ({"login_s": 2.1, "command_s": 0.0, "sudo_s": 0.0}, WARN),
        ({"login_s": 7.0}, FAIL),
        ({"login_s": 4.0, "sudo_s": 3.1}, FAIL),
        ({"login_s": 4.0, "sudo_s": 3.1, "become": False}, WARN),
    ],
)
def test_a_login_that_is_too_slow_for_an_abort_fails(
    changes: dict[str, float | str | bool | None], level: Level
) -> None:
    assert trial(**changes)[-1][0] is level


@pytest.mark.parametrize("lost", ["login_s", "command_s", "sudo_s", "noise_bytes"])
def test_i4_a_step_without_an_answer_is_unknown(lost: str) -> None:
    (found,) = judge_login(replace(GOOD, **{lost: None}))  # type: ignore[arg-type]
    assert (found.level, found.unknown) == (FAIL, True)


def test_each_reason_of_the_seam_has_its_remedy() -> None:
    said = {reason: trial(reason=reason.value) for reason in UnreachableReason}
    assert all(found[0][0] is FAIL and len(found) == 1 for found in said.values())
    assert len({found[0][2] for found in said.values()}) == len(UnreachableReason)
    assert not any("unknown:" in found[0][1] for found in said.values())
    assert "NOPASSWD" in said[UnreachableReason.SUDO][0][2]
    assert judge_login(replace(GOOD, reason="else"))[0].unknown


def settings(load: Load, **changes: str) -> list[tuple[Level, str, str, bool]]:
    text = recorded("sshd-9.2").replace("end sshd\n", "")
    text += "".join(f"{key}={value}\n" for key, value in changes.items()) + "end sshd\n"
    found = short(sshd.judge(reading("sshd", text), load))
    return [(f.level, f.text, f.remedy, f.unknown) for f in found]


def test_as_many_logins_from_one_address_as_are_needed_are_enough() -> None:
    assert settings(Load(4, 4), persourcemaxstartups="4")[0][0] is PASS
    assert settings(Load(4, 4), persourcemaxstartups="none")[0][0] is PASS


def test_the_defaults_of_debian_fit_one_host() -> None:
    assert settings(Load(10, 10)) == [(PASS, "fits 10 logins at once", "", False)]


@pytest.mark.parametrize(
    ("load", "changes", "level", "text", "remedy"),
    [
        (Load(11, 4), {}, WARN, "MaxStartups 10:30:100: drops", "MaxStartups 22:30:100"),
        (Load(64, 4), {}, WARN, "MaxStartups 10:30:100: drops", "MaxStartups 128:30:256"),
        (Load(101, 4), {}, FAIL, "MaxStartups 10:30:100: drops", "MaxStartups 202:30:404"),
        (Load(2, 11), {}, FAIL, "MaxSessions 10: 11 are needed", "MaxSessions 11"),
        (Load(2, 2), {"maxsessions": "1"}, FAIL, "MaxSessions 1: 2 are needed", "MaxSessions 10"),
        (
            Load(4, 4),
            {"persourcemaxstartups": "3"},
            FAIL,
            "PerSourceMaxStartups 3: drops some of 4",
            "PerSourceMaxStartups 8, or none",
        ),
        (Load(2, 2), {"usedns": "yes"}, WARN, "UseDNS yes", "UseDNS no"),
        (
            Load(2, 2),
            {"usedns": "yes", "stressor-lookup": "slow"},
            WARN,
            "UseDNS yes: a look-up takes more than 3 s now",
            "UseDNS no",
        ),
        (Load(2, 2), {"gssapiauthentication": "yes"}, WARN, "GSSAPIAuthentication yes", "GSSAPI"),
        (Load(2, 2), {"allowtcpforwarding": "no"}, WARN, "AllowTcpForwarding no", "have curl"),
        (Load(2, 2), {"allowtcpforwarding": "remote"}, WARN, "AllowTcpForwarding remote", "have"),
        (Load(2, 2), {"disableforwarding": "yes"}, WARN, "AllowTcpForwarding no (Dis", "have"),
        (
            Load(2, 2, is_jump=True),
            {"allowtcpforwarding": "no"},
            FAIL,
            "AllowTcpForwarding no: no jump",
            "AllowTcpForwarding local",
        ),
    ],
)
def test_settings_that_stand_in_the_way(
    load: Load, changes: dict[str, str], level: Level, text: str, remedy: str
) -> None:
    ((found, said, advice, is_unknown),) = settings(load, **changes)
    assert (found, is_unknown) == (level, False)
    assert said.startswith(text)
    assert advice.startswith(remedy)


PENALTIES = "crash:90 authfail:5 noauth:1 grace-exceeded:10 max:600 min:15 max-sources4:65536"


def test_penalties_that_one_failed_fan_out_would_reach() -> None:
    assert settings(Load(2, 2), persourcepenalties=PENALTIES)[0][0] is PASS
    ((level, text, remedy, _),) = settings(Load(3, 2), persourcepenalties=PENALTIES)
    assert (level, text) == (WARN, "PerSourcePenalties: 3 failed logins lock us out")
    assert remedy == "PerSourcePenaltyExemptList YOUR-IP"
    exempt = {"persourcepenalties": PENALTIES, "persourcepenaltyexemptlist": "10.0.0.9"}
    assert settings(Load(3, 2), **exempt)[0][0] is PASS
    assert settings(Load(3, 2), persourcepenalties="no")[0][0] is PASS


@pytest.mark.parametrize(
    "changes",
    [
        {"maxstartups": "x"},
        {"maxsessions": ""},
        {"persourcemaxstartups": "odd"},
        {"persourcepenalties": "odd"},
        {"allowtcpforwarding": "unknown"},
    ],
)
def test_i4_a_setting_that_cannot_be_read_is_unknown(changes: dict[str, str]) -> None:
    ((level, _, _, is_unknown),) = settings(Load(2, 2), **changes)
    assert (level, is_unknown) == (WARN, True)


def test_i4_an_sshd_that_says_nothing_is_unknown() -> None:
    (found,) = sshd.judge(reading("sshd", framed("sshd")), Load(2, 2))
    assert (found.level, found.unknown) == (WARN, True)


END, DAY = 1.8e9, 86400.0
ROUTE = Route("10.0.0.1", user="ops", key_path="/k/a")
PLAIN = RouteLife(ROUTE)
ENDING = RouteLife(ROUTE, ends_unix_s=END + DAY - 3600)
TOUCH = RouteLife(ROUTE, needs_touch=True)
UNREAD = RouteLife(ROUTE, known=False)


@pytest.mark.parametrize(
    ("lives", "levels"),
    [
        ((PLAIN,), [PASS]),
        ((RouteLife(ROUTE, ends_unix_s=END + DAY),), [PASS]),
        ((ENDING,), [FAIL]),
        ((TOUCH,), [FAIL]),
        ((RouteLife(ROUTE, needs_touch=True, known=False),), [FAIL]),
        ((ENDING, TOUCH), [FAIL, FAIL]),
        ((PLAIN, ENDING), [WARN]),
        ((PLAIN, UNREAD), [WARN]),
        ((UNREAD,), [WARN]),
        ((UNREAD, ENDING), [WARN]),
        ((), [FAIL]),
    ],
)
def test_a_host_has_a_route_that_outlasts_the_run_by_a_day(
    lives: tuple[RouteLife, ...], levels: list[Level]
) -> None:
    found = short(judge_lifetimes("cp-1", lives, worst_case_end_unix_s=END))
    assert [each.level for each in found] == levels
    assert any(each.unknown for each in found) == (UNREAD in lives)


def test_how_much_too_early_a_route_ends_is_said() -> None:
    (found,) = judge_lifetimes("cp-1", (ENDING,), worst_case_end_unix_s=END)
    assert found.text == "ops@10.0.0.1: ends 1.0 h too early"
    (touch,) = judge_lifetimes("cp-1", (TOUCH,), worst_case_end_unix_s=END)
    assert touch.text == "ops@10.0.0.1: the key needs a touch"


def test_a_certificate_that_is_not_valid_yet_is_no_route_yet() -> None:
    later = RouteLife(ROUTE, begins_unix_s=END)
    found = judge_lifetimes("n", (later,), worst_case_end_unix_s=END, now_unix_s=END - 3600)
    assert [(one.level, one.text) for one in found] == [
        (FAIL, "ops@10.0.0.1: valid in 1.0 h, not before")
    ]
    found = judge_lifetimes("n", (later, PLAIN), worst_case_end_unix_s=END, now_unix_s=END - 3600)
    assert [one.level for one in short(found)] == [WARN]
    found = judge_lifetimes("n", (later,), worst_case_end_unix_s=END, now_unix_s=END)
    assert [one.level for one in found] == [PASS]


def test_each_of_two_equal_routes_is_told() -> None:
    found = judge_lifetimes("cp-1", (ENDING, ENDING), worst_case_end_unix_s=END)
    assert [each.level for each in found] == [FAIL, FAIL]


def shared(*ways: Route) -> list[tuple[Level, str]]:
    hosts = tuple(Host(f"h{at}", (way,)) for at, way in enumerate(ways))
    found = short(judge_shared(hosts))
    assert {each.host for each in found} == {""}
    return [(each.level, each.text) for each in found]


def test_what_every_route_depends_on() -> None:
    jump, other = Route("10.9.9.9"), Route("10.9.9.8")
    one = replace(ROUTE, jumps=(jump,))
    assert shared(one, one) == [
        (WARN, "one key for all routes: /k/a"),
        (WARN, "one user for all routes: ops"),
        (WARN, "one jump host for all routes: 10.9.9.9"),
    ]
    second = Route("10.0.0.2", user="root", key_path="/k/b", jumps=(other, jump))
    assert shared(one, second) == [(WARN, "one jump host for all routes: 10.9.9.9")]
    direct = replace(second, jumps=())
    assert shared(one, direct) == [(PASS, "no key, user or jump host is on every route")]
    assert judge_shared(())[0].level is FAIL


def test_what_all_routes_of_one_host_depend_on() -> None:
    """Other hosts do not: it is told for those that do, in one line however many they are."""
    gate, other = Route("10.9.9.9"), Route("10.9.9.8")
    ways = (
        replace(ROUTE, jumps=(gate,)),
        Route("10.0.0.2", user="root", key_path="/k/b", jumps=(gate, other)),
    )
    single = Host("single", (Route("10.0.0.9", user="x", key_path="/k/c"),))
    hosts = (*(Host(f"h{at}", ways) for at in range(3)), single)
    found = [(each.level, each.host, each.text) for each in short(judge_shared(hosts))]
    assert found == [(WARN, "", "h0 and 2 more: one jump host for all routes: 10.9.9.9")]
    twice = Host("h", (ROUTE, replace(ROUTE, address="10.0.0.7")))
    assert [each.text for each in judge_shared((twice, single))] == [
        "h: one key for all routes: /k/a",
        "h: one user for all routes: ops",
    ]
    assert len(judge_shared((twice,))) == 2, "what everybody shares is told once"


NODE1 = Host("node1", (Route("10.0.0.1"),), frozenset({Role.CONTROL_PLANE}))
OTHERS = Host("other", (Route("10.1.0.1"),), frozenset({Role.BYSTANDER}))


def caught(*hosts: Host) -> list[tuple[str, str]]:
    found = short(judge_shared((NODE1, OTHERS, *hosts)))
    return [(each.host, each.text) for each in found if each.level is FAIL]


def test_a_host_that_is_reached_over_the_tested_cluster_alone_fails() -> None:
    over = Route("10.0.0.2", jumps=(Route("192.0.2.1"), Route("10.0.0.1", user="gate")))
    assert caught(Host("n2", (over,))) == [
        ("n2", "every route leads over the tested cluster: node1")
    ]
    node3 = Host("node3", (Route("10.0.0.3"),))
    third = replace(over, jumps=(Route("10.0.0.3"),))
    assert caught(node3, Host("n2", (over, third))) == [
        ("n2", "every route leads over the tested cluster: node1, node3")
    ]
    assert caught(Host("n2", (over, replace(over, jumps=())))) == []
    assert caught(Host("n2", (replace(over, jumps=(Route("10.1.0.1"),)),))) == []
    assert caught(Host("n2", (over, Route("10.0.0.7")))) == []


def test_a_host_that_is_reached_over_an_address_of_its_own_hangs_on_no_other() -> None:
    inner = Route("10.5.0.2", jumps=(Route("10.0.0.2"),))
    assert caught(Host("n2", (Route("10.0.0.2"), inner))) == []
    assert caught(Host("n2", (inner, replace(inner, address="10.0.0.2")))) == []


def test_behind_one_gateway_with_a_port_for_each_the_port_decides() -> None:
    """Address translation: the gateway is none of the hosts, though it has their address."""
    natted = [
        Host(f"n{at}", (Route("192.0.2.1", 2200 + at, jumps=(Route("192.0.2.1"),)),))
        for at in range(2)
    ]
    assert caught(*natted) == []
    over = Host("n2", (Route("10.0.0.2", jumps=(Route("192.0.2.1", 2201),)),))
    assert caught(*natted, over) == [("n2", "every route leads over the tested cluster: n1")]


def test_routes_without_a_named_key_share_the_default_one() -> None:
    bare = Route("10.0.0.1", user="a")
    assert shared(bare, replace(bare, user="b")) == [
        (WARN, "one key for all routes: the default key")
    ]


def test_access_findings_bear_the_names_of_their_checks() -> None:
    assert {login.NAME, sshd.NAME, routes.NAME} == {"login", "sshd", "routes"}
    assert judge_login(GOOD)[0].check == login.NAME
    assert judge_shared(())[0].check == routes.NAME
