"""Main lost at the worst moments, and orders that wait behind a scan that hangs."""

import os
import signal
import time
from pathlib import Path

import pytest

from stressor.guard.protocol import ProofLine, parse
from stressor.guard.script import Shell
from stressor.model import HostState
from tests.guard.client import GuardClient, guard
from tests.guard.trees import alive, eventually, fresh_run, tree

pytestmark = pytest.mark.slow


def main_pid(client: GuardClient, run: str) -> int:
    return int((client.state / run / "guard.pid").read_text().split()[0])


def worker_pid(client: GuardClient, run: str) -> int:
    """Main's first child."""
    main = main_pid(client, run)
    return int(Path(f"/proc/{main}/task/{main}/children").read_text().split()[0])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["dead", "stopped"])
def test_i2_who_was_told_armed_may_lose_main_at_once(
    state: Path, shell: Shell, number: signal.Signals
) -> None:
    """`ok arm` is said when all watchers run, and the worker goes on killing without main."""
    run = fresh_run()
    with guard(state, shell) as client, tree(env_run=run) as load:
        client.arm(run)
        os.kill(main_pid(client, run), number)
        assert eventually(lambda: not load.pids, within_s=8)
        assert (state / run / "tombstone").exists()
        if number is signal.SIGKILL:
            with tree(env_run=run, count=1) as late:
                assert eventually(lambda: not late.pids, within_s=8)


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
        time.sleep(3)
        assert client.ask("9 beat") == "9 ok beat"
        proofs = [m for m in map(parse, client.said) if isinstance(m, ProofLine)]
        assert [p.sequence for p in proofs] == [2, 3, 4, 5]
        assert all(p.took_s < 2.9 for p in proofs)
        assert proofs[0].state is HostState.UNVERIFIED
        assert alive(main_pid(client, run))
