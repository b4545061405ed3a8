"""The gates that every step has."""

from stressor.model import GateAction
from stressor.probes import signal
from stressor.workloads import WORKLOADS
from stressor.workloads.gates import safety_gates, slow_fsync_s


def test_a_slow_fsync_stops_at_once() -> None:
    (gate,) = [g for g in safety_gates(1.0) if g.signal == "etcd_wal_fsync_slow_count"]
    assert (gate.limit, gate.hold_s, gate.window_s, gate.action) == (0.0, 0.0, 0.0, GateAction.STOP)
    assert slow_fsync_s(1.0) == 0.5


def test_a_lost_leader_is_given_its_election() -> None:
    holds = [
        gate.hold_s
        for timeout_s in (1.0, 5.0)
        for gate in safety_gates(timeout_s)
        if gate.signal == "etcd_has_leader"
    ]
    assert holds == [3.0, 7.0]


def test_two_leader_changes_in_five_minutes_stop() -> None:
    (gate,) = [g for g in safety_gates(1.0) if g.signal == "etcd_leader_changes_count"]
    assert (gate.limit, gate.window_s, gate.action) == (1.0, 300.0, GateAction.STOP)


def test_pressure_alone_only_warns() -> None:
    gates = safety_gates(1.0)
    assert {g.action for g in gates if g.signal.startswith("psi_")} == {GateAction.WARN}
    assert {g.action for g in gates if not g.signal.startswith("psi_")} == {GateAction.STOP}


def test_every_gate_has_a_signal_that_a_probe_reports() -> None:
    gates = [*safety_gates(1.0), *(gate for one in WORKLOADS for gate in one.default_gates())]
    assert len(gates) > 7
    assert [signal(gate.signal).name for gate in gates] == [gate.signal for gate in gates]
