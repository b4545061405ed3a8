"""The list of signals."""

import re

import pytest

from stressor.probes import SIGNALS, signal


def test_names_are_unique_and_end_in_a_unit() -> None:
    names = [spec.name for spec in SIGNALS]
    assert len(set(names)) == len(names)
    flags = {"etcd_has_leader", "apiserver_ready"}
    assert [n for n in names if n not in flags and not re.search(r"_(s|count|ratio)$", n)] == []


def test_look_up() -> None:
    assert signal("psi_io_full_ratio").period_s == 1.0
    with pytest.raises(KeyError):
        signal("etcd_wal_fsnc_p99_s")
