"""cpu load: parameters, command line, and outputs recorded from stress-ng 0.15.06."""

from pathlib import Path

import pytest

from stressor.model import ParamValue, Verdict
from stressor.workloads import cpu

FIXTURES = Path(__file__).parent / "fixtures" / "stress_ng"


def recorded(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"workers": -5}, "`workers` must be 1 to 1024: -5"),
        ({"workers": 0}, "`workers` must be 1 to 1024: 0"),
        ({"workers": 2000}, "`workers` must be 1 to 1024: 2000"),
        ({"workers": True}, "`workers` is not a whole number: True"),
        ({"workers": "2"}, "`workers` is not a whole number: '2'"),
        ({"load": 50}, "`load` is not a share: 50; write it like 40%"),
        ({"load": "0%"}, "`load` must be 1% to 100%: '0%'"),
        ({"load": "101%"}, "`load` must be 1% to 100%: '101%'"),
        ({"wrokers": 1}, "unknown parameter `wrokers` (did you mean `workers`?)"),
        ({"xyz": 1}, "unknown parameter `xyz` (known: `workers`, `load`)"),
    ],
)
def test_mistakes_are_named(params: dict[str, ParamValue], text: str) -> None:
    assert cpu.mistakes(params) == (text,)


def test_good_parameters_have_no_mistakes() -> None:
    assert cpu.mistakes({}) == ()
    assert cpu.mistakes({"workers": 1024, "load": "100%"}) == ()
    assert cpu.mistakes(cpu.DEFAULTS) == ()


def test_every_mistake_is_told_at_once() -> None:
    assert len(cpu.mistakes({"workers": 0, "load": 1, "x": 1})) == 3


def test_the_command_line() -> None:
    line = " ".join(cpu.argv({"workers": 3, "load": "40%"}, 12.0))
    assert line == (
        "stress-ng --cpu 3 --cpu-load 40 --timeout 12s --keep-name --no-oom-adjust "
        "--temp-path /stressor --metrics-brief"
    )


def test_a_timeout_is_never_zero_which_means_forever() -> None:
    assert "1s" in cpu.argv({}, 0.2)
    assert "0s" not in cpu.argv({}, 0.0)


def test_no_worker_is_throttled_by_its_limit() -> None:
    assert cpu.needs({"workers": 3}).cpu_limit_cores == 3.0


def test_a_normal_end_passes() -> None:
    result = cpu.parse(recorded("normal"), 0, 2.0, "w-1")
    assert (result.node, result.verdict, result.problems) == ("w-1", Verdict.PASS, ())
    assert result.metrics == {
        "cpu_bogo_ops_count": 887.0,
        "cpu_bogo_ops_per_s": 437.02,
        "wall_s": 2.03,
        "cpu_time_s": 0.55,
    }


def test_a_terminated_run_that_says_success_is_unknown() -> None:
    text = recorded("sigterm")
    assert "successful run completed" in text
    result = cpu.parse(text, 0, 10.0, "w-1")
    assert result.verdict is Verdict.UNKNOWN
    assert result.problems == ("ended early: ran 2.0 s of 10.0 s",)
    assert result.metrics["wall_s"] == 2.0


def test_a_killed_run_is_unknown() -> None:
    result = cpu.parse(recorded("sigkill"), 137, 5.0, "w-1")
    assert (result.verdict, result.metrics) == (Verdict.UNKNOWN, {})
    assert result.problems[0] == "exit code 137: killed (SIGKILL)"
    assert "missing or cut" in result.problems[1]


def test_a_refused_option_is_unknown() -> None:
    result = cpu.parse(recorded("bad"), 1, 5.0, "w-1")
    assert result.verdict is Verdict.UNKNOWN
    assert "refused its options" in result.problems[0]


def test_no_work_with_exit_zero_is_unknown() -> None:
    text = recorded("normal").replace("cpu                 887", "cpu                   0")
    result = cpu.parse(text, 0, 2.0, "w-1")
    assert result.verdict is Verdict.UNKNOWN
    assert result.problems == ("no work was done (killed for memory?)",)


def test_a_failed_stressor_fails() -> None:
    assert cpu.parse(recorded("normal"), 2, 2.0, "w-1").verdict is Verdict.FAIL


def test_an_unknown_exit_code_is_unknown() -> None:
    result = cpu.parse(recorded("normal"), None, 2.0, "w-1")
    assert result.verdict is Verdict.UNKNOWN
    assert result.problems == ("the exit code is not known",)


def test_an_empty_log_with_exit_zero_is_unknown() -> None:
    assert cpu.parse("", 0, 2.0, "w-1").verdict is Verdict.UNKNOWN


def test_figures_of_another_stressor_are_not_taken() -> None:
    text = recorded("normal").replace("] cpu ", "] vm  ")
    assert cpu.parse(text, 0, 2.0, "w-1").metrics == {}


def test_a_cut_line_of_figures_is_unknown() -> None:
    text = recorded("normal")
    cut = text[: text.index("887") + 20]
    assert cpu.parse(cut, 0, 2.0, "w-1").metrics == {}
