"""From a guard's lines to events."""

from stressor.core import events as ev
from stressor.engine.reports import Asked, Reports
from stressor.guard import protocol
from stressor.model import HostState


def told(*lines: tuple[str, Asked]) -> list[ev.Event]:
    reports = Reports("n1")
    return [e for line, asked in lines for e in reports.events(protocol.parse(line), asked, 10.0)]


def test_arming_is_acknowledged_or_refused() -> None:
    assert told(("1 ok arm cgroup=v1 timer=ok", ("arm", 9.0))) == [
        ev.GuardArmed(10.0, "n1", ("cgroup=v1", "timer=ok"))
    ]
    assert told(("1 err arm held r2 ann@ops:7", ("arm", 9.0))) == [
        ev.GuardRefused(10.0, "n1", "run r2 of ann@ops:7 holds it; stressor abort --run r2", "r2")
    ]


def test_i4_an_answer_that_nobody_asked_for_is_no_sign_of_life() -> None:
    assert told(("7 ok beat", None), ("7 ok arm x=y", None), ("7 err beat tripped x", None)) == []


def test_a_beat_that_comes_too_late_is_a_trip() -> None:
    assert told(("2 err beat tripped beat", ("beat", 9.0))) == [ev.GuardTripped(10.0, "n1", "beat")]


def test_pressure_needs_two_samples() -> None:
    first = "3 ok sample boot=100.00 psi_io_full_us=1000000 psi_cpu_some_us=0 load1=-"
    second = "4 ok sample boot=101.00 psi_io_full_us=1500000 psi_cpu_some_us=-"
    events = told((first, ("sample", 9.0)), (second, ("sample", 9.5)))
    samples = {e.sample.signal: e.sample.value for e in events if isinstance(e, ev.SampleTaken)}
    assert samples["psi_io_full_ratio"] == 0.5
    assert samples["psi_cpu_some_ratio"] is None
    assert sum(isinstance(e, ev.GuardAcknowledged) for e in events) == 2


def test_i5_survivors_belong_to_the_proof_that_follows() -> None:
    survivor = "! survivor 5 pid=7 comm=fio state=D wchan=wait_on_page age_s=3"
    proof = "! proof 5 state=SURVIVORS stopped=1 scans=2 took_ms=1000 detail=grep"
    (event,) = told((survivor, None), (proof, None))
    assert isinstance(event, ev.HostProven)
    assert event.proof.state is HostState.SURVIVORS
    assert [s.pid for s in event.proof.survivors] == [7]
    assert event.proof.took_s == 1.0


def test_a_look_without_an_answer_says_nothing() -> None:
    assert told(("! watch 4 processes=- cgroups=- comms=-", None)) == []
    assert told(("! watch 4 processes=2 cgroups=1 comms=fio", None)) == [
        ev.LoadSeen(10.0, "n1", 2, ("fio",))
    ]
