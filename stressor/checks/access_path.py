"""How the API is reached. Abort needs none of it; start, results and clean-up do.

A management plane that proxies the API (Rancher: /k8s/clusters/ID) is another cluster's pods. When
that cluster suffers from the load, or from anything else, clean-up waits for it.
"""

import ipaddress
from collections.abc import Iterator
from urllib.parse import SplitResult, urlsplit

from stressor.checks.base import Finding, Level, unknown

NAME = "access-path"
_RANCHER = "/k8s/clusters/"
_DIRECT = "a context whose server is a control-plane node; stressor_context: NAME"


def judge(server_url: str) -> tuple[Finding, ...]:
    """`server_url`: the server of the context in use. A path in it: WARN, something stands between.
    A name instead of an address: WARN, the API side needs a resolver."""
    try:
        server = urlsplit(server_url)
        host, port = server.hostname, server.port
    except ValueError:
        host, port = None, None
    if not host:
        why = "the server's address in the kubeconfig"
        remedy = "kubectl config view --minify --output jsonpath={.clusters[0].cluster.server}"
        return (unknown(NAME, "", Level.FAIL, why, remedy),)
    found = (*_between(server), *_named(host))
    where = f"{host}:{port}" if port else host
    return found or (Finding(NAME, "", Level.PASS, f"straight to the API server at {where}"),)


def _between(server: SplitResult) -> Iterator[Finding]:
    path = server.path.rstrip("/")
    if _RANCHER in f"{path}/":
        text = (
            f"{server.hostname} is a management proxy ({path}): start, results and clean-up depend "
            f"on the cluster that it runs in; abort does not"
        )
        yield Finding(NAME, "", Level.WARN, text, _DIRECT)
    elif path:
        text = (
            f"the server has a path ({path}), so a proxy answers at {server.hostname}: clean-up "
            f"depends on it; abort does not"
        )
        yield Finding(NAME, "", Level.WARN, text, _DIRECT)


def _named(host: str) -> Iterator[Finding]:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        text = f"{host} is a name: start, results and clean-up need DNS; abort does not"
        remedy = f"put {host} into /etc/hosts, or name an address that the certificate has"
        yield Finding(NAME, "", Level.WARN, text, remedy)
