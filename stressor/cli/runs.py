"""Finding a run by name, or the newest one, in the state folder. Standard library only."""

import os
from pathlib import Path

from stressor.errors import ConfigError
from stressor.lifeline import RunEntry, known_clusters, path_of, read, state_dir


def journal_of(run: str | None) -> Path:
    """The journal of `run`, or of the run that was started last. Raises ConfigError without one."""
    runs = state_dir(os.environ) / "runs"
    if run is not None:
        path = runs / run / "journal.jsonl"
        if not path.exists():
            raise ConfigError((f"no run `{run}` in {runs}; there are: {_names(runs)}",))
        return path
    journals = sorted(runs.glob("*/journal.jsonl"), key=lambda path: path.stat().st_mtime)
    if not journals:
        raise ConfigError((f"no run in {runs} yet: stressor run PHASEFILE",))
    return journals[-1]


def entry_of(run: str) -> tuple[str, RunEntry]:
    """The cluster and the lifeline's entry of `run`. Raises ConfigError when none knows it."""
    state = state_dir(os.environ)
    for cluster in known_clusters(state):
        for entry in read(path_of(state, cluster)).runs:
            if entry.run == run:
                return cluster, entry
    raise ConfigError((f"no lifeline file in {state / 'lifeline'} knows the run `{run}`",))


def _names(runs: Path) -> str:
    return ", ".join(sorted(path.name for path in runs.glob("*"))) or "none"
