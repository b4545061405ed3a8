"""The journal: valid after a cut at every byte, never in the way of the run, frank about damage."""

import fcntl
import os
import stat
import threading
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stressor.core.effects import StopLoad
from stressor.core.events import HostProven, SampleTaken, Tick
from stressor.errors import JournalError
from stressor.journal import Header, JournalWriter, encode, kind_of, parse, read
from stressor.model import HostProof, HostState, Sample, StopReason

HEADER = Header(
    run="7f3a",
    cluster="lab",
    suite="demo",
    anchor_unix_s=1_790_000_000.123456,
    anchor_boot_s=4242.5,
    who="ops",
    host="desk",
    argv=("stressor", "run", "p.yaml"),
    reason="före: \N{SNOWMAN}",
    pid=7,
)
EVENTS = (
    Tick(1.0, 0.0),
    SampleTaken(1.5, Sample(1.4, "etcd_wal_fsync_p99_s", "node1", 0.0123456789, 9)),
    SampleTaken(2.0, Sample(1.9, "etcd_wal_fsync_p99_s", "node1", None, detail="timed\nout ☃")),
    HostProven(3.0, HostProof("node1", HostState.STOPPED, 4, took_s=0.25)),
)


@dataclass(slots=True)
class Clock:
    """A clock that moves by hand."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


def recorded(path: Path) -> bytes:
    writer = JournalWriter(path, HEADER, clock=Clock())
    for event in EVENTS:
        writer.append(kind_of("event", event), event.at_s, event)
    writer.append("effect.StopLoad", 4.0, StopLoad(StopReason.OPERATOR, "Ctrl-C"))
    assert writer.close(5.0)
    return path.read_bytes()


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "j.jsonl"
    recorded(path)
    journal = read(path)
    assert journal.header == HEADER
    assert not journal.cut
    assert [r.kind for r in journal.records] == [
        "event.Tick",
        "event.SampleTaken",
        "event.SampleTaken",
        "event.HostProven",
        "effect.StopLoad",
    ]
    assert journal.records[2].data["sample"] == {
        "at_s": 1.9,
        "signal": "etcd_wal_fsync_p99_s",
        "source": "node1",
        "value": None,
        "n": None,
        "detail": "timed\nout ☃",
    }
    assert journal.records[3].data["proof"] == encode(EVENTS[3].proof)
    assert journal.records[4].data == {"reason": "operator", "detail": "Ctrl-C", "breach": None}


def test_i8_a_journal_cut_at_every_byte_reads_as_its_whole_lines(tmp_path: Path) -> None:
    raw = recorded(tmp_path / "j.jsonl")
    whole = parse(raw, "j")
    for end in range(len(raw) + 1):
        journal = parse(raw[:end], "j")
        lines = raw.count(b"\n", 0, end)
        assert (journal.header is None) == (lines == 0)
        assert journal.records == whole.records[: max(0, lines - 1)]
        assert journal.cut == (end == 0 or raw[end - 1 : end] != b"\n")


def test_damage_elsewhere_names_its_line(tmp_path: Path) -> None:
    lines = recorded(tmp_path / "j.jsonl").split(b"\n")
    for number, bad in ((1, b"{}"), (2, lines[1][:-3]), (3, b""), (3, b"7"), (4, b'{"t":1}')):
        damaged = [*lines[: number - 1], bad, *lines[number:]]
        with pytest.raises(JournalError, match=f"^j:{number}: damaged"):
            parse(b"\n".join(damaged), "j")


def test_a_newer_schema_is_refused_and_unknown_kinds_are_kept(tmp_path: Path) -> None:
    raw = recorded(tmp_path / "j.jsonl")
    with pytest.raises(JournalError, match="schema 2 is newer"):
        parse(raw.replace(b'"schema":1', b'"schema":2'), "j")
    more = raw + b'{"t":9,"kind":"event.Unheard","data":{"x":1}}\n'
    assert parse(more, "j").records[-1].kind == "event.Unheard"


def test_the_file_is_private_and_never_an_existing_one(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    recorded(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(JournalError, match="cannot be written: File exists"):
        JournalWriter(path, HEADER, clock=Clock())


def test_sync_has_the_records_on_disk_while_the_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    writer = JournalWriter(path, HEADER, clock=Clock())
    assert read(path).header == HEADER
    writer.append("event.Tick", 1.0, EVENTS[0])
    assert writer.sync(5.0)
    assert len(read(path).records) == 1
    assert writer.oldest_unwritten_age_s(100.0) == 0.0
    assert writer.close(5.0)
    assert writer.close(5.0)
    writer.append("event.Tick", 2.0, EVENTS[0])
    assert writer.dropped == 1


def full_pipe() -> tuple[int, int]:
    """Both ends of a pipe that takes not a byte more: what a disk looks like that has stalled."""
    reader, end = os.pipe()
    os.set_blocking(end, False)
    size = fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 4096)
    assert os.write(end, b"x" * size) == size
    os.set_blocking(end, True)
    return reader, end


def test_a_stalled_disk_never_blocks_the_run_and_shows_as_age_and_drops(tmp_path: Path) -> None:
    clock = Clock(10.0)
    writer = JournalWriter(tmp_path / "j", HEADER, clock=clock, queue_limit=3)
    reader, end = full_pipe()
    os.dup2(end, writer._fd)
    os.close(end)
    for _ in range(50):
        writer.append("event.Tick", 1.0, EVENTS[0])
    assert writer.dropped >= 50 - 2 * 3
    assert not writer.sync(0.05)
    assert writer.oldest_unwritten_age_s(12.5) == 2.5
    assert not writer.close(0.05)
    os.close(reader)
    writer._thread.join(5.0)
    assert writer.failure is not None


def test_a_disk_that_fails_is_told_and_drops_what_comes_later(tmp_path: Path) -> None:
    clock = Clock()
    writer = JournalWriter(tmp_path / "j", HEADER, clock=clock)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, writer._fd)
    os.close(full)
    writer.append("event.Tick", 1.0, EVENTS[0])
    assert not writer.sync(5.0)
    assert writer.failure == f"{tmp_path / 'j'}: No space left on device"
    writer.append("event.Tick", 1.0, EVENTS[0])
    assert writer.dropped == 1
    assert writer.oldest_unwritten_age_s(9.0) == 9.0
    assert not writer.close(5.0)


def test_many_threads_append_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "j"
    writer = JournalWriter(path, HEADER, clock=Clock())

    def append_many() -> None:
        for _ in range(200):
            writer.append("event.Tick", 1.0, EVENTS[0])

    threads = [threading.Thread(target=append_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5.0)
    assert writer.close(5.0)
    assert len(read(path).records) == 800


class Colour(StrEnum):
    RED = "red"


def test_encode_speaks_json_and_refuses_what_is_no_value() -> None:
    given_value = MappingProxyType({"a": (1, True, None, Colour.RED), "b": frozenset({"y", "x"})})
    assert encode(given_value) == {"a": [1, True, None, "red"], "b": ["x", "y"]}
    assert type(encode(Colour.RED)) is str
    assert encode(1_790_000_000.12345678) == 1_790_000_000.123457
    assert encode(0.000000123456789012) == 0.000000123456789
    for bad in (float("nan"), float("inf"), -float("inf"), object(), b"bytes", Colour):
        with pytest.raises(JournalError):
            encode(bad)
    with pytest.raises(JournalError, match="mapping of names"):
        JournalWriter.append(JournalWriter.__new__(JournalWriter), "note.X", 0.0, (1,))


@given(st.text(), st.floats(allow_nan=False, allow_infinity=False), st.integers(-1000, 1000))
def test_any_text_and_number_survives_the_way_to_disk_and_back(
    text: str, value: float, n: int
) -> None:
    sample = encode(Sample(1.0, text, text, value, n, text))
    assert isinstance(sample, dict)
    assert sample["signal"] == text
    assert sample["value"] == pytest.approx(value, rel=1e-6, abs=1e-300)
