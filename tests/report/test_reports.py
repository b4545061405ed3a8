"""Reports of four runs, in every format; and what no report may ever say."""

import json as stdjson
import shlex
import subprocess
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from stressor.core import effects as fx
from stressor.core import events as ev
from stressor.journal import Journal, parse
from stressor.model import HostState, LoadResult, StopReason, Verdict
from stressor.report import json, status, text
from stressor.report.fold import fold
from stressor.report.lines import command
from tests.report.journals import (
    HOSTS,
    STEP,
    Item,
    aborted,
    armed,
    clean,
    effect,
    event,
    journal,
    killed,
    loading,
    proven,
    raw,
    stopping,
    unproven,
)

RUNS = {
    "clean": journal(clean()),
    "aborted": journal(aborted()),
    "unproven": journal(unproven()),
    "killed": killed(),
}


@pytest.mark.parametrize("name", RUNS)
def test_text(name: str, snapshot: SnapshotAssertion) -> None:
    shown = text.render(fold(RUNS[name]))
    assert shown == snapshot
    assert shown.isascii()
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.splitlines()[-1].startswith("NEXT      stressor ")
    assert any(line.startswith("VERDICT") for line in shown.splitlines()[-2:])


@pytest.mark.parametrize("name", RUNS)
def test_json(name: str, snapshot: SnapshotAssertion) -> None:
    shown = json.render(fold(RUNS[name]))
    assert shown == snapshot
    assert list(stdjson.loads(shown))[:4] == [
        "schema_version",
        "verdict",
        "exit_code",
        "next_command",
    ]


@pytest.mark.parametrize(("name", "now_s"), [("clean", 70.0), ("killed", 12.0), ("killed", 99.0)])
def test_status(name: str, now_s: float, snapshot: SnapshotAssertion) -> None:
    shown = status.render(fold(RUNS[name]), now_s)
    assert shown == snapshot
    assert shown.isascii()
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("name", "verdict", "exit_code", "next_command"),
    [
        ("clean", Verdict.PASS, 0, "stressor report 7f3a"),
        ("aborted", Verdict.FAIL, 99, "stressor cleanup --run 7f3a"),
        ("unproven", Verdict.FAIL, 98, "stressor abort"),
        ("killed", Verdict.UNKNOWN, None, "stressor abort"),
    ],
)
def test_verdict_and_next_command(
    name: str, verdict: Verdict, exit_code: int | None, next_command: str
) -> None:
    report = fold(RUNS[name])
    told = (report.verdict, report.exit_code, report.next_command)
    assert told == (verdict, exit_code, next_command)


def test_i8_a_journal_cut_at_every_byte_is_reported() -> None:
    whole = raw(aborted())
    ends = {whole.find(b"\n", at) for at in range(len(whole))} - {-1}
    for end in range(len(whole)):
        parsed = parse(whole[:end], "j")
        if end in ends or end - 1 in ends or end % 97 == 0:
            report = fold(parsed)
            assert report.exit_code is None
            assert report.verdict is not Verdict.PASS
            assert "CUT OFF" in text.render(report)
            assert stdjson.loads(json.render(report))["exit_code"] is None
            assert "NEXT" in status.render(report, 99.0)


def without(items: list[Item], kind: str, last: bool = True) -> Journal:
    """The journal without the last (or first) record of a kind."""
    places = [index for index, item in enumerate(items) if item[1] == kind]
    gone = places[-1 if last else 0]
    return journal(items[:gone] + items[gone + 1 :])


def test_i5_no_verdict_is_better_than_its_evidence() -> None:
    report = fold(without(clean(), "event.HostProven"))
    assert (report.exit_code, report.verdict) == (0, Verdict.UNKNOWN)
    assert report.proofs[-1].detail == "no proof in the journal"
    assert report.next_command == "stressor abort"
    report = fold(without(clean(), "event.LoadFinished"))
    assert (report.exit_code, report.verdict) == (0, Verdict.UNKNOWN)
    failed = event(ev.LoadFinished(67.0, 0, LoadResult("node2", Verdict.FAIL)))
    assert fold(journal([*loading(), failed, *clean()[-8:]])).verdict is Verdict.FAIL


def test_i5_proof_from_before_a_start_or_a_stop_is_no_proof_after_it() -> None:
    early = [proven(6.0, host) for host in HOSTS]
    assert fold(journal([*armed(), *early, *loading()[5:]])).next_command == "stressor abort"
    late = [*loading(), *(proven(9.0, host) for host in HOSTS)]
    stop = effect(10.0, fx.StopLoad(StopReason.OPERATOR, "Ctrl-C"))
    assert fold(journal(late)).next_command == "stressor cleanup --run 7f3a"
    assert fold(journal([*late, stop])).next_command == "stressor abort"


def test_i5_silence_never_replaces_proof_and_survivors_do() -> None:
    def last_state(state: HostState) -> HostState:
        return fold(journal([*aborted(), proven(20.0, "node1", state)])).proofs[0].state

    assert last_state(HostState.UNREACHABLE) is HostState.STOPPED
    assert last_state(HostState.CLEAN) is HostState.STOPPED
    assert last_state(HostState.SURVIVORS) is HostState.SURVIVORS


def test_timings_run_from_the_sample_to_the_last_proof() -> None:
    stop = fold(journal(aborted())).stop
    assert stop is not None
    assert (stop.sample_s, stop.ordered_s, stop.last_proven_s) == (12.1, 12.102, 12.8)
    assert [(h.host, h.acknowledged_s, h.proven_s) for h in stop.hosts] == [
        ("node1", 12.11, 12.5),
        ("node2", 12.11, 12.7),
        ("far1", 12.2, 12.8),
    ]
    stop = fold(journal(stopping())).stop
    assert stop is not None
    assert stop.last_proven_s is None
    stop = fold(journal(unproven())).stop
    assert stop is not None
    assert [host.proven_s for host in stop.hosts] == [12.5, None, None]


def test_i4_unknown_samples_are_counted_and_are_no_zero() -> None:
    (signal,) = fold(journal([*armed(), *(i for i in loading() if "Sample" in i[1])])).signals
    assert (signal.count, signal.unknown, signal.low, signal.high) == (2, 1, 0.0, 0.0)
    assert signal.last is None


def test_a_refused_run_started_nothing() -> None:
    refused = event(ev.GuardRefused(0.5, "node1", "another run", "8000"))
    end = effect(0.6, fx.Finish(5, "nothing was started: another run"))
    report = fold(journal([*armed(), refused, end]))
    assert (report.verdict, report.steps, report.proofs) == (Verdict.UNKNOWN, (), ())
    assert report.next_command == "stressor report 7f3a"
    assert report.guards[0].refused == "another run (held by run 8000)"


def test_a_start_that_made_no_job_needs_no_abort_and_one_that_made_some_does() -> None:
    def told(created: int) -> str:
        dropped = event(ev.StartDropped(6.2, 0, "too old", created))
        end = effect(6.3, fx.Finish(3, "nothing was started"))
        start = effect(6.1, fx.StartLoad(STEP, 6.1))
        return fold(journal([*armed(), start, dropped, end])).next_command

    assert told(0) == "stressor report 7f3a"
    assert told(1) == "stressor abort"


def test_an_abort_that_suspended_its_jobs_leaves_them_to_be_cleaned_up() -> None:
    suspended = event(ev.CleanupDone(16.0, True, "2 jobs suspended"))
    report = fold(journal([*aborted(), suspended]))
    assert report.cleanup is not None
    assert report.cleanup.ok
    assert report.next_command == "stressor cleanup --run 7f3a"


def test_a_load_with_no_known_host_is_not_proven() -> None:
    bare = journal([effect(6.1, fx.StartLoad(STEP, 6.1)), effect(7.0, fx.Finish(0, "pass"))])
    assert fold(bare).next_command == "stressor abort"


def test_an_abort_is_left_only_for_its_end() -> None:
    later = event(ev.LoadSeen(13.0, "node1", 3, ("fio",)))
    prove = effect(13.1, fx.ProveClean(HOSTS))
    assert fold(journal([*stopping(), later, prove])).stage == "aborting"
    assert fold(journal(aborted())).stage == "ended"


def test_unknown_kinds_are_named() -> None:
    report = fold(journal([*clean(), (69.0, "event.Unheard", {"x": 1}), (69.0, "note.Hi", {})]))
    assert report.unknown_kinds == ("event.Unheard",)
    assert "records of unknown kinds: event.Unheard" in text.render(report)


def test_every_event_and_effect_has_its_place() -> None:
    seen = journal([event(ev.StopRequested(1.0, StopReason.OPERATOR, "x"))])
    assert fold(seen).unknown_kinds == ()
    names = [one.__name__ for one in (*ev.Event.__args__, *fx.Effect.__args__)]
    kinds = [f"{'event' if hasattr(ev, n) else 'effect'}.{n}" for n in names]
    assert fold(journal([(1.0, kind, {}) for kind in kinds])).unknown_kinds == ()


def test_damaged_fields_are_unknown_and_never_an_error() -> None:
    kinds = {item[1] for item in (*clean(), *unproven())}
    bad: list[object] = [{}, {"step": "x", "proof": 7, "breach": [], "sample": None, "host": 1}]
    report = fold(journal([(1.0, kind, data) for kind in sorted(kinds) for data in bad]))
    assert report.verdict is not Verdict.PASS
    assert text.render(report)
    assert json.render(report)
    assert status.render(report, 3.0)


def test_a_last_word_of_an_earlier_boot_is_silence() -> None:
    report = fold(RUNS["killed"])
    assert not status.silent(report, 12.0)
    assert status.silent(report, -400.0)
    assert status.silent(replace(report, last_s=None), 1.0)
    assert not status.silent(replace(report, exit_code=0), 999.0)


def test_a_command_is_folded_so_that_a_shell_reads_the_same_words() -> None:
    words = ["stressor", "abort", "--key", "/a b/'k'", "--host-key", "SHA256:" + "A" * 43, "x" * 30]
    lines = command(shlex.join(words))
    assert len(lines) > 1
    assert all(len(line) <= 80 for line in lines)
    argv = ("sh", "-c", 'printf "%s\\n" ' + "\n".join(lines).strip())
    said = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=True).stdout
    assert said.splitlines() == words
    assert command("an 'open quote") == ["  an 'open quote"]
