"""Whether a volume that a phase asks for would be made, and what becomes of it.

Which disks a class stands on, the API does not know: that question is storage isolation's, and its
answer is unknown.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stressor.checks.base import Finding, Level, unknown

NAME = "storage-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
ON_THE_NODE = frozenset({"rancher.io/local-path", "openebs.io/local", "microk8s.io/hostpath"})
"""Provisioners that make folders on the node's own file system: they bound no size, and on a
control-plane node it may be etcd's."""
_LIST = "kubectl get storageclasses"


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A StorageClass. `binding` is Immediate or WaitForFirstConsumer, `reclaim` Delete or Retain;
    empty where the API does not say."""

    name: str
    provisioner: str
    binding: str
    reclaim: str
    default: bool


def judge(
    wanted: Sequence[str | None], classes: Sequence[StorageClass] | None, problem: str = ""
) -> tuple[Finding, ...]:
    """`wanted`: the class of each phase that asks for a volume, None for the default one. `classes`
    None: the API did not say, and `problem` tells why. A class that is missing: FAIL."""
    if not wanted:
        return (Finding(NAME, "", Level.SKIP, "no phase asks for a StorageClass"),)
    if classes is None:
        return (unknown(NAME, "", Level.FAIL, problem or "no answer", _LIST),)
    return tuple(finding for name in dict.fromkeys(wanted) for finding in _wanted(name, classes))


def _wanted(name: str | None, classes: Sequence[StorageClass]) -> tuple[Finding, ...]:
    chosen = [one for one in classes if (one.default if name is None else one.name == name)]
    if not chosen:
        names = ", ".join(one.name for one in classes) or "none"
        text = "no StorageClass is the default" if name is None else f"no StorageClass {name}"
        remedy = f"params: {{storage_class: NAME}}; there are: {names}"
        return (Finding(NAME, "", Level.FAIL, text, remedy),)
    if len(chosen) > 1:
        names = ", ".join(one.name for one in chosen)
        text = f"{names} are all the default: the API takes the newest"
        return (Finding(NAME, "", Level.WARN, text, "params: {storage_class: NAME}"),)
    (one,) = chosen
    text = f"{one.name} ({one.provisioner}) binds where its pod is placed"
    return tuple(_against(one)) or (Finding(NAME, "", Level.PASS, text),)


def _against(one: StorageClass) -> Iterator[Finding]:
    if one.provisioner == NO_PROVISIONER:
        text = f"{one.name} makes no volumes: each pod needs one that exists and is free"
        remedy = f"kubectl get persistentvolumes | grep {one.name}; or a class with a provisioner"
        yield Finding(NAME, "", Level.WARN, text, remedy)
    if one.provisioner in ON_THE_NODE:
        text = f"{one.name} ({one.provisioner}) is the node's own disk, without a limit of size"
        remedy = "keep such phases off nodes with an etcd: placement: {role: worker}"
        yield Finding(NAME, "", Level.WARN, text, remedy)
    if one.binding == "Immediate":
        text = f"{one.name} binds at once: the volume may be in a zone that its node is not in"
        remedy = "a class with volumeBindingMode: WaitForFirstConsumer"
        yield Finding(NAME, "", Level.WARN, text, remedy)
    elif not one.binding:
        remedy = f"kubectl get storageclass {one.name} --output yaml"
        yield unknown(NAME, "", Level.WARN, f"when {one.name} binds its volumes", remedy)
    if one.reclaim == "Retain":
        text = f"{one.name} keeps its volumes after the run (reclaimPolicy: Retain)"
        remedy = f"kubectl get persistentvolumes | grep {one.name} after the run, and delete them"
        yield Finding(NAME, "", Level.WARN, text, remedy)
