"""What a guard says, as events: sequence numbers are matched, PSI totals differenced, survivors
gathered until their proof line. Pure but for what it remembers of one host."""

from dataclasses import dataclass, field
from typing import assert_never

from stressor.core import events as ev
from stressor.guard import protocol
from stressor.model import Survivor
from stressor.probes import psi

Asked = tuple[str, float] | None
"""Verb and send time of the order that an answer belongs to; None for one that nobody gave."""


@dataclass(slots=True)
class Reports:
    """The translator of one host's guard."""

    host: str
    _totals: psi.PsiTotals | None = field(default=None, init=False)
    _survivors: dict[int, list[Survivor]] = field(default_factory=dict, init=False)

    def events(self, message: protocol.Message, asked: Asked, at_s: float) -> tuple[ev.Event, ...]:
        """What `message`, which arrived at `at_s`, tells the decider."""
        match message:
            case protocol.Ack():
                return self._acknowledged(message, asked, at_s)
            case protocol.Refusal():
                return self._refused(message, asked, at_s)
            case protocol.GuardSample():
                return (*self._round_trip("sample", asked, at_s), *self._pressure(message, at_s))
            case protocol.WatchReport():
                return self._looked(message, at_s)
            case protocol.SurvivorLine():
                self._survivors.setdefault(message.sequence, []).append(message.survivor)
                return ()
            case protocol.ProofLine():
                return self._proven(message, at_s)
            case protocol.Tripped():
                return (ev.GuardTripped(at_s, self.host, message.reason),)
            case protocol.LateComers() | protocol.Noise():
                return ()
            case _:
                assert_never(message)

    def _round_trip(self, verb: str, asked: Asked, at_s: float) -> tuple[ev.Event, ...]:
        if asked is None:
            return ()
        return (ev.GuardAcknowledged(at_s, self.host, verb, at_s - asked[1]),)

    def _acknowledged(self, ack: protocol.Ack, asked: Asked, at_s: float) -> tuple[ev.Event, ...]:
        if asked is not None and ack.verb == asked[0] == "arm":
            return (ev.GuardArmed(at_s, self.host, ack.facts),)
        return self._round_trip(ack.verb, asked, at_s)

    def _refused(
        self, refusal: protocol.Refusal, asked: Asked, at_s: float
    ) -> tuple[ev.Event, ...]:
        if asked is None:
            return ()
        if asked[0] == "arm":
            word, *holder = refusal.reason.split()
            if word == "held" and len(holder) == 2:
                run, who = holder
                reason = f"run {run} of {who} holds it; stressor abort --run {run}"
                return (ev.GuardRefused(at_s, self.host, reason, run),)
            return (ev.GuardRefused(at_s, self.host, refusal.reason),)
        return (ev.GuardTripped(at_s, self.host, refusal.reason.removeprefix("tripped ")),)

    def _looked(self, look: protocol.WatchReport, at_s: float) -> tuple[ev.Event, ...]:
        if look.processes is None:
            return ()
        return (ev.LoadSeen(at_s, self.host, look.processes, look.commands),)

    def _pressure(self, sample: protocol.GuardSample, at_s: float) -> tuple[ev.Event, ...]:
        after = psi.PsiTotals(
            sample.boot_s,
            cpu_some_us=sample.cpu_some_us,
            io_some_us=sample.io_some_us,
            io_full_us=sample.io_full_us,
            memory_some_us=sample.memory_some_us,
            memory_full_us=sample.memory_full_us,
        )
        before, self._totals = self._totals, after
        if before is None:
            return ()
        samples = psi.difference(before, after, source=self.host, at_s=at_s)
        return tuple(ev.SampleTaken(at_s, one) for one in samples)

    def _proven(self, line: protocol.ProofLine, at_s: float) -> tuple[ev.Event, ...]:
        survivors = tuple(self._survivors.pop(line.sequence, ()))
        return (ev.HostProven(at_s, protocol.host_proof(self.host, line, survivors)),)
