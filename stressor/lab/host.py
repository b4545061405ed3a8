"""One lab host: laying out its root, booting it with systemd-nspawn, running things in it."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from stressor.lab import cgroups, hostfiles, keys
from stressor.lab import places as p
from stressor.lab.build import Kit
from stressor.lab.errors import LabError
from stressor.lab.launch import launch
from stressor.lab.ledger import Ledger, Process, start_time
from stressor.lab.shell import run

_CALLS = "@known add_key bpf keyctl perf_event_open request_key setns unshare"
"""System calls that containerd, runc and the tools need beyond nspawn's defaults."""
_BOOT_LIMIT_S = 30.0
"""A host answers on port 22 in under 2 s on an idle machine."""
_FROZEN_MIB = 32


def mount(ledger: Ledger, argv: Sequence[str], point: Path) -> None:
    """Run one mount command after its mount point was entered in the ledger."""
    point.mkdir(parents=True, exist_ok=True)
    ledger.append("mounts", str(point))
    run(["mount", *argv, str(point)], timeout_s=20)


def _overlay(ledger: Ledger, places: p.Places, host: p.Host, kit: Kit) -> Path:
    folder = places.node(host)
    for name in ("upper", "work"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    options = f"lowerdir={kit.root},upperdir={folder}/upper,workdir={folder}/work"
    mount(ledger, ["-t", "overlay", "stressor-lab", "-o", options], places.root(host))
    return places.root(host)


def _write_files(root: Path, host: p.Host, hosts: tuple[p.Host, ...], places: p.Places) -> None:
    identity = hostfiles.Identity(
        host_key=keys.host_key(places, host).read_text(),
        authorized_key=keys.public(places.client_key),
    )
    for entry in hostfiles.host_files(host, hosts, identity):
        path = root / entry.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(entry.text)
        path.chmod(entry.mode)
    (root / "root/.ssh").chmod(0o700)
    for name, target in hostfiles.links(host):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(target)


def copy_seed(seed: Path, target: Path) -> None:
    """Give a host its own containerd store: shared blobs by hard link, databases by copy.

    Blobs and unpacked layers are never written again (overlayfs copies up), so three hosts share
    them on disk and in memory; only the databases and open ingests change in place.
    """

    def link_or_copy(source: str, destination: str) -> str:
        if source.endswith(".db"):
            return shutil.copy2(source, destination)
        try:
            os.link(source, destination, follow_symlinks=False)
        except OSError:
            return shutil.copy2(source, destination, follow_symlinks=False)
        return destination

    shutil.copytree(seed, target, symlinks=True, copy_function=link_or_copy, dirs_exist_ok=True)


def _pools(places: p.Places, host: p.Host) -> None:
    """The host's folders on the spindle; the scratch folder is open to every user."""
    for name, mode in (("etcd", 0o700), ("scratch", 0o1777)):
        folder = places.spindle_backing / host.name / name
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(mode)


def _frozen_disk(ledger: Ledger, places: p.Places, host: p.Host) -> None:
    """A small ext4 on a loop device, for `fsfreeze`; left out where loop devices do not work."""
    image = places.node(host) / "frozen.img"
    point = places.frozen(host)
    point.mkdir(parents=True, exist_ok=True)
    with image.open("wb") as handle:
        handle.truncate(_FROZEN_MIB << 20)
    with suppress(LabError):
        run(["mkfs.ext4", "-q", "-E", "lazy_itable_init=0", "-O", "^has_journal", str(image)])
        mount(ledger, ["-o", "loop", str(image)], point)
    point.chmod(0o1777)


def lay_out(
    ledger: Ledger, places: p.Places, host: p.Host, hosts: tuple[p.Host, ...], kit: Kit
) -> None:
    """Make everything on disk that `host` boots from."""
    places.node(host).mkdir(parents=True, exist_ok=True)
    root = _overlay(ledger, places, host, kit)
    _write_files(root, host, hosts, places)
    _pools(places, host)
    if host.kubernetes:
        copy_seed(kit.seed, places.node(host) / "containerd")
        _frozen_disk(ledger, places, host)


def _binds(places: p.Places, host: p.Host, kit: Kit) -> list[str]:
    pool = places.spindle_mount / host.name
    read_only = {
        kit.programs["etcdctl"]: "/usr/local/bin/etcdctl",
        kit.programs["etcdutl"]: "/usr/local/bin/etcdutl",
    }
    writable = {
        Path("/dev/kmsg"): "/dev/kmsg",
        Path("/dev/fuse"): "/dev/fuse",
        pool / "etcd": p.ETCD_DATA,
        pool / "scratch": p.SCRATCH,
    }
    if host.kubernetes:
        writable[places.node(host) / "containerd"] = "/var/lib/containerd"
        writable[places.frozen(host)] = p.FROZEN
        for name in ("kubelet", "kubeadm", "kubectl"):
            read_only[kit.programs[name]] = f"/usr/bin/{name}"
    else:
        read_only[kit.programs["etcd"]] = "/usr/local/bin/etcd"
    return [
        *(f"--bind-ro={source}:{target}" for source, target in read_only.items()),
        *(f"--bind={source}:{target}" for source, target in writable.items()),
    ]


def nspawn_argv(
    places: p.Places, host: p.Host, kit: Kit, legacy: bool
) -> tuple[list[str], dict[str, str]]:
    """Command line and extra environment that boot `host`."""
    argv = [
        "systemd-nspawn", "--quiet", f"--machine={host.namespace}", "--register=no",
        "--keep-unit", "--boot", "--console=pipe", "-D", str(places.root(host)),
        f"--network-namespace-path=/run/netns/{host.namespace}",
        f"--hostname={host.name}", "--resolv-conf=off", "--timezone=off", "--link-journal=no",
        "--capability=all", f"--system-call-filter={_CALLS}",
        *_binds(places, host, kit),
    ]  # fmt: skip
    if legacy:
        argv.append("systemd.unified_cgroup_hierarchy=0")
    unified = "0" if legacy else "1"
    return argv, {
        "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "1",
        "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": unified,
    }


def boot(ledger: Ledger, places: p.Places, host: p.Host, kit: Kit, memory_bytes: int) -> None:
    """Start `host` in cgroups of its own; returns as soon as the process exists."""
    found = cgroups.hierarchies()
    trees = cgroups.folders(found, host.cgroup_name)
    ledger.append("cgroups", *map(str, trees))
    for folder in trees:
        cgroups.make(folder)
    cgroups.limit_memory(trees, memory_bytes)
    argv, env = nspawn_argv(places, host, kit, cgroups.legacy(found))
    launch(
        ledger,
        f"host {host.name}",
        argv,
        places.logs / f"{host.name}.log",
        env=env,
        prepare=lambda pid: cgroups.place(pid, trees),
    )


def trees(ledger: Ledger, host: p.Host) -> tuple[Path, ...]:
    names = map(Path, ledger.record.cgroups)
    return tuple(path for path in names if path.name == host.cgroup_name)


def pids(ledger: Ledger, host: p.Host) -> frozenset[int]:
    """All processes in the host's cgroups, numbered as on this side."""
    found: frozenset[int] = frozenset()
    for folder in trees(ledger, host):
        found |= cgroups.pids(folder)
    return found


def inner_pid(pid: int) -> tuple[int, ...]:
    """The pid in each nested pid namespace, outermost first; empty when it is gone."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return tuple(map(int, line.split()[1:]))
    return ()


def init_pid(ledger: Ledger, host: p.Host) -> int:
    """The host's process 1 as numbered on this side; raises LabError when it does not run."""
    for pid in pids(ledger, host):
        if inner_pid(pid)[1:] == (1,):
            return pid
    raise LabError(f"{host.name} does not run")


# Steps into a cgroup, then becomes the command.
_STEP_IN = 'echo $$ >"$1" && shift && exec "$@"'


def _guest_cgroup(ledger: Ledger, host: p.Host) -> Path:
    """Where commands that the lab runs in `host` stand, so that `down` finds them as well.

    When a host shuts down it stops every process in it; `nsenter` then stops itself with its
    child, never collects it, and the host's process 1 waits for that for ever.  Not in the
    freezer of version 1: a command in a frozen host could not even be killed.
    """
    own = [tree for tree in trees(ledger, host) if not (tree / "freezer.state").exists()]
    folder = own[-1] / "lab-guest"
    folder.mkdir(exist_ok=True)
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (folder / "cgroup.clone_children").exists() and (folder / name).exists():
            (folder / name).write_text((own[-1] / name).read_text())
    return folder


def entering(ledger: Ledger, host: p.Host) -> tuple[str, ...]:
    """The start of a command line that runs in the namespaces of `host` as root."""
    pid = str(init_pid(ledger, host))
    procs = str(_guest_cgroup(ledger, host) / "cgroup.procs")
    spaces = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup")
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    step_in = ("/bin/sh", "-c", _STEP_IN, "lab-enter", procs)
    return (*step_in, "nsenter", "--target", pid, *spaces, "--", "env", "-i", path)


def inside(ledger: Ledger, host: p.Host, argv: Sequence[str], *, timeout_s: float = 30.0) -> str:
    """Run `argv` in the namespaces of `host` as root; returns its output, raises LabError."""
    return run([*entering(ledger, host), *argv], timeout_s=timeout_s)


def import_image(ledger: Ledger, places: p.Places, host: p.Host, tar: Path) -> None:
    """Bring an image into the containerd of a running node."""
    inner = f"var/tmp/{tar.name}"
    shutil.copyfile(tar, places.root(host) / inner)
    try:
        argv = ["ctr", "-n", "k8s.io", "images", "import", f"/{inner}"]
        inside(ledger, host, argv, timeout_s=120)
    finally:
        (places.root(host) / inner).unlink()


def find(ledger: Ledger, host: p.Host, inner: int) -> Process:
    """The process that `host` itself knows as `inner`; raises LabError when there is none."""
    for pid in pids(ledger, host):
        started = start_time(pid)
        if inner_pid(pid)[1:] == (inner,) and started is not None:
            return Process(f"{host.name} pid {inner}", pid, started)
    raise LabError(f"{host.name} has no process {inner}")


def banner(host: p.Host, timeout_s: float) -> str:
    """What sshd says first; empty when it is silent or unreachable."""
    with suppress(OSError), socket.create_connection((host.address, 22), timeout_s) as peer:
        peer.settimeout(timeout_s)
        return peer.recv(64).decode(errors="replace").strip()
    return ""


def wait_booted(places: p.Places, host: p.Host) -> None:
    """Wait for sshd; raises LabError that names the boot log after 30 s."""
    limit = time.monotonic() + _BOOT_LIMIT_S
    while not banner(host, 1.0).startswith("SSH-"):
        if time.monotonic() > limit:
            raise LabError(f"{host.name} does not answer: see {places.logs}/{host.name}.log")
        time.sleep(0.1)
