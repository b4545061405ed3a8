"""Work that never comes back is left behind, and what it brings too late is thrown away."""

import threading
import time

import pytest

from stressor.remote.deadline import Attempt, Deadline, Overrun


def test_stuck_work_is_left_at_the_deadline_and_its_late_result_discarded() -> None:
    release, discarded = threading.Event(), threading.Event()
    late: list[str] = []

    def work() -> str:
        release.wait(10)
        return "connection"

    def discard(value: str) -> None:
        late.append(value)
        discarded.set()

    start_s = time.monotonic()
    with pytest.raises(Overrun):
        Attempt(work, discard).wait(Deadline.after(0.05))
    assert time.monotonic() - start_s < 1.0
    release.set()
    assert discarded.wait(5)
    assert late == ["connection"]


def test_work_in_time_hands_over_its_value_or_its_error() -> None:
    late: list[int] = []
    assert Attempt(lambda: 3, late.append).wait(Deadline.after(5)) == 3

    def fail() -> int:
        raise KeyError("why")

    with pytest.raises(KeyError, match="why"):
        Attempt(fail, late.append).wait(Deadline.after(5))
    assert late == []
