"""`stressor init`: drafts an inventory and settings from what is there already, and asks nobody.

The only verb that writes an operator's own files. It replaces none, and writes both or neither.
"""

import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from stressor.cli.init_facts import (
    Api,
    Asked,
    OpenApi,
    Source,
    api_of,
    distro_of_nodes,
    known_hosts,
    pin_of,
    source_of,
)
from stressor.config.ansible_inventory import Ask
from stressor.config.distros import Distro
from stressor.config.draft import (
    INVENTORY_NAME,
    SETTINGS_NAME,
    Draft,
    inventory_text,
    read_back,
    settings_text,
)
from stressor.config.draft_hosts import described_nodes, join
from stressor.config.draft_trust import with_trust
from stressor.config.draft_values import absolute, cluster_name, readable
from stressor.errors import ConfigError, ExitCode
from stressor.kube.base import Kube
from stressor.kube.login import Login
from stressor.playbooks import find_ansible
from stressor.report.lines import ascii_only

SCHEMA_VERSION = 1

_LEFT_OUT = "left out"
_BESIDE = ("group_vars", "host_vars")


@dataclass(frozen=True, slots=True)
class Drafted:
    """The texts of both files, and what an operator has to know or to do."""

    inventory: str
    settings: str
    notes: tuple[str, ...]


@click.command()
@click.option("--kubeconfig", help="Which API. Default: as kubectl, $KUBECONFIG or ~/.kube/config.")
@click.option("--context", help="Which of its contexts. Default: the current one.")
@click.option("--hosts", type=click.Path(path_type=Path), help="A host list: `name address` lines.")
@click.option("--from-ansible", type=click.Path(path_type=Path), help="An Ansible inventory.")
@click.option("--from-lab", is_flag=True, help="The inventory of the lab on this machine.")
@click.option("--control-plane-group", multiple=True, metavar="NAME", help="Of --from-ansible.")
@click.option("--worker-group", multiple=True, metavar="NAME", help="Of --from-ansible.")
@click.option("--user", help="Log in as this user, where a host has none of its own.")
@click.option("--key", help="The private key, where a host has none of its own.")
@click.option("--become/--no-become", default=None, help="`sudo -n`, where a host says neither.")
@click.option("--cluster", help="The cluster's name. Default: the kubeconfig's name for it.")
@click.option(
    "--distro",
    type=click.Choice([str(one) for one in Distro]),
    help="Default: by the kubelets' versions.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), default=".", help="A folder. Default: here."
)
@click.option("--offline", is_flag=True, help="Ask no API: no network at all.")
@click.option("--dry-run", is_flag=True, help="Print both files, write nothing.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def init(output: str, **typed: Any) -> None:
    """Draft inventory.yaml and stressor.yaml from a kubeconfig, a host list, or an inventory.

    Without --hosts, --from-ansible or --from-lab the hosts are the nodes that the API shows. No
    host is asked, and no file is replaced.
    """
    asked = Asked(**typed)
    if not asked.dry_run:
        refuse_existing(asked.out)
    found = find_ansible(sys.executable, os.environ.get("PATH"))
    drafted = make(asked, os.environ, _connect, None if found is None else found.ask)
    for note in drafted.notes:
        click.echo(f"NOTE      {note}", err=True)
    if asked.dry_run:
        click.echo(
            f"# {INVENTORY_NAME}\n{drafted.inventory}\n# {SETTINGS_NAME}\n{drafted.settings}"
        )
        click.echo("nothing was written", err=True)
        return
    texts = {INVENTORY_NAME: drafted.inventory, SETTINGS_NAME: drafted.settings}
    written = publish(asked.out, texts)
    next_command = f"stressor preflight --inventory {shlex.quote(str(asked.out / INVENTORY_NAME))}"
    if output == "json":
        click.echo(_json(written, drafted.notes, next_command))
        return
    for path in written:
        click.echo(f"WRITTEN   {path}")
    click.echo(f"NEXT      {next_command}")


def _json(written: Sequence[Path], notes: Sequence[str], next_command: str) -> str:
    document = {
        "schema_version": SCHEMA_VERSION,
        "verdict": "pass",
        "exit_code": int(ExitCode.PASS),
        "next_command": next_command,
        "written": [str(path) for path in written],
        "notes": list(notes),
    }
    return json.dumps(document, indent=2)


def make(asked: Asked, env: Mapping[str, str], open_api: OpenApi, ask: Ask | None) -> Drafted:
    """The draft of what was asked for. Reads files, asks the API through `open_api` and Ansible
    through `ask` (None: not installed). Raises ConfigError with all mistakes of a source."""
    login = _login(asked, env)
    source = source_of(asked, env, ask)
    api = api_of(asked, source, env, open_api)
    draft, notes = _draft(asked, source, api, login, env)
    text = inventory_text(draft)
    read_back(draft, text, asked.out.absolute())
    told = (*source.notes, *notes, *_left_to_do(draft, api), *_beside(asked.out))
    # Names in them are the API's or a file's, and go to a terminal.
    return Drafted(text, settings_text(draft), tuple(map(ascii_only, told)))


def refuse_existing(folder: Path) -> None:
    """Raises ConfigError, naming each, when one of the two files is there already."""
    there = [p for p in (folder / INVENTORY_NAME, folder / SETTINGS_NAME) if os.path.lexists(p)]
    if there:
        raise ConfigError(tuple(map(_exists, there)))


def publish(folder: Path, texts: Mapping[str, str]) -> tuple[Path, ...]:
    """Write files that are not there yet, each as a whole, all of them or none, with mode 0600: a
    source may have been as private. Makes the folder. Raises ConfigError."""
    drafts: dict[Path, Path] = {}
    made: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            drafts[folder / name] = _draft_file(folder / f".{name}.{os.getpid()}", text)
        for path, draft in drafts.items():
            _link(draft, path)
            made.append(path)
    except BaseException as error:
        _take_back(made, drafts)
        if isinstance(error, OSError):
            told = f"{folder}: cannot be written: {error.strerror}: --out FOLDER elsewhere"
            raise ConfigError((told,)) from error
        raise
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
    return tuple(made)


def _connect(login: Login) -> Kube:
    # Imported here: urllib3 opens a socket when it is imported, and --offline opens none.
    from stressor.kube.client import connect

    return connect(login)


def _login(asked: Asked, env: Mapping[str, str]) -> Mapping[str, object]:
    """What was typed for all hosts, as variables."""
    key = None if asked.key is None else absolute(asked.key)
    if key is not None and not Path(_home(key, env)).is_file():
        raise ConfigError((f"--key {asked.key}: there is no such file",))
    return readable(
        (
            ("--user", "ansible_user", asked.user),
            ("--become", "ansible_become", asked.become),
            ("--key", "ansible_ssh_private_key_file", key),
        )
    )


def _home(path: str, env: Mapping[str, str]) -> str:
    home = env.get("HOME")
    return home + path[1:] if home and path.startswith("~/") else os.path.expanduser(path)


def _draft(
    asked: Asked, source: Source, api: Api, login: Mapping[str, object], env: Mapping[str, str]
) -> tuple[Draft, tuple[str, ...]]:
    """Everything that is known, and notes on how hosts and nodes fit."""
    described = source.hosts if source.hosts is not None else described_nodes(api.nodes or ())
    distro, distro_reason = distro_of_nodes(asked.distro, api.nodes)
    joined = join(described, api.nodes, distro, keep_all=source.keep_all)
    files = tuple(known_hosts(env))
    hosts = tuple(with_trust(host, files) for host in joined.hosts)
    uid, uid_problem = pin_of(source, api)
    cluster, cluster_note = _name(asked, source, api, uid)
    left_out = (note for note in joined.notes if note.startswith(_LEFT_OUT))
    draft = Draft(
        cluster=cluster,
        hosts=hosts,
        sources=(*source.shown, *_shown(api)),
        cluster_note=cluster_note,
        login=login,
        carried=source.cluster,
        kubeconfig=api.path,
        context=api.context,
        uid=uid,
        uid_problem=uid_problem,
        distro=distro,
        distro_reason=distro_reason,
        api_port=api.port(hosts),
        unlisted=joined.unlisted,
        left_out=(*source.notes, *left_out),
    )
    return draft, joined.notes


def _name(asked: Asked, source: Source, api: Api, uid: str | None) -> tuple[str, str]:
    told = source.cluster.get("stressor_cluster")
    if asked.cluster is None and told is None:
        return cluster_name(api.kubeconfig.cluster.name if api.kubeconfig else None, uid)
    typed = readable((("--cluster", "stressor_cluster", asked.cluster),))
    return str(typed.get("stressor_cluster", told)), ""


def _shown(api: Api) -> Iterator[str]:
    if api.kubeconfig is not None:
        where = f"context {api.kubeconfig.context.name} of {', '.join(api.kubeconfig.paths)}"
        yield f"{where} and its API" if api.nodes is not None else where


def _left_to_do(draft: Draft, api: Api) -> Iterator[str]:
    """What the draft could not know, each with where to write it."""
    if draft.uid is None:
        yield f"not pinned: {draft.uid_problem}: write stressor_cluster_uid"
    elif api.problem:
        yield api.problem
    if draft.kubeconfig is None and api.kubeconfig is not None:
        paths = ", ".join(api.kubeconfig.paths)
        yield f"several kubeconfigs are in use ({paths}): write stressor_kubeconfig, one file"
    if draft.distro is None and any(host.etcd for host in draft.hosts):
        yield f"{draft.distro_reason}: --distro, or write etcd_metrics_url and etcd_data_dir"
    if draft.untrusted:
        names = ", ".join(host.name for host in draft.untrusted)
        yield f"nothing vouches for the keys of {names}: compare each at the host's console:"
        yield "  ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub; then write stressor_host_key"
    if draft.bystanders_asked:
        yield "nobody has said which neighbours may share storage: group bystanders, or say why not"


def _beside(folder: Path) -> Iterator[str]:
    for name in _BESIDE:
        if (folder / name).is_dir():
            yield f"{folder / name} will be read with the inventory: Ansible does so, too"


def _exists(path: Path) -> str:
    return f"{path}: exists already and is not replaced: --out FOLDER elsewhere, or --dry-run"


def _draft_file(path: Path, text: str) -> Path:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb") as file:
        try:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return path


def _link(draft: Path, path: Path) -> None:
    """A link, unlike a rename, never replaces what somebody else has just put there."""
    try:
        os.link(draft, path)
    except FileExistsError as error:
        raise ConfigError((_exists(path),)) from error


def _take_back(made: Sequence[Path], drafts: Mapping[Path, Path]) -> None:
    """Only what is still the file that was put there."""
    for path in made:
        with suppress(OSError):
            if path.samefile(drafts[path]):
                path.unlink()
