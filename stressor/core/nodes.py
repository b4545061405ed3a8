"""Which host of the inventory is which node of the cluster."""

from collections.abc import Iterable

from stressor.model import Host


def is_node(host: Host, name: str, addresses: Iterable[str]) -> bool:
    """Whether `host` is the node with this name and these addresses: inventories are free to name
    hosts otherwise than the cluster does, and routes may lead through other addresses."""
    own = {route.address for route in host.routes}
    return host.name == name or not own.isdisjoint(addresses)
