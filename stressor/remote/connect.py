"""From a host of the inventory to the backend that reaches it.

Backends are imported when they are asked for: paramiko costs a fifth of a second that
`stressor abort --help` does not have. `preload` imports them all, before anything is armed (I6).
"""

import importlib
from typing import assert_never

from stressor.model import Host, Transport
from stressor.remote.base import Remote

_ABORT_MODULES = (
    "stressor.remote.local",
    "stressor.remote.openssh",
    "stressor.remote.paramiko_backend",
    "stressor.remote.scrape",
)


def connect(host: Host, *, route: int = 0) -> Remote:
    """The host's backend on its route number `route`. Nothing is sent before the first call.

    Raises IndexError when the host has no such route.
    """
    match host.transport:
        case Transport.LOCAL:
            from stressor.remote.local import LocalRemote

            return LocalRemote(host)
        case Transport.OPENSSH:
            from stressor.remote.openssh import OpenSshRemote

            return OpenSshRemote(host, host.routes[route])
        case Transport.PARAMIKO:
            from stressor.remote.paramiko_backend import ParamikoRemote

            return ParamikoRemote(host, host.routes[route])
        case _:
            assert_never(host.transport)


def preload() -> None:
    """Import everything that a later call on any backend may need."""
    for name in _ABORT_MODULES:
        importlib.import_module(name)
