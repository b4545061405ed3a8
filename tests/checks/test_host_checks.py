"""Judgements of recorded answers (Linux 6.18, Debian 12) and of changed ones."""

import re
from dataclasses import replace

import pytest

from stressor.checks import clock, free_disk, snapshot
from stressor.checks.base import Level
from stressor.model import Host, Role
from tests.checks.readings import findings, framed, only, reading, recorded, words

PASS, WARN, FAIL = Level.PASS, Level.WARN, Level.FAIL


def test_the_way_to_kill_a_cgroup_is_named() -> None:
    v2 = recorded("cgroup-v2")
    assert words("cgroup", recorded("cgroup-root")) == [(PASS, "v1 freezer: freeze, kill, thaw")]
    assert words("cgroup", v2) == [(PASS, "v2 with cgroup.kill")]
    old = v2.replace("kill=", "x=")
    assert words("cgroup", old) == [(PASS, "v2 without cgroup.kill: freeze, kill")]


def test_no_way_to_kill_a_cgroup_at_once() -> None:
    none = only("cgroup", recorded("cgroup-none"))
    assert (none.level, none.remedy) == (WARN, "mount cgroup v2, or the v1 freezer hierarchy")
    bare = only("cgroup", framed("cgroup", "mounts=read", "v2=/sys/fs/cgroup"))
    assert (bare.level, bare.remedy[:11]) == (WARN, "kernel 5.14")
    assert only("cgroup", framed("cgroup")).unknown


@pytest.mark.parametrize(
    ("lines", "level", "text"),
    [
        (("systemd_run=found", "pid1=systemd", "state=running"), PASS, "systemd is running"),
        (("systemd_run=found", "pid1=systemd", "state=degraded"), PASS, "systemd is degraded"),
        (("systemd_run=found", "pid1=systemd", "state=stopping"), WARN, "systemd is stopping"),
        (("systemd_run=found", "pid1=systemd", "state="), WARN, "unknown: PID 1 did not answer"),
        (("pid1=systemd", "state=running"), WARN, "no systemd-run"),
    ],
)
def test_the_host_timer_needs_a_systemd_that_answers(
    lines: tuple[str, ...], level: Level, text: str
) -> None:
    found = only("host-timer", framed("host-timer", *lines))
    assert found.level is level
    assert text in found.text


def test_systemd_run_without_systemd_is_no_timer() -> None:
    found = only("host-timer", recorded("host-timer-root"))
    assert (found.level, found.text[:23]) == (WARN, "PID 1 is not systemd: n")


def test_psi_that_can_be_read() -> None:
    assert words("psi", recorded("psi-root")) == [(PASS, "cpu, io, memory can be read")]


def test_psi_that_exists_and_cannot_be_read() -> None:
    said = [
        f"{w}=cat: /proc/pressure/{w}: Operation not supported" for w in ("cpu", "io", "memory")
    ]
    off = only("psi", framed("psi", *said))
    assert (off.level, "psi=1" in off.remedy, off.unknown) == (WARN, True, False)
    assert off.text == "cpu, io, memory cannot be read (Operation not supported)"
    half = recorded("psi-root").replace("io=some", "io=")
    assert only("psi", half).text.startswith("io cannot be read")
    assert only("psi", framed("psi")).unknown


def test_flush_columns_of_real_disks() -> None:
    text = recorded("flush-count-root")
    assert words("flush-count", text) == [(PASS, "flushes of 1 disks are counted")]
    old = re.sub(r"(vda( \d+){15}).*", r"\1", text)
    found = only("flush-count", old)
    assert (found.level, found.text) == (WARN, "no flush columns (vda): no local disk trip")
    assert only("flush-count", text.replace(" vda ", " loop8 ")).unknown


def test_privileges_of_root() -> None:
    text = recorded("privileges-root")
    assert words("privileges", text) == [
        (PASS, "root"),
        (WARN, "oom_score_adj -1000 refused: OOM may take the guard"),
        (PASS, "real-time priority is granted"),
    ]
    assert findings("privileges", text.replace("chrt=", "oom=-1000\nchrt="))[1].level is PASS


def test_privileges_of_somebody_else() -> None:
    levels = [found.level for found in findings("privileges", recorded("privileges-nobody"))]
    assert levels == [FAIL, WARN, WARN]


def test_nice_is_enough_where_real_time_is_refused() -> None:
    text = recorded("privileges-root").replace("fifo=granted\n", "")
    assert words("privileges", text)[2] == (PASS, "nice -20 is granted (real time is refused)")
    missing = text.replace("chrt=found", "chrt=missing")
    assert words("privileges", missing)[2] == (PASS, "nice -20 is granted (chrt is missing)")
    assert findings("privileges", text.replace("uid=0", "uid="))[0].unknown


@pytest.mark.parametrize(
    ("offset_s", "trip_s", "level"),
    [
        (0.0, 0.1, PASS),
        (-0.4, 0.1, PASS),
        (0.52, 0.1, WARN),
        (1.9, 0.0, WARN),
        (-1.9, 0.0, WARN),
        (2.01, 0.0, FAIL),
        (-5.0, 0.2, FAIL),
        (2.3, 1.0, WARN),
    ],
)
def test_clock_offset_is_judged_by_what_is_proven(
    offset_s: float, trip_s: float, level: Level
) -> None:
    text = framed("clock", f"unix={1.8e9 + trip_s / 2 + offset_s:.6f}")
    asked = replace(reading("clock", text), sent_unix_s=1.8e9, received_unix_s=1.8e9 + trip_s)
    (found,) = clock.judge(asked)
    assert found.level is level
    assert f"{offset_s:+.2f} s +- {trip_s / 2:.2f} s" in found.text


def test_a_slow_round_trip_leaves_the_offset_unknown() -> None:
    slow = replace(reading("clock", framed("clock", "unix=1800000001.0")), sent_unix_s=1.8e9)
    (found,) = clock.judge(replace(slow, received_unix_s=1.8e9 + 2.0))
    assert (found.level, found.unknown) == (WARN, True)


def test_a_clock_without_fractions_is_half_a_second_uncertain() -> None:
    whole = replace(reading("clock", framed("clock", "unix=1800000009.N")), sent_unix_s=1.8e9)
    (found,) = clock.judge(replace(whole, received_unix_s=1.8e9))
    assert (found.level, found.text) == (FAIL, "+9.50 s +- 0.50 s against here")


def test_a_caller_whose_clock_was_set_back_knows_nothing() -> None:
    back = replace(reading("clock", recorded("clock-root")), received_unix_s=99.0)
    (found,) = clock.judge(back)
    assert (found.level, found.unknown) == (FAIL, True)


def test_free_disk_of_a_healthy_host() -> None:
    assert words("free-disk", recorded("free-disk-root"))[:2] == [
        (PASS, "/run: 30 % used, 66128 MiB free"),
        (PASS, "/var/lib: 30 % used, 66128 MiB free"),
    ]


def test_a_full_disk_fails_and_a_small_run_does_not() -> None:
    assert words("free-disk", recorded("free-disk-full"))[:2] == [
        (PASS, "/run: 0 % used, 64 MiB free"),
        (FAIL, "/var/lib: 99 % used, 11 MiB free"),
    ]


@pytest.mark.parametrize(
    ("place", "free_kib", "percent", "inodes", "level"),
    [
        ("/var/lib", 10**8, 89, "94%", PASS),
        ("/var/lib", 10**8, 90, "4%", WARN),
        ("/var/lib", 10**8, 97, "4%", FAIL),
        ("/var/lib", 262143, 50, "4%", FAIL),
        ("/var/lib", 262144, 50, "4%", PASS),
        ("/run", 16383, 50, "4%", FAIL),
        ("/run", 16384, 50, "4%", PASS),
        ("/var/lib", 10**8, 50, "95%", WARN),
        ("/var/lib", 10**8, 50, "97%", FAIL),
        ("/var/lib", 10**8, 50, "-", PASS),
    ],
)
def test_limits_of_space_and_inodes(
    place: str, free_kib: int, percent: int, inodes: str, level: Level
) -> None:
    free = f"k:{place}=my disk 9 9 {free_kib} {percent}% /mnt 5% x"
    text = framed("free-disk", f"place={place}", free, f"i:{place}=my disk 9 9 9 {inodes} /mnt")
    found = only("free-disk", text)
    assert found.level is level
    assert ("inodes" in found.text) == (inodes in ("95%", "97%"))


@pytest.mark.parametrize("lost", ["k:/var/lib=x", "i:/var/lib=x"])
def test_i4_a_df_that_said_nothing_is_unknown(lost: str) -> None:
    text = recorded("free-disk-full").replace(lost, "y=")
    found = free_disk.judge(reading("free-disk", text))
    assert [each.unknown for each in found] == [False, True, False]


def test_tools_that_are_all_there() -> None:
    assert words("tools", recorded("tools-root")) == [(PASS, "all programs found")]


@pytest.mark.parametrize(
    ("lacking", "level", "text"),
    [
        (("mkfifo",), FAIL, "no mkfifo: no guard"),
        (("grep",), WARN, "no grep: the scan is slow and may block"),
        (("timeout",), WARN, "no timeout: a stuck scan is not ended"),
        (("setsid",), WARN, "no setsid: late-comers may not be killed"),
        (("curl", "wget", "bash"), WARN, "no curl, wget, bash: scrapes by forward only"),
        (("curl", "wget"), PASS, "all programs found"),
    ],
)
def test_tools_that_are_missing(lacking: tuple[str, ...], level: Level, text: str) -> None:
    answer = recorded("tools-root")
    for tool in lacking:
        answer = answer.replace(f"have={tool}\n", f"lack={tool}\n")
    assert words("tools", answer) == [(level, text)]


def test_i4_a_tool_that_nobody_looked_for_is_unknown() -> None:
    found = only("tools", recorded("tools-root").replace("have=grep\n", ""))
    assert (found.level, found.text) == (FAIL, "unknown: grep")


def test_a_living_guard_owns_the_host_and_a_dead_one_left_load() -> None:
    found = findings("leftovers", recorded("leftovers-guard"))
    assert [(each.level, each.remedy) for each in found] == [
        (FAIL, "wait, or stressor abort --run soak-1"),
        (WARN, "look into /run/stressor as root"),
        (WARN, "stressor abort --run lost-7"),
    ]
    assert found[0].text == "run soak-1 has a guard here (pid 29826)"


@pytest.mark.parametrize(
    ("old", "new"),
    [("29826 1840372", "29826 1840371"), ("1840372 R", "1840372 Z"), (" 1840372 R", "")],
)
def test_a_reused_pid_and_a_zombie_are_no_guard(old: str, new: str) -> None:
    found = findings("leftovers", recorded("leftovers-guard").replace(old, new))
    assert [each.level for each in found] == [WARN, WARN, WARN]


def test_who_holds_the_host_is_said() -> None:
    text = recorded("leftovers-guard").replace("run=soak-1", "run=soak-1\nholder=soak-1 ann@ops:7")
    found = findings("leftovers", text)
    assert found[0].text == "run soak-1 of ann@ops:7 has a guard here (pid 29826)"


def test_a_stat_line_that_was_cut_off_is_no_guard() -> None:
    text = framed("leftovers", "folder=read", "run=a-1", "guard=a-1 29826 1840372 R 1 2")
    found = only("leftovers", text)
    assert (found.level, found.remedy) == (WARN, "stressor abort --run a-1")
    assert only("leftovers", text.replace(" R 1 2", "").replace(" 1840372", "")).level is WARN


def test_tombstones_are_how_runs_end() -> None:
    assert words("leftovers", recorded("leftovers-none")) == [(PASS, "nothing of earlier runs")]
    tombs = (PASS, "tombstones of 2 ended runs, no guard")
    assert words("leftovers", recorded("leftovers-tombstones")) == [tombs]
    assert only("leftovers", framed("leftovers")).unknown


def test_the_run_folder_is_writable_memory() -> None:
    text = recorded("run-folder-tmpfs")
    assert words("run-folder", text) == [(PASS, "/run is a writable tmpfs")]
    on_disk = only("run-folder", recorded("run-folder-root"))
    assert (on_disk.level, on_disk.text[:15]) == (WARN, "/run is on ext4")
    assert only("run-folder", framed("run-folder", "write=ok")).unknown


def test_a_run_folder_that_is_read_only() -> None:
    found = only("run-folder", recorded("run-folder-read-only"))
    assert (found.level, found.remedy) == (FAIL, "mount -o remount,rw /run")
    assert found.text == "cannot write to /run: Read-only file system"


@pytest.mark.parametrize(
    ("lines", "level", "text"),
    [
        (("name=n1", "known=hosts", "hosts=read", "resolver=192.0.2.1"), PASS, "without DNS"),
        (("name=n1", "hosts=read", "known=myhostname", "resolver=x"), PASS, "without DNS"),
        (("name=n1", "hosts=read"), PASS, "no resolver to wait for"),
        (("name=n1", "hosts=read", "resolver=192.0.2.1"), WARN, "sudo waits for 192.0.2.1"),
        (
            ("name=n1", "known=hosts", "hosts=read", "lookup=slow"),
            WARN,
            "looking up n1 takes more than 3 s",
        ),
        (("name=n1", "hosts=read", "lookup=slow", "resolver=x"), WARN, "more than 3 s: sudo -n"),
        (("name=n1",), WARN, "unknown: its own name"),
        (("hosts=read",), WARN, "unknown: its own name"),
    ],
)
def test_a_host_that_needs_a_resolver_for_its_own_name_is_told(
    lines: tuple[str, ...], level: Level, text: str
) -> None:
    found = only("own-name", framed("own-name", *lines))
    assert found.level is level
    assert text in found.text


@pytest.mark.parametrize(
    ("lines", "level", "text"),
    [
        (("now=200000", "at=100", "at=196400", "looked=yes"), PASS, "newest of 2 snapshots is 1.0"),
        (("now=200000", "at=100000", "looked=yes"), WARN, "27.8 h old"),
        (("now=200000", "looked=yes"), WARN, "no etcd snapshot"),
        (("now=100", "at=200", "looked=yes"), WARN, "unknown: the newest snapshot lies in"),
        (("now=200000", "at=199999"), WARN, "unknown: whether"),
        (("now=", "looked=yes"), WARN, "unknown: whether"),
        (("skip=yes", "now=1", "looked=yes"), Level.SKIP, "no etcd of the control plane here"),
    ],
)
def test_a_recent_snapshot_is_looked_for(lines: tuple[str, ...], level: Level, text: str) -> None:
    found = only("snapshot", framed("snapshot", *lines))
    assert found.level is level
    assert text in found.text


@pytest.mark.parametrize(
    ("host", "looks"),
    [
        (Host("cp", (), frozenset({Role.CONTROL_PLANE}), etcd_data_dir="/var/lib/etcd"), True),
        (Host("cp", (), frozenset({Role.CONTROL_PLANE}), etcd_metrics_url="http://x"), True),
        (Host("cp", (), frozenset({Role.CONTROL_PLANE})), False),
        (Host("by", (), frozenset({Role.BYSTANDER}), etcd_data_dir="/var/lib/etcd"), False),
    ],
)
def test_snapshots_are_looked_for_where_an_etcd_of_the_cluster_is(host: Host, looks: bool) -> None:
    assert bool(snapshot.argv(host)[4:]) is looks
