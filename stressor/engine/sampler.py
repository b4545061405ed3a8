"""Sampler threads: one for each thing that is read, each on its own deadline, answers as events.

A sampler never decides. Whatever goes wrong while reading becomes a sample without a value, with
the reason in words: the decider treats missing data as a state (I4).
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from stressor.core import events as ev
from stressor.engine.clock import Clock
from stressor.engine.loop import EventQueue
from stressor.errors import StressorError
from stressor.model import Sample
from stressor.probes import apiserver, etcd

SCRAPE_DEADLINE_S = 1.0
"""A scrape that takes longer counts as no answer (design.md, Phase file)."""
SCRAPE_PERIOD_S = 1.0
"""At most one request a second per endpoint (I10)."""

Reader = Callable[[float], tuple[Sample, ...]]


@dataclass(slots=True)
class EtcdReader:
    """Reads one member: two scrapes make a window. `scrape` returns the exposition's bytes or
    raises StressorError within its deadline; `slow_above_s` is half the election time-out."""

    source: str
    scrape: Callable[[float], bytes]
    slow_above_s: float
    _before: etcd.EtcdScrape | None = field(default=None, init=False)

    def read(self, at_s: float) -> tuple[Sample, ...]:
        """The samples of the window since the last good scrape."""
        try:
            after = etcd.parse(self.scrape(SCRAPE_DEADLINE_S))
        except StressorError as error:
            return etcd.unanswered(self.source, at_s, str(error))
        before, self._before = self._before, after
        if before is None:
            return etcd.unanswered(self.source, at_s, "first scrape: a window needs two")
        return etcd.difference(
            before, after, source=self.source, at_s=at_s, slow_above_s=self.slow_above_s
        )


@dataclass(slots=True)
class ApiReader:
    """Asks one API server for /readyz. `ask` returns status, body, seconds or raises."""

    source: str
    ask: Callable[[float], tuple[int, bytes, float]]

    def read(self, at_s: float) -> tuple[Sample, ...]:
        try:
            status, body, took_s = self.ask(SCRAPE_DEADLINE_S)
        except StressorError as error:
            return apiserver.unanswered(self.source, at_s, str(error))
        return apiserver.parse(status, body, took_s, source=self.source, at_s=at_s)


@dataclass(slots=True)
class Sampler:
    """Calls readers, each in a thread of its own, and turns samples into events."""

    clock: Clock
    events: EventQueue
    stopping: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list, init=False)

    def start(self, name: str, read: Reader) -> None:
        """Read with `read` about once a second until `stop`."""
        thread = threading.Thread(target=self._run, args=(read,), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        """Ask all threads to end; they are daemons and are not waited for."""
        self.stopping.set()

    def _run(self, read: Reader) -> None:
        due_s = self.clock.now_s()
        while not self.stopping.is_set():
            samples = read(self.clock.now_s())
            arrived_s = self.clock.now_s()
            for sample in samples:
                self.events.put(ev.SampleTaken(arrived_s, sample))
            due_s = max(due_s + SCRAPE_PERIOD_S, arrived_s)
            self.stopping.wait(due_s - arrived_s)
