"""`stressor drill`: every way of an abort, tried on a harmless sleep before it is needed."""

import json
import os
import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

from stressor.cli import wiring, wiring_ssh
from stressor.cli.inventories import open_inventory
from stressor.config.settings import settings
from stressor.engine.abort_script import publish, script_path, write_script
from stressor.engine.clock import BootClock
from stressor.engine.drill import Drill, Trial, Way
from stressor.engine.lock import refuse_held_hosts
from stressor.engine.sleeper import Place
from stressor.errors import ConfigError, ExitCode
from stressor.journal import encode
from stressor.lifeline import DrillEntry, access_of, read, record_drills
from stressor.model import Host, Inventory
from stressor.remote.connect import connect, preload
from stressor.report.lines import RULE, ascii_only, row

SCHEMA_VERSION = 1


@click.command()
@click.option("--inventory", help="An Ansible inventory (YAML). Also $STRESSOR_INVENTORY.")
@click.option("--host", "names", multiple=True, metavar="NAME", help="Only this host; repeatable.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def drill(inventory: str | None, names: tuple[str, ...], output: str) -> None:
    """Kill a marked sleep on every host: by guard, by cold abort, by the abort script.

    Each is proven and timed. A host whose ways are all proven is noted in the lifeline file, which
    preflight asks for. Exit 0: all proven; 4: some way on some host is not; 5: a run holds a host.
    """
    chosen = settings(os.environ, inventory_flag=inventory)
    site = open_inventory(chosen.inventory_path)
    hosts = _hosts(site, names)
    path = publish(chosen.state_dir, site.cluster, site.hosts, time.time())
    refuse_held_hosts(hosts, connect)
    preload()
    trials: list[Trial] = []
    script = script_path(chosen.state_dir, site.cluster)
    for trial in _drill(script).run(hosts):
        trials.append(trial)
        click.echo(_line(trial), err=output != "text")
    record_drills(chosen.state_dir, site.cluster, _entries(hosts, trials))
    write_script(chosen.state_dir, read(path))
    code = _code(hosts, trials)
    click.echo(_json(site, trials, code) if output == "json" else _ending(site, trials, code))
    sys.exit(int(code))


def _drill(script: Path) -> Drill:
    name = f"d{secrets.token_hex(3)}"
    killer, clock = wiring_ssh.cold_killer(), BootClock.start()
    return Drill(name, connect, killer, clock, wiring.holder(), script)


def _hosts(site: Inventory, names: tuple[str, ...]) -> tuple[Host, ...]:
    unknown = sorted(set(names) - {host.name for host in site.hosts})
    if unknown:
        raise ConfigError((f"not in the inventory: {', '.join(unknown)}",))
    chosen = tuple(host for host in site.hosts if not names or host.name in names)
    if not chosen:
        raise ConfigError(("the inventory names no host: there is nothing to drill",))
    return chosen


def _proven(host: str, trials: Sequence[Trial]) -> tuple[Way, ...]:
    return tuple(trial.way for trial in trials if trial.host == host and trial.proven)


def _entries(hosts: Sequence[Host], trials: Sequence[Trial]) -> tuple[DrillEntry, ...]:
    """Only hosts with every way proven: half a drill must not take the place of a whole one."""
    now_unix_s = time.time()
    return tuple(
        DrillEntry(host.name, now_unix_s, tuple(sorted(Way)), access_of(host))
        for host in hosts
        if set(_proven(host.name, trials)) == set(Way)
    )


def _code(hosts: Sequence[Host], trials: Sequence[Trial]) -> ExitCode:
    whole = all(set(_proven(host.name, trials)) == set(Way) for host in hosts)
    return ExitCode.PASS if whole else ExitCode.UNVERIFIED_HOSTS


def _line(trial: Trial) -> str:
    took = "     " if trial.took_s is None else f"{trial.took_s:4.1f}s"
    state = "PROVEN" if trial.proven else "FAILED"
    text = _killed(trial) if trial.proven else trial.detail
    return f"{took}  {ascii_only(trial.host):<14} {trial.way:<7} {state:<7} {ascii_only(text)}"


def _killed(trial: Trial) -> str:
    where = " (no scope here)" if trial.place is Place.NAMESPACE else ""
    return f"{trial.stopped} processes killed, none left{where}"


def _ending(site: Inventory, trials: Sequence[Trial], code: ExitCode) -> str:
    bad = [trial for trial in trials if not trial.proven]
    lines = [RULE]
    for trial in bad:
        lines += row("FAILED", f"{trial.host}: {trial.way}: {trial.detail}")
    word = "PASS" if code is ExitCode.PASS else "FAIL"
    lines += row(word, f"cluster {site.cluster}: {len(trials) - len(bad)} of {len(trials)} proven")
    return "\n".join([*lines, *row("NEXT", _next(code))])


def _next(code: ExitCode) -> str:
    return "stressor preflight" if code is ExitCode.PASS else "stressor preflight --only login"


def _json(site: Inventory, trials: Sequence[Trial], code: ExitCode) -> str:
    document = {
        "schema_version": SCHEMA_VERSION,
        "verdict": "pass" if code is ExitCode.PASS else "fail",
        "exit_code": int(code),
        "next_command": _next(code),
        "cluster": site.cluster,
        "trials": [encode(trial) for trial in trials],
    }
    return json.dumps(document, indent=2, allow_nan=False)
