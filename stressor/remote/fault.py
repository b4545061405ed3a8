"""Why a host could not be talked to, as it travels inside a backend."""

import ipaddress
from collections.abc import Iterable

from stressor.errors import RemoteError
from stressor.model import Host, Route
from stressor.remote.base import Unreachable, UnreachableReason


class Fault(RemoteError):
    """Raised inside a backend, and turned into an Unreachable at the seam."""

    def __init__(self, reason: UnreachableReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail

    def at(self, host: Host) -> Unreachable:
        """The outcome that the caller gets."""
        return Unreachable(host.name, self.reason, self.detail)


def hops(route: Route) -> tuple[Route, ...]:
    """Every machine on the way to the host and the host itself, in dialling order."""
    return (*(hop for jump in route.jumps for hop in hops(jump)), route)


def require_literals(addresses: Iterable[str]) -> None:
    """Raise Fault PROTOCOL unless each address is an IP literal: abort never asks DNS (I6)."""
    for address in addresses:
        try:
            ipaddress.ip_address(address)
        except ValueError:
            detail = f"address {address!r} is not an IP address, and names are not looked up here"
            raise Fault(UnreachableReason.PROTOCOL, detail) from None
