"""`stressor abort`: the 3 a.m. verb. Plain lines, at most 64 columns, the verdict last.

It needs the lifeline file and nothing else: no API, no DNS, no lock, no prompt, no journal. It may
be repeated at any time; it never starts load.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass, field

import click

from stressor.cli import abort_json, wiring_ssh
from stressor.cli.abort_hosts import Asked, hosts_of, require_usable_keys
from stressor.engine.sweep import Line, Sweep
from stressor.errors import ConfigError, ExitCode, StressorError
from stressor.lifeline import Lifeline, RunEntry, close_run, permission_warning, state_dir
from stressor.model import PROVEN, Host, HostProof, HostState, Survivor

SUSPEND_WAIT_S = 2.0
"""For the API's clean-up, after the kill; it never changes the verdict (design.md)."""
WIDTH = 64
_WIDEST = 39
"""An IPv6 address written out."""
_DETAIL_LINES = 4
_RUN = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
"""As the kill script has it (guard/lib.sh, run_id)."""


@dataclass(slots=True)
class Screen:
    """Writes lines; a terminal that went away must not stop an abort. `as_json`: stdout is for the
    ending alone, and the lines go to stderr. `column` is as wide as the longest host's name: two
    hosts must not read the same."""

    started_s: float
    as_json: bool = False
    column: int = 12
    broken: bool = field(default=False, init=False)

    def now_s(self) -> float:
        return time.monotonic() - self.started_s

    def say(self, text: str) -> None:
        stream = sys.stderr if self.as_json else sys.stdout
        if not self.broken and stream is not None:
            try:
                print(text[:WIDTH], flush=True, file=stream)
            except OSError:
                self.broken = True

    def say_all(self, head: str, text: str) -> None:
        """`text` beside `head`, or below it where it does not fit: what is cut off could be the
        fingerprint that somebody has to compare."""
        if len(head) + len(text) <= WIDTH:
            self.say(head + text)
            return
        self.say(head.rstrip())
        for line in textwrap.wrap(text, WIDTH - 7)[:_DETAIL_LINES]:
            self.say(f"       {line}")


@click.command()
@click.option("--cluster", help="The cluster; needed only when several are known.")
@click.option("--run", "run_name", help="Only this run. Default: the open run, or all runs.")
@click.option("--budget", default=60.0, show_default=True, help="Seconds until the verdict.")
@click.option("--reason", default="operator", help="Word for the tombstones and the journal.")
@click.option("--host", "hosts", multiple=True, metavar="IP", help="Go there; needs no file.")
@click.option("--user", default="root", show_default=True, help="With --host: the user.")
@click.option("--port", default=22, type=click.IntRange(1, 65535), help="With --host: sshd's port.")
@click.option("--key", help="With --host: the private key. Default: ~/.ssh/id_*.")
@click.option(
    "--host-key",
    "host_keys",
    multiple=True,
    metavar="SHA256:...",
    help="With --host: each host must show one of these; repeat it. Default: known_hosts.",
)
@click.option("--sudo", is_flag=True, help="With --host: become root by sudo -n.")
@click.option("--jump", "jumps", multiple=True, metavar="USER@IP:PORT", help="With --host: by it.")
@click.option("--jump-key", help="With --jump: the private key there. Default: as --key.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def abort(
    cluster: str | None,
    run_name: str | None,
    budget: float,
    reason: str,
    hosts: tuple[str, ...],
    user: str,
    port: int,
    key: str | None,
    host_keys: tuple[str, ...],
    sudo: bool,
    jumps: tuple[str, ...],
    jump_key: str | None,
    output: str,
) -> None:
    """Stop all load of stressor now, over SSH, and prove that it is dead.

    Exit 0: every host proven clean. 4: some host is unreachable or unverified. Safe to repeat.
    """
    screen = Screen(time.monotonic(), as_json=output == "json")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if run_name is not None and not _RUN.fullmatch(run_name):
        raise ConfigError((f"--run {run_name}: no name of a run (a-z, 0-9 and `-`)",))
    asked = Asked(hosts, user, port, key, host_keys, sudo, jumps, run_name, jump_key)
    if hosts:
        if cluster is not None:
            raise ConfigError(("--cluster goes without --host: it names hosts, too",))
        _by_hand(screen, asked, reason, budget)
        return
    if asked != Asked((), run=run_name):
        line = "--user, --port, --key, --host-key, --sudo, --jump go with --host"
        raise ConfigError((line,))
    path, lifeline = wiring_ssh.choose_lifeline(cluster)
    entry, run = _target(lifeline, run_name)
    screen.say(f"ABORT  {_called(run)}  cluster {lifeline.cluster}")
    count = len(lifeline.hosts if entry is None else entry.hosts)
    screen.say(f"       {count} hosts over SSH, API not used, budget {budget:.0f} s")
    warning = permission_warning(path)
    if warning is not None:
        screen.say(f"WARNING  lifeline file {warning}")
    if count == 0:
        # Nobody was asked, so nothing is proven (I5): that must not read like "all clean".
        raise ConfigError(("the lifeline file names no host: nothing was done, nothing is known",))
    proofs = _sweep(screen, lifeline, run, entry, reason, budget)
    _finish(screen, lifeline, run, proofs)


def _by_hand(screen: Screen, asked: Asked, reason: str, budget_s: float) -> None:
    """Hosts from the command line: no lifeline file is read or written, and no API is known."""
    hosts = hosts_of(asked, os.environ)
    require_usable_keys(asked, hosts)
    run = asked.run or "all"
    lifeline = Lifeline("by hand", 0.0, hosts)
    screen.say(f"ABORT  {_called(run)}  {len(hosts)} hosts by hand")
    screen.say(f"       over SSH, API not used, budget {budget_s:.0f} s")
    proofs = _sweep(screen, lifeline, run, None, reason, budget_s)
    _end(screen, lifeline, run, proofs, cluster=None)


def _target(lifeline: Lifeline, run_name: str | None) -> tuple[RunEntry | None, str]:
    entries = {entry.run: entry for entry in lifeline.runs}
    if run_name is not None:
        return entries.get(run_name), run_name
    if len(lifeline.open_runs) == 1:
        return lifeline.open_runs[0], lifeline.open_runs[0].run
    return None, "all"


def _called(run: str) -> str:
    return "all runs" if run == "all" else f"run {run}"


def _sweep(
    screen: Screen,
    lifeline: Lifeline,
    run: str,
    entry: RunEntry | None,
    reason: str,
    budget_s: float,
) -> dict[str, HostProof]:
    left_s = 0.0 if entry is None else max(0.0, entry.deadline_unix_s - time.time())
    sweep = Sweep(wiring_ssh.cold_killer(), screen.now_s, time.sleep, budget_s)
    hosts, proofs = _hosts(lifeline, entry)
    screen.column = min(_WIDEST, max(screen.column, *map(len, proofs)))
    for line in sweep.run(hosts, run, reason, left_s):
        proofs[line.proof.host] = line.proof
        _show(screen, line)
    return proofs


def _hosts(
    lifeline: Lifeline, entry: RunEntry | None
) -> tuple[tuple[Host, ...], dict[str, HostProof]]:
    """The hosts to go to, and what is known of each before its first word: nothing. A host of the
    run that the file has no route to is said to be unverified, not left out (I5)."""
    names = tuple(h.name for h in lifeline.hosts) if entry is None else entry.hosts
    hosts = tuple(host for host in lifeline.hosts if host.name in names)
    known = {host.name for host in hosts}
    silent = HostState.UNREACHABLE, "no answer within the budget"
    unknown = HostState.UNVERIFIED, "no route in the lifeline file"
    states = {name: silent if name in known else unknown for name in names}
    return hosts, {n: HostProof(n, state, detail=why) for n, (state, why) in states.items()}


def _show(screen: Screen, line: Line) -> None:
    proof = line.proof
    name = f"{proof.host:<{screen.column}.{screen.column}}"
    screen.say_all(f"{line.at_s:5.1f}s {name} {proof.state:<11} ", _what(proof))
    for survivor in proof.survivors[:4]:
        screen.say(f"       {'':12} {_survivor(survivor)}")
    if not line.last:
        screen.say(f"       {'':12} trying again ({line.attempt})")


def _what(proof: HostProof) -> str:
    match proof.state:
        case HostState.CLEAN:
            return "no load found"
        case HostState.STOPPED:
            return f"{proof.stopped} processes killed, none left"
        case HostState.SURVIVORS:
            return f"{len(proof.survivors)} outlived the kill"
        case _:
            return proof.detail


def _survivor(survivor: Survivor) -> str:
    where = f" in {survivor.wchan}" if survivor.wchan not in ("", "-", "0") else ""
    return f"{survivor.pid} {survivor.comm} state {survivor.state}{where}"


def _finish(screen: Screen, lifeline: Lifeline, run: str, proofs: dict[str, HostProof]) -> None:
    unproven = tuple(p for p in proofs.values() if p.state not in PROVEN)
    child = None if run == "all" else wiring_ssh.start_suspend(run)
    suspended = None if child is None else _await_suspend(screen, child)
    if not unproven and run != "all":
        with contextlib.suppress(StressorError, OSError):
            close_run(state_dir(os.environ), lifeline.cluster, run, time.time())
    _end(screen, lifeline, run, proofs, cluster=lifeline.cluster, suspended=suspended)


def _end(
    screen: Screen,
    lifeline: Lifeline,
    run: str,
    proofs: dict[str, HostProof],
    *,
    cluster: str | None,
    suspended: bool | None = None,
) -> None:
    unproven = tuple(p for p in proofs.values() if p.state not in PROVEN)
    code = _verdict(screen, lifeline, run, proofs, unproven, by_hand=cluster is None)
    took_s = screen.now_s()
    screen.say(f"exit {int(code)}   {took_s:.1f} s")
    if screen.as_json:
        command = abort_json.repeated() if unproven else _cleanup(lifeline, run)
        ending = abort_json.Ending(code, cluster, run, proofs, took_s, suspended, command)
        abort_json.put(abort_json.render(ending))
    sys.exit(int(code))


def _await_suspend(screen: Screen, child: subprocess.Popen[bytes]) -> bool | None:
    try:
        code = child.wait(SUSPEND_WAIT_S)
    except subprocess.TimeoutExpired:
        screen.say("api    still being asked to suspend the jobs (20 s at most)")
        return None
    screen.say("api    jobs suspended" if code == 0 else "api    not cleaned: try cleanup later")
    return code == 0


def _cleanup(lifeline: Lifeline, run: str) -> str:
    next_run = run if run != "all" else (lifeline.runs[-1].run if lifeline.runs else "RUN")
    return f"stressor cleanup --run {next_run}"


def _verdict(
    screen: Screen,
    lifeline: Lifeline,
    run: str,
    proofs: dict[str, HostProof],
    unproven: tuple[HostProof, ...],
    *,
    by_hand: bool,
) -> ExitCode:
    screen.say("-" * (WIDTH - 2))
    stopped = sum(proof.stopped for proof in proofs.values())
    if unproven:
        clean = len(proofs) - len(unproven)
        screen.say(f"PARTIAL  {clean} hosts proven clean, {len(unproven)} not:")
        for proof in unproven:
            name = f"{proof.host:<{screen.column}.{screen.column}}"
            screen.say_all(f"  {name} {proof.state}: ", proof.detail)
        # A command with fingerprints in it does not fit, and is what the caller's shell still has.
        again = "the same command again" if by_hand else "stressor abort"
        screen.say(f"NEXT     {again}        (safe to repeat)")
        return ExitCode.UNVERIFIED_HOSTS
    if stopped:
        screen.say(f"STOPPED  {stopped} processes; all {len(proofs)} hosts proven clean")
    else:
        screen.say(f"CLEAN    nothing to stop; all {len(proofs)} hosts proven clean")
    where = "   where it was started" if by_hand else ""
    screen.say(f"NEXT     {_cleanup(lifeline, run)}{where}")
    return ExitCode.PASS
