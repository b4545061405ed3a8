"""`stressor demo`: the product's main job on the lab, through its own command line.

Every step is the command that an operator would type, run as a child and shown. What it must end
with is checked: a demo that goes otherwise than told says so and fails.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import yaml

from stressor.errors import ExitCode, StressorError
from stressor.lab import places as p

SLOW_DISK_MS = 20
"""With 32 synced writers in turn on one spindle of 20 ms each etcd fsync takes over half a second,
the limit of the immediate gate; alone, etcd stays well below a tenth of it."""
LAB_DEFAULT_MS = 1
STEP_TIMEOUT_S = 1500.0


class DemoFailed(StressorError):
    """A step ended otherwise than it must."""

    exit_code = ExitCode.FAILED


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the demo's files are, and the environment of its commands."""

    phases: Path
    places: p.Places
    env: Mapping[str, str]

    def stressor(self, *words: str, expect: int = 0) -> str:
        """Run one stressor command on the terminal; its stdout. Raises DemoFailed."""
        _say(f"$ stressor {' '.join(words)}")
        done = subprocess.run(
            (sys.executable, "-m", "stressor", *words),
            env=dict(self.env),
            stdout=subprocess.PIPE,
            timeout=STEP_TIMEOUT_S,
            check=False,
        )
        output = done.stdout.decode("utf-8", "replace")
        if done.returncode != expect:
            click.echo(output)
            raise DemoFailed(f"`stressor {words[0]}` ended with {done.returncode}, not {expect}")
        return output


@click.command()
@click.option(
    "--phases",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(__file__).resolve().parents[2] / "phases",
    help="Where demo-cpu.yaml and demo-disk.yaml are.",
)
def demo(phases: Path) -> None:
    """The main job on the lab: load, breach, abort, proof, report. Ends by itself."""
    began_s = time.monotonic()
    places = p.places()
    env = {**os.environ, "STRESSOR_INVENTORY": str(places.inventory)}
    stage = Stage(phases, places, env)
    _title("1. A real three-node Kubernetes, and another cluster's etcd on the same disk")
    stage.stressor("lab", "up")
    stage.stressor("lab", "heal")
    _title("2. Every way of an abort, tried on a harmless sleep before any load")
    click.echo(stage.stressor("drill"), nl=False)
    _refusal(stage)
    _cpu(stage)
    aborted = _disk(stage)
    _title("6. Afterwards: both etcds, and what is left")
    _etcd(aborted)
    stage.stressor("lab", "break", "spindle", "--ms", str(LAB_DEFAULT_MS))
    click.echo(stage.stressor("lab", "status"), nl=False)
    click.echo(stage.stressor("cleanup", "--run", aborted["run"]), nl=False)
    _title(f"Done in {time.monotonic() - began_s:.0f} s. Try next")
    for line in _next_steps(aborted["run"], places):
        _say(line)


def _refusal(stage: Stage) -> None:
    _title("3. Storage load beside an etcd is refused, unless the cluster may be broken")
    document = yaml.safe_load(stage.places.inventory.read_text())
    document["all"]["vars"]["disposable"] = False
    guarded = stage.places.state / "inventory-not-disposable.yaml"
    guarded.write_text(yaml.safe_dump(document, sort_keys=False))
    words = ("run", str(stage.phases / "demo-disk.yaml"), "--inventory", str(guarded))
    stage.stressor(*words, expect=ExitCode.REFUSED)
    _say("Refused, as it must be. The lab's own inventory says `disposable: true`; with it, and")
    _say("only for that, the disk phase below may start. It says so at the head of its report.")


def _cpu(stage: Stage) -> None:
    _title("4. A cpu phase: armed, seen on the hosts, ended, proven gone")
    stage.stressor("run", str(stage.phases / "demo-cpu.yaml"))


def _disk(stage: Stage) -> dict[str, Any]:
    _title("5. A disk phase on the disk that two etcds share: the accident, and the abort")
    stage.stressor("lab", "break", "spindle", "--ms", str(SLOW_DISK_MS))
    stage.stressor("run", str(stage.phases / "demo-disk.yaml"), expect=ExitCode.BREACH)
    click.echo(stage.stressor("report"), nl=False)
    report: dict[str, Any] = json.loads(stage.stressor("report", "-o", "json"))
    stop = report["stop"]
    sample_s, proofs = stop["sample_s"], [host["proven_s"] for host in stop["hosts"]]
    if sample_s is None or None in proofs or not proofs:
        raise DemoFailed("the report does not know when the sample came, or a host was not proven")
    proven_s = max(proofs)
    _say(f"sample arrived      {sample_s:8.3f} s")
    _say(f"order sent          {stop['ordered_s']:8.3f} s  (+{stop['ordered_s'] - sample_s:.3f})")
    _say(f"last host proven    {proven_s:8.3f} s  (+{proven_s - sample_s:.3f})")
    return report


def _etcd(report: Mapping[str, Any]) -> None:
    """Quorum was never lost: every sample of etcd_has_leader during the run was 1. Samples that
    did not come are named, not passed over."""
    leaders = [s for s in report["signals"] if s["signal"] == "etcd_has_leader"]
    lost = [s["source"] for s in leaders if s["low"] != 1]
    if lost or not leaders:
        raise DemoFailed(f"etcd had no leader at times, seen by {', '.join(lost) or 'nobody'}")
    for one in leaders:
        known = one["count"] - one["unknown"]
        _say(f"etcd {one['source']:<10} had a leader in {known} of {one['count']} samples")


def _next_steps(run: str, places: p.Places) -> tuple[str, ...]:
    return (
        f"  export STRESSOR_INVENTORY={places.inventory}",
        "  .venv/bin/stressor run phases/demo.yaml     and, from another terminal,",
        "  .venv/bin/stressor abort                    at any moment",
        f"  .venv/bin/stressor report {run}",
        "  .venv/bin/stressor lab break apiserver all  an abort needs no API: try it",
        "  .venv/bin/stressor lab down                 take the lab down: nothing is left",
    )


def _title(text: str) -> None:
    _say("")
    _say(f"=== {text}")


def _say(text: str) -> None:
    click.echo(re.sub(r"\s+$", "", text), err=True)
