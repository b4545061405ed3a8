"""Opening an inventory for a verb of the run side: plain YAML here, anything else by Ansible."""

import os
import sys
from pathlib import Path

from stressor.config.ansible_inventory import read_inventory
from stressor.model import Inventory
from stressor.playbooks import find_ansible


def open_inventory(path: Path) -> Inventory:
    """The inventory at `path`. Raises ConfigError with all mistakes; where only Ansible could read
    it and none is installed, with what it would be needed for."""
    ansible = find_ansible(sys.executable, os.environ.get("PATH"))
    return read_inventory(path, None if ansible is None else ansible.ask)
