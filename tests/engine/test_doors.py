"""One knock a door, and its answer for everybody."""

import threading

import pytest

from stressor.engine.doors import Doors
from stressor.model import Route
from stressor.remote.base import UnreachableReason

GATE = Route("192.0.2.1", 2222)
SILENT = UnreachableReason.SILENT


def test_all_who_come_to_one_door_get_its_one_answer() -> None:
    knocks, everybody = list[Route](), threading.Barrier(9)
    answers: list[UnreachableReason | None] = []

    def knock(route: Route, _deadline_s: float) -> UnreachableReason:
        knocks.append(route)
        everybody.wait(30)
        return UnreachableReason.REFUSED

    doors = Doors(knock)

    def come(at: int) -> None:
        if at:
            everybody.wait(30)
        answers.append(doors.knock(Route(f"10.0.0.{at}", jumps=(GATE,)), 30.0))

    threads = [threading.Thread(target=come, args=(at,), daemon=True) for at in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert answers == [UnreachableReason.REFUSED] * 9
    assert len(knocks) == 1
    assert doors.knock(GATE, 1.0) is UnreachableReason.REFUSED
    assert len(knocks) == 1


def test_each_door_is_knocked_at() -> None:
    knocks = list[Route]()

    def knock(route: Route, _deadline_s: float) -> None:
        knocks.append(route)

    doors = Doors(knock)
    ways = (GATE, Route("192.0.2.1", 22), Route("192.0.2.2", 2222))
    assert [doors.knock(way, 1.0) for way in ways] == [None] * 3
    assert tuple(knocks) == ways


def test_nobody_waits_longer_for_an_answer_than_he_would_for_the_door() -> None:
    entered, over = threading.Event(), threading.Event()

    def knock(_route: Route, _deadline_s: float) -> UnreachableReason:
        entered.set()
        over.wait(30)
        return UnreachableReason.REFUSED

    doors = Doors(knock)
    first = threading.Thread(target=doors.knock, args=(GATE, 30.0), daemon=True)
    first.start()
    assert entered.wait(30)
    assert doors.knock(GATE, 0.01) is SILENT
    over.set()
    first.join(30)
    assert doors.knock(GATE, 1.0) is UnreachableReason.REFUSED


def test_a_knock_that_breaks_breaks_for_everybody() -> None:
    def knock(_route: Route, _deadline_s: float) -> None:
        raise ValueError("no such door")

    doors = Doors(knock)
    for _ in range(2):
        with pytest.raises(ValueError, match="no such door"):
            doors.knock(GATE, 1.0)
