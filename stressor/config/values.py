"""What stressor reads from an inventory's variables: a name, and how its value must look.

Each reader takes the value as written and raises ValueError with the remedy. Vault values and Jinja
templates are refused by all of them: only Ansible can read those.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

from stressor.config.yamlfile import Opaque
from stressor.model import Transport

Reader = Callable[[object], object]
_CLUSTER = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TRUE, _FALSE = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})


class Several(ValueError):
    """More than one thing is wrong with a value: `messages` are all of them."""

    def __init__(self, messages: Sequence[str]) -> None:
        super().__init__("; ".join(messages))
        self.messages = tuple(messages)


def told(error: ValueError) -> tuple[str, ...]:
    """What a reader found wrong, one message for each mistake."""
    return error.messages if isinstance(error, Several) else (str(error),)


def plain(value: object) -> object:
    """The value, when it needs no other program to be read."""
    if isinstance(value, Opaque):
        raise ValueError(f"a value tagged `{value.tag}` is not read: stressor has no vault key")
    if isinstance(value, str) and ("{{" in value or "{%" in value):
        raise ValueError(f"`{value}` is a Jinja template, which is not read: write the value out")
    if value is None:
        raise ValueError("has no value")
    return value


def text(value: object) -> str:
    """Any text that is not empty."""
    value = plain(value)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"`{value}` must be text (put it in quotes if it is)")
    return value.strip()


def address(value: object) -> str:
    """An IP address: abort never asks DNS."""
    value = text(value)
    try:
        return str(ipaddress.ip_address(value))
    except ValueError as error:
        remedy = "must be an IP address: abort asks no DNS"
        raise ValueError(f"`{value}` {remedy}") from error


def port(value: object) -> int:
    """A TCP port, also when written as text."""
    value = plain(value)
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number < 65536:
        raise ValueError(f"`{value}` is no port: use 1 to 65535")
    return number


def flag(value: object) -> bool:
    """True or false, also in the words that Ansible takes for them."""
    value = plain(value)
    word = str(value).lower()
    if word not in _TRUE | _FALSE:
        raise ValueError(f"`{value}` must be true or false")
    return word in _TRUE


def host_path(value: object) -> str:
    """An absolute path on a host."""
    value = text(value)
    if not value.startswith("/"):
        raise ValueError(f"`{value}` must be an absolute path on the host")
    return value


def url(value: object) -> str:
    """An http or https address whose host is an IP address."""
    value = text(value)
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"`{value}` must look like http://127.0.0.1:2381/metrics")
    address(parts.hostname)
    if parts.username is not None:
        raise ValueError("credentials in an address are not read: no secret is kept")
    return value


def cluster_name(value: object) -> str:
    """A name that can be a file's and a label's."""
    value = text(value)
    if not _CLUSTER.fullmatch(value):
        raise ValueError(
            f"`{value}` must be lower-case letters, digits, dashes and dots, at most 63"
        )
    return value


def cluster_uid(value: object) -> str:
    """The UID of a namespace: what names a cluster for its whole life."""
    value = text(value).lower()
    if not _UID.fullmatch(value):
        remedy = "kubectl get ns kube-system -o jsonpath={.metadata.uid}"
        raise ValueError(f"`{value}` is no UID: {remedy}")
    return value


def host_key(value: object) -> str:
    """A public key as in known_hosts (type and base64, without a comment), or fingerprints of keys
    (SHA256:…)."""
    parts = text(value).split()
    if parts and all(_FINGERPRINT.fullmatch(part) for part in parts):
        return " ".join(parts)
    if len(parts) < 2 or not parts[0].startswith(("ssh-", "ecdsa-", "sk-")):
        raise ValueError("must be a public key: `ssh-ed25519 AAAA…`, or its SHA256:…")
    return " ".join(parts[:2])


def transport(value: object) -> Transport:
    """The name of a backend."""
    value = text(value)
    if value not in tuple(Transport):
        raise ValueError(f"`{value}` is no transport: use one of {', '.join(Transport)}")
    return Transport(value)


HOST_VARIABLES: Mapping[str, Reader] = {
    "ansible_host": address,
    "ansible_port": port,
    "ansible_user": text,
    "ansible_become": flag,
    "ansible_ssh_private_key_file": text,
    "stressor_host_key": host_key,
    "stressor_known_hosts": text,
    "stressor_transport": transport,
    "etcd_metrics_url": url,
    "etcd_data_dir": host_path,
    "scratch_dir": host_path,
    "apiserver_url": url,
    "stressor_hypervisor": text,
}
CLUSTER_VARIABLES: Mapping[str, Reader] = {
    "stressor_cluster": cluster_name,
    "stressor_kubeconfig": text,
    "stressor_context": text,
    "stressor_cluster_uid": cluster_uid,
    "stressor_load_image": text,
    "stressor_bystanders_none": text,
    "disposable": flag,
}
_KEYS_ONLY = "passwords are not read: log in with a key, and let `sudo -n` work"
REFUSED: Mapping[str, str] = {
    "ansible_ssh_args": "is not read, and would change how the host is reached",
    "ansible_ssh_host": "is an old name: use `ansible_host`",
    "ansible_ssh_port": "is an old name: use `ansible_port`",
    "ansible_ssh_user": "is an old name: use `ansible_user`",
    "ansible_private_key_file": "is not read: use `ansible_ssh_private_key_file`",
    "ansible_sudo": "is an old name: use `ansible_become`",
    "ansible_password": _KEYS_ONLY,
    "ansible_ssh_pass": _KEYS_ONLY,
    "ansible_ssh_password": _KEYS_ONLY,
    "ansible_become_pass": _KEYS_ONLY,
    "ansible_become_password": _KEYS_ONLY,
    "ansible_group_priority": "is not read: give the host the value itself",
}
ONLY: Mapping[str, tuple[str, ...]] = {
    "ansible_become_method": ("sudo",),
    "ansible_become_user": ("root",),
    "ansible_connection": ("ssh", "smart", "paramiko", "paramiko_ssh"),
}
"""Variables that stressor obeys without reading them, as long as they have one of these values."""
