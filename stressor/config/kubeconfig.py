"""Kubeconfigs as kubectl honours them: which files, how they merge, which context, what is refused.

Nothing is sent, no plugin is run, nothing is written; current-context is never switched. Source of
every rule: client-go v0.34 `tools/clientcmd`; the likeness is tested against kubectl itself.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

from stressor.config.kubeconfig_file import (
    Cluster,
    Context,
    ExecPlugin,
    KubeconfigFile,
    User,
    read_file,
)
from stressor.config.yamlfile import did_you_mean
from stressor.errors import ConfigError

T = TypeVar("T")
_INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")
_PROXY_SCHEMES = ("http", "https", "socks5")
_MANAGEMENT_PROXY = re.compile(r"(^|/)k8s/clusters/[^/]+(/|$)")


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The chosen context with its cluster and user, and what there was to choose from.

    `namespace` is "default" where the context names none. `contexts` is sorted by name, as
    `kubectl config get-contexts` shows them. `paths` are the files that were read, in the order of
    their precedence; `missing_paths` are files of KUBECONFIG that are not there, which kubectl
    passes over in silence.
    """

    context: Context
    cluster: Cluster
    user: User
    namespace: str
    contexts: tuple[Context, ...]
    paths: tuple[str, ...]
    missing_paths: tuple[str, ...] = ()

    @property
    def sends_credentials(self) -> bool:
        """False for a server that is not https: kubectl then drops every credential."""
        return _is_https(self.cluster.server)


def load_kubeconfig(
    explicit_path: str | None, env: Mapping[str, str], *, context: str | None = None
) -> Kubeconfig:
    """What kubectl would use with `--kubeconfig explicit_path --context context` in `env`.

    An explicit path is one file, which must exist. Without it, the files of KUBECONFIG (one to win
    a name or the current context is the first that has it), or ~/.kube/config. "" is like None.
    Raises ConfigError with `file:line: what` when there is nothing to use, when a file cannot be
    decoded, when a name leads nowhere, and when kubectl would refuse the cluster or user in use.

    One difference is meant: without a server, kubectl dials localhost:8080 and this refuses.
    """
    wanted = _wanted_paths(explicit_path, env)
    files, missing = _read_all(wanted, must_exist=bool(explicit_path))
    if not files:
        shown = ", ".join(missing) or "$KUBECONFIG names no file"
        raise ConfigError((f"no kubeconfig: {shown}: name one with --kubeconfig or $KUBECONFIG",))
    contexts = _merged([file.contexts for file in files])
    chosen = _chosen_context(contexts, context, files)
    cluster = _merged([file.clusters for file in files]).get(chosen.cluster)
    user = _user(chosen, _merged([file.users for file in files]))
    if cluster is None:
        raise ConfigError((_dangling(chosen, "cluster", chosen.cluster),))
    mistakes = (*_cluster_mistakes(cluster), *_user_mistakes(user, _is_https(cluster.server)))
    if mistakes:
        raise ConfigError(mistakes)
    return Kubeconfig(
        context=chosen,
        cluster=cluster,
        user=user,
        namespace=chosen.namespace or "default",
        contexts=tuple(contexts[name] for name in sorted(contexts)),
        paths=tuple(file.path for file in files),
        missing_paths=missing,
    )


def management_proxy(server: str) -> bool:
    """Whether `server` is a cluster behind a management server's proxy, as Rancher's URLs are
    (`https://rancher.example/k8s/clusters/c-m-1a2b3c4d`): it dies with that server, and its
    credentials are the management server's."""
    return bool(_MANAGEMENT_PROXY.search(urlsplit(server).path))


def _wanted_paths(explicit_path: str | None, env: Mapping[str, str]) -> tuple[str, ...]:
    """No tilde is expanded and an empty item is passed over; a value of separators alone names no
    file, and then ~/.kube/config does not step in."""
    if explicit_path:
        return (_absolute(explicit_path),)
    listed = env.get("KUBECONFIG", "")
    if listed:
        return tuple(_absolute(path) for path in dict.fromkeys(listed.split(os.pathsep)) if path)
    return (_home_path(env.get("HOME", "")),)


def _absolute(path: str) -> str:
    """Opened as it is written, so `..` after a symbolic link means what it means to the system."""
    return os.path.join(os.getcwd(), path)


def _home_path(home: str) -> str:
    """kubectl copies ~/.kube/.kubeconfig, its place of old, to where it looks now; here it is
    read where it stands."""
    now, of_old = (
        _absolute(os.path.join(home, ".kube", name)) for name in ("config", ".kubeconfig")
    )
    return of_old if not os.path.exists(now) and os.path.isfile(of_old) else now


def _read_all(
    wanted: tuple[str, ...], *, must_exist: bool
) -> tuple[list[KubeconfigFile], tuple[str, ...]]:
    """The files that are there, and the paths of those that are not. All mistakes are told."""
    files: list[KubeconfigFile] = []
    missing: list[str] = []
    mistakes: list[str] = []
    for path in wanted:
        try:
            files.append(read_file(path))
        except FileNotFoundError:
            missing.append(path)
        except ConfigError as error:
            mistakes += error.mistakes
    if must_exist:
        mistakes += [f"{path}:1: there is no such kubeconfig" for path in missing]
    if mistakes:
        raise ConfigError(tuple(mistakes))
    return files, tuple(missing)


def _merged(parts: list[Mapping[str, T]]) -> dict[str, T]:
    """The first file with a name wins, whole: nothing is added to its entry from a later file."""
    return {name: entry for part in reversed(parts) for name, entry in part.items()}


def _chosen_context(
    contexts: Mapping[str, Context], flag: str | None, files: list[KubeconfigFile]
) -> Context:
    current = next((file for file in files if file.current_context), None)
    name = flag or (current.current_context if current else "")
    known = f"contexts: {', '.join(sorted(contexts)) or 'none'}"
    if not name:
        paths = ", ".join(file.path for file in files)
        raise ConfigError((f"{paths}: no current-context: choose one with --context ({known})",))
    if name not in contexts:
        origin = "--context" if flag or not current else f"{current.path}: current-context"
        raise ConfigError(
            (f"{origin}: there is no context `{name}`{did_you_mean(name, contexts)} ({known})",)
        )
    return contexts[name]


def _user(context: Context, users: Mapping[str, User]) -> User:
    """A context that names no user is anonymous; one that names an unknown user is a mistake."""
    if context.user and context.user not in users:
        raise ConfigError((_dangling(context, "user", context.user),))
    return users.get(context.user, User("", context.defined_at))


def _dangling(context: Context, kind: str, name: str) -> str:
    what = f"names the {kind} `{name}`, which no kubeconfig defines" if name else f"names no {kind}"
    return f"{context.defined_at}: context `{context.name}` {what}"


def _is_https(server: str) -> bool:
    """A server without a scheme is plain http to kubectl, whatever its port."""
    return server.lower().startswith("https://")


def _cluster_mistakes(cluster: Cluster) -> Iterator[str]:
    say = f"{cluster.defined_at}: cluster `{cluster.name}`"
    if not cluster.server:
        yield f"{say} has no server"
    if cluster.proxy_url and _scheme(cluster.proxy_url) not in _PROXY_SCHEMES:
        yield f"{say}: proxy-url must begin with http://, https:// or socks5://"
    if cluster.ca_path and cluster.ca_data:
        yield f"{say}: certificate-authority and certificate-authority-data: keep one"
    if (cluster.ca_path or cluster.ca_data) and cluster.insecure and _is_https(cluster.server):
        yield f"{say}: insecure-skip-tls-verify and a certificate authority: keep one"
    yield from _unreadable(say, "certificate-authority", cluster.ca_path)


def _user_mistakes(user: User, https: bool) -> Iterator[str]:
    say = f"{user.defined_at}: user `{user.name}`"
    yield from _certificate_mistakes(say, user)
    if user.token and (user.username or user.password):
        yield f"{say}: token and username: keep one"
    if https and not user.token:
        yield from _unreadable(say, "tokenFile", user.token_path)
    if user.exec:
        yield from _exec_mistakes(say, user.exec)
        if user.auth_provider is not None:
            yield f"{say}: exec and auth-provider: keep one"
    asked = user.impersonation
    if (asked.uid or asked.groups or asked.extra) and not asked.user:
        yield f"{say}: as-uid, as-groups and as-user-extra need `as`"


def _certificate_mistakes(say: str, user: User) -> Iterator[str]:
    """A key without a certificate is passed over, even when it cannot be read."""
    if not (user.certificate_path or user.certificate_data):
        return
    if user.certificate_path and user.certificate_data:
        yield f"{say}: client-certificate and client-certificate-data: keep one"
    if user.key_path and user.key_data:
        yield f"{say}: client-key and client-key-data: keep one"
    if not (user.key_path or user.key_data):
        yield f"{say}: a client certificate needs client-key or client-key-data"
    yield from _unreadable(say, "client-certificate", user.certificate_path)
    yield from _unreadable(say, "client-key", user.key_path)


def _exec_mistakes(say: str, plugin: ExecPlugin) -> Iterator[str]:
    if not plugin.command:
        yield f"{say}: exec needs a command"
    if not plugin.api_version:
        yield f"{say}: exec needs apiVersion"
    if any(not name for name, _ in plugin.env):
        yield f"{say}: a variable in env of exec needs a name"
    if plugin.interactive_mode not in _INTERACTIVE_MODES:
        yield f"{say}: interactiveMode of exec must be one of {', '.join(_INTERACTIVE_MODES)}"


def _unreadable(say: str, key: str, path: str) -> Iterator[str]:
    if not path:
        return
    try:
        # Not to hang on a pipe that nobody writes to.
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    except OSError as error:
        yield f"{say}: {key} {path} cannot be read: {error.strerror}"


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError:
        return ""
