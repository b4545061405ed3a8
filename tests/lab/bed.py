"""The lab as the acceptance tests use it: the product through its own command line, and an
independent look at the hosts that shares no code with the guard."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from stressor.config.inventory import load_inventory
from stressor.lab.places import IMAGE_REPOSITORY, PAUSE_TAG, places
from stressor.lifeline import journal_path, state_dir
from stressor.model import Inventory, Role
from stressor.remote.base import Completed
from stressor.remote.connect import connect

T = TypeVar("T")

SCAN = """\
import os, sys
run, found = sys.argv[1], []
host = os.stat("/proc/1/ns/mnt").st_ino
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if os.stat(f"/proc/{pid}/ns/mnt").st_ino == host:
            continue
        state = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
        environ = open(f"/proc/{pid}/environ", "rb").read().split(b"\\0")
        mounts = open(f"/proc/{pid}/mountinfo").read()
        comm = open(f"/proc/{pid}/comm").read().strip()
    except OSError:
        continue
    marked = f"STRESSOR_RUN={run}".encode() in environ or f"/stressor-{run} " in mounts
    if marked and state != "Z":
        found.append(f"{pid}:{comm}")
print(" ".join(found))
"""
"""Counts marked processes: python3 on the host, reading what the guard reads in its own way."""


@dataclass(slots=True)
class Bed:
    """One lab that is up. `state` is where the product keeps its runs."""

    inventory_path: Path
    inventory: Inventory

    @classmethod
    def of_lab(cls) -> "Bed":
        path = state_dir(os.environ) / "lab" / "inventory.yaml"
        return cls(path, load_inventory(path))

    @property
    def load_hosts(self) -> tuple[str, ...]:
        return tuple(host.name for host in self.inventory.with_role(Role.WORKER))

    def env(self, **more: str) -> dict[str, str]:
        return {**os.environ, "STRESSOR_INVENTORY": str(self.inventory_path), **more}

    def ssh(self, host: str, *argv: str, deadline_s: float = 15.0) -> str:
        """Run `argv` on `host`; its stdout. Fails the test when it could not run."""
        remote = connect(self.inventory.host(host))
        try:
            outcome = remote.run(argv, deadline_s=deadline_s)
        finally:
            remote.close()
        assert isinstance(outcome, Completed), f"{host}: {outcome}"
        return outcome.stdout.decode()

    def marked(self, host: str, run: str) -> tuple[str, ...]:
        """The live marked processes of `run` on `host`, as pid:comm."""
        return tuple(self.ssh(host, "python3", "-c", SCAN, run).split())

    def stressor(
        self, *words: str, timeout_s: float = 120.0, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """One stressor command, to its end."""
        return subprocess.run(
            (sys.executable, "-m", "stressor", *words),
            env=self.env() if env is None else env,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def heal(self) -> None:
        """Undo every fault. A kubelet whose API server was away looks for new pods again only after
        a while, though its node is Ready: wait until each starts one."""
        healed = self.stressor("lab", "heal").stdout
        up = self.stressor("lab", "up", timeout_s=300)
        assert up.returncode == 0, up.stderr
        if "apiserver" in healed or "kubelet" in healed:
            for host in self.load_hosts:
                self._await_pod(host)

    def kubectl(self, *argv: str, stdin: str | None = None) -> str:
        """The lab's kubectl, as its administrator."""
        lab = places()
        program = json.loads((lab.state / "lab.json").read_text())["facts"]["programs"]["kubectl"]
        done = subprocess.run(
            (program, "--kubeconfig", str(lab.kubeconfig), *argv),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _await_pod(self, node: str) -> None:
        name = f"settled-{node}"
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {
                "nodeName": node,
                "restartPolicy": "Never",
                "containers": [{"name": "pause", "image": f"{IMAGE_REPOSITORY}/pause:{PAUSE_TAG}"}],
            },
        }
        self.kubectl("apply", "-n", "default", "-f", "-", stdin=json.dumps(pod))
        ask = ("get", "pod", name, "-n", "default", "-o", "jsonpath={.status.phase}")
        try:
            wait_for(lambda: self.kubectl(*ask) == "Running" or None, 120.0, lambda: node)
        finally:
            gone = ("--grace-period=0", "--force", "--wait=false")
            self.kubectl("delete", "pod", name, "-n", "default", *gone)

    def start(self, phases: Path, *options: str, log: Path, nodes: tuple[str, ...] = ()) -> "Run":
        """Start `stressor run` and wait until it has named its run."""
        with log.open("wb") as file:
            process = subprocess.Popen(
                (sys.executable, "-m", "stressor", "run", str(phases), *options),
                env=self.env(),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        run = Run(self, process, log, nodes)
        run.name = wait_for(run.named, 60.0, run.said)
        return run


@dataclass(slots=True)
class Run:
    """A `stressor run` that was started."""

    bed: Bed
    process: subprocess.Popen[bytes]
    log: Path
    nodes: tuple[str, ...] = ()
    name: str = field(default="", init=False)

    def said(self) -> str:
        """What it printed so far."""
        return self.log.read_text(errors="replace")

    def named(self) -> str | None:
        """The run's name, once it has said it. Fails the test when it ended before that."""
        ended = self.process.poll() is not None
        found = re.search(r"^RUN (\S+)", self.said(), re.MULTILINE)
        assert found is not None or not ended, f"the run never began:\n{self.said()}"
        return None if found is None else found.group(1)

    def records(self) -> Iterator[dict[str, object]]:
        """The journal's complete lines so far."""
        path = journal_path(state_dir(os.environ), self.name)
        for line in path.read_text().splitlines(keepends=True) if path.exists() else ():
            if line.endswith("\n"):
                yield json.loads(line)

    def kinds(self) -> tuple[str, ...]:
        return tuple(str(record["kind"]) for record in self.records())

    def wait_kind(self, kind: str, limit_s: float) -> None:
        """Wait for a journal record of `kind`."""
        wait_for(lambda: kind in self.kinds() or None, limit_s, self.said)

    def wait_load(self, hosts: Sequence[str], limit_s: float = 60.0) -> None:
        """Wait until the independent scan sees the load on each of `hosts`."""
        for host in hosts:
            wait_for(partial(self._present, host), limit_s, self.said)

    def wait_loading(self, limit_s: float = 60.0) -> None:
        """Wait until the run itself has seen its load on every node, and so do we."""
        wait_for(self._loading, limit_s, self.said)
        for host in self.nodes:
            assert self._present(host), f"the run saw load on {host}, and we do not"

    def wait_gone(self, hosts: Sequence[str], limit_s: float) -> float:
        """Wait until no marked process is left on any of `hosts`; how long that took."""
        began_s = time.monotonic()
        for host in hosts:
            left_s = limit_s - (time.monotonic() - began_s)
            wait_for(partial(self._absent, host), left_s, self.said)
        return time.monotonic() - began_s

    def _present(self, host: str) -> bool | None:
        assert self.process.poll() is None, f"the run has ended:\n{self.said()[-3000:]}"
        return True if self.bed.marked(host, self.name) else None

    def _loading(self) -> bool | None:
        assert self.process.poll() is None, f"the run has ended:\n{self.said()[-3000:]}"
        return True if " LOAD   phase " in self.said() else None

    def _absent(self, host: str) -> bool | None:
        return None if self.bed.marked(host, self.name) else True

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self, limit_s: float = 90.0) -> int:
        """Wait for its end; the exit code."""
        return self.process.wait(limit_s)

    def make_sure(self) -> None:
        """For finalisers: end it if it still runs, and clear what it left."""
        if self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGKILL)
            self.process.wait(10)
        if self.name:
            self.bed.stressor("cleanup", "--run", self.name)


def wait_for(check: Callable[[], T | None], limit_s: float, said: Callable[[], str]) -> T:
    """The first answer of `check` that is not None. Fails the test at `limit_s`."""
    end_s = time.monotonic() + limit_s
    while True:
        found = check()
        if found is not None:
            return found
        assert time.monotonic() < end_s, f"not within {limit_s:.1f} s; so far:\n{said()[-3000:]}"
        time.sleep(0.1)
