"""The clocks of a run: boot time for durations, wall time only where other machines read it."""

import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Seconds of the run's clock, and seconds since the epoch."""

    def now_s(self) -> float: ...

    def unix_s(self) -> float: ...


@dataclass(frozen=True, slots=True)
class BootClock:
    """CLOCK_BOOTTIME since `anchor_s`: it goes on while a laptop sleeps and never jumps."""

    anchor_s: float

    @classmethod
    def start(cls) -> "BootClock":
        """A clock whose zero is now."""
        return cls(time.clock_gettime(time.CLOCK_BOOTTIME))

    def now_s(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME) - self.anchor_s

    def unix_s(self) -> float:
        return time.time()
