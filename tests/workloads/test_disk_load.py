"""disk load: parameters, command line, and outputs recorded from fio 3.33."""

from pathlib import Path

import pytest

from stressor.model import ParamValue, Verdict
from stressor.workloads import disk

FIXTURES = Path(__file__).parent / "fixtures" / "fio"
MIB = 1024 * 1024


def recorded(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"size": 64}, "`size` is not a size: 64; write it like 4KiB, 64MiB or 2GiB"),
        ({"size": "65GiB"}, "`size` must be 1MiB to 64GiB: '65GiB'"),
        ({"size": "1KiB"}, "`size` must be 1MiB to 64GiB: '1KiB'"),
        ({"block": "1B"}, "`block` must be 512B to 16MiB: '1B'"),
        ({"size": "1MiB", "block": "2MiB"}, "`block` is larger than `size`"),
        ({"jobs": 0}, "`jobs` must be 1 to 64: 0"),
        ({"jobs": -1}, "`jobs` must be 1 to 64: -1"),
        ({"rate_iops": 0}, "`rate_iops` must be 1 to 1000000: 0"),
        ({"rate_iop": 5}, "unknown parameter `rate_iop` (did you mean `rate_iops`?)"),
        ({"host_path": "data"}, "`host_path` must be an absolute path: 'data'"),
        ({"host_path": 3}, "`host_path` must be an absolute path: 3"),
        ({"storage_class": ""}, "`storage_class` must be the name of a StorageClass: ''"),
        ({"storage_class": "Fast"}, "`storage_class` must be the name of a StorageClass: 'Fast'"),
        ({"storage_class": True}, "`storage_class` must be the name of a StorageClass: True"),
        (
            {"storage_class": "fast", "host_path": "/d"},
            "`storage_class` and `host_path` exclude each other",
        ),
    ],
)
def test_mistakes_are_named(params: dict[str, ParamValue], text: str) -> None:
    assert disk.mistakes(params) == (text,)


@pytest.mark.parametrize("path", ["/", "/a/../etc", "/a/", "//a", "/a/./b"])
def test_a_host_path_is_plain(path: str) -> None:
    (text,) = disk.mistakes({"host_path": path})
    assert text.startswith("`host_path` must be a plain path")


def test_good_parameters_have_no_mistakes() -> None:
    assert disk.mistakes({}) == ()
    assert disk.mistakes(disk.DEFAULTS) == ()
    assert disk.mistakes({"size": "2GiB", "rate_iops": 50, "host_path": "/var/scratch"}) == ()


def test_the_command_line_is_bounded_in_time_and_size() -> None:
    line = disk.argv({"size": "8MiB", "block": "2300B", "jobs": 2, "rate_iops": 50}, 30.0)
    assert line == (
        "fio",
        "--name=stressor-$(STRESSOR_RUN)",
        "--directory=/stressor",
        "--rw=write",
        "--ioengine=sync",
        "--fdatasync=1",
        "--bs=2300",
        f"--size={8 * MIB}",
        "--numjobs=2",
        "--rate_iops=50",
        "--thread",
        "--group_reporting",
        "--time_based",
        "--runtime=30",
        "--unlink=1",
        "--output-format=json",
    )


def test_a_rate_is_optional_and_a_runtime_is_not() -> None:
    line = disk.argv({}, 0.1)
    assert "--runtime=1" in line
    assert not [word for word in line if word.startswith("--rate")]


def test_a_host_path_is_written_to_and_mounted() -> None:
    params: dict[str, ParamValue] = {"host_path": "/var/scratch"}
    assert "--directory=/scratch" in disk.argv(params, 1.0)
    assert disk.needs(params).host_path == "/var/scratch"


def test_the_volume_holds_the_files_of_all_jobs() -> None:
    needs = disk.needs({"size": "8MiB", "jobs": 3})
    assert needs.host_path is None
    assert 24 * MIB < needs.scratch_bytes <= 48 * MIB


def test_a_storage_class_gives_a_volume_with_room_for_the_files() -> None:
    params: dict[str, ParamValue] = {"storage_class": "fast.ssd", "size": "4GiB", "jobs": 2}
    assert disk.mistakes(params) == ()
    assert "--directory=/scratch" in disk.argv(params, 1.0)
    needs = disk.needs(params)
    assert (needs.storage_class, needs.host_path) == ("fast.ssd", None)
    assert needs.claim_file_bytes == 8192 * MIB
    assert 1.1 * needs.claim_file_bytes <= needs.claim_bytes <= 1.2 * needs.claim_file_bytes


def test_a_small_volume_is_still_one_that_can_be_formatted() -> None:
    needs = disk.needs({"storage_class": "fast", "size": "1MiB"})
    assert needs.claim_bytes == 1024 * MIB


def test_disk_load_touches_storage() -> None:
    assert disk.touches_storage is True


def test_a_normal_end_passes() -> None:
    result = disk.parse(recorded("normal"), 0, 2.0, "w-1")
    assert (result.node, result.verdict) == ("w-1", Verdict.PASS)
    assert result.problems == ("no p99 of 100 fdatasyncs: 500 are needed",)
    assert result.metrics == {
        "runtime_s": 2.001,
        "write_iops": 49.975012,
        "write_bytes": 409600.0,
        "write_bytes_per_s": 204697.0,
        "fdatasync_count": 100.0,
        "fdatasync_mean_s": pytest.approx(0.00120592693),
        "fdatasync_p50_s": pytest.approx(0.000370688),
        "fdatasync_p95_s": pytest.approx(0.00475136),
        "fdatasync_max_s": pytest.approx(0.007276206),
    }


def test_a_p99_needs_many_samples() -> None:
    text = recorded("normal").replace('"N" : 100,', '"N" : 500,')
    result = disk.parse(text, 0, 2.0, "w-1")
    assert result.metrics["fdatasync_p99_s"] == pytest.approx(0.006979584)
    assert result.problems == ()


def test_a_terminated_run_is_unknown_with_its_figures() -> None:
    text = recorded("sigterm")
    assert not text.startswith("{")
    result = disk.parse(text, 128, 10.0, "w-1")
    assert result.verdict is Verdict.UNKNOWN
    assert result.problems[:2] == (
        "exit code 128: terminated by a signal",
        "ended early: ran 1.2 s of 10.0 s",
    )
    assert result.metrics["fdatasync_count"] > 0


def test_exit_128_is_never_a_pass_even_at_full_length() -> None:
    assert disk.parse(recorded("sigterm"), 128, 1.0, "w-1").verdict is Verdict.UNKNOWN


def test_a_killed_run_is_unknown() -> None:
    result = disk.parse(recorded("sigkill"), 137, 5.0, "w-1")
    assert (result.verdict, result.metrics) == (Verdict.UNKNOWN, {})
    assert result.problems[0] == "exit code 137: killed (SIGKILL)"


def test_a_full_disk_fails() -> None:
    result = disk.parse(recorded("enospc"), 1, 2.0, "w-1")
    assert result.verdict is Verdict.FAIL
    assert "fio reported error 28" in result.problems


def test_an_error_inside_beats_exit_zero() -> None:
    assert disk.parse(recorded("enospc"), 0, 0.0, "w-1").verdict is Verdict.FAIL


def test_an_early_end_with_exit_zero_is_unknown() -> None:
    result = disk.parse(recorded("short"), 0, 2.0, "w-1")
    assert result.verdict is Verdict.UNKNOWN
    assert "ended early: ran 0.0 s of 2.0 s" in result.problems


def test_of_several_documents_the_last_counts() -> None:
    result = disk.parse(recorded("usr1"), 0, 3.0, "w-1")
    assert result.verdict is Verdict.PASS
    assert result.metrics["runtime_s"] == 3.001


def test_a_refused_folder_is_unknown() -> None:
    result = disk.parse(recorded("baddir"), 1, 2.0, "w-1")
    assert result.verdict is Verdict.UNKNOWN
    assert result.problems[0] == "exit code 1: fio reported an error"


def test_a_cut_document_is_unknown() -> None:
    text = recorded("normal")
    result = disk.parse(text[: len(text) // 2], 0, 2.0, "w-1")
    assert (result.verdict, result.metrics) == (Verdict.UNKNOWN, {})


def test_an_unknown_exit_code_is_unknown() -> None:
    result = disk.parse(recorded("normal"), None, 2.0, "w-1")
    assert result.verdict is Verdict.UNKNOWN
    assert result.problems[0] == "the exit code is not known"


def test_a_run_without_any_sync_is_unknown() -> None:
    text = recorded("normal").replace('"N" : 100,', '"N" : 0,')
    result = disk.parse(text, 0, 2.0, "w-1")
    assert result.verdict is Verdict.UNKNOWN
    assert "no fdatasync finished" in result.problems
    assert "fdatasync_mean_s" not in result.metrics
