"""What a request to the API asks the authorizer, as the server reads it from method and path."""

from collections.abc import Callable, Mapping
from typing import Any

from stressor.kube.base import AccessQuestion
from stressor.kube.transport import Request

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def question_of(request: Request) -> AccessQuestion | None:
    """The access that `request` needs; None for what is no resource (/apis, /readyz).

    A namespace's own object counts as inside that namespace (apiserver/pkg/endpoints/request).
    """
    parts = request.path.strip("/").split("/")
    if parts[:1] == ["api"] and len(parts) > 2:
        group, rest = "", parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, rest = parts[1], parts[3:]
    else:
        return None
    namespace = rest[1] if rest[0] == "namespaces" and len(rest) > 1 else ""
    if namespace and len(rest) > 2:
        rest = rest[2:]
    resource, name, subresource = (*rest, "", "")[:3]
    verb = _VERBS.get(request.method) or ("get" if name else "list")
    return AccessQuestion(verb, resource, group, subresource, namespace, name)


def reviewed(
    review: Mapping[str, Any], may: Callable[[AccessQuestion], bool | None]
) -> dict[str, Any]:
    """A SelfSubjectAccessReview with its answer; `may` None: the authorizer errs."""
    allowed = may(AccessQuestion(**review["spec"]["resourceAttributes"]))
    status: dict[str, Any] = {"allowed": bool(allowed)}
    if allowed is None:
        status["evaluationError"] = "webhook authorizer: connection refused"
    return {**review, "status": status}
