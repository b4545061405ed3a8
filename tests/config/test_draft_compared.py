"""Drafts, as `ansible-inventory` reads them: the same hosts, groups and values as stressor's."""

from dataclasses import replace
from pathlib import Path

import pytest

from stressor.config.ansible_inventory import read_inventory
from stressor.config.distros import Distro
from stressor.config.draft import Draft, inventory_text
from stressor.config.draft_hosts import DraftHost
from stressor.config.hostlist import name_flaw
from stressor.model import Role
from tests.config.test_ansible_compared import ansible_inventory, by_name, expected, installed
from tests.config.test_draft import HOSTILE

pytestmark = pytest.mark.slow

BOTH = frozenset({Role.CONTROL_PLANE, Role.WORKER})
PLAIN = DraftHost("cp1", "192.0.2.1", BOTH, etcd=True, apiserver=True)


def hosts() -> tuple[DraftHost, ...]:
    named = [name for name in HOSTILE if name_flaw(name) is None]
    return tuple(
        replace(
            PLAIN,
            name=name,
            address=f"2001:db8::{number:x}" if number % 3 else f"192.0.2.{number}",
            roles=(BOTH, frozenset({Role.WORKER}), frozenset({Role.BYSTANDER}))[number % 3],
            variables={
                "ansible_user": name,
                "ansible_port": 22 + number,
                "scratch_dir": f"/{name}",
            },
            notes=(f"{name}\n{name}",),
        )
        for number, name in enumerate(named, start=1)
    )


@pytest.mark.parametrize(
    "draft",
    [
        Draft("c", (PLAIN,)),
        Draft("c", (PLAIN,), login={"ansible_user": "no", "ansible_become": True}),
        Draft("c", (PLAIN, *hosts()), context="yes", distro=Distro.K3S, sources=HOSTILE),
    ],
    ids=["one host", "a login for all", "hostile names"],
)
def test_a_draft_means_the_same_to_ansible(tmp_path: Path, draft: Draft) -> None:
    path = tmp_path / "inventory.yaml"
    path.write_text(inventory_text(draft))
    inventory = read_inventory(path, None, tmp_path)
    assert by_name(inventory) == expected(ansible_inventory(path), tmp_path)
    assert {host.name for host in inventory.hosts} == {host.name for host in draft.hosts}
    assert read_inventory(path, installed().ask, tmp_path) == inventory
