"""What the verbs of an emergency are made of: SSH and the standard library (I6)."""

import os
import subprocess
import sys

from stressor.engine.abort import ColdKiller
from stressor.errors import ConfigError
from stressor.lifeline import Lifeline, known_clusters, path_of, read, state_dir
from stressor.model import Host
from stressor.remote.base import Remote
from stressor.remote.connect import connect


def cold_killer() -> ColdKiller:
    """Kills through the real backends."""
    return ColdKiller(_connect)


def choose_lifeline(cluster: str | None) -> Lifeline:
    """The lifeline file of `cluster`; of the only one known; of the only one with an open run.

    Raises ConfigError, with a ready line for each, when that is not one.
    """
    state = state_dir(os.environ)
    if cluster is not None:
        return read(path_of(state, cluster))
    known = tuple(read(path_of(state, name)) for name in known_clusters(state))
    live = tuple(lifeline for lifeline in known if lifeline.open_runs)
    for choice in (live, known):
        if len(choice) == 1:
            return choice[0]
    if not known:
        raise ConfigError((f"no lifeline file in {state / 'lifeline'}: nothing ran from here",))
    lines = tuple(f"  stressor abort --cluster {lifeline.cluster}" for lifeline in live or known)
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


def _connect(host: Host, route: int) -> Remote:
    return connect(host, route=route)
