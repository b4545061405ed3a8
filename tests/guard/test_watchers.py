"""Main lost at the worst moments, and orders that wait behind a scan that hangs."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from stressor.guard.protocol import ProofLine, parse
from stressor.guard.script import Shell
from stressor.model import HostState
from tests.guard.client import GuardClient, at_once, guard
from tests.guard.trees import alive, cmdline, eventually, fresh_run, tree

pytestmark = pytest.mark.slow


def main_pid(client: GuardClient, run: str) -> int:
    return int((client.state / run / "guard.pid").read_text().split()[0])


def worker_pid(client: GuardClient, run: str) -> int:
    """Main's first child."""
    main = main_pid(client, run)
    return int(Path(f"/proc/{main}/task/{main}/children").read_text().split()[0])


def shells_below(pid: int) -> list[str]:
    """The children that are the guard's shell still, not a program that it started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [child for child in children if "stressor-guard" in cmdline(int(child))]


@at_once()
def test_i2_who_was_told_armed_may_lose_main_at_once(state: Path, shell: Shell) -> None:
    """`ok arm` is said when all watchers run, and the worker goes on killing without main. Main
    stopped, not dead, is the case below."""
    run = fresh_run()
    with guard(state, shell) as client, tree(env_run=run) as load:
        client.arm(run)
        os.kill(main_pid(client, run), signal.SIGKILL)
        assert eventually(lambda: not load.pids, within_s=8)
        assert (state / run / "tombstone").exists()
        with tree(env_run=run, count=1) as late:
            assert eventually(lambda: not late.pids, within_s=8)


@at_once()
def test_i4_only_the_order_that_hangs_is_unanswered(state: Path, shell: Shell) -> None:
    """A scan hangs for ever; an order given 1.4 s later has its own 2 s, and a new worker."""
    run = fresh_run()
    with guard(state, shell) as client, tree(env_run=run, count=1) as load:
        client.arm(run)
        os.kill(worker_pid(client, run), signal.SIGSTOP)
        client.send("2 prove")
        time.sleep(1.4)
        client.send("3 prove")
        hung = client.proof(2, within_s=3)
        assert (hung.state, hung.detail) == (HostState.UNVERIFIED, "no-scan-answer")
        assert 1.9 <= hung.took_s < 2.9
        after = client.proof(3, within_s=3)
        assert (after.state, after.detail.partition(",")[0]) == (HostState.SURVIVORS, "grep")
        assert load.pids


@pytest.mark.parametrize("shell", [Shell.BUSYBOX])
def test_i4_every_order_is_answered_within_its_time_however_many_hang(
    state: Path, shell: Shell
) -> None:
    run = fresh_run()
    with guard(state, shell) as client:
        client.arm(run)
        for sequence in (2, 3, 4, 5):
            os.kill(worker_pid(client, run), signal.SIGSTOP)
            client.send(f"{sequence} prove")
            time.sleep(0.7)
        client.wait_for("! proof 5 ")
        assert client.ask("9 beat") == "9 ok beat"
        proofs = [m for m in map(parse, client.said) if isinstance(m, ProofLine)]
        assert [p.sequence for p in proofs] == [2, 3, 4, 5]
        assert all(p.took_s < 2.9 for p in proofs)
        assert proofs[0].state is HostState.UNVERIFIED
        assert alive(main_pid(client, run))


def fill(fifo: Path) -> None:
    """Until not one byte more goes in, as a client does whose lines nobody reads."""
    room = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    try:
        for size in (4096, 2):
            with suppress(BlockingIOError):
                while True:
                    os.write(room, b"t\n" * (size // 2))
    finally:
        os.close(room)


@at_once()
def test_i2_a_worker_that_owes_answers_kills_though_main_hears_nothing(
    state: Path, shell: Shell
) -> None:
    """Main hangs, its events' FIFO is full: the answers wait in one child, not in the worker. The
    orders are written as main writes them, because main is to hang before they are answered."""
    run = fresh_run()
    with guard(state, shell) as client, tree(env_run=run, count=1) as load:
        client.arm(run, left_s=7)
        main, worker = main_pid(client, run), worker_pid(client, run)
        os.kill(main, signal.SIGSTOP)
        fill(state / run / "events")
        for number in (1, 2, 3):
            with (state / run / "jobs").open("w") as jobs:
                jobs.write(f"job {number} prove 0\n")
        assert eventually(lambda: (state / run / "answer.3").exists())
        assert load.pids
        assert eventually(lambda: not load.pids, within_s=9)
        assert (state / run / "tombstone").read_text() == "watcher\n"
        assert eventually(lambda: len(shells_below(worker)) == 1)
        os.kill(main, signal.SIGKILL)
        client.hang_up()
        client.process.wait(timeout=5)
        assert eventually(lambda: client.children() == [], within_s=18)
