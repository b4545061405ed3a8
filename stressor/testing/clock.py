"""A clock that tests move by hand."""

from dataclasses import dataclass


@dataclass(slots=True)
class ManualClock:
    """Stands still until `advance`."""

    at_s: float = 0.0
    epoch_s: float = 1_700_000_000.0

    def now_s(self) -> float:
        return self.at_s

    def unix_s(self) -> float:
        return self.epoch_s + self.at_s

    def advance(self, span_s: float) -> None:
        """Let `span_s` seconds pass."""
        self.at_s += span_s
