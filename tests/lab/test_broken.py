"""Set-ups with one fault each: preflight names it where it is, with a remedy, and does not pass."""

import json
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab import broken
from tests.lab.bed import Bed
from tests.lab.broken import FAULTY, Fault, Site

pytestmark = [pytest.mark.lab, pytest.mark.timeout(180)]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The finding that a fault must bring: its check, host and level, and words of its text and
    remedy."""

    fault: Fault
    check: str
    host: str
    level: str
    text: str
    remedy: str


CASES = {
    "key refused": Wanted(
        broken.key_refused, "login", FAULTY, "fail", "the key was refused", "authorized_keys"
    ),
    "sudo asks for a password": Wanted(
        broken.sudo_asks, "login", FAULTY, "fail", "sudo asks for a password", "NOPASSWD"
    ),
    "a slow .bashrc": Wanted(
        broken.bashrc("sleep 5"), "login", FAULTY, "warn", "shell took 5.", "slow .bashrc"
    ),
    "a .bashrc that prints": Wanted(
        broken.bashrc("echo welcome"), "login", FAULTY, "warn", "before our output", "noisy .bashrc"
    ),
    "UseDNS and a dead resolver": Wanted(
        broken.dead_resolver, "sshd", FAULTY, "warn", "UseDNS yes", "UseDNS no"
    ),
    "host key changed": Wanted(
        broken.host_key_changed, "login", FAULTY, "fail", "host key is another", "find out why"
    ),
    "port open, sshd silent": Wanted(
        broken.sshd_silent, "login", FAULTY, "fail", "no answer in time", "hangs"
    ),
    "a jump host is needed": Wanted(
        broken.behind_a_jump, "login", FAULTY, "fail", "no route to the address", "stressor_jumps"
    ),
    "forwarding forbidden on the jump host": Wanted(
        broken.forwarding_forbidden, "login", FAULTY, "fail", "forbids the jump", "AllowTcpForward"
    ),
    "clock off by 5 s": Wanted(broken.clock_off, "clock", FAULTY, "fail", "+5.", "synchronise"),
    "no systemd-run": Wanted(
        broken.no_systemd_run, "host-timer", FAULTY, "warn", "no systemd-run", "systemd"
    ),
    "PSI off": Wanted(broken.psi_off, "psi", FAULTY, "warn", "cannot be read", "psi=1"),
    "read-only /run": Wanted(
        broken.read_only_run, "run-folder", FAULTY, "fail", "cannot write to /run", "remount,rw"
    ),
    "disk 99 % full": Wanted(
        broken.disk_full, "free-disk", FAULTY, "fail", "99 % used", "make room"
    ),
    "node missing from the inventory": Wanted(
        broken.node_missing, "nodes", "", "fail", "node3 is not in the inventory", "control_plane"
    ),
    "a stranger in it": Wanted(
        broken.stranger, "nodes", FAULTY, "fail", "no node of this cluster", "bystanders"
    ),
    "wrong cluster": Wanted(
        broken.wrong_cluster, "pin", "", "fail", "another cluster: its UID is", "context"
    ),
    "RBAC one verb short": Wanted(
        broken.one_verb_short, "rbac", "", "fail", "may not delete jobs.batch", "can-i delete jobs"
    ),
    "API through a proxy path": Wanted(
        broken.proxy_path, "access-path", "", "warn", "management server", "https://NODE:6443"
    ),
    "expired token": Wanted(broken.token_expired, "pin", "", "fail", "401", "log in again"),
    "image missing on one node": Wanted(
        broken.image_missing, "image", "node3", "warn", "not on node node3", "crictl pull"
    ),
    "leftovers of a killed run": Wanted(
        broken.killed_run, "leftovers", FAULTY, "warn", "lost its guard", "stressor abort --run"
    ),
    "apiserver down on one of three": Wanted(
        broken.apiserver_down, "api", "node2", "fail", "/readyz", "kube-apiserver"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_broken_is_named(lab: Bed, tmp_path: Path, name: str) -> None:
    wanted = CASES[name]
    site = Site.of(lab, tmp_path)
    with site.undo:
        wanted.fault(site)
        done = lab.stressor(
            "preflight", "--inventory", str(site.write()), "-o", "json", *site.words
        )
    document = json.loads(done.stdout)
    own = [
        one
        for one in document["findings"]
        if (one["check"], one["host"]) == (wanted.check, wanted.host)
    ]
    (found,) = [one for one in own if wanted.text in one["text"]] or [own]
    assert isinstance(found, dict), f"not said: {own}"
    assert found["level"] == wanted.level
    assert wanted.remedy in found["remedy"]
    assert (document["exit_code"] == 3) is (document["verdict"] == "fail")
    assert done.returncode == document["exit_code"]


def test_preflight_of_the_lab_takes_less_than_ten_seconds(bed: Bed) -> None:
    """The acceptance line is for three hosts; the lab has four."""
    began_s = time.monotonic()
    done = bed.stressor("preflight")
    assert done.returncode == 0, done.stdout
    assert time.monotonic() - began_s < 10
