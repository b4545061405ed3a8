"""What it takes to reach and trust one API server, already chosen: no file is looked for here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Login:
    """A kubeconfig of exactly one context, with absolute paths, as parsed YAML.

    `headers` go with every request (impersonation). `shown` names the login in messages. Neither
    is shown in a repr: the document may hold a token.
    """

    document: Mapping[str, Any] = field(repr=False)
    shown: str
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def cluster(self) -> Mapping[str, Any]:
        """The one cluster's fields. Raises KeyError or IndexError where there is none."""
        return self.document["clusters"][0]["cluster"] or {}

    @property
    def user(self) -> Mapping[str, Any]:
        """The one user's fields; empty for an anonymous one."""
        users = self.document.get("users") or [{}]
        return users[0].get("user") or {}
