"""Commands as an operator starts them: a process of its own, a state folder of its own."""

import os
import subprocess
from pathlib import Path


def run(*argv: str, state: Path) -> subprocess.CompletedProcess[str]:
    """Run `argv` to its end with `state` as the state folder, and no cluster of the caller's."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("STRESSOR_", "KUBE"))}
    return subprocess.run(
        argv,
        env={**env, "STRESSOR_STATE": str(state)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
