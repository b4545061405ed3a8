"""Set-ups with one fault each, made on the lab and undone afterwards, whatever happens.

Faults of hosts are made on the bystander where they can be: no kubelet suffers there. The operator
is `oncall`, who has sudo, as on most clusters.
"""

import base64
import contextlib
import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from stressor.lab.places import OPERATOR, places
from tests.lab.bed import Bed, wait_for

FAULTY = "bystander"


@dataclass(slots=True)
class Site:
    """The lab under the operator's own inventory, which a fault may edit before it is written."""

    bed: Bed
    folder: Path
    document: dict[str, Any]
    words: tuple[str, ...] = ()
    undo: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @classmethod
    def of(cls, bed: Bed, folder: Path) -> "Site":
        document = yaml.safe_load(bed.inventory_path.read_text())
        document["all"]["vars"] |= {"ansible_user": OPERATOR, "ansible_become": True}
        return cls(bed, folder, document)

    @property
    def common(self) -> dict[str, Any]:
        """The variables of all hosts."""
        found: dict[str, Any] = self.document["all"]["vars"]
        return found

    def group(self, name: str) -> dict[str, Any]:
        """The hosts of a group, with their variables."""
        found: dict[str, Any] = self.document["all"]["children"][name]["hosts"]
        return found

    def write(self) -> Path:
        """The inventory as a file."""
        path = self.folder / "inventory.yaml"
        path.write_text(yaml.safe_dump(self.document, sort_keys=False))
        return path

    def sh(self, host: str, script: str) -> str:
        """Run a script on a host, as root by the lab's own key: it must end well."""
        said = self.bed.ssh(host, "sh", "-euc", f"{script}\necho it is done")
        assert said.endswith("it is done\n"), f"{host}: {script} stopped after: {said}"
        return said

    def change(self, host: str, do: str, undo: str) -> None:
        """Do something on a host now, and undo it at the end."""
        self.undo.callback(self.sh, host, undo)
        self.sh(host, do)

    def kubectl(self, *argv: str, stdin: str | None = None) -> str:
        """The lab's kubectl, as its administrator."""
        return self.bed.kubectl(*argv, stdin=stdin)

    def kubeconfig(self, **changes: str) -> dict[str, Any]:
        """The administrator's kubeconfig, to be changed and used instead."""
        found: dict[str, Any] = yaml.safe_load(places().kubeconfig.read_text())
        return found

    def use_kubeconfig(self, document: dict[str, Any]) -> None:
        path = self.folder / "kubeconfig"
        path.write_text(yaml.safe_dump(document))
        self.common["stressor_kubeconfig"] = str(path)

    def use_token(self, token: str) -> None:
        """Log in by this token instead of the administrator's certificate."""
        document = self.kubeconfig()
        document["users"][0]["user"] = {"token": token}
        self.use_kubeconfig(document)


Fault = Callable[[Site], None]


def key_refused(site: Site) -> None:
    stranger = site.folder / "stranger"
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(stranger)]
    subprocess.run(argv, check=True, timeout=20)
    site.group("bystanders")[FAULTY]["ansible_ssh_private_key_file"] = str(stranger)


def sudo_asks(site: Site) -> None:
    file = f"/etc/sudoers.d/{OPERATOR}"
    site.change(FAULTY, f"mv {file} /root/sudoers", f"mv /root/sudoers {file}")


def bashrc(line: str) -> Fault:
    """A line at the head of the operator's .bashrc, which bash reads for every command over SSH."""

    def break_(site: Site) -> None:
        file = f"/home/{OPERATOR}/.bashrc"
        head = f"cp -p {file} /root/bashrc; printf '%s\\n' '{line}' | cat - /root/bashrc >{file}"
        site.change(FAULTY, head, f"cp -p /root/bashrc {file}")

    return break_


def dead_resolver(site: Site) -> None:
    """UseDNS, and a name server that swallows what it is sent."""
    site.change(
        FAULTY,
        "echo 'UseDNS yes' >/etc/ssh/sshd_config.d/00-dns.conf;"
        "cp /etc/resolv.conf /root/resolv; echo 'nameserver 192.0.2.1' >/etc/resolv.conf;"
        "ip route add blackhole 192.0.2.1; systemctl reload ssh",
        "rm -f /etc/ssh/sshd_config.d/00-dns.conf; cp /root/resolv /etc/resolv.conf;"
        "ip route del blackhole 192.0.2.1 || :; systemctl reload ssh",
    )


def host_key_changed(site: Site) -> None:
    nodes, own = site.group("control_plane"), site.group("bystanders")[FAULTY]
    own["stressor_host_key"] = nodes["node1"]["stressor_host_key"]


def sshd_silent(site: Site) -> None:
    site.undo.callback(site.bed.stressor, "lab", "heal")
    assert site.bed.stressor("lab", "break", "sshd", FAULTY).returncode == 0


def behind_a_jump(site: Site) -> None:
    """The host's address cannot be reached from here: TEST-NET-1, routed nowhere."""
    site.group("bystanders")[FAULTY]["ansible_host"] = "192.0.2.9"
    argv = ("ip", "route", "add", "unreachable", "192.0.2.9")
    subprocess.run(argv, check=True, timeout=10)
    site.undo.callback(subprocess.run, ("ip", "route", "del", "unreachable", "192.0.2.9"))


def forwarding_forbidden(site: Site) -> None:
    """The bystander is reached by a jump over node3, whose sshd forbids that."""
    node3 = site.group("control_plane")["node3"]
    site.change(
        "node3",
        "echo 'AllowTcpForwarding no' >/etc/ssh/sshd_config.d/00-forward.conf;systemctl reload ssh",
        "rm -f /etc/ssh/sshd_config.d/00-forward.conf; systemctl reload ssh",
    )
    site.group("bystanders")[FAULTY]["stressor_jumps"] = [
        {"address": node3["ansible_host"], "host_key": node3["stressor_host_key"]}
    ]


def clock_off(site: Site) -> None:
    """All hosts of the lab have one kernel and one clock, so `date` is made to lie by 5 s."""
    lie = '#!/bin/sh\nexec /bin/date.true -d "now + 5 seconds" "$@"\n'
    data = base64.b64encode(lie.encode()).decode()
    site.change(
        FAULTY,
        f"mv /bin/date /bin/date.true; echo {data} | base64 -d >/bin/date; chmod 755 /bin/date",
        "[ ! -e /bin/date.true ] || mv /bin/date.true /bin/date",
    )


def no_systemd_run(site: Site) -> None:
    program = "/usr/bin/systemd-run"
    site.change(FAULTY, f"mv {program} {program}.away", f"mv {program}.away {program}")


def psi_off(site: Site) -> None:
    site.change(FAULTY, "mount -t tmpfs none /proc/pressure", "umount /proc/pressure")


def read_only_run(site: Site) -> None:
    """A remount is refused (files are open there), so a read-only mount goes on top."""
    site.change(FAULTY, "mount -o bind,ro,private /run /run", "umount /run")


def disk_full(site: Site) -> None:
    """A small filesystem over etcd's data folder, as full as 99 %."""
    at = "/var/lib/stressor-scratch"
    site.change(
        FAULTY,
        f"mount -t tmpfs -o size=100m none {at}; dd if=/dev/zero of={at}/fill bs=1M count=99",
        f"umount {at}",
    )


def node_missing(site: Site) -> None:
    del site.group("control_plane")["node3"]
    del site.group("workers")["node3"]


def stranger(site: Site) -> None:
    """The neighbour, called a node of this cluster."""
    site.group("control_plane")[FAULTY] = site.group("bystanders").pop(FAULTY)
    site.common["stressor_bystanders_none"] = "a test"


def wrong_cluster(site: Site) -> None:
    site.common["stressor_cluster_uid"] = "00000000-0000-4000-8000-000000000000"


RULES = """\
- {apiGroups: [""], resources: [nodes], verbs: [get, list]}
- {apiGroups: [""], resources: [namespaces], verbs: [get, list, create, delete]}
- {apiGroups: [""], resources: [pods], verbs: [get, list, delete]}
- {apiGroups: [""], resources: [pods/log, serviceaccounts], verbs: [get]}
- {apiGroups: [""], resources: [resourcequotas], verbs: [get, list, create]}
- {apiGroups: [batch], resources: [jobs], verbs: [get, list, create, patch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update, delete]}
"""
"""A role that somebody wrote by hand: it lacks the deletion of Jobs, and nothing else."""


def one_verb_short(site: Site) -> None:
    name = "stressor-test-short"
    rules = yaml.safe_load(RULES)
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    }
    site.undo.callback(
        site.kubectl, "delete", "--ignore-not-found", "clusterrolebinding,clusterrole", name
    )
    site.undo.callback(
        site.kubectl, "delete", "--ignore-not-found", "-n", "default", "serviceaccount", name
    )
    site.kubectl("apply", "-f", "-", stdin=json.dumps(role))
    site.kubectl("create", "serviceaccount", "-n", "default", name)
    site.kubectl(
        "create",
        "clusterrolebinding",
        name,
        "--clusterrole",
        name,
        f"--serviceaccount=default:{name}",
    )
    site.use_token(site.kubectl("create", "token", "-n", "default", name).strip())


def token_expired(site: Site) -> None:
    site.use_token("a-token-that-has-ended")


def proxy_path(site: Site) -> None:
    document = site.kubeconfig()
    cluster = document["clusters"][0]["cluster"]
    cluster["server"] = f"{cluster['server'].rstrip('/')}/k8s/clusters/c-m-abcdef"
    site.use_kubeconfig(document)


def namespace_terminating(site: Site) -> None:
    """What a run left: its namespace, held by an object with a finalizer that nobody serves."""
    name = "stressor-r0dead0"
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"stressor.dev/run": "r0dead0"}},
    }
    held = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "held", "namespace": name, "finalizers": ["example.com/held"]},
    }
    free = '{"metadata":{"finalizers":null}}'
    site.undo.callback(
        site.kubectl, "patch", "-n", name, "configmap", "held", "--type=merge", "-p", free
    )
    site.kubectl("apply", "-f", "-", stdin=json.dumps(namespace))
    site.kubectl("apply", "-f", "-", stdin=json.dumps(held))
    site.kubectl("delete", "namespace", name, "--wait=false")


PHASES = """\
suite: volumes
phases:
  - name: disk
    kind: disk
    placement: {nodes: [node1]}
    hold: 10s
    deadline: 60s
    params: {PARAMS}
"""


def phases(site: Site, params: str) -> None:
    """Ask preflight about this load, too."""
    path = site.folder / "phases.yaml"
    path.write_text(PHASES.replace("PARAMS", params))
    site.words = (str(path),)


def no_storage_class(site: Site) -> None:
    phases(site, "storage_class: fast")


def quota(site: Site) -> None:
    """What an operator of tenants does: the same small quota in every namespace."""
    phases(site, "size: 16MiB")
    for at in range(3):
        name = f"stressor-test-tenant{at}"
        hard = {"limits.cpu": "10m"}
        limit = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "tenant", "namespace": name},
            "spec": {"hard": hard},
        }
        site.undo.callback(
            site.kubectl, "delete", "--ignore-not-found", "--wait=false", "namespace", name
        )
        site.kubectl("create", "namespace", name)
        site.kubectl("apply", "-f", "-", stdin=json.dumps(limit))


def apiserver_down(site: Site) -> None:
    site.undo.callback(site.bed.heal)
    assert site.bed.stressor("lab", "break", "apiserver", "node2").returncode == 0


def image_missing(site: Site) -> None:
    """A name of the load image that node3 does not know. Kubelets look every 30 s, and say it when
    something has changed."""
    image, name = site.bed.inventory.load_image, "registry.invalid/stressor/load:two"
    for node in ("node1", "node2"):
        tag = f"ctr -n k8s.io images tag --force {image} {name}"
        site.change(node, tag, f"ctr -n k8s.io images rm {name}")
    site.common["stressor_load_image"] = name
    wait_for(lambda: _named(site, name) == ["node1", "node2"] or None, 120.0, str)


def _named(site: Site, image: str) -> list[str]:
    nodes = json.loads(site.kubectl("get", "nodes", "-o", "json"))["items"]
    return [
        node["metadata"]["name"]
        for node in nodes
        if any(image in one["names"] for one in node["status"].get("images", []))
    ]


def killed_run(site: Site) -> None:
    """What the host of a killed guard shows: the run's folder, and neither guard nor tombstone."""
    folder = "/run/stressor/r0dead1"
    site.change(FAULTY, f"mkdir -p {folder}; echo 999999 1 >{folder}/guard.pid", f"rm -r {folder}")
