"""What `stressor init` reads before it drafts: a list or an inventory, the API, known_hosts files.

Every answer that is missing is a value with its reason, for the draft to say so.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from stressor.config.adoption import Chosen, adopt
from stressor.config.ansible import Groups, read_groups
from stressor.config.ansible_inventory import INSTALL, Ask, ansible_groups
from stressor.config.ansible_needs import ansible_needs
from stressor.config.distros import API_PORT, Distro, distro_of
from stressor.config.draft_hosts import DraftHost
from stressor.config.draft_trust import KnownHosts
from stressor.config.draft_values import readable
from stressor.config.hostlist import Described, parse_hosts
from stressor.config.kubeconfig import Kubeconfig, load_kubeconfig
from stressor.config.login import login_of
from stressor.config.values import cluster_uid
from stressor.config.yamlfile import Mistake, read_yaml, refuse
from stressor.errors import ConfigError, KubeError
from stressor.kube.base import Kube, NodeFacts
from stressor.kube.login import Login
from stressor.lifeline import state_dir

API_DEADLINE_S = 10.0
"""For one answer of the API: a draft can wait, an operator not for long."""

_GLOBAL_KNOWN_HOSTS = "/etc/ssh/ssh_known_hosts"

OpenApi = Callable[[Login], Kube]


@dataclass(frozen=True, slots=True)
class Asked:
    """What was typed."""

    kubeconfig: str | None = None
    context: str | None = None
    hosts: Path | None = None
    from_ansible: Path | None = None
    from_lab: bool = False
    control_plane_group: tuple[str, ...] = ()
    worker_group: tuple[str, ...] = ()
    user: str | None = None
    key: str | None = None
    become: bool | None = None
    cluster: str | None = None
    distro: str | None = None
    out: Path = Path()
    offline: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """Hosts as somebody described them. `hosts` None: nobody did, the API's nodes are taken.
    `cluster` are variables of the cluster that the source had. `keep_all`: each host is meant."""

    hosts: tuple[Described, ...] | None
    cluster: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    keep_all: bool = True


@dataclass(frozen=True, slots=True)
class Api:
    """What the kubeconfig and the API said. `nodes` and `uid` None: unknown, and `problem` says
    why. `path` None: no single kubeconfig to name."""

    kubeconfig: Kubeconfig | None = None
    nodes: tuple[NodeFacts, ...] | None = None
    uid: str | None = None
    problem: str = ""

    @property
    def path(self) -> str | None:
        """The one file that was read."""
        paths = self.kubeconfig.paths if self.kubeconfig else ()
        return paths[0] if len(paths) == 1 else None

    @property
    def context(self) -> str | None:
        """The context in use."""
        return self.kubeconfig.context.name if self.kubeconfig else None

    def port(self, hosts: Sequence[DraftHost]) -> int:
        """Of the API servers: the kubeconfig's, where its server is one of the hosts."""
        try:
            parts = urlsplit(self.kubeconfig.cluster.server if self.kubeconfig else "")
            own = any(parts.hostname == host.address for host in hosts)
            return (parts.port or 443) if own else API_PORT
        except ValueError:
            return API_PORT


def source_of(asked: Asked, env: Mapping[str, str], ask: Ask | None) -> Source:
    """The hosts that a file describes. Raises ConfigError with all its mistakes."""
    given = {
        "--hosts": asked.hosts is not None,
        "--from-ansible": asked.from_ansible is not None,
        "--from-lab": asked.from_lab,
    }
    named = [option for option, is_given in given.items() if is_given]
    if len(named) > 1:
        raise ConfigError((f"{' and '.join(named)}: choose one source of hosts",))
    chosen = Chosen(asked.control_plane_group, asked.worker_group)
    if chosen != Chosen() and asked.from_ansible is None:
        raise ConfigError(("--control-plane-group and --worker-group need --from-ansible FILE",))
    if asked.hosts is not None:
        return Source(parse_hosts(str(asked.hosts), _text(asked.hosts)), shown=(str(asked.hosts),))
    if asked.from_ansible is not None:
        return _adopted(asked.from_ansible, ask, chosen)
    if asked.from_lab:
        return _adopted(_lab(env), ask, chosen)
    if asked.offline:
        told = (
            "no hosts: name them with --hosts FILE or --from-ansible FILE, or leave out --offline"
        )
        raise ConfigError((told,))
    return Source(None)


def api_of(asked: Asked, source: Source, env: Mapping[str, str], open_api: OpenApi) -> Api:
    """What the kubeconfig says, and with it the API. Raises ConfigError for a kubeconfig that was
    asked for and cannot be used, and for an API that is silent where only it knows the hosts."""
    try:
        kubeconfig = _kubeconfig(asked, source, env)
    except ConfigError as error:
        if source.hosts is None or asked.kubeconfig or asked.context:
            raise
        return Api(problem="; ".join(error.mistakes))
    if asked.offline:
        return Api(kubeconfig, problem="--offline: the API was not asked")
    api = _answers(kubeconfig, open_api)
    if source.hosts is None and not api.nodes:
        told = api.problem or "the API names no node"
        raise ConfigError((f"no hosts: {told}: name them with --hosts FILE",))
    return api


def pin_of(source: Source, api: Api) -> tuple[str | None, str]:
    """The cluster's UID, or None and why. Raises ConfigError when the source pins another one."""
    told = source.cluster.get("stressor_cluster_uid")
    if told is not None and api.uid is not None and told != api.uid:
        raise ConfigError(
            (
                f"{', '.join(source.shown)}: stressor_cluster_uid is {told}, the API's cluster is "
                f"{api.uid}: choose the API with --kubeconfig or --context",
            )
        )
    found = api.uid or (None if told is None else str(told))
    return found, "" if found else api.problem


def distro_of_nodes(
    asked: str | None, nodes: Sequence[NodeFacts] | None
) -> tuple[Distro | None, str]:
    """The distribution, or None; and who says so."""
    if asked is not None:
        return Distro(asked), "--distro"
    if not nodes:
        return None, "no node was seen, and nobody said which distribution this is"
    versions = ", ".join(sorted({node.kubelet_version or "unknown" for node in nodes}))
    found = distro_of(node.kubelet_version for node in nodes)
    if found is None:
        return None, f"the kubelets' versions ({versions}) do not say which distribution this is"
    return found, f"kubelet {versions}"


def known_hosts(env: Mapping[str, str]) -> Iterator[KnownHosts]:
    """The known_hosts files of this user and of this machine, as far as they can be read."""
    home = env.get("HOME")
    places = [("~/.ssh/known_hosts", f"{home}/.ssh/known_hosts")] if home else []
    for shown, path in (*places, (_GLOBAL_KNOWN_HOSTS, _GLOBAL_KNOWN_HOSTS)):
        try:
            yield KnownHosts(shown, Path(path).read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise ConfigError((f"{path}:1: cannot be read: {error.strerror}",)) from error
    except UnicodeDecodeError as error:
        raise ConfigError((f"{path}:1: is not UTF-8 text (byte {error.start})",)) from error


def _lab(env: Mapping[str, str]) -> Path:
    # Rooms beside each other do not know each other: a test holds this to the lab's own word.
    path = state_dir(env) / "lab" / "inventory.yaml"
    if not path.exists():
        raise ConfigError((f"{path}: there is no lab: stressor lab up",))
    return path


def _adopted(path: Path, ask: Ask | None, chosen: Chosen) -> Source:
    found = adopt(path, _groups(path, ask), chosen)
    return Source(found.hosts, found.cluster, found.notes, (str(path),), keep_all=False)


def _groups(path: Path, ask: Ask | None) -> Groups:
    folder = path if path.is_dir() else path.parent
    reasons = ansible_needs(path, (folder, Path()))
    if not reasons:
        return read_groups(read_yaml(path))
    if ask is None:
        why = f"only Ansible can read that, and it is not installed: {INSTALL}"
        refuse(str(path), (Mistake(one.line, f"{one.message}: {why}") for one in reasons))
    assert ask is not None
    return ansible_groups(path, ask)


def _kubeconfig(asked: Asked, source: Source, env: Mapping[str, str]) -> Kubeconfig:
    told = source.cluster.get("stressor_kubeconfig")
    path = asked.kubeconfig or (None if told is None else os.path.expanduser(str(told)))
    # A context belongs to its kubeconfig: the source's means nothing in another file.
    own = None if asked.kubeconfig else source.cluster.get("stressor_context")
    context = asked.context or (None if own is None else str(own))
    found = load_kubeconfig(path, env, context=context)
    readable(
        (f"{found.context.defined_at}: context", "stressor_context", name)
        for name in (found.context.name,)
    )
    return found


def _answers(kubeconfig: Kubeconfig, open_api: OpenApi) -> Api:
    """Each question for itself: a login may be allowed one answer and not the other."""
    problems: list[str] = []
    uid: str | None = None
    nodes: tuple[NodeFacts, ...] | None = None
    try:
        kube = open_api(login_of(kubeconfig))
    except (ConfigError, KubeError) as error:
        return Api(kubeconfig, problem=f"the API gave no answer ({error})")
    try:
        nodes = kube.nodes(deadline_s=API_DEADLINE_S)
    except KubeError as error:
        problems.append(f"the API gave no answer ({error})")
    try:
        uid = cluster_uid(kube.cluster_uid(deadline_s=API_DEADLINE_S))
    except (KubeError, ValueError) as error:
        problems.append(f"the API gave no answer ({error})")
    return Api(kubeconfig, nodes, uid, "; ".join(dict.fromkeys(problems)))
