"""The way to a real API server: the kubernetes client's connection, without its typed models.

The client (36 and 37 alike) runs credential plugins, renews tokens and sets up TLS and proxies;
which kubeconfig and context are meant was decided before (config.kubeconfig). Requests then go
straight through its connection pool: the generated calls differ between the two versions, 37
refuses bodies that 36 sends, both refuse objects that servers return, and their hidden retries make
a time-out of 2 s last 8 s (docs/signals.md).
"""

import json
import queue
import re
import threading
from collections.abc import Iterable
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import HTTPError

from stressor.errors import KubeError
from stressor.kube.base import Kube
from stressor.kube.login import Login
from stressor.kube.transport import Request, Response
from stressor.kube.verbs import ApiKube

_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


def connect(login: Login) -> Kube:
    """The cluster that `login` leads to. Nothing is sent yet, but a credential plugin is run.

    Raises KubeError when the login cannot be used.
    """
    # The import takes about a second and 100 MiB: only what talks to an API pays for it.
    from kubernetes import config

    # Typed in some versions of the client and not in others.
    open_client: Any = config.new_client_from_config_dict
    try:
        client = open_client(config_dict=dict(login.document), persist_config=False)
    except (config.ConfigException, OSError, ValueError, TypeError, AssertionError) as error:
        raise KubeError(f"connect: {login.shown} cannot be used: {error}") from error
    return ApiKube(PoolTransport(client, login.headers))


class PoolTransport:
    """Requests over a kubernetes ApiClient's connection pool. Thread-safe, as the pool is."""

    def __init__(self, client: Any, headers: Iterable[tuple[str, str]] = ()) -> None:
        self._client = client
        self._headers = tuple(headers)

    def send(self, request: Request, *, deadline_s: float) -> Response:
        """As `Transport.send`.

        The wall clock is kept by a second thread: socket time-outs bound single reads, but not a
        peer that trickles, a name server that is silent, or a credential plugin that hangs. After
        the deadline that thread is left to its own time-outs.
        """
        answers: queue.SimpleQueue[Response | Exception] = queue.SimpleQueue()

        def ask() -> None:
            try:
                answers.put(self._ask(request, deadline_s))
            except Exception as error:  # noqa: BLE001 - raised again by the thread that waits
                answers.put(error)

        threading.Thread(target=ask, name=f"kube {request.method}", daemon=True).start()
        try:
            answer = answers.get(timeout=deadline_s)
        except queue.Empty as error:
            raise KubeError(f"{request}: no answer within {deadline_s:.3g} s") from error
        if isinstance(answer, Response):
            return answer
        if isinstance(answer, HTTPError | OSError):
            raise KubeError(f"{request}: {answer} (deadline {deadline_s:.3g} s)") from answer
        raise answer

    def _ask(self, request: Request, deadline_s: float) -> Response:
        settings = self._client.configuration
        answer = self._client.rest_client.pool_manager.request(
            request.method,
            settings.host.rstrip("/") + request.path + _query(request),
            body=None if request.body is None else json.dumps(request.body).encode(),
            headers=self._all_headers(request),
            timeout=urllib3.Timeout(connect=deadline_s, read=deadline_s),
            retries=False,
            redirect=False,
        )
        headers = answer.headers
        told = _warnings(headers.getlist("Warning"))
        return Response(answer.status, answer.data, _date(headers.get("Date")), told)

    def _all_headers(self, request: Request) -> urllib3.HTTPHeaderDict:
        """One name may come several times: Impersonate-Group does."""
        authorization = _authorization(self._client.configuration)
        headers = urllib3.HTTPHeaderDict(
            {"Accept": "application/json", **_type(request), **authorization}
        )
        for name, value in self._headers:
            headers.add(name, value)
        return headers


def _query(request: Request) -> str:
    return "?" + urlencode(request.query) if request.query else ""


def _type(request: Request) -> dict[str, str]:
    return {} if request.body is None else {"Content-Type": request.content_type}


def _authorization(settings: Any) -> dict[str, str]:
    """The bearer token, renewed by the client where it expired; empty with client certificates."""
    found = settings.auth_settings().values()
    return {one["key"]: one["value"] for one in found if one["in"] == "header" and one["value"]}


def _warnings(headers: Iterable[str]) -> tuple[str, ...]:
    """The quoted texts: `299 - "would violate PodSecurity"`. Quotes within are escaped."""
    found = (text for header in headers for text in _WARNING.findall(header))
    return tuple(re.sub(r"\\(.)", r"\1", text) for text in found)


def _date(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return parsedate_to_datetime(text).timestamp()
    except ValueError:
        return None
