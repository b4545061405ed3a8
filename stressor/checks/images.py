"""Whether the load image is on each node that is to carry load, by the word of its kubelet.

A pull is a load of its own on the node's disk and network, and its end is unknown. Load that has
not started 60 s after the creation of its Job does not start any more (START_BY).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stressor.checks.base import Finding, Level, unknown

NAME = "image"
MAX_LISTED = 50
"""A kubelet names so many images by default, the largest first (nodeStatusMaxImages)."""
MAX_NAMES = 5
"""A kubelet gives at most so many names of one image (MaxNamesPerImageInNodeStatus)."""
_HUB = "docker.io"
# The grammar of references in github.com/distribution/reference.
_REPOSITORY = re.compile(r"[a-z0-9]+(?:[._/-]+[a-z0-9]+)*")
_REGISTRY = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"[a-z0-9+.-]+:[0-9a-fA-F]{32,}")


@dataclass(frozen=True, slots=True)
class NodeImages:
    """A node that is to carry load, and each image that it names, with all names of it."""

    host: str
    node: str
    images: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class _Wanted:
    image: str
    name: str
    registry: str
    policy: str


def judge(image: str, policy: str, nodes: Sequence[NodeImages]) -> tuple[Finding, ...]:
    """One finding a node. `policy` is the imagePullPolicy of the load container.

    FAIL where the image is missing and nothing would or could bring it, WARN where it would be
    pulled. A node that names no image, or as many as it may, says nothing about one that it does
    not name: unknown.
    """
    wanted = _read(image, policy)
    if wanted is None:
        remedy = "stressor_load_image: REGISTRY/NAME:TAG"
        text = f"no name of an image: {image!r}"
        return (Finding(NAME, "", Level.FAIL, text, remedy),)
    if not nodes:
        why = "the API names no node that is to carry load"
        return (unknown(NAME, "", Level.FAIL, why, "kubectl get nodes"),)
    return tuple(_judged(wanted, node) for node in nodes)


def _judged(wanted: _Wanted, node: NodeImages) -> Finding:
    there = any(_full_name(one) == wanted.name for names in node.images for one in names)
    pulled = Level.WARN if _pulls(wanted) else Level.FAIL
    if there and wanted.policy != "Always":
        return Finding(NAME, node.host, Level.PASS, f"{wanted.image} is on node {node.node}")
    if there:
        text = f"the registry {wanted.registry} is asked although it is there"
        return Finding(NAME, node.host, Level.WARN, text, "imagePullPolicy: IfNotPresent")
    if _hides_some(node.images):
        why = f"is it on node {node.node}? It names {len(node.images)} images, not all"
        return unknown(NAME, node.host, pulled, why, f"crictl images | grep {wanted.image}")
    if _pulls(wanted):
        text = f"not on node {node.node}: would be pulled from {wanted.registry}"
        return Finding(NAME, node.host, pulled, text, f"crictl pull {wanted.image}")
    text = f"not on node {node.node}, and nothing would bring it there"
    return Finding(NAME, node.host, pulled, text, "ctr -n k8s.io images import IMAGE.tar")


def _pulls(wanted: _Wanted) -> bool:
    """Whether a missing image would be fetched. A registry called localhost is a build tool's word
    for "none"; one with a port may be a mirror on the node, and is asked."""
    return wanted.policy != "Never" and wanted.registry != "localhost"


def _hides_some(images: Sequence[Sequence[str]]) -> bool:
    full = any(len(names) >= MAX_NAMES for names in images)
    return not images or len(images) >= MAX_LISTED or full


def _read(image: str, policy: str) -> _Wanted | None:
    name = _full_name(image)
    if name is None:
        return None
    return _Wanted(image, name, name.partition("/")[0], policy)


def _full_name(image: str) -> str | None:
    """The name as containerd and CRI-O report it: with registry, and with tag or digest, of which a
    digest decides alone. None for what is no name."""
    rest, at, digest = image.partition("@")
    folder, slash, last = rest.rpartition("/")
    last, colon, tag = last.partition(":")
    registry, repository = _split(f"{folder}{slash}{last}")
    good = _REGISTRY.fullmatch(registry) and _REPOSITORY.fullmatch(repository)
    if not good or (colon and not _TAG.fullmatch(tag)) or (at and not _DIGEST.fullmatch(digest)):
        return None
    return f"{registry}/{repository}" + (f"@{digest}" if at else f":{tag or 'latest'}")


def _split(path: str) -> tuple[str, str]:
    """(registry, repository): the first part is a registry when it looks like a host."""
    first, slash, rest = path.partition("/")
    if slash and (first == "localhost" or "." in first or ":" in first):
        return first, rest
    return _HUB, path if slash else f"library/{path}"
