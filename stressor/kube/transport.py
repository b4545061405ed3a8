"""One request to the API server and what came back: the narrow place that the fake replaces."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from stressor.errors import KubeError
from stressor.kube.base import KubeRefused


@dataclass(frozen=True, slots=True)
class Request:
    """`path` begins with /; `query` and `body` as the API documents them. `content_type` says how
    the API reads the body (a patch has a type of its own)."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, object] | None = None
    content_type: str = "application/json"

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Response:
    """A complete answer. `server_unix_s` is its Date header, the server's own clock; `warnings` are
    the texts of its Warning headers (RFC 7234, code 299), by which the API says what it let pass.
    """

    status: int
    body: bytes
    server_unix_s: float | None = None
    warnings: tuple[str, ...] = ()


class Transport(Protocol):
    """Sends one request. Raises KubeError when no complete answer came within `deadline_s`, which
    bounds the whole call by the wall clock; any HTTP status is an answer."""

    def send(self, request: Request, *, deadline_s: float) -> Response: ...


def document(request: Request, response: Response, *, deadline_s: float) -> dict[str, Any]:
    """The JSON object of a successful answer. Raises KubeRefused for an error status, KubeError for
    anything that is no JSON object (a proxy's page, a cut body)."""
    refuse_errors(request, response, deadline_s=deadline_s)
    try:
        parsed = json.loads(response.body)
    except ValueError as error:
        raise KubeError(f"{request}: the answer is not JSON (deadline {deadline_s:g} s)") from error
    if not isinstance(parsed, dict):
        raise KubeError(f"{request}: the answer is not an object (deadline {deadline_s:g} s)")
    return parsed


def refuse_errors(request: Request, response: Response, *, deadline_s: float) -> None:
    """Raises KubeRefused when the answer is an error."""
    if 200 <= response.status < 300:
        return
    message = f"{request}: {response.status} {_message(response.body)} (deadline {deadline_s:g} s)"
    raise KubeRefused(message, response.status)


def _message(body: bytes) -> str:
    """The server's own words: the message of a Status object, else the body's beginning."""
    try:
        parsed = json.loads(body)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict) and isinstance(parsed.get("message"), str):
        return str(parsed["message"])
    return body[:200].decode("utf-8", "replace").strip() or "without a word"
