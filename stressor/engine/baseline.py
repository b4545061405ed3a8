"""A short look at every etcd before load: two scrapes, a window between them."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from stressor.engine.sampler import EtcdReader
from stressor.model import Sample

WINDOW_S = 2.0
"""An idle cluster writes about once a second (leases); the lab's neighbour does twice."""
TRIES = 3
"""Windows to try before "no fsync finished" is said: a quiet member is not a hung one."""
AT_ONCE = 32

Scrape = Callable[[float], bytes]


@dataclass(frozen=True, slots=True)
class Baseline:
    """Looks at members. `sleep` and `now_s` are the caller's clock."""

    slow_above_s: float
    sleep: Callable[[float], None] = time.sleep
    now_s: Callable[[], float] = time.monotonic

    def read(self, scrapes: Mapping[str, Scrape]) -> dict[str, tuple[Sample, ...]]:
        """The samples of each member of `scrapes`, all looked at side by side. A scrape raises
        StressorError; such a member's samples have no value and say why."""
        with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            found = pool.map(lambda item: self._member(*item), scrapes.items())
            return dict(zip(scrapes, found, strict=True))

    def _member(self, name: str, scrape: Scrape) -> tuple[Sample, ...]:
        reader = EtcdReader(name, scrape, self.slow_above_s)
        samples = reader.read(self.now_s())
        for _ in range(TRIES):
            self.sleep(WINDOW_S)
            samples = reader.read(self.now_s())
            if all(sample.value is not None for sample in samples):
                break
        return samples
