"""What one kubeconfig file says: records with paths made absolute, as client-go decodes them.

Source: client-go v0.34 `tools/clientcmd/api/v1`; the likeness is tested against kubectl.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import yaml

from stressor.config.kubeconfig_yaml import (
    Fields,
    WrongNode,
    bytes_of,
    fields,
    first_document,
    flag_of,
    is_null,
    items,
    read_text,
    text_of,
    texts_of,
)
from stressor.errors import ConfigError

T = TypeVar("T")
_OLD_EXEC_VERSIONS = frozenset(
    f"client.authentication.k8s.io/{version}" for version in ("v1alpha1", "v1beta1")
)


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints a credential. It is described here and never run.

    `command` with a slash is absolute; without one it is looked up in PATH when it runs.
    `interactive_mode` is "" where neither the file nor kubectl's default for old versions sets it.
    """

    command: str
    api_version: str
    interactive_mode: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    install_hint: str = ""
    provide_cluster_info: bool = False


@dataclass(frozen=True, slots=True)
class Impersonation:
    """For whom requests are made (`as`, `as-uid`, `as-groups`, `as-user-extra`)."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where an API server is and how it proves itself. `defined_at` is `file:line`.

    `ca_path` is absolute. `ca_path` and `ca_data` both set is a mistake that only `load_kubeconfig`
    tells, and only for the cluster in use; so it is with the fields of `User`.
    """

    name: str
    defined_at: str
    server: str = ""
    ca_path: str = ""
    ca_data: bytes = b""
    tls_server_name: str = ""
    insecure: bool = False
    proxy_url: str = ""
    disable_compression: bool = False


@dataclass(frozen=True, slots=True)
class User:
    """Credentials as written, paths made absolute. Nothing of a secret shows in the repr."""

    name: str
    defined_at: str
    certificate_path: str = ""
    certificate_data: bytes = field(default=b"", repr=False)
    key_path: str = ""
    key_data: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    token_path: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    auth_provider: str | None = None
    exec: ExecPlugin | None = None
    impersonation: Impersonation = Impersonation("")


@dataclass(frozen=True, slots=True)
class Context:
    """A name for a cluster, a user and a namespace; "" is what the file leaves open."""

    name: str
    defined_at: str
    cluster: str = ""
    user: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class KubeconfigFile:
    """All that one file defines, by name."""

    path: str
    current_context: str
    clusters: Mapping[str, Cluster]
    users: Mapping[str, User]
    contexts: Mapping[str, Context]


def read_file(path: str) -> KubeconfigFile:
    """The file at `path`. Raises FileNotFoundError when there is none, for the caller to judge,
    and ConfigError when it cannot be read or kubectl would not decode it. An empty one is fine."""
    try:
        return _decoded(path, first_document(path, read_text(path)))
    except WrongNode as error:
        raise ConfigError((f"{path}:{error.line}: {error}",)) from error
    except RecursionError as error:
        raise ConfigError((f"{path}:1: nested too deeply to be read",)) from error


def _decoded(path: str, root: yaml.Node | None) -> KubeconfigFile:
    found = fields(root)
    for key, known in (("kind", "Config"), ("apiVersion", "v1")):
        if text_of(found.get(key)) not in ("", known):
            raise WrongNode(found[key], f"`{key}` must be {known}: this is no kubeconfig")
    entry = _Entries(path)
    return KubeconfigFile(
        path,
        text_of(found.get("current-context")),
        entry.named(found.get("clusters"), "cluster", entry.cluster),
        entry.named(found.get("users"), "user", entry.user),
        entry.named(found.get("contexts"), "context", entry.context),
    )


@dataclass(frozen=True, slots=True)
class _Entries:
    """Readers of the named entries of the file at `path`."""

    path: str

    def named(
        self, node: yaml.Node | None, key: str, read: Callable[[str, str, Fields], T]
    ) -> dict[str, T]:
        entries: dict[str, T] = {}
        for item in items(node):
            found = fields(item)
            name = text_of(found.get("name"))
            if name in entries:
                raise WrongNode(item, f"{key} `{name}` is defined twice in this file")
            place = f"{self.path}:{item.start_mark.line + 1}"
            entries[name] = read(name, place, fields(found.get(key)))
        return entries

    def cluster(self, name: str, place: str, found: Fields) -> Cluster:
        return Cluster(
            name,
            place,
            server=text_of(found.get("server")),
            ca_path=self._beside(found.get("certificate-authority")),
            ca_data=bytes_of(found.get("certificate-authority-data")),
            tls_server_name=text_of(found.get("tls-server-name")),
            insecure=flag_of(found.get("insecure-skip-tls-verify")),
            proxy_url=text_of(found.get("proxy-url")),
            disable_compression=flag_of(found.get("disable-compression")),
        )

    def user(self, name: str, place: str, found: Fields) -> User:
        return User(
            name,
            place,
            certificate_path=self._beside(found.get("client-certificate")),
            certificate_data=bytes_of(found.get("client-certificate-data")),
            key_path=self._beside(found.get("client-key")),
            key_data=bytes_of(found.get("client-key-data")),
            token=text_of(found.get("token")),
            token_path=self._beside(found.get("tokenFile")),
            username=text_of(found.get("username")),
            password=text_of(found.get("password")),
            auth_provider=_provider(found.get("auth-provider")),
            exec=self._exec(found.get("exec")),
            impersonation=_impersonation(found),
        )

    def context(self, name: str, place: str, found: Fields) -> Context:
        names = (text_of(found.get(key)) for key in ("cluster", "user", "namespace"))
        return Context(name, place, *names)

    def _exec(self, node: yaml.Node | None) -> ExecPlugin | None:
        if is_null(node):
            return None
        found = fields(node)
        version = text_of(found.get("apiVersion"))
        mode = text_of(found.get("interactiveMode"))
        command = found.get("command")
        return ExecPlugin(
            # A name without a slash is looked up in PATH.
            command=self._beside(command) if "/" in text_of(command) else text_of(command),
            api_version=version,
            interactive_mode=mode or ("IfAvailable" if version in _OLD_EXEC_VERSIONS else ""),
            args=texts_of(found.get("args")),
            env=tuple(_variable(item) for item in items(found.get("env"))),
            install_hint=text_of(found.get("installHint")),
            provide_cluster_info=flag_of(found.get("provideClusterInfo")),
        )

    def _beside(self, node: yaml.Node | None) -> str:
        """A path as the file's folder makes it absolute; one that is absolute stays as written."""
        written = text_of(node)
        if not written or written.startswith("/"):
            return written
        folder = os.path.dirname(os.path.abspath(self.path))
        return "/" + os.path.normpath(f"{folder}/{written}").lstrip("/")


def _provider(node: yaml.Node | None) -> str | None:
    return None if is_null(node) else text_of(fields(node).get("name"))


def _variable(node: yaml.Node) -> tuple[str, str]:
    found = fields(node)
    return text_of(found.get("name")), text_of(found.get("value"))


def _impersonation(found: Fields) -> Impersonation:
    extra = fields(found.get("as-user-extra"))
    return Impersonation(
        user=text_of(found.get("as")),
        uid=text_of(found.get("as-uid")),
        groups=texts_of(found.get("as-groups")),
        extra=tuple((key, texts_of(extra[key])) for key in sorted(extra)),
    )
