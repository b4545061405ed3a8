"""Where the API keeps the kinds of object that stressor makes and reads."""

from collections.abc import Mapping
from typing import Any

from stressor.kube import facts

NAMESPACES, PODS, JOBS = "/api/v1/namespaces", "/api/v1/pods", "/apis/batch/v1/jobs"
NODES = "/api/v1/nodes"


def collection_of(manifest: Mapping[str, Any]) -> str:
    """The collection that an object like `manifest` is created in."""
    return path_of(manifest["kind"], facts.metadata(manifest).get("namespace", ""))


def item_of(manifest: Mapping[str, Any]) -> str:
    """The object of `manifest`'s name."""
    return f"{collection_of(manifest)}/{facts.metadata(manifest)['name']}"


def path_of(kind: str, namespace: str) -> str:
    """The collection of `kind` in `namespace`. Raises ValueError for a kind that stressor does not
    make."""
    inside = f"{NAMESPACES}/{namespace}"
    known = {
        "Namespace": NAMESPACES,
        "Pod": f"{inside}/pods",
        "ResourceQuota": f"{inside}/resourcequotas",
        "Job": f"/apis/batch/v1/namespaces/{namespace}/jobs",
    }
    if kind not in known:
        raise ValueError(f"not a kind that stressor makes: {kind}")
    return known[kind]
