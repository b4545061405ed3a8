"""The report is a fold over the journal (I8): records in, facts out, nothing else is asked.

So an old run can be read by a newer program, and a killed run reports as far as it came. False
beats unknown beats true: the run's own exit code is one witness, and no verdict is better than the
evidence beside it (I5).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from stressor.core.verdict import merge
from stressor.errors import ExitCode
from stressor.journal import Journal, Record
from stressor.model import HostState, Verdict
from stressor.report import read
from stressor.report.facts import (
    BreachFact,
    CleanupFact,
    GuardFact,
    HostTiming,
    PlanFact,
    ProofFact,
    RunReport,
    SignalFact,
    StepFact,
    StopFact,
)

_FAILED = frozenset({ExitCode.FAILED, ExitCode.REGRESSION, ExitCode.BREACH})
_AFTER_STOP = frozenset({"cleaning", "ended"})
_SILENT = frozenset({HostState.UNREACHABLE, HostState.UNVERIFIED, HostState.KEY_CHANGED})


def fold(journal: Journal) -> RunReport:
    """Everything that the journal says of its run. Records of unknown kinds are named, not read."""
    state = _Fold()
    for record in journal.records:
        state.take(record)
    return _report(journal, state)


@dataclass(slots=True)
class _Fold:
    """What is known after the records so far."""

    stage: str = "created"
    plan: PlanFact | None = None
    steps: dict[int, StepFact] = field(default_factory=dict)
    step: int | None = None
    stop: StopFact | None = None
    warnings: list[BreachFact] = field(default_factory=list)
    guarded: tuple[str, ...] = ()
    guards: dict[str, GuardFact] = field(default_factory=dict)
    proofs: dict[str, ProofFact] = field(default_factory=dict)
    acked_s: dict[str, float] = field(default_factory=dict)
    proven_s: dict[str, float] = field(default_factory=dict)
    arrived_s: dict[tuple[str, str], float] = field(default_factory=dict)
    signals: dict[tuple[str, str], SignalFact] = field(default_factory=dict)
    cleanup: CleanupFact | None = None
    by_hand: tuple[str, ...] = ()
    suspend_only: bool = False
    exit_code: int | None = None
    summary: str = ""
    unknown_kinds: dict[str, None] = field(default_factory=dict)

    def take(self, record: Record) -> None:
        handler = _HANDLERS.get(record.kind)
        if handler is not None:
            handler(self, record)
        elif record.kind not in _PASSED_OVER and not record.kind.startswith("note."):
            self.unknown_kinds[record.kind] = None

    def _reach(self, stage: str) -> None:
        """Go on to a stage; an abort is left only for its end (I3)."""
        if self.stage != "aborting" or stage in _AFTER_STOP:
            self.stage = stage

    def _guard(self, record: Record) -> GuardFact:
        host = read.text(record.data, "host")
        return self.guards.setdefault(host, GuardFact(host))

    def _change_guard(self, guard: GuardFact) -> None:
        self.guards[guard.host] = guard

    def _change_step(self, index: int | None, change: Callable[[StepFact], StepFact]) -> None:
        if index is not None and index in self.steps:
            self.steps[index] = change(self.steps[index])

    def on_plan(self, record: Record) -> None:
        self.plan = read.plan(record.data)
        self.guarded = self.plan.guarded

    def on_by_hand(self, record: Record) -> None:
        self.by_hand = read.texts(record.data, "commands")

    def on_arm(self, record: Record) -> None:
        self.guarded = self.guarded or read.texts(record.data, "hosts")
        self._reach("arming")

    def on_armed(self, record: Record) -> None:
        facts = read.texts(record.data, "facts")
        self._change_guard(replace(self._guard(record), armed_s=record.t, facts=facts))
        armed = {guard.host for guard in self.guards.values() if guard.armed_s is not None}
        if armed.issuperset(self.guarded) and self.stage == "arming":
            self._reach("baseline")

    def on_refused(self, record: Record) -> None:
        holder = read.text(record.data, "lock_holder")
        why = read.text(record.data, "reason") + (f" (held by run {holder})" if holder else "")
        self._change_guard(replace(self._guard(record), refused=why))

    def on_acknowledged(self, record: Record) -> None:
        guard = replace(self._guard(record), last_ack_s=record.t)
        self._change_guard(guard)
        if self.stop is not None and read.text(record.data, "verb") == "kill":
            self.acked_s.setdefault(guard.host, record.t)

    def on_lost(self, record: Record) -> None:
        self._change_guard(replace(self._guard(record), lost=read.text(record.data, "reason")))

    def on_tripped(self, record: Record) -> None:
        """A clean-up lays tombstones, which trip every guard: that is how a run ends."""
        if self.stage in _AFTER_STOP:
            return
        self._change_guard(replace(self._guard(record), tripped=read.text(record.data, "reason")))

    def on_sample(self, record: Record) -> None:
        sample = read.part(record.data, "sample")
        key = (read.text(sample, "signal"), read.text(sample, "source"))
        self.arrived_s[key] = record.t
        old = self.signals.get(key) or SignalFact(*key, 0, 0, None, None, None, record.t)
        self.signals[key] = _counted(old, read.number(sample, "value"), record.t)

    def on_start(self, record: Record) -> None:
        step = read.part(record.data, "step")
        index = read.whole(step, "index")
        if index is None:
            return
        self.step, self.proofs = index, {}
        self.steps[index] = StepFact(
            index=index,
            phase=read.text(step, "phase"),
            kind=read.text(step, "kind"),
            nodes=read.texts(step, "nodes"),
            params=read.part(step, "params"),
            verdict=Verdict.UNKNOWN,
            ordered_s=record.t,
        )
        self._reach("starting")

    def on_created(self, record: Record) -> None:
        step = read.whole(record.data, "step")
        self._change_step(step, lambda s: replace(s, created_s=record.t))
        self._reach("appearing")

    def on_dropped(self, record: Record) -> None:
        why, created = read.text(record.data, "reason"), read.whole(record.data, "created")
        step = read.whole(record.data, "step")
        self._change_step(step, lambda s: replace(s, dropped=why, created=created))

    def on_seen(self, record: Record) -> None:
        if read.whole(record.data, "processes") and self.stage == "appearing":
            self._reach("loading")

    def on_finished(self, record: Record) -> None:
        result = read.result(read.part(record.data, "result"))
        step = read.whole(record.data, "step")
        self._change_step(step, lambda s: replace(s, results=(*s.results, result)))

    def on_prove(self, _: Record) -> None:
        self._reach("proving")

    def on_warning(self, record: Record) -> None:
        breach = read.breach(read.part(record.data, "breach"))
        if breach is not None:
            self.warnings.append(breach)
            self._change_step(self.step, lambda s: replace(s, breaches=(*s.breaches, breach)))

    def on_stop(self, record: Record) -> None:
        breach = read.breach(read.part(record.data, "breach"))
        reason, detail = read.text(record.data, "reason"), read.text(record.data, "detail")
        self.stop = StopFact(record.t, reason, detail, breach, self._cause_s(breach), ())
        self.proofs = {}
        if breach is not None:
            self._change_step(self.step, lambda s: replace(s, breaches=(*s.breaches, breach)))
        self._reach("aborting")

    def _cause_s(self, breach: BreachFact | None) -> float | None:
        """When the sample behind a breach arrived; a stale signal has none."""
        if breach is None or breach.stale:
            return None
        return self.arrived_s.get((breach.signal, breach.source))

    def on_proven(self, record: Record) -> None:
        """As the decider does: silence never replaces proof, nor does "nothing here" replace what
        the first kill counted."""
        cold = record.data.get("cold") is True
        proof = read.proof(read.part(record.data, "proof"), record.t, cold)
        old = self.proofs.get(proof.host)
        again = proof.proven and proof.stopped == 0
        if old is None or not old.proven or not (again or proof.state in _SILENT):
            self.proofs[proof.host] = proof
        if self.stop is not None and proof.proven:
            self.proven_s.setdefault(proof.host, record.t)
        elif proof.state is HostState.SURVIVORS:
            self.proven_s.pop(proof.host, None)

    def on_cleaning(self, record: Record) -> None:
        self.suspend_only = record.data.get("suspend_only") is True
        self._reach("cleaning")

    def on_cleaned(self, record: Record) -> None:
        ok = record.data.get("ok") is True
        self.cleanup = CleanupFact(ok, read.text(record.data, "detail"))

    def on_end(self, record: Record) -> None:
        self.exit_code = read.whole(record.data, "exit_code")
        self.summary = read.text(record.data, "summary")
        self._reach("ended")


_HANDLERS: Mapping[str, Callable[[_Fold, Record], None]] = {
    "note.Plan": _Fold.on_plan,
    "note.ByHand": _Fold.on_by_hand,
    "effect.ArmGuards": _Fold.on_arm,
    "event.GuardArmed": _Fold.on_armed,
    "event.GuardRefused": _Fold.on_refused,
    "event.GuardAcknowledged": _Fold.on_acknowledged,
    "event.GuardLost": _Fold.on_lost,
    "event.GuardTripped": _Fold.on_tripped,
    "event.SampleTaken": _Fold.on_sample,
    "effect.StartLoad": _Fold.on_start,
    "event.LoadCreated": _Fold.on_created,
    "event.StartDropped": _Fold.on_dropped,
    "event.LoadSeen": _Fold.on_seen,
    "event.LoadFinished": _Fold.on_finished,
    "effect.ProveClean": _Fold.on_prove,
    "effect.WarnOperator": _Fold.on_warning,
    "effect.StopLoad": _Fold.on_stop,
    "event.HostProven": _Fold.on_proven,
    "effect.CleanUp": _Fold.on_cleaning,
    "event.CleanupDone": _Fold.on_cleaned,
    "effect.Finish": _Fold.on_end,
}
_PASSED_OVER = frozenset(
    {
        "event.Tick",
        "event.StopRequested",
        "effect.Beat",
        "effect.WatchLoad",
        "effect.ColdKill",
        "effect.Disarm",
    }
)


def _counted(old: SignalFact, value: float | None, at_s: float) -> SignalFact:
    if value is None:
        unknown = old.unknown + 1
        return replace(old, count=old.count + 1, unknown=unknown, last=None, last_s=at_s)
    low = value if old.low is None else min(old.low, value)
    high = value if old.high is None else max(old.high, value)
    return replace(old, count=old.count + 1, low=low, high=high, last=value, last_s=at_s)


def _report(journal: Journal, state: _Fold) -> RunReport:
    header = journal.header
    started = any(not step.never_was for step in state.steps.values())
    proofs = _final_proofs(state) if started else ()
    steps = tuple(_judged(step, state) for step in state.steps.values())
    return RunReport(
        run=header.run if header else "",
        cluster=header.cluster if header else "",
        suite=header.suite if header else "",
        who=header.who if header else "",
        host=header.host if header else "",
        argv=header.argv if header else (),
        reason=header.reason if header else "",
        started_unix_s=header.anchor_unix_s if header else None,
        stage=state.stage,
        verdict=_verdict(state, steps, proofs),
        exit_code=state.exit_code,
        summary=state.summary,
        next_command=_next_command(header.run if header else None, state, started, proofs),
        cut=journal.cut,
        last_s=journal.records[-1].t if journal.records else None,
        plan=state.plan,
        steps=steps,
        stop=_timed(state),
        warnings=tuple(state.warnings),
        proofs=proofs,
        guards=tuple(state.guards.values()),
        signals=tuple(state.signals.values()),
        cleanup=state.cleanup,
        by_hand=state.by_hand,
        unknown_kinds=tuple(state.unknown_kinds),
    )


def _final_proofs(state: _Fold) -> tuple[ProofFact, ...]:
    """One for each host that must be proven; where there was no word, that is said."""
    hosts = dict.fromkeys((*state.guarded, *state.proofs))
    none = HostState.UNVERIFIED
    return tuple(
        state.proofs.get(host, ProofFact(host, none, None, 0, (), "no proof in the journal", False))
        for host in hosts
    )


def _judged(step: StepFact, state: _Fold) -> StepFact:
    """A step's verdict: its results, one of each node, and a stop that fell into it."""
    verdicts = [result.verdict for result in step.results]
    if {result.node for result in step.results} != set(step.nodes):
        verdicts.append(Verdict.UNKNOWN)
    if state.stop is not None and step.index == state.step:
        verdicts.append(Verdict.FAIL if state.stop.breach else Verdict.UNKNOWN)
    return replace(step, verdict=merge(verdicts))


def _verdict(state: _Fold, steps: tuple[StepFact, ...], proofs: tuple[ProofFact, ...]) -> Verdict:
    verdicts = [_of_exit_code(state.exit_code), *(step.verdict for step in steps)]
    verdicts += [
        Verdict.FAIL if proof.state is HostState.SURVIVORS else Verdict.UNKNOWN
        for proof in proofs
        if not proof.proven
    ]
    return merge(verdicts)


def _of_exit_code(code: int | None) -> Verdict:
    if code == ExitCode.PASS:
        return Verdict.PASS
    return Verdict.FAIL if code in _FAILED else Verdict.UNKNOWN


def _next_command(
    run: str | None, state: _Fold, started: bool, proofs: tuple[ProofFact, ...]
) -> str:
    proven = bool(proofs) and all(proof.proven for proof in proofs)
    if run is None or (started and not proven):
        return "stressor abort"
    cleaned = state.cleanup is not None and state.cleanup.ok and not state.suspend_only
    if started and not cleaned:
        return f"stressor cleanup --run {run}"
    return f"stressor report {run}"


def _timed(state: _Fold) -> StopFact | None:
    if state.stop is None:
        return None
    hosts = dict.fromkeys((*state.guarded, *state.acked_s, *state.proven_s))
    timings = tuple(HostTiming(h, state.acked_s.get(h), state.proven_s.get(h)) for h in hosts)
    return replace(state.stop, hosts=timings)
