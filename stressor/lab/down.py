"""`lab down`: every recorded thing goes, wherever `up` was cut off; each step may be repeated.

Order: thaw (a frozen process cannot die), end processes, unmount, interfaces and namespaces,
cgroups, folders, and the ledger last, so that a cut-off `down` is finished by the next one.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from stressor.lab import cgroups, network
from stressor.lab import places as p
from stressor.lab.errors import LabError
from stressor.lab.launch import reap, signal_process, wait_ended
from stressor.lab.ledger import Ledger, Process, alive, boot_id, start_time
from stressor.lab.shell import attempt

_ORDERLY_S = 3.0
"""How long hosts get to stop by themselves; nothing in them is worth waiting for longer."""
_KILL_LIMIT_S = 60.0
"""A host's last process unmounts its overlays as it ends, and each of those writes out the disk
below: 10 s were too short on a machine whose disk was busy with other work."""
_NSPAWN_RUN = Path("/run/systemd/nspawn")


def thaw_everything(ledger: Ledger, places: p.Places) -> None:
    """Undo the two faults that would keep processes from dying: freezer and fsfreeze."""
    for tree in map(Path, ledger.record.cgroups):
        if tree.exists():
            cgroups.freeze(tree, False)
    for host in p.hosts(ledger.record.nodes):
        point = places.frozen(host)
        if os.path.ismount(point):
            attempt(["fsfreeze", "--unfreeze", str(point)], timeout_s=10)


def _living(processes: Iterable[Process]) -> tuple[Process, ...]:
    return tuple(process for process in processes if alive(process))


def _inhabitants(trees: Iterable[Path]) -> tuple[Process, ...]:
    """Every process in the hosts' cgroups, with the start time seen now."""
    found = []
    for tree in trees:
        for pid in cgroups.pids(tree):
            started = start_time(pid)
            if started is not None:
                found.append(Process(tree.name, pid, started))
    return tuple(found)


def _kill_until_empty(trees: tuple[Path, ...]) -> None:
    """SIGKILL whatever stands in the trees until they stay empty; raises LabError after 60 s."""
    limit = time.monotonic() + _KILL_LIMIT_S
    while left := _inhabitants(trees):
        for process in left:
            signal_process(process, signal.SIGKILL)
        reap()
        if time.monotonic() > limit:
            raise _undying(left)
        time.sleep(0.05)


def _where(pid: int) -> str:
    """State and kernel function of a process that does not end, e.g. `25 (D in ovl_sync_fs)`."""
    with suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        return f"{pid} ({state} in {Path(f'/proc/{pid}/wchan').read_text()})"
    return str(pid)


def _undying(left: Iterable[Process]) -> LabError:
    shown = ", ".join(sorted({_where(process.pid) for process in left}))
    return LabError(f"processes do not end: {shown}; run `stressor lab down` again")


def _end_hosts(ledger: Ledger) -> None:
    """Hosts first, in order if they can, by force after 3 s; the spindle serves them until then."""
    record = ledger.record
    trees = tuple(map(Path, record.cgroups))
    # A dying process leaves cgroup.procs before it has ended: those seen now are waited for.
    seen = _inhabitants(trees)
    hosts = _living(process for process in record.processes if process.role != "spindle")
    for process in hosts:
        signal_process(process, signal.SIGTERM)
    for process in wait_ended(hosts, _ORDERLY_S):
        signal_process(process, signal.SIGKILL)
    _kill_until_empty(trees)
    if left := wait_ended(tuple({*hosts, *seen}), _KILL_LIMIT_S):
        raise _undying(left)


def mounted_below(folders: tuple[str, ...], mountinfo: str) -> tuple[str, ...]:
    """Mount points at or below `folders`, in the order in which they have to be undone."""
    found = []
    for line in mountinfo.splitlines():
        point = line.split()[4].encode().decode("unicode_escape")
        if any(point == folder or point.startswith(f"{folder}/") for folder in folders):
            found.append(point)
    return tuple(reversed(found))


def _unmount(ledger: Ledger) -> None:
    wanted = (*ledger.record.folders, *ledger.record.mounts)
    for _ in range(8):
        points = mounted_below(wanted, Path("/proc/self/mountinfo").read_text())
        if not points:
            return
        for point in points:
            if attempt(["umount", point], timeout_s=20).returncode != 0:
                # Busy or without its server: take it out of the tree, the kernel frees it later.
                attempt(["umount", "--lazy", point], timeout_s=20)
    raise LabError(f"still mounted: {', '.join(points)}")


def _end_spindle(ledger: Ledger) -> None:
    """An unmounted FUSE server ends by itself; one that never mounted has to be told."""
    servers = _living(ledger.record.processes)
    left = wait_ended(servers, 2.0)
    for process in left:
        signal_process(process, signal.SIGTERM)
    for process in wait_ended(left, 2.0):
        signal_process(process, signal.SIGKILL)
    if stuck := wait_ended(left, _KILL_LIMIT_S):
        raise LabError(f"process {stuck[0].pid} ({stuck[0].role}) does not die")


def _detach_loops(nodes: Path) -> None:
    """Free loop devices whose mount was cut off between set-up and mount."""
    listed = attempt(["losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE"]).stdout
    for line in listed.splitlines():
        device, _, backing = line.strip().partition(" ")
        if backing.strip().startswith(f"{nodes}/"):
            attempt(["losetup", "--detach", device], timeout_s=10)


def _remove_cgroups(ledger: Ledger) -> None:
    for tree in map(Path, ledger.record.cgroups):
        if not cgroups.remove(tree):
            raise LabError(f"cgroup {tree} cannot be removed")
        if tree.parent.name == "stressor-lab":
            cgroups.remove(tree.parent)


def _remove_runtime_folders(record_nodes: int) -> None:
    """What systemd-nspawn keeps for a container that was killed."""
    for host in p.hosts(record_nodes):
        for name in ("propagate", "unix-export", "locks"):
            folder = _NSPAWN_RUN / name / host.namespace
            if folder.is_dir():
                attempt(["umount", "--lazy", str(folder)], timeout_s=10)
                shutil.rmtree(folder, ignore_errors=True)
            folder.unlink(missing_ok=True)


def _remove_files(ledger: Ledger, places: p.Places) -> None:
    for folder in ledger.record.folders:
        shutil.rmtree(folder, ignore_errors=True)
        if Path(folder).exists():
            raise LabError(f"{folder} cannot be deleted")
    for path in (places.breaks, places.inventory, places.kubeconfig, places.known_hosts):
        path.unlink(missing_ok=True)


def take_down(places: p.Places, say: Callable[[str], None]) -> bool:
    """End and remove everything on record; False when there was nothing.

    Raises LabError that names what would not go; calling again goes on from there.
    """
    ledger = Ledger.load(places.ledger)
    if ledger is None:
        return False
    record = ledger.record
    if record.boot_id != boot_id():
        # Nothing that ran before survived the restart; pids would name strangers.
        ledger.update(boot_id=boot_id(), processes=(), cgroups=())
    ledger.update(phase="down")
    say("hosts and processes: usually 4 s")
    thaw_everything(ledger, places)
    _end_hosts(ledger)
    _unmount(ledger)
    _end_spindle(ledger)
    _detach_loops(places.nodes)
    say("network, cgroups and folders: usually 2 s")
    for name in record.interfaces:
        network.remove_interface(name)
    for name in record.namespaces:
        network.remove_namespace(name)
    _remove_cgroups(ledger)
    _remove_runtime_folders(record.nodes)
    _remove_files(ledger, places)
    ledger.remove()
    return True
