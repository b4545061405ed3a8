"""The API that an inventory means, found as kubectl would find it."""

import os

from stressor.config.kubeconfig import Kubeconfig, load_kubeconfig
from stressor.config.login import login_of
from stressor.kube.base import Kube
from stressor.kube.client import connect
from stressor.kube.login import Login
from stressor.lifeline import RunEntry
from stressor.model import Inventory


def kubeconfig_for(inventory: Inventory) -> Kubeconfig:
    """What kubectl would use for this inventory. Raises ConfigError as `load_kubeconfig`."""
    return load_kubeconfig(inventory.kubeconfig_path, os.environ, context=inventory.context)


def login_for(inventory: Inventory) -> Login:
    """The login for it. Raises ConfigError."""
    return login_of(kubeconfig_for(inventory))


def open_cluster(inventory: Inventory) -> Kube:
    """Its API. Nothing is sent yet. Raises ConfigError for what the files say wrongly and KubeError
    for what cannot be used."""
    return connect(login_for(inventory))


def open_cluster_of(entry: RunEntry) -> Kube:
    """The API that a run used, wherever this shell's own kubeconfig points. Raises as
    `open_cluster`."""
    env = {**os.environ, "KUBECONFIG": entry.kubeconfig_path or os.environ.get("KUBECONFIG", "")}
    return connect(login_of(load_kubeconfig(None, env, context=entry.context)))
