"""The verbs that only look: what preflight wants to know of a cluster. Nothing is created.

An access review and a dry run are POSTs that leave nothing behind.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from stressor.errors import KubeError
from stressor.kube import facts
from stressor.kube.asking import Asking, Budget
from stressor.kube.base import Access, AccessQuestion
from stressor.kube.transport import Request

AT_ONCE = 8
"""Two dozen questions one by one take seconds over a VPN; API servers take hundreds at once."""
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Survey(Asking):
    """The part of `Kube` that only looks."""

    def may(self, questions: Sequence[AccessQuestion], *, deadline_s: float) -> tuple[Access, ...]:
        budget = Budget("ask for access", deadline_s)
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="access") as pool:
            return tuple(pool.map(lambda question: self._access(question, budget), questions))

    def _access(self, question: AccessQuestion, budget: Budget) -> Access:
        try:
            review = self._read(
                Request("POST", ACCESS_REVIEWS, {}, facts.access_review(question)), budget
            )
        except KubeError as error:
            return Access(question, None, str(error))
        return facts.access(question, review)
