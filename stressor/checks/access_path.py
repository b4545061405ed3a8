"""Whether the API is reached by itself, or through a server that has to live as well.

Rancher's URLs end in /k8s/clusters/ID: requests go through the management cluster. Load that hurts
that cluster, through shared storage for one, takes away the API of the target; then clean-up has no
way in, and the lock cannot be renewed. An abort does not need it.
"""

import re
from urllib.parse import urlsplit

from stressor.checks.base import Finding, Level, unknown

NAME = "access-path"
_MANAGED = re.compile(r"(?:^|/)k8s/clusters/([^/]+)")
_REMEDY = "stressor_kubeconfig: one whose server is https://NODE:6443"


def judge(server: str) -> tuple[Finding, ...]:
    """`server` is the URL of the API server, as the kubeconfig has it."""
    return (_judged(server),)


def _judged(server: str) -> Finding:
    try:
        # Without a scheme a kubeconfig's server is plain HTTP (client-go's DefaultServerURL).
        url = urlsplit(server if "://" in server else f"http://{server}")
        host = url.hostname
    except ValueError:
        host = None
    if not host:
        why = "the API server's URL cannot be read"
        return unknown(NAME, "", Level.FAIL, why, "kubectl config view --minify: its server")
    managed, path = _MANAGED.search(url.path), url.path.strip("/")
    if managed:
        text = f"through a management server, {host}: clean-up needs it"
        return Finding(NAME, "", Level.WARN, text, _REMEDY)
    if path:
        text = f"through a proxy, path /{path} on {host}: clean-up needs it"
        return Finding(NAME, "", Level.WARN, text, _REMEDY)
    return Finding(NAME, "", Level.PASS, f"no path of a proxy in its URL: {host}")
