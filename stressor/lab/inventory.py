"""The lab as an ordinary Ansible inventory: the same file serves stressor and ansible-playbook."""

from __future__ import annotations

from typing import Any

import yaml

from stressor.lab import keys
from stressor.lab import places as p


def _variables(places: p.Places, host: p.Host) -> dict[str, Any]:
    found = {
        "ansible_host": host.address,
        "ansible_port": 22,
        "stressor_host_key": keys.public(keys.host_key(places, host)),
        "etcd_metrics_url": p.METRICS_URL,
        "etcd_data_dir": p.ETCD_DATA,
        "scratch_dir": p.SCRATCH,
    }
    return {**found, "apiserver_url": host.api_url} if host.kubernetes else found


def document(places: p.Places, hosts: tuple[p.Host, ...], load_image: str) -> dict[str, Any]:
    """The inventory as plain data."""
    nodes = {host.name: _variables(places, host) for host in hosts if host.kubernetes}
    neighbours = {host.name: _variables(places, host) for host in hosts if not host.kubernetes}
    return {
        "all": {
            "vars": {
                "ansible_user": "root",
                "ansible_ssh_private_key_file": str(places.client_key),
                "ansible_python_interpreter": "/usr/bin/python3",
                "stressor_cluster": "lab",
                "stressor_kubeconfig": str(places.kubeconfig),
                "stressor_load_image": load_image,
                # The owner's word that this cluster may be broken for a test.
                "disposable": True,
            },
            "children": {
                "control_plane": {"hosts": nodes},
                "workers": {"hosts": {name: {} for name in nodes}},
                "bystanders": {"hosts": neighbours},
            },
        }
    }


def text(places: p.Places, hosts: tuple[p.Host, ...], load_image: str) -> str:
    return yaml.safe_dump(document(places, hosts, load_image), sort_keys=False)
