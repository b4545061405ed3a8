"""`stressor abort` from another terminal, under the conditions that it exists for."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.bed import Bed, Run

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]

Launch = Callable[..., Run]


def disable_guards(bed: Bed, run: str) -> None:
    """Leave nothing on any host that would stop the load by itself. The guard's processes are
    stopped first, so that none of them notices the others' end."""
    for host in bed.inventory.hosts:
        script = (
            'read -r pid start <"/run/stressor/$1/guard.pid" || exit 1; '
            'all="$pid $(ps -o pid= --ppid "$pid" | tr "\\n" " ")"; '
            "kill -STOP $all; "
            'systemctl stop "stressor-$1.timer"; '
            "kill -9 $all; sleep 0.2; "
            'if [ -d "/proc/$pid" ]; then echo alive; else echo dead; fi'
        )
        said = bed.ssh(host.name, "sh", "-c", script, "sh", run).split()
        assert said == ["dead"], f"{host.name}: {said}"


def test_the_minimum_acceptance(bed: Bed, launch: Launch) -> None:
    """API server and kubelet stopped everywhere, the run's process SIGKILLed in mid-fio, guards,
    dead-man and host timers disabled: abort itself must do the work, and prove it."""
    run = launch("disk", jobs=2)
    run.wait_loading()
    run.signal(signal.SIGSTOP)
    disable_guards(bed, run.name)
    run.signal(signal.SIGKILL)
    for fault in ("apiserver", "kubelet"):
        broken = bed.stressor("lab", "break", fault, "all")
        assert broken.returncode == 0, broken.stderr
    alive = {host: bed.marked(host, run.name) for host in ("node1", "node2")}
    assert all(any("fio" in name for name in found) for found in alive.values()), alive
    env = {k: v for k, v in os.environ.items() if k not in ("KUBECONFIG", "STRESSOR_INVENTORY")}
    first = bed.stressor("abort", env=env)
    assert first.returncode == 0, first.stdout + first.stderr
    for host in ("node1", "node2"):
        line = next(line for line in first.stdout.splitlines() if f" {host} " in line)
        assert "STOPPED" in line, first.stdout
    assert all(not bed.marked(host, run.name) for host in bed.load_hosts)
    assert all(len(line) <= 64 for line in first.stdout.splitlines())
    again = bed.stressor("abort", "--run", run.name, env=env)
    assert again.returncode == 0
    assert "nothing to stop" in again.stdout, again.stdout
    assert "STOPPED" not in again.stdout


def test_abort_while_the_run_lives_is_seen_by_the_run(bed: Bed, launch: Launch) -> None:
    run = launch("cpu")
    run.wait_loading()
    aborted = bed.stressor("abort")
    assert aborted.returncode == 0, aborted.stdout
    assert run.end() == 99, run.said()
    assert "aborted_elsewhere" in run.said() or "tombstone" in run.said()


def test_abort_while_the_run_is_stopped(bed: Bed, launch: Launch) -> None:
    run = launch("cpu")
    run.wait_loading()
    run.signal(signal.SIGSTOP)
    aborted = bed.stressor("abort")
    assert aborted.returncode == 0, aborted.stdout
    assert all(not bed.marked(host, run.name) for host in bed.load_hosts)
    run.signal(signal.SIGCONT)
    assert run.end() in (98, 99), run.said()


def test_i3_a_kubelet_that_comes_back_starts_nothing(bed: Bed, launch: Launch) -> None:
    """A pod is bound to a node whose kubelet is stopped; abort; the kubelet comes back."""
    bed.stressor("lab", "break", "kubelet", "node2")
    run = launch("cpu", nodes="node1, node2")
    run.wait_load(("node1",))
    aborted = bed.stressor("abort", "--run", run.name)
    assert aborted.returncode == 0, aborted.stdout
    bed.stressor("lab", "heal")
    end_s = time.monotonic() + 20
    while time.monotonic() < end_s:
        assert not bed.marked("node2", run.name)
        time.sleep(0.3)
    assert run.end() == 99, run.said()


def test_an_unreachable_host_is_said_as_such(bed: Bed, launch: Launch) -> None:
    """One node's network is cut: exit 4, that host UNREACHABLE, the others proven."""
    run = launch("cpu")
    run.wait_loading()
    run.signal(signal.SIGKILL)
    bed.stressor("lab", "break", "cut", "node3")
    aborted = bed.stressor("abort", "--run", run.name, "--budget", "12")
    assert aborted.returncode == 4, aborted.stdout
    said = {line.split()[1]: line for line in aborted.stdout.splitlines() if "node" in line}
    assert "UNREACHABLE" in aborted.stdout
    assert any("node3" in line and "UNREACHABLE" in line for line in aborted.stdout.splitlines())
    assert "node1" in said
    bed.stressor("lab", "heal")
    assert bed.stressor("abort", "--run", run.name).returncode == 0


def test_another_tenant_and_another_run_are_untouched(bed: Bed, launch: Launch) -> None:
    """The same image and program in a pod without marks, and with another run's marks."""
    tenant = start_sleepers(bed, "node1")
    try:
        run = launch("cpu", nodes="node1")
        run.wait_loading()
        assert bed.stressor("abort", "--run", run.name).returncode == 0
        assert bed.marked("node1", "rother") != ()
        assert bed.ssh("node1", "sh", "-c", 'kill -0 "$1" && echo alive', "sh", tenant).strip()
    finally:
        bed.ssh("node1", "systemctl", "stop", "tenant-other.service", "tenant-plain.service")


def start_sleepers(bed: Bed, host: str) -> str:
    """Two namespaced processes: one with another run's mark, one with none; the latter's pid."""
    for name, mark in (("other", "STRESSOR_RUN=rother"), ("plain", "TENANT=1")):
        bed.ssh(
            host,
            "systemd-run",
            f"--unit=tenant-{name}",
            f"--setenv={mark}",
            "unshare",
            "--mount",
            "stress-ng",
            "--cpu",
            "1",
            "--cpu-load",
            "5",
            "--keep-name",
            "--timeout",
            "120",
        )
    return bed.ssh(
        host, "systemctl", "show", "-p", "MainPID", "--value", "tenant-plain.service"
    ).strip()


def test_abort_help_needs_nothing(tmp_path: Path, lab: Bed) -> None:
    env = lab.env(STRESSOR_STATE=str(tmp_path))
    empty = lab.stressor("abort", env=env)
    assert empty.returncode == 2
    assert "no lifeline file" in empty.stderr
