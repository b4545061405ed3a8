"""The files that turn the common root filesystem into one particular host, as pure data."""

from __future__ import annotations

import json
from dataclasses import dataclass

from stressor.lab import places as p


@dataclass(frozen=True, slots=True)
class HostFile:
    """One file to be written into a host's root before it boots; `path` is relative to it."""

    path: str
    text: str
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes a host recognisable over SSH."""

    host_key: str
    """Private ed25519 key in OpenSSH's format."""
    authorized_key: str


# systemd-nspawn leaves the controllers read-only, and a kubelet needs to make cgroups in them; a
# plain remount answers "busy", a bind remount does not.  The second hierarchy brings cgroup.kill,
# cgroup.freeze and pressure files, even without controllers.
_PREPARE = """\
#!/bin/sh
set -u
for c in memory cpuacct cpuset cpu blkio pids freezer devices; do
    [ -d /sys/fs/cgroup/$c ] && mount -o remount,bind,rw /sys/fs/cgroup/$c
done
if [ -d /sys/fs/cgroup/memory ] && ! mountpoint -q /sys/fs/cgroup/unified; then
    mount -o remount,rw /sys/fs/cgroup
    mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 none /sys/fs/cgroup/unified
fi
mount --make-rshared /
sysctl -q -w net.ipv4.ip_forward=1
exit 0
"""

_PREPARE_UNIT = """\
[Unit]
Description=Prepare cgroups and mounts for containers
DefaultDependencies=no
Before=containerd.service kubelet.service etcd.service sysinit.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/lib/stressor-lab/prepare
[Install]
WantedBy=sysinit.target
"""

_SSHD = """\
UseDNS no
PermitRootLogin prohibit-password
PasswordAuthentication no
HostKey /etc/ssh/ssh_host_ed25519_key
AuthorizedKeysFile .ssh/authorized_keys /etc/ssh/authorized_keys/%u
"""

_SUDOERS = f"{p.OPERATOR} ALL=(ALL) NOPASSWD: ALL\n"

_JOURNALD = "[Journal]\nStorage=volatile\nRuntimeMaxUse=32M\n"

# restrict_oom_score_adj: without CAP_SYS_RESOURCE runc cannot set the -997 that critical pods ask
# for, and dies with "can't get final child's PID from pipe".
_CONTAINERD = f"""\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{p.IMAGE_REPOSITORY}/pause:{p.PAUSE_TAG}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
"""

_KUBELET_UNIT = """\
[Unit]
Description=Kubernetes node agent
Wants=containerd.service
After=containerd.service
ConditionPathExists=/var/lib/kubelet/config.yaml
[Service]
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=/usr/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
--kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml \
$KUBELET_KUBEADM_ARGS
Restart=always
RestartSec=2
[Install]
WantedBy=multi-user.target
"""

_ETCD_UNIT = f"""\
[Unit]
Description=etcd of a neighbouring cluster
[Service]
Type=notify
ExecStart=/usr/local/bin/etcd --name bystander --data-dir {p.ETCD_DATA} \
--listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
--listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
--initial-cluster bystander=http://127.0.0.1:2380 \
--listen-metrics-urls http://127.0.0.1:2381 --auto-compaction-retention=5m
Restart=always
RestartSec=2
[Install]
WantedBy=multi-user.target
"""

# An etcd that nobody writes to finishes no fsync, which says nothing about its disk. A cluster's
# etcd always has writers (leases, node status); the neighbour gets one too: two puts a second.
_WRITER_UNIT = """\
[Unit]
Description=The neighbouring cluster's everyday writes
After=etcd.service
[Service]
ExecStart=/bin/sh /usr/local/lib/stressor-lab/write
Restart=always
RestartSec=2
[Install]
WantedBy=multi-user.target
"""
_WRITER = """\
while sleep 0.5; do
    curl -s -m 2 -o /dev/null -d '{"key":"bGl2ZQ==","value":"MQ=="}' http://127.0.0.1:2379/v3/kv/put
done
"""

_IDLE_UNITS = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "logrotate.timer",
    "man-db.timer",
    "console-getty.service",
    "getty@.service",
    "systemd-logind.service",
    "systemd-networkd.service",
    "systemd-resolved.service",
)
"""Units that have no work in a lab host, or wait for what it does not have."""


def cni_config(host: p.Host) -> str:
    """A bridge with addresses from the host's own /24; other hosts know the way to it."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": False,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": host.pod_subnet}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    conflist = {"cniVersion": "0.4.0", "name": "stressor-lab", "plugins": [bridge]}
    return json.dumps(conflist, indent=1) + "\n"


def hosts_file(hosts: tuple[p.Host, ...]) -> str:
    lines = ["127.0.0.1 localhost", *(f"{h.address} {h.name}" for h in hosts)]
    return "\n".join(lines) + "\n"


def _common(host: p.Host, hosts: tuple[p.Host, ...], identity: Identity) -> list[HostFile]:
    return [
        HostFile("etc/hostname", f"{host.name}\n"),
        HostFile("etc/hosts", hosts_file(hosts)),
        # No name server: nothing in the lab may depend on one.
        HostFile("etc/resolv.conf", ""),
        HostFile("etc/ssh/ssh_host_ed25519_key", identity.host_key, 0o600),
        HostFile("etc/ssh/sshd_config.d/stressor.conf", _SSHD),
        HostFile("root/.ssh/authorized_keys", identity.authorized_key + "\n", 0o600),
        HostFile(f"etc/ssh/authorized_keys/{p.OPERATOR}", identity.authorized_key + "\n"),
        HostFile(f"etc/sudoers.d/{p.OPERATOR}", _SUDOERS, 0o440),
        HostFile("etc/systemd/journald.conf.d/stressor.conf", _JOURNALD),
        HostFile("usr/local/lib/stressor-lab/prepare", _PREPARE, 0o755),
        HostFile("etc/systemd/system/stressor-prepare.service", _PREPARE_UNIT),
    ]


def host_files(host: p.Host, hosts: tuple[p.Host, ...], identity: Identity) -> tuple[HostFile, ...]:
    """Every file of `host`, with its role's own units."""
    files = _common(host, hosts, identity)
    if host.kubernetes:
        files += [
            HostFile("etc/containerd/config.toml", _CONTAINERD),
            HostFile("etc/cni/net.d/10-stressor.conflist", cni_config(host)),
            HostFile("etc/systemd/system/kubelet.service", _KUBELET_UNIT),
        ]
    else:
        files += [
            HostFile("etc/systemd/system/etcd.service", _ETCD_UNIT),
            HostFile("etc/systemd/system/etcd-writer.service", _WRITER_UNIT),
            HostFile("usr/local/lib/stressor-lab/write", _WRITER),
        ]
    return tuple(files)


def links(host: p.Host) -> tuple[tuple[str, str], ...]:
    """Symbolic links (path, target): units that start, and units that never do."""
    system = "etc/systemd/system"
    wants = f"{system}/multi-user.target.wants"
    units = ("kubelet.service",) if host.kubernetes else ("etcd.service", "etcd-writer.service")
    prepare = f"{system}/sysinit.target.wants/stressor-prepare.service"
    idle = [*_IDLE_UNITS, *([] if host.kubernetes else ["containerd.service"])]
    return (
        (prepare, "/etc/systemd/system/stressor-prepare.service"),
        *((f"{wants}/{unit}", f"/etc/systemd/system/{unit}") for unit in units),
        *((f"{system}/{name}", "/dev/null") for name in idle),
    )
