"""The verbs of `stressor lab`: narration on stderr, results on stdout, exit codes by error."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click

from stressor.lab import faults as faulting
from stressor.lab import places as p
from stressor.lab.errors import LabError, LabRefused
from stressor.lab.ledger import Ledger, exclusive

_F = TypeVar("_F", bound=Callable[..., Any])


def _narrator() -> Callable[[str], None]:
    """A printer of progress lines that start with the seconds since the verb began."""
    began = time.monotonic()

    def say(text: str) -> None:
        click.echo(f"[{time.monotonic() - began:6.1f} s] {text}", err=True)

    return say


def _verb(function: _F) -> _F:
    """Turn lab errors into a message on stderr and their exit code."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except LabError as failed:
            click.echo(f"stressor lab: {failed}", err=True)
            raise click.exceptions.Exit(int(failed.exit_code)) from failed

    return wrapped  # type: ignore[return-value]


def _running(places: p.Places) -> Ledger:
    ledger = Ledger.load(places.ledger)
    if ledger is None or ledger.record.phase != "up":
        raise LabRefused(f"no lab is up under {places.state}: `stressor lab up` first")
    return ledger


@click.group()
def lab() -> None:
    """A real Kubernetes cluster on this machine, with faults, to try stressor on."""


@lab.command()
@click.option("--nodes", type=click.IntRange(1, 5), default=3, show_default=True)
@click.option("--flavour", type=click.Choice(["kubeadm"]), default="kubeadm", show_default=True)
@_verb
def up(nodes: int, flavour: str) -> None:
    """Bring the lab up (building its parts once), or see that it is up and well."""
    from stressor.lab.up import Shape, bring_up

    places = p.places()
    say = _narrator()
    with exclusive(places.state):
        record = bring_up(places, Shape(nodes, flavour), say)
    say("the lab is up and healthy")
    for name in ("inventory", "kubeconfig"):
        click.echo(f"{name} {record.facts[name]}")


@lab.command(hidden=True)
@_verb
def build() -> None:
    """Build the parts only: programs, root filesystem, images."""
    from stressor.lab import build as building
    from stressor.lab import requirements

    places = p.places()
    with exclusive(places.state):
        requirements.check(places, building.cold(places))
        kit = building.build(places, _narrator())
    click.echo(f"load image {kit.load_image}")


@lab.command()
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
@_verb
def status(output: str) -> None:
    """Say whether the lab is up, well, or broken on purpose; exit code 7 when it is not well."""
    from stressor.lab.up import health

    places = p.places()
    ledger = Ledger.load(places.ledger)
    found = ("no lab is up",) if ledger is None else health(ledger, places)
    broken = faulting.load(places.breaks)
    if output == "json":
        record = None if ledger is None else asdict(ledger.record)
        shown = {
            "schema_version": 1,
            "healthy": not found,
            "wrong": found,
            "breaks": [asdict(entry) for entry in broken],
            "record": record,
        }
        click.echo(json.dumps(shown, indent=1))
    else:
        for entry in broken:
            click.echo(f"broken on purpose: {entry.fault} {entry.host}".rstrip())
        for line in found:
            click.echo(f"wrong: {line}")
        click.echo(f"state {places.state}")
        click.echo("healthy" if not found else "not healthy")
    if found:
        raise click.exceptions.Exit(7)


@lab.command("break")
@click.argument("fault", type=click.Choice([fault.value for fault in faulting.Fault]))
@click.argument("node", required=False)
@click.option("--ms", type=click.FloatRange(0, 60_000), help="Milliseconds a flush takes.")
@_verb
def break_(fault: str, node: str | None, ms: float | None) -> None:
    """Put FAULT in force on NODE (`all`: every Kubernetes node) until `heal`.

    \b
    spindle --ms N   every flush on the shared storage takes N ms, one at a time
    apiserver NODE   the API server is killed and stays away
    kubelet NODE     the kubelet's unit is stopped
    sshd NODE        the SSH listener is stopped: the port is open, but silent
    freeze NODE      every process of the host stops
    cut NODE         the host's network cable is pulled
    fsfreeze NODE    writers to /var/lib/stressor-frozen hang in state D
    """
    places = p.places()
    with exclusive(places.state):
        bench = faulting.Bench(_running(places), places)
        faulting.break_(bench, faulting.Fault(fault), node, ms)
    click.echo(f"broken: {fault} {node or ''}{'' if ms is None else f'{ms:g} ms'}".rstrip())


@lab.command()
@_verb
def heal() -> None:
    """Undo every fault that is in force."""
    places = p.places()
    with exclusive(places.state):
        healed = faulting.heal(faulting.Bench(_running(places), places))
    for entry in healed:
        click.echo(f"healed: {entry.fault} {entry.host}".rstrip())
    if not healed:
        click.echo("nothing was broken")


@lab.command()
@_verb
def down() -> None:
    """End the lab and remove every trace of it but the caches and keys."""
    from stressor.lab.down import take_down

    places = p.places()
    say = _narrator()
    with exclusive(places.state):
        there = take_down(places, say)
    click.echo("the lab is down" if there else f"no lab under {Path(places.state)}")
