"""The report as text: what was done, what was seen, who is proven clean; verdict and next command
come last, where a terminal leaves the eye."""

from collections.abc import Iterator

from stressor.report.facts import BreachFact, GuardFact, ProofFact, RunReport, StepFact, StopFact
from stressor.report.lines import RULE, command, item, moment, number, row, seconds

CUT_OFF = "the run was cut off: its process was killed or still runs"


def render(report: RunReport) -> str:
    """The whole report, ending in a newline."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: RunReport) -> Iterator[str]:
    yield from _head(report)
    yield from _steps(report)
    yield from _stop(report.stop)
    yield from _hosts(report)
    yield from _signals(report)
    yield from _by_hand(report)
    yield RULE
    yield from _end(report)


def _head(report: RunReport) -> Iterator[str]:
    yield from row(
        "RUN", f"{report.run or '?'}  cluster {report.cluster or '?'}  suite {report.suite or '?'}"
    )
    yield from row(
        "started", f"{moment(report.started_unix_s)} by {report.who or '?'} on {report.host or '?'}"
    )
    if report.reason:
        yield from row("why", report.reason)
    if report.argv:
        yield from row("command", " ".join(report.argv))
    if report.plan is None:
        yield from row("plan", "none in the journal")
        return
    for note in report.plan.storage_notes:
        yield from row("STORAGE", note)
    for note in report.plan.accepted:
        yield from row("ACCEPTED", note)
    plan = report.plan
    guarded = f"steps {plan.steps}, guarded hosts {len(plan.guarded)}"
    yield from row("plan", f"{guarded}, all load gone at {seconds(plan.deadline_s)} at the latest")


def _steps(report: RunReport) -> Iterator[str]:
    for step in report.steps:
        yield ""
        yield from row("STEP", f"{step.index} {step.phase}: {step.verdict.upper()}")
        yield from item(f"{step.kind} on {', '.join(step.nodes)}{_params(step)}")
        yield from item(f"ordered {seconds(step.ordered_s)}, created {seconds(step.created_s)}")
        if step.dropped is not None:
            made = "an unknown number of" if step.created is None else step.created
            yield from item(f"start dropped, {made} jobs made: {step.dropped}")
        yield from _results(step)
        for breach in step.breaches:
            yield from item(f"{breach.action or 'gate'}: {_breach(breach)}")


def _params(step: StepFact) -> str:
    shown = ", ".join(f"{key}={value}" for key, value in step.params.items())
    return f" with {shown}" if shown else ""


def _results(step: StepFact) -> Iterator[str]:
    for result in step.results:
        yield from item(f"{result.node}: {result.verdict.upper()}")
        for name, value in result.metrics.items():
            yield from item(f"{name} {number(value)}", 4)
        for problem in result.problems:
            yield from item(f"problem: {problem}", 4)
    silent = sorted(set(step.nodes) - {result.node for result in step.results})
    if silent:
        yield from item(f"no result from {', '.join(silent)}")


def _breach(breach: BreachFact) -> str:
    limit = f"{breach.comparison} {number(breach.limit)}"
    value = "stale" if breach.stale else number(breach.value)
    since = f"since {seconds(breach.since_s)}"
    return f"{breach.signal} of {breach.source} {value}, limit {limit}, {since}"


def _stop(stop: StopFact | None) -> Iterator[str]:
    if stop is None:
        return
    yield ""
    yield from row("STOPPED", f"{stop.reason}: {stop.detail}")
    if stop.breach is not None:
        yield from item(_breach(stop.breach))
    yield from item(f"sample arrived  {seconds(stop.sample_s)}")
    after = None if stop.sample_s is None else stop.ordered_s - stop.sample_s
    shown = "" if after is None else f"  (+{after:.3f} s after the sample)"
    yield from item(f"order sent      {seconds(stop.ordered_s)}{shown}")
    for host in stop.hosts:
        acked, proven = _after(host.acknowledged_s, stop), _after(host.proven_s, stop)
        yield from item(f"{host.host}: acknowledged {acked}, proven {proven}", 4)
    yield from item(f"last host proven {_after(stop.last_proven_s, stop)}")


def _after(at_s: float | None, stop: StopFact) -> str:
    return "never" if at_s is None else f"+{at_s - stop.ordered_s:.3f} s"


def _hosts(report: RunReport) -> Iterator[str]:
    yield ""
    if not report.proofs:
        yield from row("HOSTS", "no load was started")
    for index, proof in enumerate(report.proofs):
        yield from row("" if index else "HOSTS", _proof(proof))
        for survivor in proof.survivors:
            yield from item(survivor, 12)
    for guard in report.guards:
        for line in _guard(guard):
            yield from row("guard", f"{guard.host} {line}")
    if report.cleanup is not None:
        outcome = "done" if report.cleanup.ok else "NOT DONE"
        yield from row("clean-up", f"{outcome} {report.cleanup.detail}")


def _proof(proof: ProofFact) -> str:
    killed = f", {proof.stopped} processes killed" if proof.stopped else ""
    cold = ", by a connection of its own" if proof.cold else ""
    detail = f": {proof.detail}" if proof.detail else ""
    return f"{proof.host} {proof.state}{killed}{cold}{detail}"


def _guard(guard: GuardFact) -> Iterator[str]:
    if guard.facts:
        yield f"armed with {', '.join(guard.facts)}"
    if guard.armed_s is None:
        yield "was never armed"
    for word, why in (("refused", guard.refused), ("lost", guard.lost), ("tripped", guard.tripped)):
        if why is not None:
            yield f"{word}: {why}"


def _signals(report: RunReport) -> Iterator[str]:
    if report.signals:
        yield ""
        yield f"{'SIGNAL':<31} {'source':<14} {'count':>5} {'unknown':>7} {'min':>9} {'max':>9}"
    for one in report.signals:
        counts = f"{one.count:>5} {one.unknown:>7} {number(one.low):>9} {number(one.high):>9}"
        yield f"{_fit(one.signal, 31)} {_fit(one.source, 14)} {counts}"


def _fit(text: str, width: int) -> str:
    plain = item(text, 0)[0] if text.strip() else "?"
    return f"{plain[: width - 1]}~" if len(plain) > width else f"{plain:<{width}}"


def _by_hand(report: RunReport) -> Iterator[str]:
    if report.by_hand:
        yield ""
        yield from row("BY HAND", "an abort from any machine, with the key and without any file:")
    for line in report.by_hand:
        yield from command(line)


def _end(report: RunReport) -> Iterator[str]:
    if report.unknown_kinds:
        yield from row("note", f"records of unknown kinds: {', '.join(report.unknown_kinds)}")
    if report.cut:
        yield from row("note", "the journal's last line was torn and is not counted")
    if report.exit_code is None:
        yield from row("CUT OFF", f"{CUT_OFF} (stage {report.stage})")
    for proof in report.proofs:
        if not proof.proven:
            yield from row("UNPROVEN", f"{proof.host}: load may still run there ({proof.state})")
    if report.summary:
        yield from row("summary", report.summary)
    code = "none" if report.exit_code is None else str(report.exit_code)
    yield from row("VERDICT", f"{report.verdict.upper()}  exit code {code}")
    yield from row("NEXT", report.next_command)
