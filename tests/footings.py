"""A footing with something in every field, and every way to change one thing in it."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from stressor.core.drift import ClusterFooting, Footing, NodeFooting
from stressor.model import (
    Comparison,
    Gate,
    GateAction,
    Host,
    Inventory,
    Phase,
    Role,
    Route,
    Step,
    Suite,
    Transport,
)

GATE = Gate("psi_io_full_ratio", Comparison.ABOVE, 0.4, 20.0, 60.0, GateAction.WARN)
ROUTE = Route(
    "10.0.0.3", 22, "root", "/k", "ssh-ed25519 AAAA", "/known", (Route("10.0.0.9", jumps=()),)
)
NODE3 = Host(
    name="node3",
    routes=(ROUTE,),
    roles=frozenset({Role.CONTROL_PLANE}),
    become=True,
    transport=Transport.OPENSSH,
    etcd_metrics_url="http://127.0.0.1:2381/metrics",
    etcd_data_dir="/var/lib/etcd",
    scratch_dir="/scratch",
    apiserver_url="https://10.0.0.3:6443",
    fence=("virsh", "destroy", "node3"),
    hypervisor="hv1",
)
NODE4 = Host("node4", (Route("10.0.0.4"),), frozenset({Role.WORKER}))
INVENTORY = Inventory(
    cluster="c",
    hosts=(NODE3, NODE4),
    kubeconfig_path="/kube",
    context="ctx",
    cluster_uid="0" * 8,
    load_image="image:1",
    disposable=False,
    bystanders_none_reason="alone",
    source_path="/inventory.yaml",
)
PHASE = Phase(
    name="warm",
    kind="cpu",
    nodes=("node4",),
    hold_s=10.0,
    deadline_s=60.0,
    warm_up_s=1.0,
    cool_down_s=2.0,
    gates=(GATE,),
    params={"workers": 1, "load": "50%"},
    steps=({"workers": 2}, {"workers": 3}),
)
STEP = Step(0, "warm", "cpu", ("node4",), {"workers": 2}, 1.0, 10.0, 2.0, 60.0, (GATE,))
NODE = NodeFooting(
    name="cp3",
    uid="u-3",
    hostname="cp3.example",
    control_plane=True,
    unschedulable=False,
    addresses=("10.0.0.3",),
    taints=("key:NoSchedule",),
    cpu_cores=1.9,
    memory_bytes=4 << 30,
    kubelet_version="v1.34.1",
    kernel_version="6.1.0",
    os_image="Debian 12",
)
FOOTING = Footing(
    stressor_version="0.1.0",
    election_timeout_s=1.0,
    image="image:1",
    inventory=INVENTORY,
    known_hosts={"node3": ("ssh-ed25519 AAAA",), "node4": ()},
    suite=Suite("s", 5.0, (PHASE,), "/phases.yaml"),
    steps=(STEP,),
    cluster=ClusterFooting("uid-c", (NODE,)),
)


def changes(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """(place, `value` with the one thing at that place changed), for each field of each record and
    each item, however deep; fields that a comparison passes over are left out."""
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if field.name != "source_path":
                inner = changes(getattr(value, field.name), f"{place}.{field.name}")
                yield from ((p, replace(value, **{field.name: new})) for p, new in inner)
    elif isinstance(value, Mapping):
        yield f"{place}+", {**value, "added": "x"}
        for key in value:
            yield f"{place}-{key}", {k: v for k, v in value.items() if k != key}
            yield from ((p, {**value, key: n}) for p, n in changes(value[key], f"{place}.{key}"))
    elif isinstance(value, tuple):
        for at, item in enumerate(value):
            yield f"{place}-{at}", (*value[:at], *value[at + 1 :])
            inner = changes(item, f"{place}.{at}")
            yield from ((p, (*value[:at], new, *value[at + 1 :])) for p, new in inner)
        if not value:
            yield f"{place}+", ("added",)
    else:
        yield place, _other(value)


def _other(value: object) -> object:
    if isinstance(value, Enum):
        return next(one for one in type(value) if one is not value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, frozenset):
        return value | {Role.BYSTANDER}
    return "added" if value is None else f"{value}x"
