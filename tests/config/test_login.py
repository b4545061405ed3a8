"""The login that the API adapter gets is what kubectl would send, no more."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from stressor.config.kubeconfig import load_kubeconfig
from stressor.config.login import login_of
from stressor.errors import ConfigError
from stressor.kube.login import Login

HTTPS = "https://10.0.0.1:6443"


def made(folder: Path, user: dict[str, Any], **cluster: Any) -> Login:
    text = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": HTTPS, **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(text))
    return login_of(load_kubeconfig(str(path), {}))


def test_paths_become_absolute_and_names_are_kept(tmp_path: Path) -> None:
    for name in ("ca.pem", "me.pem", "me.key"):
        (tmp_path / name).write_text("x")
    user = {"client-certificate": "me.pem", "client-key": "me.key"}
    login = made(
        tmp_path,
        user,
        **{"certificate-authority": "ca.pem", "tls-server-name": "api", "proxy-url": "http://p:1"},
    )
    assert login.cluster == {
        "server": HTTPS,
        "certificate-authority": str(tmp_path / "ca.pem"),
        "tls-server-name": "api",
        "proxy-url": "http://p:1",
    }
    assert login.user == {
        "client-certificate": str(tmp_path / "me.pem"),
        "client-key": str(tmp_path / "me.key"),
    }
    assert login.shown == f"context c of {tmp_path}/config"


def test_a_server_without_https_gets_no_credential(tmp_path: Path) -> None:
    login = made(tmp_path, {"token": "t", "as": "ann"}, server="http://10.0.0.1:8080")
    assert (login.user, login.headers) == ({}, ())


def test_a_token_file_outranks_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("new")
    login = made(tmp_path, {"token": "old", "tokenFile": "token"})
    assert login.user == {"tokenFile": str(tmp_path / "token")}


def test_a_key_without_a_certificate_is_left_out(tmp_path: Path) -> None:
    assert made(tmp_path, {"client-key-data": "eA==", "token": "t"}).user == {"token": "t"}


def test_for_whom_requests_are_made_is_in_the_headers(tmp_path: Path) -> None:
    user = {
        "token": "t",
        "as": "ann",
        "as-uid": "7",
        "as-groups": ["a", "b"],
        "as-user-extra": {"scopes": ["x"]},
    }
    assert made(tmp_path, user).headers == (
        ("Impersonate-User", "ann"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-scopes", "x"),
    )


def test_a_plugin_is_handed_on_whole(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./get-token",
        "args": ["-x"],
        "env": [{"name": "A", "value": "b"}],
        "interactiveMode": "IfAvailable",
        "provideClusterInfo": True,
    }
    found = made(tmp_path, {"exec": plugin}).user["exec"]
    assert found == {**plugin, "command": str(tmp_path / "get-token")}


@pytest.mark.parametrize(
    ("user", "told"),
    [
        ({"auth-provider": {"name": "oidc"}}, "auth-provider is not read"),
        (
            {"exec": {"apiVersion": "v1", "command": "x", "interactiveMode": "Always"}},
            "a run cannot answer",
        ),
    ],
)
def test_a_login_that_needs_somebody_or_something_else_is_refused(
    tmp_path: Path, user: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        made(tmp_path, user)


def test_no_secret_is_in_the_repr(tmp_path: Path) -> None:
    assert "hush" not in repr(made(tmp_path, {"token": "hush"}))
