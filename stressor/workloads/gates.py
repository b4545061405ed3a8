"""The gates that every step has, whatever its phase says.

Limits and holds come from the etcd FAQ, the etcd mixin and measurements; docs/signals.md names the
source of each.
"""

from stressor.model import Comparison, Gate, GateAction

FSYNC_P99_LIMIT_S = 0.128
"""About 100 ms, at an edge of etcd's buckets: with few fsyncs a window's p99 is its largest
bucket's upper edge, and 0.1 lies inside the bucket from 64 to 128 ms, where a slow but healthy disk
lives. Above the edge means that an fsync certainly took longer than it."""


def slow_fsync_s(election_timeout_s: float) -> float:
    """Above this an fsync counts as slow: half the election time-out, beyond which a leader that
    waits for its disk is close to losing its followers."""
    return election_timeout_s / 2


def safety_gates(election_timeout_s: float) -> tuple[Gate, ...]:
    """The gates that stop a run before etcd loses its quorum, and two that warn.

    `election_timeout_s` is etcd's own (1 s by default, 5 s on k3s and RKE2).
    """
    above, below = Comparison.ABOVE, Comparison.BELOW
    return (
        Gate("etcd_wal_fsync_slow_count", above, 0.0),
        Gate("etcd_wal_fsync_p99_s", above, FSYNC_P99_LIMIT_S, hold_s=10.0),
        Gate("etcd_has_leader", below, 1.0, hold_s=election_timeout_s + 2.0),
        Gate("etcd_leader_changes_count", above, 1.0, window_s=300.0),
        Gate("apiserver_ready", below, 1.0, hold_s=3.0),
        Gate("psi_io_full_ratio", above, 0.4, hold_s=20.0, action=GateAction.WARN),
        Gate("psi_memory_full_ratio", above, 0.2, hold_s=20.0, action=GateAction.WARN),
    )
