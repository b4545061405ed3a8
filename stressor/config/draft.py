"""The text of a drafted inventory and of the settings beside it: facts in, commented YAML out.

Pure. Three kinds of line: what is known, what is a guess and says so, and examples behind a `#`.
Nobody's answer is invented: the question about bystanders is written, its answer is not.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from stressor.config.ansible import read_groups
from stressor.config.distros import API_PORT, LAYOUTS, Distro
from stressor.config.draft_hosts import DraftHost
from stressor.config.draft_trust import is_trusted
from stressor.config.draft_yaml import comment, entry, example, scalar
from stressor.config.inventory import inventory_of
from stressor.config.layers import ELECTION_TIMEOUT_S, PROJECT_FILE
from stressor.config.routes import HOST_VARIABLES
from stressor.config.yamlfile import parse_yaml
from stressor.model import Inventory, Role

INVENTORY_NAME = "inventory.yaml"
SETTINGS_NAME = PROJECT_FILE

_SHARED = (
    "ansible_user",
    "ansible_port",
    "ansible_become",
    "ansible_ssh_private_key_file",
    "stressor_known_hosts",
    "stressor_transport",
)
"""What stands once, for all, when every host has it alike."""
_ETCD = ("etcd_metrics_url", "etcd_data_dir")
_KEY_COMMAND = "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub"
_UID_COMMAND = "kubectl get ns kube-system -o jsonpath={.metadata.uid}"


@dataclass(frozen=True, slots=True)
class Draft:
    """Everything that a draft says. `sources`: where its facts come from. `login`: variables of a
    login that were given for all hosts. `carried`: variables of the cluster that a source had.
    `uid` None: not pinned, and `uid_problem` says why. `distro` None: unknown; `distro_reason` says
    who told. `kubeconfig` None: none was named, or several. `left_out`: what a source had and the
    draft has not. `api_port`: of the API servers, a guess.
    """

    cluster: str
    hosts: tuple[DraftHost, ...]
    sources: tuple[str, ...] = ()
    cluster_note: str = ""
    login: Mapping[str, object] = field(default_factory=dict)
    carried: Mapping[str, object] = field(default_factory=dict)
    kubeconfig: str | None = None
    context: str | None = None
    uid: str | None = None
    uid_problem: str = ""
    distro: Distro | None = None
    distro_reason: str = ""
    api_port: int = API_PORT
    unlisted: tuple[DraftHost, ...] = ()
    left_out: tuple[str, ...] = ()

    def with_role(self, role: Role) -> tuple[DraftHost, ...]:
        """The hosts with `role`, in their order."""
        return tuple(host for host in self.hosts if role in host.roles)

    @property
    def untrusted(self) -> tuple[DraftHost, ...]:
        """The hosts whose keys nothing vouches for yet."""
        return tuple(host for host in self.hosts if not is_trusted(host))

    @property
    def bystanders_asked(self) -> bool:
        """Whether the question about bystanders stands unanswered. A host of the cluster's own
        etcd in that group answers nothing."""
        named = any(not host.etcd for host in self.with_role(Role.BYSTANDER))
        return not named and "stressor_bystanders_none" not in self.carried


def read_back(draft: Draft, text: str, folder: Path) -> Inventory:
    """The inventory that `text` will be in `folder`, by the reader that will read it.

    Raises ConfigError when it would refuse it: then nothing may be written.
    """
    # Nobody can look up a line of a file that is not there: the path says so.
    path = folder / f"{INVENTORY_NAME} (draft, not written)"
    inventory = inventory_of(path, read_groups(parse_yaml(str(path), text)))
    assert {host.name for host in inventory.hosts} == {host.name for host in draft.hosts}
    return inventory


def settings_text(draft: Draft) -> str:
    """The settings file, as docs/configuration.md has it."""
    timeout_s = LAYOUTS[draft.distro].election_timeout_s if draft.distro else ELECTION_TIMEOUT_S
    lines = (
        *comment(
            "Settings for this folder and those below it, drafted by `stressor init`: `stressor "
            "config view` shows what holds. Lines behind `# example:` mean nothing until that word "
            "is taken out."
        ),
        *entry(0, "inventory", INVENTORY_NAME),
        *comment("The load image. It wins over stressor_load_image of the inventory."),
        example(0, "image: registry.example/stressor-load:1"),
        *comment("etcd's election time-out: 1s unless it was changed, 5s on RKE2 and k3s."),
        example(0, f"election_timeout: {timeout_s:g}s"),
        *comment("The log of what stressor does; the record of a run is its journal."),
        example(0, "log_file: stressor.log"),
        example(0, "log_level: info"),
    )
    return "\n".join(lines) + "\n"


def inventory_text(draft: Draft) -> str:
    """The inventory."""
    lines = (
        *_head(draft),
        "all:",
        "  vars:",
        *_cluster(draft),
        *_api(draft),
        *_questions(draft),
        *_login(draft),
        "",
        *_each_host(),
        "control_plane:",
        *_etcd_guesses(draft),
        *_hosts(draft, Role.CONTROL_PLANE, _whole(draft)),
        "",
        "workers:",
        *_workers(draft),
        "",
        *_bystanders(draft),
    )
    return "\n".join(lines) + "\n"


def _head(draft: Draft) -> Iterator[str]:
    yield from comment(f"Drafted by `stressor init` from {'; '.join(draft.sources) or 'nothing'}.")
    yield from comment(
        "An ordinary Ansible inventory: the same file serves ansible-playbook. No host was asked: "
        "`stressor preflight` verifies every line. Lines behind `# example:` mean nothing until "
        "that word is taken out. Every variable is explained in docs/inventory.md."
    )
    for note in draft.left_out:
        yield from comment(f"{note[:1].upper()}{note[1:]}.")


def _cluster(draft: Draft) -> Iterator[str]:
    yield from comment("Names the cluster in files, labels and reports.", 4)
    if draft.cluster_note:
        yield from comment(draft.cluster_note, 4)
    yield from entry(4, "stressor_cluster", draft.cluster)
    if "stressor_load_image" in draft.carried:
        yield from entry(4, "stressor_load_image", draft.carried["stressor_load_image"])
    else:
        yield from comment("The image that load runs in; the nodes must be able to pull it.", 4)
        yield example(4, "stressor_load_image: registry.example/stressor-load:1")
    if "disposable" in draft.carried:
        yield from comment("Allows load on storage that an etcd is known to share.", 4)
        yield from entry(4, "disposable", draft.carried["disposable"])


def _api(draft: Draft) -> Iterator[str]:
    if draft.kubeconfig is not None:
        yield from comment(
            "The API that is meant. Switching contexts elsewhere changes nothing.", 4
        )
        yield from entry(4, "stressor_kubeconfig", draft.kubeconfig)
    else:
        yield from comment("No kubeconfig is fixed: what kubectl would use is used.", 4)
        yield example(4, "stressor_kubeconfig: ~/.kube/staging-1")
    if draft.context is not None:
        yield from entry(4, "stressor_context", draft.context)
    else:
        yield example(4, "stressor_context: staging-1")
    if draft.uid is not None:
        yield from comment(
            "Pins the cluster: the UID of its namespace kube-system, as the API gave it.", 4
        )
        yield from entry(4, "stressor_cluster_uid", draft.uid)
    else:
        yield from comment(f"The cluster is not pinned: {draft.uid_problem}.", 4)
        yield f"    # {_UID_COMMAND}"
        yield example(4, "stressor_cluster_uid: 00000000-0000-0000-0000-000000000000")


def _questions(draft: Draft) -> Iterator[str]:
    reason = draft.carried.get("stressor_bystanders_none")
    if reason is not None:
        yield from comment("Why no other cluster shares anything with this one.", 4)
        yield from entry(4, "stressor_bystanders_none", reason)
    elif draft.bystanders_asked:
        yield from comment(
            "QUESTION, which blocks storage load until it is answered: which hosts of other "
            "clusters may share storage, hypervisors or network with this one? Name them in "
            "`bystanders` below, or say here why there are none.",
            4,
        )
        yield example(4, 'stressor_bystanders_none: "its storage is its own; asked its owner"')


_UNSAID: Mapping[str, tuple[str, str]] = {
    "ansible_user": ("Log in as this user. Nobody said; root, then.", "ansible_user: ops"),
    "ansible_become": (
        "Run commands under `sudo -n`. Nobody said; without, then.",
        "ansible_become: true",
    ),
    "ansible_ssh_private_key_file": (
        "The private key. Nobody said which.",
        "ansible_ssh_private_key_file: ~/.ssh/staging",
    ),
    "stressor_known_hosts": (
        "Vouches for the hosts' keys. A key that is in no such file is pinned with its host, as "
        f"it is read at the host's console: {_KEY_COMMAND}",
        "stressor_known_hosts: ~/.ssh/known_hosts",
    ),
}


def _login(draft: Draft) -> Iterator[str]:
    everywhere = {**draft.login, **_common(draft)}
    for name in _SHARED:
        told = all(name in host.variables for host in draft.hosts)
        if name in everywhere:
            yield from entry(4, name, everywhere[name])
        elif name in _UNSAID and not told:
            about, line = _UNSAID[name]
            yield from comment(about, 4)
            yield example(4, line)


def _each_host() -> Iterator[str]:
    yield from comment("A host may also have:")
    for about, line in (
        (
            "further ways in, tried in their order when the first does not answer,",
            "stressor_routes: [{address: 198.51.100.7, user: rescue}]",
        ),
        ("jump hosts on the way to it, outermost first,", "stressor_jumps: [ops@192.0.2.1:22]"),
        (
            "what cuts its power from this machine (words, no shell): the last resort,",
            "stressor_fence: [openstack, server, stop, cp1]",
        ),
        ("the machine that it stands on, to see who shares it.", "stressor_hypervisor: kvm7"),
    ):
        yield from comment(about)
        yield example(0, line)


def _etcd_guesses(draft: Draft) -> Iterator[str]:
    """For the whole group where each of its hosts takes them; else they stand with the hosts."""
    alike = [name for name in _ETCD if _whole_group(draft, name)]
    wanted = any(_wants(host, name) for host in draft.hosts for name in _ETCD)
    if draft.distro is not None and alike:
        yield "  vars:"
        yield from comment(_guess(draft), 4)
        for name in alike:
            yield from entry(4, name, _layout(draft.distro)[name])
    elif draft.distro is None and wanted:
        yield from comment(
            f"Where etcd is: {draft.distro_reason or 'nobody said'}. Say it with --distro, or "
            "write it here (these are kubeadm's):",
            2,
        )
        yield example(
            2,
            "vars: {etcd_metrics_url: http://127.0.0.1:2381/metrics, etcd_data_dir: /var/lib/etcd}",
        )


def _guess(draft: Draft) -> str:
    return (
        f"Guesses: where {draft.distro} keeps an etcd ({draft.distro_reason}). "
        "As the host itself sees it. Preflight verifies them."
    )


def _layout(distro: Distro) -> Mapping[str, str]:
    layout = LAYOUTS[distro]
    return dict(zip(_ETCD, (layout.etcd_metrics_url, layout.etcd_data_dir), strict=True))


def _wants(host: DraftHost, name: str) -> bool:
    return host.etcd and name not in host.variables


def _whole_group(draft: Draft, name: str) -> bool:
    return all(_wants(host, name) for host in draft.with_role(Role.CONTROL_PLANE))


def _workers(draft: Draft) -> Iterator[str]:
    yield from comment("Where disk phases may write, on the host:", 2)
    yield example(2, "vars: {scratch_dir: /var/lib/stressor-scratch}")
    whole = _whole(draft)

    def block(host: DraftHost) -> Iterator[str]:
        if Role.CONTROL_PLANE in host.roles:
            yield f"    {scalar(host.name)}: {{}}"
        else:
            yield from whole(host)

    yield from _hosts(draft, Role.WORKER, block)


def _bystanders(draft: Draft) -> Iterator[str]:
    yield from comment(
        "Hosts of other clusters that may share storage, hypervisors or network "
        "with this one. They carry no load; their etcd and pressure are watched "
        "with the same gates."
    )
    yield "bystanders:"
    yield from _hosts(draft, Role.BYSTANDER, _whole(draft))
    if draft.bystanders_asked:
        yield from comment("Empty: nobody has answered the question yet.", 4)
        yield example(4, "mgmt1: {ansible_host: 198.51.100.11, etcd_data_dir: /var/lib/etcd}")


def _hosts(draft: Draft, role: Role, block: Callable[[DraftHost], Iterator[str]]) -> Iterator[str]:
    yield "  hosts:"
    for host in draft.with_role(role):
        yield from block(host)
    for host in draft.unlisted:
        own = Role.CONTROL_PLANE if Role.CONTROL_PLANE in host.roles else Role.WORKER
        if own is role:
            yield from comment(f"Not listed: node {host.name}, {host.address or 'no address'}.", 4)


def _whole(draft: Draft) -> Callable[[DraftHost], Iterator[str]]:
    """A host with everything that it has for itself alone."""
    common = _common(draft)

    def block(host: DraftHost) -> Iterator[str]:
        for note in host.notes:
            yield from comment(note, 4)
        yield f"    {scalar(host.name)}:"
        yield from entry(6, "ansible_host", host.address)
        for name in HOST_VARIABLES:
            if name in host.variables and name not in common:
                yield from entry(6, name, host.variables[name])
        yield from _own_guesses(draft, host)
        if not is_trusted(host):
            yield from comment("Nothing vouches for its key yet: read it at its console.", 6)
            yield example(6, "stressor_host_key: SHA256:THE-FINGERPRINT-THAT-YOU-READ")

    return block


def _own_guesses(draft: Draft, host: DraftHost) -> Iterator[str]:
    if host.apiserver and "apiserver_url" not in host.variables:
        shown = f"[{host.address}]" if ip_address(host.address).version == 6 else host.address
        yield from comment("A guess:", 6)
        yield from entry(6, "apiserver_url", f"https://{shown}:{draft.api_port}")
    if draft.distro is None:
        return
    grouped = Role.CONTROL_PLANE in host.roles
    own = [n for n in _ETCD if _wants(host, n) and not (grouped and _whole_group(draft, n))]
    if own:
        yield from comment(_guess(draft), 6)
        for name in own:
            yield from entry(6, name, _layout(draft.distro)[name])


def _common(draft: Draft) -> Mapping[str, object]:
    """What every host has alike: said once, for all."""
    first = draft.hosts[0].variables
    return {
        name: first[name]
        for name in _SHARED
        if name in first and all(h.variables.get(name) == first[name] for h in draft.hosts)
    }
