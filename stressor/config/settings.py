"""Where files are: the thin precedence of flag, environment, default.

Never imported by the verbs of an emergency: those know `lifeline.state_dir` and nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stressor.errors import ConfigError
from stressor.lifeline import state_dir

INVENTORY_VARIABLE = "STRESSOR_INVENTORY"


@dataclass(frozen=True, slots=True)
class Settings:
    """`inventory_origin` says where the path came from, for messages about it."""

    state_dir: Path
    inventory_path: Path
    inventory_origin: str


def settings(env: Mapping[str, str], *, inventory_flag: str | None = None) -> Settings:
    """The settings of one call. Raises ConfigError when nobody named an inventory: guessing which
    cluster is meant is no default."""
    named = (
        (inventory_flag, "--inventory"),
        (env.get(INVENTORY_VARIABLE), f"${INVENTORY_VARIABLE}"),
    )
    for value, origin in named:
        if value:
            return Settings(state_dir(env), Path(value), origin)
    raise ConfigError((f"no inventory: name one with --inventory FILE or ${INVENTORY_VARIABLE}",))
