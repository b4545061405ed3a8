"""A short look at every etcd before load: two scrapes, a window between them."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from stressor.checks.baseline import calm
from stressor.engine.sampler import EtcdReader
from stressor.model import Sample

WINDOW_S = 2.0
"""An idle cluster writes about once a second (leases); the lab's neighbour does twice."""
TRIES = 3
"""Windows at most. A quiet member is not a hung one, and one slow fsync no slow disk."""
AT_ONCE = 32

Scrape = Callable[[float], bytes]


@dataclass(frozen=True, slots=True)
class Baseline:
    """Looks at members. `sleep` and `now_s` are the caller's clock."""

    slow_above_s: float
    sleep: Callable[[float], None] = time.sleep
    now_s: Callable[[], float] = time.monotonic

    def read(self, scrapes: Mapping[str, Scrape]) -> dict[str, tuple[tuple[Sample, ...], ...]]:
        """The windows of each member of `scrapes` up to the first calm one, all looked at side by
        side. A scrape raises StressorError; such a window's samples have no value and say why."""
        with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            found = pool.map(lambda item: self._member(*item), scrapes.items())
            return dict(zip(scrapes, found, strict=True))

    def _member(self, name: str, scrape: Scrape) -> tuple[tuple[Sample, ...], ...]:
        reader = EtcdReader(name, scrape, self.slow_above_s)
        reader.read(self.now_s())
        windows: list[tuple[Sample, ...]] = []
        while len(windows) < TRIES and not (windows and calm(windows[-1])):
            self.sleep(WINDOW_S)
            windows.append(reader.read(self.now_s()))
        return tuple(windows)
