"""Whether the load image is on each load node, or could be pulled there.

The API knows only what kubelets report. A pull takes time and a registry, and the load refuses to
start more than 60 s after its Job was made; an image that is nowhere never starts.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stressor.checks.base import Finding, Level, unknown

NAME = "images"
LISTED_AT_MOST = 50
"""The kubelet's default nodeStatusMaxImages: it reports the largest images only."""
_DOCKER = "docker.io"
# The grammar of names in github.com/distribution/reference; kubelets refuse what is outside of it.
_REGISTRY = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?")
_REPOSITORY = re.compile(r"[a-z0-9]+(?:(?:[._/]|__|-+)[a-z0-9]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"[a-z0-9+._-]+:[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class NodeImages:
    """What a load node reports. `names`: tags and digests of its images; `listed`: how many images.
    `host` is its name in the inventory."""

    host: str
    node: str
    names: tuple[str, ...]
    listed: int


@dataclass(frozen=True, slots=True)
class _Reference:
    """An image's name, read as container runtimes read it. `digest` decides where there is one."""

    registry: str
    repository: str
    tag: str
    digest: str
    short: bool

    def names(self, other: "_Reference") -> bool:
        """Whether a node's image `other` is what this reference asks for. A short name also finds
        what was built on the node (localhost/, as podman and CRI-O call it)."""
        places = {self.registry} | ({"localhost"} if self.short else set())
        repositories = {self.repository, self.repository.removeprefix("library/")}
        if other.registry not in places or other.repository not in repositories:
            return False
        if self.digest:
            return other.digest == self.digest
        return bool(other.tag) and other.tag == self.tag


def judge(image: str, pull_policy: str, nodes: Sequence[NodeImages]) -> tuple[Finding, ...]:
    """A finding for each load node. FAIL: the image is not there, and the policy or its own name
    forbids that it is pulled. WARN: it would be pulled, or the node does not list all it has. What
    is no name of an image fails once, for all nodes."""
    if not _is_name(image):
        text = f"{image!r} is no name of an image: no node would start it"
        return (Finding(NAME, "", Level.FAIL, text, "stressor_load_image: REGISTRY/NAME:TAG"),)
    if not nodes:
        remedy = "kubectl get nodes --output yaml, status.images"
        return (unknown(NAME, "", Level.FAIL, "no load node reports its images", remedy),)
    return tuple(_judged(image, pull_policy, node) for node in nodes)


def _judged(image: str, policy: str, node: NodeImages) -> Finding:
    wanted = _read(image)
    there = any(wanted.names(_read(name)) for name in node.names)
    if there and policy != "Always":
        return Finding(NAME, node.host, Level.PASS, f"{image} is there")
    if there:
        text = f"{image} is there, and asked of its registry at each start ({policy})"
        return Finding(NAME, node.host, Level.WARN, text, "imagePullPolicy: IfNotPresent")
    if node.listed == 0 or node.listed >= LISTED_AT_MOST:
        why = f"is {image} there? the node lists {node.listed} images, which need not be all"
        return unknown(NAME, node.host, Level.WARN, why, "crictl images on the node")
    return _absent(image, policy, node.host, next(_unpullable(wanted, policy), ""))


def _absent(image: str, policy: str, host: str, obstacle: str) -> Finding:
    if obstacle:
        text = f"{image} is not there, and cannot be pulled: {obstacle}"
        remedy = "push it, then stressor_load_image: REGISTRY/NAME:TAG; or import it on the node"
        return Finding(NAME, host, Level.FAIL, text, remedy)
    text = f"{image} is not there: it would be pulled ({policy}) at the start of the load"
    return Finding(NAME, host, Level.WARN, text, f"crictl pull {image} on the node")


def _unpullable(wanted: _Reference, policy: str) -> Iterator[str]:
    if policy == "Never":
        yield "imagePullPolicy is Never"
    if wanted.registry == "localhost":
        yield "localhost/ names what was built on a node, no registry"
    if wanted.registry.partition(":")[0].endswith(".invalid"):
        yield f"{wanted.registry} is no registry (RFC 2606)"
    if wanted.short and wanted.repository.startswith("library/"):
        yield f"without a registry it means {_DOCKER}/{wanted.repository}"


def _is_name(image: str) -> bool:
    """Whether a kubelet would take `image` (else: InvalidImageName)."""
    name, at, _ = image.partition("@")
    wanted = _read(image)
    return bool(
        _REGISTRY.fullmatch(wanted.registry)
        and _REPOSITORY.fullmatch(wanted.repository)
        and (_TAG.fullmatch(wanted.tag) or (at and not wanted.tag))
        and (_DIGEST.fullmatch(wanted.digest) or not at)
        and not name.endswith(":")
    )


def _read(image: str) -> _Reference:
    """As containerd reads it (distribution/reference): what comes before the first slash is a
    registry when it has a dot or a colon, or is localhost; else it is docker.io, and one word
    alone is in library/."""
    name, _, digest = image.partition("@")
    head, slash, tail = name.rpartition("/")
    last, _, tag = tail.partition(":")
    first, inner, rest = f"{head}{slash}{last}".partition("/")
    named = bool(inner) and ("." in first or ":" in first or first == "localhost")
    registry, repository = (first, rest) if named else (_DOCKER, f"{first}{inner}{rest}")
    if registry == _DOCKER and "/" not in repository:
        repository = f"library/{repository}"
    # A digest without a tag is no "latest".
    return _Reference(registry, repository, tag or ("" if digest else "latest"), digest, not named)
