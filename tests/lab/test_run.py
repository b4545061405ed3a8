"""`stressor run` on a real cluster, from arming to the end."""

import json
import signal
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.bed import Bed, Run

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

Launch = Callable[..., Run]


def test_a_cpu_phase_runs_is_seen_and_is_proven_gone(bed: Bed, launch: Launch) -> None:
    # Long enough for two logins of our own while it runs, on a busy machine.
    run = launch("cpu", hold="15s", deadline="60s")
    run.wait_loading()
    assert run.end() == 0, run.said()
    report = json.loads(bed.stressor("report", run.name, "-o", "json").stdout)
    assert report["verdict"] == "pass"
    assert {r["node"] for step in report["steps"] for r in step["results"]} == {"node1", "node2"}
    assert all(not bed.marked(host, run.name) for host in bed.load_hosts)


def test_i1_no_load_when_one_guard_does_not_answer(bed: Bed, launch: Launch) -> None:
    """A guard's channel that is frozen between arming and start: refused, nothing started."""
    run = launch("cpu")
    run.wait_kind("event.GuardArmed", 30)
    frozen = freeze_channel(bed, "node3", run.name)
    try:
        assert run.end() == 3, run.said()
    finally:
        bed.ssh("node3", "kill", "-CONT", frozen)
    assert "effect.StartLoad" not in run.kinds() or "event.LoadCreated" not in run.kinds()
    assert all(not bed.marked(host, run.name) for host in bed.load_hosts)


def test_a_channel_that_freezes_under_load_aborts_and_is_named(bed: Bed, launch: Launch) -> None:
    run = launch("cpu")
    run.wait_loading()
    frozen = freeze_channel(bed, "node2", run.name)
    try:
        code = run.end()
        run.wait_gone(bed.load_hosts, 20)
    finally:
        bed.ssh("node2", "kill", "-CONT", frozen)
    assert code in (98, 99), run.said()
    stops = [r for r in run.records() if r["kind"] == "effect.StopLoad"]
    assert "node2" in json.dumps(stops), stops
    proofs = [r for r in run.records() if r["kind"] == "event.HostProven"]
    cold = [p for p in proofs if '"node2"' in json.dumps(p)]
    assert cold, "no word about node2 at all"
    assert code == 98 or any('"cold": true' in json.dumps(p) for p in cold), cold


def freeze_channel(bed: Bed, host: str, run: str) -> str:
    """SIGSTOP the sshd process that carries the guard's channel; its pid on the host."""
    script = (
        'read -r pid start <"/run/stressor/$1/guard.pid"; '
        'while read -r name value _ <"/proc/$pid/status"; do break; done; '
        'while :; do pid=$(cut -d" " -f4 "/proc/$pid/stat"); '
        'case $(cat "/proc/$pid/comm") in sshd*) break ;; esac; [ "$pid" -gt 1 ] || exit 1; done; '
        'kill -STOP "$pid" && echo "$pid"'
    )
    pid = bed.ssh(host, "sh", "-c", script, "sh", run).strip()
    assert pid.isdigit(), f"no sshd above the guard of {host}: {pid!r}"
    return pid


def test_a_breach_stops_the_disk_phase_within_three_seconds(bed: Bed, launch: Launch) -> None:
    assert abort_latency_s(bed, launch) < 3.0


def abort_latency_s(bed: Bed, launch: Launch) -> float:
    """One disk phase on the shared spindle, to its breach: seconds from the arrival of the sample
    that made the gate fire to the last host proven clean. Quorum must not be lost."""
    bed.stressor("lab", "break", "spindle", "--ms", "20")
    run = launch("disk", jobs=32, nodes="node1")
    code = run.end()
    bed.stressor("lab", "break", "spindle", "--ms", "1")
    assert code == 99, run.said()
    report = json.loads(bed.stressor("report", run.name, "-o", "json").stdout)
    leaders = [s["low"] for s in report["signals"] if s["signal"] == "etcd_has_leader"]
    assert set(leaders) == {1.0}, "a member saw no leader"
    stop = report["stop"]
    assert stop["sample_s"] is not None
    proven = [host["proven_s"] for host in stop["hosts"]]
    assert len(proven) == 4
    return float(max(proven)) - float(stop["sample_s"])


@pytest.mark.evidence
@pytest.mark.timeout(1200)
def test_evidence_abort_latency(bed: Bed, launch: Launch, record: Callable[[object], None]) -> None:
    """Median and maximum of five."""
    figures_s = [round(abort_latency_s(bed, launch), 3) for _ in range(5)]
    record({"abort_latency_s": figures_s, "median_s": statistics.median(figures_s)})
    assert max(figures_s) < 3.0, figures_s


def test_ctrl_c_stops_and_verifies(bed: Bed, launch: Launch) -> None:
    run = launch("cpu")
    run.wait_loading()
    run.signal(signal.SIGINT)
    assert run.end() == 130, run.said()
    assert all(not bed.marked(host, run.name) for host in bed.load_hosts)


def test_sigterm_stops_and_verifies(bed: Bed, launch: Launch) -> None:
    run = launch("cpu")
    run.wait_loading()
    run.signal(signal.SIGTERM)
    assert run.end() == 143, run.said()
    assert all(not bed.marked(host, run.name) for host in bed.load_hosts)


def test_a_second_run_is_refused_while_one_holds_the_lock(
    bed: Bed, launch: Launch, tmp_path: Path
) -> None:
    first = launch("cpu")
    first.wait_loading()
    second = bed.stressor("run", str(tmp_path / "cpu-0.yaml"))
    assert second.returncode == 5, second.stderr
    assert first.name in second.stderr
    assert "RUN " not in second.stderr, "it had a name of its own before it was refused"
    first.signal(signal.SIGTERM)
    assert first.end() == 143
