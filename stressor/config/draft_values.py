"""Values that were typed or found, for a draft: as the inventory reads them, or refused with their
origin."""

import os
import re
from collections.abc import Iterable, Mapping

from stressor.config.routes import HOST_VARIABLES
from stressor.config.values import CLUSTER_VARIABLES
from stressor.errors import ConfigError

_GENERIC = frozenset({"kubernetes", "default", "local", "cluster", "k3s", "rke2"})
"""What kubeadm, k3s and RKE2 call every cluster: two of them would share one lifeline file."""
_NAME_LENGTH = 63
_UID_LENGTH = 8
"""The first part of a UID: enough to tell one operator's clusters apart."""


def readable(given: Iterable[tuple[str, str, object]]) -> Mapping[str, object]:
    """(origin, variable, value) as variables of an inventory; a value None was not given.

    Raises ConfigError, each line with its origin, for values that the inventory's readers refuse.
    """
    mistakes: list[str] = []
    found: dict[str, object] = {}
    for origin, variable, value in given:
        if value is None:
            continue
        read = HOST_VARIABLES.get(variable) or CLUSTER_VARIABLES[variable]
        try:
            found[variable] = read(value)
        except ValueError as error:
            mistakes.append(f"{origin}: {error}")
        else:
            # Readers strip text: a context of that name would not be found again.
            if isinstance(value, str) and found[variable] != value:
                mistakes.append(f"{origin}: `{value}` begins or ends with a space")
    if mistakes:
        raise ConfigError(tuple(mistakes))
    return found


def cluster_name(told: str | None, uid: str | None) -> tuple[str, str]:
    """A name for the cluster from what its kubeconfig calls it, and a note about it.

    Names that a distribution gives to each of its clusters get a part of the UID. Raises
    ConfigError where that leaves nothing to go by.
    """
    base = re.sub(r"[^a-z0-9.-]+", "-", (told or "").lower()).strip("-.")
    if not base or (base in _GENERIC and uid is None):
        shown = f"it `{told}`, as every such cluster" if told else "it nothing that can be used"
        raise ConfigError((f"the kubeconfig calls {shown}: name it with --cluster NAME",))
    if base not in _GENERIC:
        return base[:_NAME_LENGTH].strip("-."), ""
    assert uid is not None
    note = f"The kubeconfig calls it `{told}`, as every such cluster: give it a name of its own."
    return f"{base}-{uid[:_UID_LENGTH]}", note


def absolute(path: str) -> str:
    """The path for a file in another folder. `~` stays: it is read for whoever uses the file."""
    return path if path.startswith("~") else os.path.abspath(path)
