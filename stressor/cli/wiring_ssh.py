"""What the verbs of an emergency are made of: SSH and the standard library (I6)."""

import os
import subprocess
import sys
from pathlib import Path

from stressor.engine.abort import ColdKiller
from stressor.errors import ConfigError
from stressor.lifeline import Lifeline, known_clusters, path_of, read, state_dir
from stressor.model import Host
from stressor.remote.base import Remote
from stressor.remote.connect import connect


def cold_killer() -> ColdKiller:
    """Kills through the real backends."""
    return ColdKiller(_connect)


def choose_lifeline(cluster: str | None) -> tuple[Path, Lifeline]:
    """The lifeline file of `cluster`, and where it is; else the only one with an open run, or the
    only one known.

    Raises ConfigError, with a ready line for each, when that is not one.
    """
    state = state_dir(os.environ)
    if cluster is not None:
        return _read(path_of(state, cluster))
    known = tuple(_read(path_of(state, name)) for name in known_clusters(state))
    live = tuple(one for one in known if one[1].open_runs)
    for choice in (live, known):
        if len(choice) == 1:
            return choice[0]
    if not known:
        raise ConfigError((f"no lifeline file in {state / 'lifeline'}: nothing ran from here",))
    lines = tuple(f"  stressor abort --cluster {lifeline.cluster}" for _, lifeline in live or known)
    raise ConfigError(("which cluster? One of:", *lines))


def start_suspend(run: str) -> subprocess.Popen[bytes]:
    """Start the API's clean-up as a child that outlives this process for 20 s at most."""
    argv = (sys.executable, "-m", "stressor", "cleanup", "--run", run, "--suspend")
    return subprocess.Popen(
        (*argv, "--timeout", "20"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _read(path: Path) -> tuple[Path, Lifeline]:
    return path, read(path)


def _connect(host: Host, route: int) -> Remote:
    return connect(host, route=route)
