"""Turns: few at once, and nobody who hangs keeps the others out."""

import threading
from contextlib import ExitStack

from stressor.engine.turns import Turns

FOREVER_S = 3600.0


def enter(turns: Turns, entered: threading.Event) -> threading.Thread:
    """Somebody who takes a turn, says so and goes."""

    def one() -> None:
        with turns.turn():
            entered.set()

    thread = threading.Thread(target=one, daemon=True)
    thread.start()
    return thread


def test_no_more_than_the_limit_at_once() -> None:
    turns, inside, most = Turns(3, FOREVER_S), [0], [0]
    lock, together = threading.Lock(), threading.Barrier(3)

    def one() -> None:
        with turns.turn():
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            # Passes only in threes: with fewer let in at once, this breaks after a while.
            together.wait(30)
            with lock:
                inside[0] -= 1

    threads = [threading.Thread(target=one, daemon=True) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (most[0], inside[0]) == (3, 0)
    assert not any(thread.is_alive() for thread in threads)


def test_a_turn_that_ends_lets_the_next_one_in() -> None:
    turns, entered = Turns(1, FOREVER_S), threading.Event()
    with turns.turn():
        waiting = enter(turns, entered)
        assert not entered.wait(0.05)
    waiting.join(30)
    assert entered.is_set()


def test_turns_that_hang_do_not_keep_others_out() -> None:
    turns, entered = Turns(2, patience_s=0.02), threading.Event()
    with turns.turn(), turns.turn():
        enter(turns, entered)
        assert entered.wait(30)


def test_a_turn_that_has_shown_life_counts_again() -> None:
    at_s = [0.0]
    turns, entered = Turns(1, 10.0, lambda: at_s[0]), threading.Event()
    with ExitStack() as stack:
        alive = stack.enter_context(turns.turn())
        at_s[0] = 11.0
        alive()
        waiting = enter(turns, entered)
        assert not entered.wait(0.05)
    waiting.join(30)
    assert entered.is_set()


def test_where_all_are_slow_patience_grows() -> None:
    """Eleven seconds for one that was well: another one may take 33, and does not hang at 32."""
    at_s = [0.0]
    turns, entered = Turns(1, 10.0, lambda: at_s[0]), threading.Event()
    with turns.turn() as alive:
        at_s[0] = 11.0
        alive()
    with ExitStack() as stack:
        stack.enter_context(turns.turn())
        at_s[0] += 32.0
        waiting = enter(turns, entered)
        assert not entered.wait(0.05)
        at_s[0] += 2.0
        waiting = enter(turns, entered)
        assert entered.wait(30)
    waiting.join(30)
