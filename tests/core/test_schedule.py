"""From a suite and an inventory to a plan."""

from dataclasses import replace

from stressor.core.schedule import flaws, plan, worst_case_end_s
from stressor.core.stopping import BUDGET_S
from stressor.model import (
    Comparison,
    Gate,
    GateAction,
    Host,
    Inventory,
    Phase,
    Plan,
    Role,
    SignalSpec,
    Subject,
    Suite,
)


def host(name: str, *roles: Role, etcd: bool = False, api: bool = False) -> Host:
    url = "http://127.0.0.1:2381"
    return Host(
        name,
        (),
        frozenset(roles),
        etcd_metrics_url=url if etcd else None,
        apiserver_url=url if api else None,
    )


INVENTORY = Inventory(
    "c",
    (
        host("mgmt", Role.BYSTANDER, etcd=True),
        host("w2", Role.WORKER),
        host("w1", Role.WORKER),
        host("cp", Role.CONTROL_PLANE, etcd=True, api=True),
    ),
)
SIGNALS = (
    SignalSpec("fsync_s", Subject.ETCD, 1.0, ""),
    SignalSpec("ready", Subject.APISERVER, 2.0, ""),
    SignalSpec("psi", Subject.HOST, 1.0, ""),
)
SAFETY = (Gate("fsync_s", Comparison.ABOVE, 0.5), Gate("psi", Comparison.ABOVE, 50.0))
OWN = Gate("fsync_s", Comparison.ABOVE, 0.1)
PHASE = Phase(
    "disk", "disk", ("w1",), 30.0, 60.0, cool_down_s=5.0, params={"bs": "4k", "jobs": 1},
    steps=({"jobs": 2}, {"jobs": 4}),
)  # fmt: skip


def planned(*phases: Phase, safety: tuple[Gate, ...] = SAFETY) -> Plan:
    suite = Suite("s", 10.0, phases or (PHASE,))
    return plan(suite, INVENTORY, run="r", image="i", signals=SIGNALS, safety_gates=safety)


def test_guarded_are_control_plane_bystanders_and_load_hosts_in_inventory_order() -> None:
    assert planned().guarded == ("mgmt", "w1", "cp")


def test_sources_are_the_guarded_hosts_that_can_report() -> None:
    assert planned().sources == {
        "fsync_s": ("mgmt", "cp"),
        "ready": ("cp",),
        "psi": ("mgmt", "w1", "cp"),
    }


def test_steps_override_parameters_and_count_over_the_suite() -> None:
    steps = planned(PHASE, replace(PHASE, name="again", steps=({},))).steps
    assert [(s.index, s.phase, s.params["jobs"], s.params["bs"]) for s in steps] == [
        (0, "disk", 2, "4k"),
        (1, "disk", 4, "4k"),
        (2, "again", 1, "4k"),
    ]


def test_an_own_gate_replaces_a_safety_gate_of_the_same_signal_and_action_only() -> None:
    assert planned(replace(PHASE, gates=(OWN,))).steps[0].gates == (OWN, SAFETY[1])
    warn = replace(OWN, action=GateAction.WARN)
    assert planned(replace(PHASE, gates=(warn,))).steps[0].gates == (warn, *SAFETY)


def test_the_worst_case_end_counts_every_deadline_and_the_budget_of_an_abort() -> None:
    end_s = worst_case_end_s(10.0, planned().steps)
    assert end_s == 60.0 + 10.0 + 2 * (60.0 + 60.0 + 5.0) + BUDGET_S
    assert planned().deadline_s == end_s


def test_a_sound_plan_has_no_flaws() -> None:
    assert flaws(planned()) == ()


def test_flaws_name_the_step() -> None:
    stranger = planned(replace(PHASE, nodes=("elsewhere",)))
    assert flaws(stranger)[0] == ("step 0 (disk): elsewhere is to carry load, but is not guarded")
    assert flaws(planned(safety=())) == (
        "step 0 (disk): no gate can stop it",
        "step 1 (disk): no gate can stop it",
    )
