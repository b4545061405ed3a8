"""Load on CPUs: stress-ng, and what its output means.

stress-ng ends with 0 and "successful run completed" when it was terminated, and when its workers
were killed for memory (docs/signals.md). So the exit code alone proves nothing: the wall time must
match the request, and work must have been done.
"""

import re
from collections.abc import Mapping

from stressor.model import Gate, LoadResult, ParamValue, Verdict
from stressor.workloads.needs import Needs
from stressor.workloads.params import Check, between, complaints, ratio, whole

KIND = "cpu"
DEFAULTS: Mapping[str, ParamValue] = {"workers": 1, "load": "100%"}
touches_storage = False

# `--cpu -5` and `--cpu 0` silently mean all CPUs, so both are refused.
_CHECKS: Mapping[str, Check] = {
    "workers": between(whole, "1", "1024"),
    "load": between(ratio, "1%", "100%"),
}
# "metrc: [pid] stressor, bogo ops, real time, user time, system time, bogo ops per s of real time"
_METRIC = re.compile(
    r"metrc: \[\d+\] (\S+)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+[\d.]+$",
    re.MULTILINE,
)
_EXIT_WORDS = {
    1: "stress-ng refused its options or lacked a resource",
    2: "a stressor failed",
    3: "stress-ng lacked a resource",
    4: "the stressor is not implemented here",
    5: "a stressor was killed by a signal",
    6: "a stressor ended in an unexpected way",
    7: "stress-ng does not trust its own figures",
    124: "ended by its own time limit",
    137: "killed (SIGKILL)",
    143: "terminated (SIGTERM)",
}
_TIMING_SLACK_S = 1.0


def mistakes(params: Mapping[str, ParamValue]) -> tuple[str, ...]:
    """What is wrong with a step's merged parameters; each names its parameter in backticks."""
    return tuple(text for _, text in complaints(params, _CHECKS))


def default_gates() -> tuple[Gate, ...]:
    """None of its own: CPU pressure alone says little (a throttled pod shows 58 % on a healthy
    node), and the safety gates watch what CPU load endangers."""
    return ()


def needs(params: Mapping[str, ParamValue]) -> Needs:
    """One core for each worker, so that the limit never throttles what was asked for."""
    workers = whole({**DEFAULTS, **params}["workers"])
    return Needs(cpu_limit_cores=float(workers))


def argv(params: Mapping[str, ParamValue], hold_s: float) -> tuple[str, ...]:
    """stress-ng's command line for `hold_s` seconds.

    `--keep-name` keeps the environment, hence the run's mark, of its workers; `--no-oom-adjust`
    leaves them killable when memory runs out.
    """
    merged = {**DEFAULTS, **params}
    percent = max(1, round(ratio(merged["load"]) * 100))
    return (
        "stress-ng",
        *("--cpu", str(whole(merged["workers"]))),
        *("--cpu-load", str(percent)),
        *("--timeout", f"{max(1, round(hold_s))}s"),
        "--keep-name",
        "--no-oom-adjust",
        *("--temp-path", "/stressor"),
        "--metrics-brief",
    )


def parse(stdout: str, exit_code: int | None, requested_s: float, node: str) -> LoadResult:
    """The result in the container's log (stdout and stderr may be mixed) and its exit code.

    PASS needs exit 0, work done, and the wall time asked for. FAIL is stress-ng's own word that a
    stressor failed. Everything else is UNKNOWN.
    """
    metrics = _metrics(stdout)
    problems = (*_exit_problems(exit_code), *_metric_problems(metrics, requested_s))
    verdict = Verdict.UNKNOWN if problems else Verdict.PASS
    if exit_code == 2:
        verdict = Verdict.FAIL
    return LoadResult(node, verdict, metrics, problems)


def _metrics(text: str) -> dict[str, float]:
    """The figures of the cpu stressor from the line that `--metrics-brief` writes at the end.

    `--yaml` has more of them, but needs a file that can be read from outside: as a plain user,
    stress-ng may not open /dev/stdout, and then says nothing and ends with 0.
    """
    for stressor, bogo_ops, wall_s, user_s, system_s, rate in _METRIC.findall(text):
        if stressor == KIND:
            return {
                "cpu_bogo_ops_count": float(bogo_ops),
                "cpu_bogo_ops_per_s": float(rate),
                "wall_s": float(wall_s),
                "cpu_time_s": float(user_s) + float(system_s),
            }
    return {}


def _exit_problems(exit_code: int | None) -> tuple[str, ...]:
    if exit_code is None:
        return ("the exit code is not known",)
    if exit_code == 0:
        return ()
    return (f"exit code {exit_code}: {_EXIT_WORDS.get(exit_code, 'not one of stress-ng')}",)


def _metric_problems(metrics: Mapping[str, float], requested_s: float) -> tuple[str, ...]:
    wall_s, bogo_ops = metrics.get("wall_s"), metrics.get("cpu_bogo_ops_count")
    if wall_s is None or bogo_ops is None:
        return ("the output is missing or cut: no figures of the cpu stressor",)
    problems = []
    if wall_s < requested_s - _TIMING_SLACK_S:
        problems.append(f"ended early: ran {wall_s:.1f} s of {requested_s:.1f} s")
    if bogo_ops <= 0:
        problems.append("no work was done (killed for memory?)")
    return tuple(problems)
