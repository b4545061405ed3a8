"""Where the orchestrator and the jump hosts stand: what a test breaks must not be what stops it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from stressor.checks.base import Finding, Level, Reading, script_argv, unknown
from stressor.checks.routes import standing_at
from stressor.model import Host, Role

NAME = "orchestrator"
_SCRIPT = 'echo "boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null </dev/null)"'
_ELSEWHERE = "run stressor on a machine outside of the tested cluster"
_AROUND = "add a route around it: stressor_routes"
_NETWORK = (
    *("nfs", "nfs4", "ceph", "cifs", "smb3", "glusterfs", "lustre", "afs", "gfs2", "ocfs2"),
    *("beegfs", "gpfs", "orangefs"),
)
_OF_HYPERVISOR = ("9p", "virtiofs")
_FUSE = ("sshfs", "gluster", "ceph", "s3fs", "rclone", "juicefs", "mfs", "seaweedfs", "davfs")
"""Parts of the names of network filesystems that a daemon mounts (`fuse.NAME`)."""
_DISKS = {
    "/rbd": "a Ceph image",
    "/nbd": "a network block device",
    "/drbd": "a replicated device",
    "/session": "an iSCSI disk",
    "/rport-": "a Fibre Channel disk",
    "/nvme-fabrics": "an NVMe disk over a network",
}
"""What stands in the path of a disk under /sys/devices that is not in this machine."""


@dataclass(frozen=True, slots=True)
class Own:
    """This machine. `boot_id` is the kernel's own (random(4)): one kernel, one id, whatever name
    spaces lie between. None: it could not be read. `filesystem` and `source` are those of the
    state folder, by /proc/self/mountinfo; `disks` are the paths under /sys/devices of the disks
    below it (empty: none are known). `in_pod`: Kubernetes started this process."""

    boot_id: str | None
    filesystem: str | None
    source: str | None
    in_pod: bool = False
    disks: tuple[str, ...] = ()


def argv(host: Host) -> tuple[str, ...]:
    """The host's boot id."""
    return script_argv(NAME, _SCRIPT)


def judge_host(
    reading: Reading, roles: frozenset[Role], own: Own, *, disposable: bool
) -> tuple[Finding, ...]:
    """FAIL when this machine is that host: its load, its hanging disk and its death are ours. A
    disposable cluster may be one on this very machine, as the lab is: WARN."""
    theirs = reading.facts.one("boot")
    if theirs is None or own.boot_id is None:
        why = "whether this machine is that host"
        remedy = "cat /proc/sys/kernel/random/boot_id, here and there"
        return (unknown(NAME, reading.host, Level.WARN, why, remedy),)
    if theirs != own.boot_id:
        return (Finding(NAME, reading.host, Level.PASS, "another machine than this one"),)
    what = "a bystander" if Role.BYSTANDER in roles else "a node of the tested cluster"
    text = f"this machine runs {what}: one kernel"
    if disposable:
        text = f"{text}; allowed: disposable: true"
    level = Level.WARN if disposable else Level.FAIL
    return (Finding(NAME, reading.host, level, text, _ELSEWHERE),)


def judge_own(own: Own) -> tuple[Finding, ...]:
    """This machine by itself: in a pod, or with its journal on storage that others share."""
    found = tuple(_own(own))
    text = f"state on {own.filesystem} of {own.source}, as this machine sees it"
    return found or (Finding(NAME, "", Level.PASS, text),)


def _own(own: Own) -> Iterator[Finding]:
    if own.in_pod:
        text = "stressor runs in a pod: what it tests may end it"
        yield Finding(NAME, "", Level.FAIL, text, _ELSEWHERE)
    if own.filesystem is None:
        why = "what the state folder stands on"
        yield unknown(NAME, "", Level.WARN, why, "findmnt -T STATE; or set STRESSOR_STATE")
    elif _is_network(own.filesystem):
        text = f"the journal stands on {own.filesystem} ({own.source}): suspect storage"
        remedy = "STRESSOR_STATE=/a/local/folder: a hanging journal stops the run"
        yield Finding(NAME, "", Level.FAIL, text, remedy)
    elif own.filesystem in _OF_HYPERVISOR:
        text = f"the journal stands on {own.filesystem}: storage of the machine below this one"
        yield Finding(NAME, "", Level.WARN, text, "STRESSOR_STATE=/a/local/folder")
    far = dict.fromkeys(what for disk in own.disks for part, what in _DISKS.items() if part in disk)
    for what in far:
        text = f"the journal stands on {what}: the tested storage may be behind it"
        remedy = "STRESSOR_STATE=/a/local/folder: a hanging journal stops the run"
        yield Finding(NAME, "", Level.WARN, text, remedy)


def _is_network(filesystem: str) -> bool:
    daemon = filesystem.removeprefix("fuse.")
    mounted = daemon != filesystem and any(name in daemon for name in _FUSE)
    return filesystem in _NETWORK or mounted


def judge_jumps(hosts: Sequence[Host]) -> tuple[Finding, ...]:
    """WARN for each jump host that is itself a host of the inventory: load on it, or on what it
    shares with the cluster, shuts the way to those behind it. Where it is the only way, `routes`
    says so, too."""
    behind: dict[Host, list[str]] = {}
    for host in hosts:
        for route in host.routes:
            for jump in route.jumps:
                gate = standing_at(jump, hosts)
                if gate is not None and host.name not in behind.setdefault(gate, []):
                    behind[gate].append(host.name)
    return tuple(_jump(gate, names) for gate, names in behind.items())


def judge_gate(gate: str, host: Host) -> Finding:
    """WARN for a jump host that runs on the kernel of a host of the inventory: the same machine
    under another address, which no inventory shows."""
    text = f"the same machine as {host.name}, {_what(host)}"
    return Finding(NAME, gate, Level.WARN, text, _AROUND)


def _what(host: Host) -> str:
    return "a bystander" if Role.BYSTANDER in host.roles else "a node of the tested cluster"


def _jump(host: Host, names: Iterable[str]) -> Finding:
    text = f"jump host {host.name} is {_what(host)}: the way to {', '.join(names)} leads over it"
    return Finding(NAME, host.name, Level.WARN, text, _AROUND)


@dataclass(frozen=True, slots=True)
class Mount:
    """A mount by proc(5): its filesystem, what is mounted, and the device's MAJOR:MINOR."""

    filesystem: str
    source: str
    device: str


def mount_of(path: str, mountinfo: str) -> Mount | None:
    """The mount that holds `path`, from the text of mountinfo; None when no line holds it."""
    best: tuple[int, Mount] | None = None
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        words, kinds = left.split(), right.split()
        if len(words) < 5 or len(kinds) < 2:
            continue
        point = _unescaped(words[4])
        inside = point == "/" or path == point or path.startswith(f"{point}/")
        # Of two mounts on one point the later one is seen.
        if inside and (best is None or len(point) >= best[0]):
            best = (len(point), Mount(kinds[0], _unescaped(kinds[1]), words[2]))
    return None if best is None else best[1]


_ESCAPES: Mapping[str, str] = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}


def _unescaped(text: str) -> str:
    for escape, character in _ESCAPES.items():
        text = text.replace(escape, character)
    return text
