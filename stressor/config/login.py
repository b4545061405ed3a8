"""From a kubeconfig as kubectl understands it to the login that the API adapter uses.

Whatever kubectl would leave out is left out here: credentials towards a server without https, a
token where a token file stands, a key without a certificate.
"""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from stressor.config.kubeconfig import Kubeconfig
from stressor.config.kubeconfig_file import Cluster, ExecPlugin, Impersonation, User
from stressor.errors import ConfigError
from stressor.kube.login import Login

_ONE = "stressor"


def login_of(kubeconfig: Kubeconfig) -> Login:
    """The login of the chosen context. Raises ConfigError for an `auth-provider`, which needs a
    program of its own to be read (kubectl took the last cloud's out in 1.26), and for a plug-in
    that always asks somebody: nobody is there to answer in the middle of a run."""
    user = kubeconfig.user
    say = f"{user.defined_at}: user `{user.name}`"
    if user.auth_provider is not None:
        raise ConfigError((f"{say}: auth-provider is not read: use exec",))
    if user.exec is not None and user.exec.interactive_mode == "Always":
        raise ConfigError((f"{say}: interactiveMode Always: a run cannot answer: use a token",))
    sent = kubeconfig.sends_credentials
    context = {"cluster": _ONE, "user": _ONE}
    return Login(
        document={
            "current-context": _ONE,
            "contexts": [{"name": _ONE, "context": context}],
            "clusters": [{"name": _ONE, "cluster": _cluster(kubeconfig.cluster)}],
            "users": [{"name": _ONE, "user": _user(user) if sent else {}}],
        },
        shown=f"context {kubeconfig.context.name} of {', '.join(kubeconfig.paths)}",
        headers=tuple(_impersonated(user.impersonation)) if sent else (),
    )


def _given(entries: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entries.items() if value}


def _data(content: bytes) -> str:
    return b64encode(content).decode("ascii")


def _cluster(cluster: Cluster) -> dict[str, Any]:
    return _given(
        {
            "server": cluster.server,
            "certificate-authority": cluster.ca_path,
            "certificate-authority-data": _data(cluster.ca_data),
            "tls-server-name": cluster.tls_server_name,
            "insecure-skip-tls-verify": cluster.insecure,
            "proxy-url": cluster.proxy_url,
        }
    )


def _user(user: User) -> dict[str, Any]:
    has_certificate = bool(user.certificate_path or user.certificate_data)
    return _given(
        {
            "client-certificate": user.certificate_path,
            "client-certificate-data": _data(user.certificate_data),
            "client-key": user.key_path if has_certificate else "",
            "client-key-data": _data(user.key_data) if has_certificate else "",
            "token": "" if user.token_path else user.token,
            "tokenFile": user.token_path,
            "username": user.username,
            "password": user.password,
            "exec": None if user.exec is None else _exec(user.exec),
        }
    )


def _exec(plugin: ExecPlugin) -> dict[str, Any]:
    return {
        "apiVersion": plugin.api_version,
        "command": plugin.command,
        "args": list(plugin.args),
        "env": [{"name": name, "value": value} for name, value in plugin.env],
        "provideClusterInfo": plugin.provide_cluster_info,
        "interactiveMode": plugin.interactive_mode,
    }


def _impersonated(asked: Impersonation) -> Iterator[tuple[str, str]]:
    """The request headers (Kubernetes documentation, User impersonation)."""
    if not asked.user:
        return
    yield "Impersonate-User", asked.user
    if asked.uid:
        yield "Impersonate-Uid", asked.uid
    yield from (("Impersonate-Group", group) for group in asked.groups)
    for key, values in asked.extra:
        yield from ((f"Impersonate-Extra-{key}", value) for value in values)
