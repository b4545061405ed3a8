"""Storage isolation: unknown counts as shared."""

from dataclasses import replace

import pytest

from stressor.core.placement import (
    Finding,
    Isolation,
    Mount,
    Place,
    compare,
    etcd_places,
    judge,
    touches_storage,
)
from stressor.model import Host, Inventory, Phase, Role, Suite

SDA, SDB = Mount("8:1", "/dev/sda1"), Mount("8:17", "/dev/sdb1")
NFS = Mount("0:40", "nas:/pool")
BYSTANDER = Host("mgmt", (), frozenset({Role.BYSTANDER}))
ANSWERED = Inventory("c", (BYSTANDER,))
SHARED = Finding("n1", "cp", Isolation.SHARED, "same device")
UNKNOWN = Finding("n1", "cp", Isolation.UNKNOWN, "two pools, perhaps the same disks")


def only(load: Mount | None, etcd: Mount | None, etcd_host: str = "cp") -> Isolation:
    (finding,) = compare({Place("n1", "/d"): load}, {Place(etcd_host, "/e"): etcd})
    return finding.isolation


@pytest.mark.parametrize(
    ("load", "etcd", "etcd_host", "isolation"),
    [
        (SDA, SDA, "n1", Isolation.SHARED),
        (SDA, SDB, "n1", Isolation.UNKNOWN),
        (SDA, SDA, "cp", Isolation.UNKNOWN),
        (NFS, NFS, "cp", Isolation.SHARED),
        (None, SDA, "cp", Isolation.UNKNOWN),
        (SDA, None, "cp", Isolation.UNKNOWN),
    ],
)
def test_never_isolated_by_the_guests_own_view(
    load: Mount | None, etcd: Mount | None, etcd_host: str, isolation: Isolation
) -> None:
    assert only(load, etcd, etcd_host) is isolation


def test_every_pair_is_compared() -> None:
    pairs = compare(
        {Place("n1", "/d"): SDA, Place("n2", "/d"): SDA},
        {Place("cp", "/e"): SDA, Place("mgmt", "/e"): SDB},
    )
    assert len({(f.load_host, f.etcd_host) for f in pairs}) == 4


def test_unknown_blocks_until_a_reason_is_written() -> None:
    assert judge([UNKNOWN], ANSWERED, unknown_reason=None).refusals
    assert judge([UNKNOWN], ANSWERED, unknown_reason="").refusals
    judged = judge([UNKNOWN], ANSWERED, unknown_reason="other room")
    assert (judged.refusals, "other room" in judged.notes[0]) == ((), True)


def test_shared_blocks_whatever_the_reason() -> None:
    assert judge([SHARED], ANSWERED, unknown_reason="trust me").refusals


def test_a_disposable_inventory_lifts_both_and_says_so() -> None:
    judged = judge([SHARED, UNKNOWN], replace(ANSWERED, disposable=True), unknown_reason=None)
    assert (judged.refusals, len(judged.notes)) == ((), 2)


def test_an_unanswered_question_about_bystanders_refuses_even_a_disposable_lab() -> None:
    silent = Inventory("c", (), disposable=True)
    assert "bystanders" in judge([], silent, unknown_reason=None).refusals[0]
    answered = replace(silent, bystanders_none_reason="one machine, one cluster")
    assert judge([], answered, unknown_reason=None).refusals == ()


def test_a_suite_touches_storage_if_any_phase_does() -> None:
    cpu, disk = (Phase(k, k, ("n1",), 1.0, 2.0) for k in ("cpu", "disk"))
    kinds = frozenset({"disk", "soak"})
    assert touches_storage(Suite("s", 0.0, (cpu, disk)), kinds)
    assert not touches_storage(Suite("s", 0.0, (cpu,)), kinds)


def test_an_etcd_whose_data_nobody_named_is_unknown_and_not_absent() -> None:
    hosts = (
        Host("cp", (), frozenset({Role.CONTROL_PLANE})),
        Host("other", (), frozenset({Role.BYSTANDER}), etcd_data_dir="/e"),
        Host("w", (), frozenset({Role.WORKER})),
    )
    places = etcd_places(Inventory("c", hosts))
    assert places == (Place("cp", None), Place("other", "/e"))


def test_a_storage_class_is_unknown_whatever_the_kubelet_stands_on() -> None:
    volume = Place("n1", "/var/lib/kubelet", storage_class="fast")
    for kubelet in (SDA, SDB, NFS, None):
        (found,) = compare({volume: kubelet}, {Place("n1", "/e"): SDA})
        assert found.isolation is Isolation.UNKNOWN
        assert "StorageClass fast" in found.why
    assert judge([found], ANSWERED, unknown_reason=None).refusals
    assert judge([found], ANSWERED, unknown_reason="its own array").refusals == ()
