"""What the guard says, read back: garbage never raises and never reads as proof."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stressor.guard.protocol import (
    Ack,
    GuardSample,
    LateComers,
    Message,
    Noise,
    ProofLine,
    Refusal,
    SurvivorLine,
    Tripped,
    WatchReport,
    host_proof,
    parse,
    proof_of,
)
from stressor.model import PROVEN, HostState, Survivor

PROOF = "! proof 7 state=STOPPED stopped=3 scans=2 took_ms=510 detail=grep"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("3 ok beat", Ack(3, "beat")),
        ("1 ok arm cgroup=v1 kill=freezer", Ack(1, "arm", ("cgroup=v1", "kill=freezer"))),
        ("1 err arm held other-run", Refusal(1, "arm", "held other-run")),
        ("4 err beat tripped deadline", Refusal(4, "beat", "tripped deadline")),
        (
            "! watch 4 processes=3 cgroups=1 comms=fio,stress-ng",
            WatchReport(4, 3, 1, ("fio", "stress-ng")),
        ),
        ("! watch 4 processes=- cgroups=- comms=-", WatchReport(4, None, None, ())),
        (
            "! survivor 6 pid=41 comm=fio state=D wchan=wait_on_page age_s=12",
            SurvivorLine(6, Survivor(41, "fio", "D", "wait_on_page", 12.0)),
        ),
        (PROOF, ProofLine(7, HostState.STOPPED, 3, 0.51, "grep")),
        ("! tripped eof", Tripped("eof")),
        ("! late n=2", LateComers(2)),
        (
            "5 ok sample boot=9.5 psi_cpu_some_us=7 psi_cpu_full_us=0 psi_memory_some_us=-"
            " psi_memory_full_us=- psi_io_some_us=1 psi_io_full_us=2 load1=0.4",
            GuardSample(5, 9.5, 7, 1, 2, None, None),
        ),
        ("! proof 7 state=GONE stopped=0 scans=2 took_ms=1 detail=-", Noise("")),
        ("! proof 7 state=CLEAN stopped=0 scans=2 took_ms=- detail=-", Noise("")),
        ("Last login: never ! proof 0 state=CLEAN", Noise("")),
        ("! hello kill abc boot=12.1", Noise("")),
    ],
)
def test_each_form_of_line_is_read(line: str, message: Message) -> None:
    assert parse(line) == (Noise(line) if message == Noise("") else message)


@given(st.text())
def test_garbage_is_noise_or_no_proof(text: str) -> None:
    message = parse(text)
    assert not isinstance(message, ProofLine | SurvivorLine | WatchReport)


@given(st.integers(0, len(PROOF) - 1), st.characters())
def test_i5_a_damaged_proof_line_is_never_better_than_the_whole_one(at: int, wrong: str) -> None:
    message = parse(PROOF[:at] + wrong + PROOF[at + 1 :])
    if isinstance(message, ProofLine):
        assert message.state in PROVEN
        assert "state=STOPPED" in PROOF[:at] + wrong + PROOF[at + 1 :]


@given(st.integers(0, PROOF.index("took_ms") + 7))
def test_i5_a_proof_line_that_was_cut_is_no_proof(length: int) -> None:
    assert parse(PROOF[:length]) == Noise(PROOF[:length])


def test_i5_good_news_beside_survivors_is_no_proof() -> None:
    line = ProofLine(7, HostState.CLEAN, 0, 0.5, "")
    proof = host_proof("a", line, (Survivor(4, "fio", "D", "x", 1.0),))
    assert proof.state is HostState.UNVERIFIED


def test_i4_a_kill_that_printed_nothing_proves_nothing() -> None:
    assert proof_of("a", ["! hello kill abc boot=3.1", "Killed"]) is None


def test_the_last_of_several_reports_counts_with_its_own_survivors() -> None:
    first = "! survivor 0 pid=41 comm=fio state=D wchan=x age_s=1"
    bad = "! proof 0 state=SURVIVORS stopped=0 scans=2 took_ms=400 detail=-"
    good = "! proof 0 state=STOPPED stopped=1 scans=2 took_ms=1400 detail=-"
    proof = proof_of("a", [first, bad, good])
    assert proof is not None
    assert (proof.state, proof.survivors) == (HostState.STOPPED, ())


@given(
    st.sampled_from(
        [
            (PROOF, ("state", "stopped", "took_ms")),
            ("! survivor 6 pid=41 comm=fio state=D wchan=x age_s=12", ("pid",)),
            ("9 ok sample boot=9.5 psi_cpu_some_us=7", ("boot",)),
        ]
    ),
    st.data(),
)
def test_i4_without_every_field_that_counts_a_line_is_noise(
    form: tuple[str, tuple[str, ...]], data: st.DataObject
) -> None:
    line, needed = form
    gone = data.draw(st.sampled_from(needed))
    words = [word for word in line.split(" ") if not word.startswith(f"{gone}=")]
    assert parse(" ".join(words)) == Noise(" ".join(words))
    empty = [f"{gone}=" if word.startswith(f"{gone}=") else word for word in line.split(" ")]
    assert parse(" ".join(empty)) == Noise(" ".join(empty))


@given(st.sampled_from(sorted(PROVEN)), st.integers(1, 40))
def test_i5_no_good_news_beside_any_survivors(state: HostState, count: int) -> None:
    lines = [f"! survivor 0 pid={n + 2} comm=x state=D wchan=y age_s=1" for n in range(count)]
    proof = proof_of("a", [*lines, f"! proof 0 state={state} stopped=1 scans=2 took_ms=9 detail=-"])
    assert proof is not None
    assert proof.state is HostState.UNVERIFIED
