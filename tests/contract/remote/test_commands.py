"""run, put and get, the same on every backend."""

import concurrent.futures
import os
import stat
import time
from pathlib import Path

import pytest

from stressor.model import Host
from stressor.remote.base import Completed, Remote, TimedOut
from stressor.remote.command import OUTPUT_LIMIT_BYTES

DEADLINE_S = 15.0

NASTY = (
    "", " ", "two words", "'", '"', "\\", "$HOME", "`id`", "$(id)", "*", "~", "!", "#", ";", "&",
    "|", "<", ">", "(", ")", "{a,b}", "[a]", "a\nb", "tab\there", "-n", "--", "%s", "ä€🎈", "\x01",
)  # fmt: skip


def completed(outcome: object) -> Completed:
    assert isinstance(outcome, Completed), outcome
    return outcome


def test_a_command_gives_both_outputs_and_its_status(remote: Remote) -> None:
    argv = ["sh", "-c", "echo out; echo err >&2; exit 7"]
    ended = completed(remote.run(argv, deadline_s=DEADLINE_S))
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, b"out\n", b"err\n")
    assert 0 < ended.took_s < DEADLINE_S


def test_status_255_of_a_command_is_no_failure_of_the_connection(remote: Remote) -> None:
    argv = ["sh", "-c", "echo 'Connection refused' >&2; exit 255"]
    ended = completed(remote.run(argv, deadline_s=DEADLINE_S))
    assert (ended.returncode, ended.stderr) == (255, b"Connection refused\n")


def test_a_missing_program_is_127(remote: Remote) -> None:
    assert completed(remote.run(["no-such-program"], deadline_s=DEADLINE_S)).returncode == 127


def test_a_signalled_command_is_completed_and_not_zero(remote: Remote) -> None:
    ended = completed(remote.run(["sh", "-c", "kill -9 $$"], deadline_s=DEADLINE_S))
    assert ended.returncode in (-9, 255)


def test_every_argument_arrives_as_it_is(remote: Remote) -> None:
    ended = completed(remote.run(["printf", "%s\\0", *NASTY], deadline_s=DEADLINE_S))
    assert ended.stdout.decode().split("\0")[:-1] == list(NASTY)


def test_stdin_is_binary_and_ends(remote: Remote) -> None:
    data = bytes(range(256)) * 4096
    ended = completed(remote.run(["cat"], deadline_s=DEADLINE_S, stdin=data))
    assert ended.stdout == data


def test_a_command_that_reads_no_stdin_ends_all_the_same(remote: Remote) -> None:
    ended = completed(remote.run(["true"], deadline_s=DEADLINE_S, stdin=b"x" * 4_000_000))
    assert ended.returncode == 0


def test_full_stderr_does_not_hold_up_stdout(remote: Remote) -> None:
    script = "head -c 3000000 /dev/zero >&2; head -c 3000000 /dev/zero; echo end >&2"
    ended = completed(remote.run(["sh", "-c", script], deadline_s=DEADLINE_S))
    assert (len(ended.stdout), len(ended.stderr)) == (3_000_000, 3_000_004)


def test_output_above_the_limit_is_cut_and_the_command_still_ends(remote: Remote) -> None:
    script = f"head -c {OUTPUT_LIMIT_BYTES + 1_000_000} /dev/zero"
    ended = completed(remote.run(["sh", "-c", script], deadline_s=40))
    assert len(ended.stdout) == OUTPUT_LIMIT_BYTES


def test_a_sleeping_command_times_out_at_the_deadline(remote: Remote) -> None:
    start_s = time.monotonic()
    outcome = remote.run(["sh", "-c", "echo begun; sleep 30"], deadline_s=1.5)
    assert isinstance(outcome, TimedOut), outcome
    assert outcome.stdout == b"begun\n"
    assert 1.4 < time.monotonic() - start_s < 2.5


def test_a_time_out_does_not_harm_the_next_command(remote: Remote) -> None:
    assert isinstance(remote.run(["sleep", "30"], deadline_s=1.0), TimedOut)
    assert completed(remote.run(["echo", "on"], deadline_s=DEADLINE_S)).stdout == b"on\n"


def test_threads_share_a_remote(remote: Remote) -> None:
    def ask(number: int) -> bytes:
        return completed(remote.run(["echo", str(number)], deadline_s=DEADLINE_S)).stdout

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        assert list(pool.map(ask, range(24))) == [f"{n}\n".encode() for n in range(24)]


def test_put_and_get_keep_bytes_and_mode(remote: Remote, tmp_path: Path) -> None:
    path, data = tmp_path / "a file's name", os.urandom(300_000) + b"\n\0"
    put = remote.put(data, str(path), mode=0o640, deadline_s=DEADLINE_S)
    assert completed(put).returncode == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.read_bytes() == data
    assert completed(remote.get(str(path), deadline_s=DEADLINE_S)).stdout == data
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_put_replaces_and_refuses_folders_and_relative_paths(
    remote: Remote, tmp_path: Path
) -> None:
    (tmp_path / "old").write_text("old")
    assert (
        completed(
            remote.put(b"new", str(tmp_path / "old"), mode=0o600, deadline_s=DEADLINE_S)
        ).returncode
        == 0
    )
    assert (tmp_path / "old").read_text() == "new"
    for path in (str(tmp_path), "relative"):
        refused = completed(remote.put(b"x", path, mode=0o600, deadline_s=DEADLINE_S))
        assert refused.returncode != 0
        assert refused.stderr


def test_get_of_a_missing_file_says_why(remote: Remote, tmp_path: Path) -> None:
    ended = completed(remote.get(str(tmp_path / "missing"), deadline_s=DEADLINE_S))
    assert ended.returncode != 0
    assert b"missing" in ended.stderr


def test_a_remote_names_its_host(remote: Remote) -> None:
    assert isinstance(remote.host, Host)
    assert remote.host.name == "loop"


def test_an_empty_argv_is_a_mistake_of_the_caller(remote: Remote) -> None:
    with pytest.raises(ValueError, match="argv"):
        remote.run([], deadline_s=1)


def test_a_closed_remote_connects_again(remote: Remote) -> None:
    assert completed(remote.run(["true"], deadline_s=DEADLINE_S)).returncode == 0
    remote.close()
    remote.close()
    assert completed(remote.run(["echo", "again"], deadline_s=DEADLINE_S)).stdout == b"again\n"
