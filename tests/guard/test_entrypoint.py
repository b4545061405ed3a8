"""The load image's entry point: never late, never beyond its end, stdout for the tool alone."""

import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ENTRY = Path(__file__).parents[2] / "image" / "entrypoint.sh"
SHELLS = (("dash",), ("bash",), ("busybox", "ash"))


def run(
    shell: tuple[str, ...],
    *argv: str,
    start_by: str | None = None,
    end_by: str | None = None,
    run_id: str | None = "abc",
) -> subprocess.CompletedProcess[str]:
    later = str(int(time.time()) + 30)
    env = {"PATH": "/usr/bin:/bin"}
    given = {"STRESSOR_RUN": run_id, "STRESSOR_START_BY": start_by, "STRESSOR_END_BY": end_by}
    for name, value in given.items():
        if value != "":
            env[name] = later if value is None else value
    return subprocess.run(
        [*shell, str(ENTRY), *argv],
        env=env,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_the_tool_has_stdout_for_itself(shell: tuple[str, ...]) -> None:
    done = run(shell, "sh", "-c", 'echo "[$STRESSOR_RUN] $1"; exit 7', "x", "two words")
    assert (done.returncode, done.stdout, done.stderr) == (7, "[abc] two words\n", "")


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize(
    "wrong",
    [
        {"start_by": "1000"},
        {"start_by": "soon"},
        {"start_by": ""},
        {"start_by": "-5"},
        {"end_by": "1000"},
        {"end_by": ""},
        {"end_by": "12e9"},
        {"run_id": ""},
    ],
    ids=str,
)
def test_i2_refuses_late_or_without_an_end(shell: tuple[str, ...], wrong: dict[str, str]) -> None:
    done = run(shell, "echo", "load", **wrong)
    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr.startswith("stressor-entry: not started: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_no_command_is_refused(shell: tuple[str, ...]) -> None:
    assert run(shell).returncode == 78


@pytest.mark.slow
def test_i2_ends_at_the_absolute_deadline_even_what_ignores_sigterm() -> None:
    def ended(shell: tuple[str, ...]) -> tuple[int, float]:
        start = time.monotonic()
        done = run(shell, "sh", "-c", "trap '' TERM; while :; do sleep 0.2; done",
                   end_by=str(int(time.time()) + 2))  # fmt: skip
        return done.returncode, time.monotonic() - start

    with ThreadPoolExecutor(len(SHELLS)) as pool:
        for code, took_s in pool.map(ended, SHELLS):
            assert code in (137, -9)
            assert took_s < 6
