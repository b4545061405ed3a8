"""Requests under one deadline, and lists page by page: what all verbs over a transport share."""

import time
from collections.abc import Iterator
from typing import Any

from stressor.errors import KubeError
from stressor.kube import facts
from stressor.kube.base import KubeRefused
from stressor.kube.transport import Request, Transport, document

PAGE_SIZE = 500
POLL_S = 0.2
GONE, CONFLICT, NOT_FOUND = 410, 409, 404


class Budget:
    """A verb's deadline, shared by all the requests that it takes."""

    def __init__(self, what: str, deadline_s: float) -> None:
        self.what = what
        self.deadline_s = deadline_s
        self._end_s = time.monotonic() + deadline_s

    def left_s(self) -> float:
        """The seconds that are left. Raises KubeError when there are none."""
        left_s = self._end_s - time.monotonic()
        if left_s <= 0:
            raise KubeError(f"{self.what}: not done within {self.deadline_s:g} s")
        return left_s

    def pause(self) -> bool:
        """Wait a moment before asking again; False when the deadline comes first."""
        if self._end_s - time.monotonic() <= POLL_S:
            return False
        time.sleep(POLL_S)
        return True


class Calls:
    """Reading over a transport. Thread-safe, as the transport is."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _read(self, request: Request, budget: Budget) -> dict[str, Any]:
        response = self._transport.send(request, deadline_s=budget.left_s())
        return document(request, response, deadline_s=budget.deadline_s)

    def _list(
        self, path: str, selector: str, budget: Budget, *, fields: str = ""
    ) -> list[dict[str, Any]]:
        """All items, page by page; started again once when the server forgot the first page."""
        try:
            return list(self._pages(path, selector, fields, budget))
        except KubeRefused as error:
            if error.status != GONE:
                raise
        return list(self._pages(path, selector, fields, budget))

    def _pages(
        self, path: str, selector: str, fields: str, budget: Budget
    ) -> Iterator[dict[str, Any]]:
        selectors = {"labelSelector": selector, "fieldSelector": fields}
        query = {"limit": str(PAGE_SIZE)} | {key: text for key, text in selectors.items() if text}
        while True:
            page = self._read(Request("GET", path, query), budget)
            yield from page.get("items") or []
            following = facts.metadata(page).get("continue")
            if not following:
                return
            query = {**query, "continue": following}
