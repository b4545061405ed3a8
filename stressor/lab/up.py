"""`lab up`: from a cache full of parts to a healthy cluster, with everything on record."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stressor.lab import build as building
from stressor.lab import cluster, images, inventory, keys, network, requirements, spindle
from stressor.lab import host as hosting
from stressor.lab import places as p
from stressor.lab.down import take_down
from stressor.lab.errors import LabError, LabSick
from stressor.lab.launch import launch
from stressor.lab.ledger import Ledger, Record, alive, boot_id, write_atomic

_MOUNT_LIMIT_S = 15.0
_RECOVERY_LIMIT_S = 60.0
"""How long a lab that runs may take to become well, e.g. after `heal`, before it is replaced."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Shape:
    """What `up` was asked for."""

    nodes: int = 3
    flavour: str = "kubeadm"


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _facts(places: p.Places, hosts: tuple[p.Host, ...], kit: building.Kit) -> dict[str, Any]:
    return {
        "kubernetes": p.KUBERNETES_VERSION,
        "etcd": p.ETCD_VERSION,
        "load_image": kit.load_image,
        "images": list(kit.images),
        "programs": {name: str(path) for name, path in kit.programs.items()},
        "kubeconfig": str(places.kubeconfig),
        "inventory": str(places.inventory),
        "known_hosts": str(places.known_hosts),
        "client_key": str(places.client_key),
        "spindle_delay_file": str(places.spindle_delay),
        "api_endpoints": [host.api_url for host in hosts if host.kubernetes],
        "addresses": {host.name: host.address for host in hosts},
    }


def _spin(ledger: Ledger, places: p.Places) -> None:
    """Start the shared slow disk and wait until it serves."""
    for folder in (places.spindle_mount, places.spindle_backing):
        folder.mkdir(parents=True, exist_ok=True)
    spindle.set_delay_ms(places.spindle_delay, spindle.DEFAULT_DELAY_MS)
    ledger.append("mounts", str(places.spindle_mount))
    places_argv = map(str, (places.spindle_backing, places.spindle_mount, places.spindle_delay))
    argv = [sys.executable, "-m", "stressor.lab.spindle", *places_argv]
    package_root = str(Path(__file__).resolve().parents[2])
    env = {"PYTHONPATH": package_root, "PYTHONDONTWRITEBYTECODE": "1"}
    process = launch(ledger, "spindle", argv, places.logs / "spindle.log", env=env)
    limit = time.monotonic() + _MOUNT_LIMIT_S
    while not os.path.ismount(places.spindle_mount):
        if not alive(process) or time.monotonic() > limit:
            raise LabError(f"the spindle does not serve: see {places.logs}/spindle.log")
        time.sleep(0.05)


def _all(work: Callable[[p.Host], None], hosts: Iterable[p.Host]) -> None:
    """Do `work` for all hosts at once; the first error wins, after all have ended."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        for done in [pool.submit(work, host) for host in hosts]:
            done.result()


def _start(
    ledger: Ledger, places: p.Places, hosts: tuple[p.Host, ...], kit: building.Kit, say: Say
) -> None:
    nodes = tuple(host for host in hosts if host.kubernetes)
    total = _memory_bytes()
    share = cluster.memory_share_bytes(total, len(nodes))
    say("spindle, network and host folders: usually 2 s")
    network.wire(ledger, hosts)
    _all(lambda host: hosting.lay_out(ledger, places, host, hosts, kit), hosts)
    _spin(ledger, places)
    say(f"{len(hosts)} hosts: usually 3 s")
    _all(lambda host: hosting.boot(ledger, places, host, kit, share), hosts)
    _all(lambda host: hosting.wait_booted(places, host), hosts)
    say(f"kubeadm init on {nodes[0].name}: usually 8 s")
    cluster.init(ledger, places, nodes[0], total, len(nodes))
    for node in nodes[1:]:
        say(f"kubeadm join of {node.name}: usually 10-20 s")
        cluster.join(ledger, places, nodes[0], node)
    say("waiting until all nodes are Ready and all etcd members healthy")
    cluster.wait_healthy(ledger, places, kit.programs["kubectl"], hosts)


def health(ledger: Ledger, places: p.Places) -> tuple[str, ...]:
    """What is wrong with a lab on record; empty when it is up and well.  Raises nothing."""
    record = ledger.record
    if record.boot_id != boot_id():
        return ("the machine was started anew since",)
    if record.phase != "up":
        return (f"it is {record.phase}",)
    dead = [entry.role for entry in record.processes if not alive(entry)]
    if dead:
        return (f"ended: {', '.join(dead)}",)
    hosts = p.hosts(record.nodes)
    return cluster.faults(ledger, places, Path(record.facts["programs"]["kubectl"]), hosts)


def _wait_well(
    ledger: Ledger, places: p.Places, say: Say, found: tuple[str, ...]
) -> tuple[str, ...]:
    """What is still wrong after up to 60 s; members and leases need a while after a fault."""
    say("it runs, but is not well yet: " + "; ".join(found))
    limit = time.monotonic() + _RECOVERY_LIMIT_S
    while found and time.monotonic() < limit:
        time.sleep(1.0)
        found = health(ledger, places)
    return found


def _refresh(ledger: Ledger, places: p.Places, shape: Shape, say: Say) -> bool:
    """True when the lab on record is the one asked for and well."""
    record = ledger.record
    if record.phase == "up" and (record.nodes, record.flavour) != (shape.nodes, shape.flavour):
        say(f"a lab with {record.nodes} nodes ({record.flavour}) is replaced")
        return False
    found = health(ledger, places)
    if not found:
        return True
    running = record.boot_id == boot_id() and all(map(alive, record.processes))
    if record.phase == "up" and running:
        if places.breaks.exists():
            raise LabSick("the lab is broken on purpose; `stressor lab heal` first: " + found[0])
        found = _wait_well(ledger, places, say, found)
        if not found:
            return True
    say("remains of an earlier lab are cleaned up: " + "; ".join(found))
    return False


def _renew_load_image(ledger: Ledger, places: p.Places, say: Say) -> None:
    """Bring the load image into running nodes when `image/` changed since they started."""
    facts = ledger.record.facts
    image = building.load_image(places)
    if image.name == facts["load_image"]:
        return
    say(f"{image.name} into the running nodes: usually 5 s")
    hosts = p.hosts(ledger.record.nodes)
    tar = places.state / image.file_name
    images.write(image, tar)
    nodes = tuple(host for host in hosts if host.kubernetes)
    _all(lambda host: hosting.import_image(ledger, places, host, tar), nodes)
    tar.unlink()
    write_atomic(places.inventory, inventory.text(places, hosts, image.name))
    ledger.update(facts={**facts, "load_image": image.name})


def bring_up(places: p.Places, shape: Shape, say: Say) -> Record:
    """Bring the lab up, or see that it is up; returns its record.

    Raises LabRefused (machine or names not free), LabSick (up, but broken), LabError.
    """
    ledger = Ledger.load(places.ledger)
    if ledger is not None:
        if _refresh(ledger, places, shape, say):
            _renew_load_image(ledger, places, say)
            return ledger.record
        take_down(places, say)
    requirements.check(places, building.cold(places))
    hosts = p.hosts(shape.nodes)
    network.require_free(hosts)
    kit = building.build(places, say)
    keys.make(places, hosts)
    record = Record(
        boot_id=boot_id(),
        phase="starting",
        nodes=shape.nodes,
        flavour=shape.flavour,
        folders=(str(places.nodes), str(places.spindle_backing.parent)),
        facts=_facts(places, hosts, kit),
    )
    ledger = Ledger(places.ledger, record)
    ledger.update()
    write_atomic(places.inventory, inventory.text(places, hosts, kit.load_image))
    _start(ledger, places, hosts, kit, say)
    ledger.update(phase="up")
    return ledger.record
