"""Drift: nothing that a plan stands on may change unseen, and nothing else is called drift."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stressor.core.drift import Footing, cluster_drift, drift, suite_drift
from stressor.model import Inventory, Route, Suite
from tests.footings import FOOTING, INVENTORY, NODE, NODE3, NODE4, PHASE, ROUTE, changes

CHANGED = dict(changes(FOOTING))


def lines(then: Footing, now: Footing) -> list[str]:
    return [str(difference) for difference in drift(then, now)]


def with_host(**changed: object) -> Footing:
    hosts = (replace(NODE3, **changed), NODE4)  # type: ignore[arg-type]
    return replace(FOOTING, inventory=replace(INVENTORY, hosts=hosts))


def test_every_field_is_among_the_changes() -> None:
    places = {place.split(".")[1].split("+")[0].split("-")[0] for place in CHANGED}
    assert places == {field.name for field in fields(Footing)}
    assert len(CHANGED) > 100


@given(st.sampled_from([FOOTING, *CHANGED.values()]))
def test_nothing_differs_from_itself(footing: Footing) -> None:
    assert drift(footing, footing) == ()
    assert drift(footing, replace(footing)) == ()


@pytest.mark.parametrize("place", CHANGED)
def test_each_change_shows_both_ways(place: str) -> None:
    there, back = drift(FOOTING, CHANGED[place]), drift(CHANGED[place], FOOTING)
    assert there
    assert back
    assert {one.place for one in there} == {one.place for one in back}


@given(*(st.sampled_from(sorted(CHANGED)) for _ in range(2)))
def test_two_changes_never_cancel_out(one: str, other: str) -> None:
    if one != other:
        assert drift(CHANGED[one], CHANGED[other])


def test_the_difference_is_said_in_a_line() -> None:
    moved = with_host(routes=(replace(ROUTE, address="10.0.0.4"),))
    assert lines(FOOTING, moved) == ["node3 address 10.0.0.3 -> 10.0.0.4"]
    assert lines(FOOTING, with_host(etcd_data_dir=None)) == [
        "node3 etcd_data_dir /var/lib/etcd -> (none)"
    ]
    assert lines(FOOTING, with_host(roles=frozenset())) == ["node3 roles control_plane -> (empty)"]
    newer = replace(NODE, kubelet_version="v1.35.0")
    assert FOOTING.cluster is not None
    cluster = replace(FOOTING.cluster, nodes=(newer,))
    assert lines(FOOTING, replace(FOOTING, cluster=cluster)) == [
        "cluster node cp3 kubelet_version v1.34.1 -> v1.35.0"
    ]


def test_hosts_are_matched_by_name() -> None:
    def of(*hosts: object) -> Footing:
        return replace(FOOTING, inventory=replace(INVENTORY, hosts=hosts))  # type: ignore[arg-type]

    assert lines(FOOTING, of(NODE4, NODE3)) == []
    assert lines(FOOTING, of(NODE4)) == ["node3 there -> gone"]
    assert lines(of(NODE4), FOOTING) == ["node3 gone -> there"]


def test_a_second_route_is_named_by_its_place() -> None:
    twice = with_host(routes=(ROUTE, Route("10.1.0.3")))
    assert lines(FOOTING, twice) == ["node3 routes 1 gone -> there"]
    moved = with_host(routes=(ROUTE, Route("10.1.0.4")))
    assert lines(twice, moved) == ["node3 routes 1 address 10.1.0.3 -> 10.1.0.4"]


def test_where_a_file_was_read_from_is_no_drift() -> None:
    elsewhere = replace(INVENTORY, source_path="/copy.yaml")
    suite = replace(FOOTING.suite, source_path="/copy.yaml")
    assert lines(FOOTING, replace(FOOTING, inventory=elsewhere, suite=suite)) == []


def test_true_is_not_one() -> None:
    then, now = (
        replace(FOOTING, suite=Suite("s", 5.0, (replace(PHASE, params={"n": value}),)))
        for value in (1, True)
    )
    assert lines(then, now) == ["phase warm params n 1 -> true"]


def test_the_order_of_phases_counts() -> None:
    other = replace(PHASE, name="hot")
    then, now = Suite("s", 5.0, (PHASE, other)), Suite("s", 5.0, (other, PHASE))
    assert [str(one) for one in suite_drift(then, now)] == [
        "suite phases order phase warm, phase hot -> phase hot, phase warm"
    ]


def test_i4_a_cluster_that_is_unknown_now_differs_and_one_never_asked_does_not() -> None:
    unasked = replace(FOOTING, cluster=None)
    assert lines(FOOTING, unasked) == ["cluster uid uid-c -> unknown"]
    assert lines(unasked, FOOTING) == []
    assert cluster_drift(None, None) == ()


def test_a_new_inventory_field_is_compared_without_a_word_here() -> None:
    """The comparison walks the records; it has no list of names that could be out of date."""
    for field in fields(Inventory):
        if field.name != "source_path":
            assert any(place.startswith(f".inventory.{field.name}") for place in CHANGED)
