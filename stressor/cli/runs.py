"""Finding a run by name, or the newest one, in the state folder. Standard library only."""

import os
from pathlib import Path

from stressor.errors import ConfigError
from stressor.lifeline import (
    RunEntry,
    journal_path,
    known_clusters,
    path_of,
    read,
    runs_dir,
    state_dir,
)


def journal_of(run: str | None) -> Path:
    """The journal of `run`, or of the run that was started last. Raises ConfigError without one."""
    state = state_dir(os.environ)
    runs = runs_dir(state)
    names = sorted(folder.name for folder in runs.glob("*"))
    if run is not None:
        path = journal_path(state, run)
        if not path.exists():
            there = ", ".join(names) or "none"
            raise ConfigError((f"no run `{run}` in {runs}; there are: {there}",))
        return path
    journals = [path for path in (journal_path(state, name) for name in names) if path.exists()]
    if not journals:
        raise ConfigError((f"no run in {runs} yet: stressor run PHASEFILE",))
    return max(journals, key=lambda path: path.stat().st_mtime)


def entry_of(run: str) -> tuple[str, RunEntry]:
    """The cluster and the lifeline's entry of `run`. Raises ConfigError when none knows it."""
    state = state_dir(os.environ)
    for cluster in known_clusters(state):
        for entry in read(path_of(state, cluster)).runs:
            if entry.run == run:
                return cluster, entry
    raise ConfigError((f"no lifeline file in {state / 'lifeline'} knows the run `{run}`",))
