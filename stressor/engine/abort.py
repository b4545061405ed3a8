"""Killing load on a host through a connection of its own, with proof: no guard, no API, no journal.

The same script that a guard carries is sent with the command, so nothing on the host has to be
there but a shell. Routes are tried in order; what the host says is the only evidence (I5).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from stressor.guard import protocol
from stressor.guard.script import kill_argv
from stressor.model import Host, HostProof, HostState
from stressor.remote.base import (
    Completed,
    Outcome,
    Remote,
    TimedOut,
    Unreachable,
    UnreachableReason,
)

KILL_DEADLINE_S = 8.0
"""Login, kill, and the reports at 1 s and 5 s for what does not die at once."""


@dataclass(frozen=True, slots=True)
class ColdKiller:
    """`connect` makes a Remote of a host and the number of its route."""

    connect: Callable[[Host, int], Remote]

    def kill(self, host: Host, run: str, reason: str, left_s: float) -> HostProof:
        """Kill the load of `run` ("all": of any run) on `host`, and prove it. Late-comers are
        killed for `left_s` more. Bounded by KILL_DEADLINE_S for each route; never raises."""
        proof = HostProof(host.name, HostState.UNREACHABLE, detail="no route")
        for route in range(len(host.routes)):
            proof = judge(host.name, self._run(host, route, kill_argv(run, reason, left_s)))
            if proof.state is not HostState.UNREACHABLE:
                return proof
        return proof

    def rehearse(self, host: Host) -> str | None:
        """Try the way that `kill` goes, without killing: a new login, as root. None when a route
        of `host` can do that, else why none can (I1)."""
        why: str | None = "no route"
        for route in range(len(host.routes)):
            why = _no_root(self._run(host, route, ("id", "-u")))
            if why is None:
                break
        return why

    def _run(self, host: Host, route: int, argv: tuple[str, ...]) -> Outcome:
        """`argv` over a connection of its own. A rehearsal has no more time than the kill will
        have: a login that takes longer in peace is no abort route."""
        remote = self.connect(host, route)
        try:
            return remote.run(argv, deadline_s=KILL_DEADLINE_S)
        finally:
            remote.close()


def _no_root(outcome: Outcome) -> str | None:
    """Why this answer to `id -u` does not show that we may kill there; None when it does."""
    match outcome:
        case Completed(returncode=0):
            # Noise of a login shell may stand before the answer.
            said = outcome.stdout.decode("utf-8", "replace").split()[-1:]
            return None if said == ["0"] else f"not root there: {' '.join(said) or 'no answer'}"
        case Completed():
            return f"id ended with {outcome.returncode}"
        case TimedOut():
            return f"no login within {outcome.after_s:.0f} s"
        case Unreachable():
            return f"{outcome.reason}: {outcome.detail}"
        case _:
            assert_never(outcome)


def judge(host: str, outcome: Outcome) -> HostProof:
    """What an outcome of the kill script proves about `host`."""
    match outcome:
        case Completed():
            return _spoken(host, outcome.stdout, f"no proof, exit {outcome.returncode}")
        case TimedOut():
            return _spoken(host, outcome.stdout, f"no answer for {outcome.after_s:.0f} s")
        case Unreachable(reason=UnreachableReason.KEY_CHANGED):
            return HostProof(host, HostState.KEY_CHANGED, detail=outcome.detail)
        case Unreachable():
            return HostProof(host, HostState.UNREACHABLE, detail=outcome.detail)
        case _:
            assert_never(outcome)


def _spoken(host: str, stdout: bytes, silence: str) -> HostProof:
    proof = protocol.proof_of(host, stdout.decode("utf-8", "replace").splitlines())
    if proof is None:
        return HostProof(host, HostState.UNVERIFIED, detail=silence)
    return proof
