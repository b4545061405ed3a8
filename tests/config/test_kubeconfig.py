"""Kubeconfigs by hand: which file, which context, which words when something is wrong."""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from stressor.config.credentials import (
    CredentialEnd,
    certificate_end,
    credential_end,
    credential_ends,
    token_end,
)
from stressor.config.kubeconfig import Kubeconfig, load_kubeconfig, management_proxy
from stressor.errors import ConfigError

GOOD = """\
current-context: one
unheard-of: {x: 1}
clusters:
- name: c
  cluster: {server: "https://10.0.0.1:6443", tls-server-name: api, certificate-authority: ca.crt}
users:
- name: u
  user: {token: s3cret, as: ops, as-groups: [g]}
contexts:
- {name: two, context: {cluster: c, user: u}}
- {name: one, context: {cluster: c, user: u, namespace: load}}
"""
EXEC = """\
current-context: x
clusters: [{name: c, cluster: {server: "https://10.0.0.1"}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/VERSION, command: CMD}}}]
"""
END = 1_900_000_000


def put(folder: Path, text: str, name: str = "config") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ca.crt").write_text("")
    (folder / name).write_text(text)
    return str(folder / name)


def load(folder: Path, text: str, context: str | None = None) -> Kubeconfig:
    return load_kubeconfig(put(folder, text), {}, context=context)


def mistakes(
    path: str | None, env: dict[str, str] | None = None, context: str | None = None
) -> list[str]:
    with pytest.raises(ConfigError) as told:
        load_kubeconfig(path, env or {}, context=context)
    return list(told.value.mistakes)


def jwt(claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.c2ln"


def self_signed() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    end = datetime.fromtimestamp(END, UTC)
    built = x509.CertificateBuilder(x509.Name([]), x509.Name([]), key.public_key(), 7)
    built = built.not_valid_before(datetime(2026, 1, 1, tzinfo=UTC)).not_valid_after(end)
    return built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def test_the_current_context_with_its_cluster_and_user(tmp_path: Path) -> None:
    found = load(tmp_path, GOOD)
    assert (found.context.name, found.namespace) == ("one", "load")
    assert (found.cluster.server, found.cluster.tls_server_name) == ("https://10.0.0.1:6443", "api")
    assert found.cluster.ca_path == f"{tmp_path}/ca.crt"
    assert (found.user.token, found.user.impersonation.user) == ("s3cret", "ops")
    assert found.user.impersonation.groups == ("g",)
    assert [one.name for one in found.contexts] == ["one", "two"]
    assert "s3cret" not in repr(found)


def test_the_flag_chooses_the_context_and_default_is_the_namespace(tmp_path: Path) -> None:
    found = load(tmp_path, GOOD, context="two")
    assert (found.context.name, found.namespace) == ("two", "default")


def test_the_first_file_with_a_name_wins_whole_and_paths_are_its_own(tmp_path: Path) -> None:
    first = put(tmp_path / "1", "users: [{name: u, user: {username: ops, password: p}}]\n")
    second = put(tmp_path / "2", GOOD)
    missing = str(tmp_path / "none")
    listed = f":{missing}:{first}:{first}:{second}:"
    found = load_kubeconfig(None, {"KUBECONFIG": listed})
    assert (found.user.username, found.user.token) == ("ops", "")
    assert found.cluster.ca_path == f"{tmp_path}/2/ca.crt"
    assert (found.paths, found.missing_paths) == ((first, second), (missing,))


def test_the_first_current_context_wins_and_an_empty_one_does_not(tmp_path: Path) -> None:
    paths = [
        put(tmp_path / str(n), f"current-context: {name}\n")
        for n, name in enumerate(('""', "two", "gone"))
    ]
    last = put(tmp_path, GOOD)
    assert load_kubeconfig(None, {"KUBECONFIG": ":".join((*paths, last))}).context.name == "two"


@pytest.mark.parametrize("env", [{}, {"KUBECONFIG": ""}])
def test_without_kubeconfig_the_home_folder_counts(tmp_path: Path, env: dict[str, str]) -> None:
    path = put(tmp_path / ".kube", GOOD)
    assert load_kubeconfig(None, {"HOME": str(tmp_path), **env}).paths == (path,)
    assert load_kubeconfig("", {"HOME": str(tmp_path), **env}).paths == (path,)


def test_the_place_of_old_is_read_while_there_is_no_other(tmp_path: Path) -> None:
    old = put(tmp_path / ".kube", GOOD, name=".kubeconfig")
    assert load_kubeconfig(None, {"HOME": str(tmp_path)}).paths == (old,)
    new = put(tmp_path / ".kube", GOOD)
    assert load_kubeconfig(None, {"HOME": str(tmp_path)}).paths == (new,)


def test_a_kubeconfig_of_separators_does_not_mean_home(tmp_path: Path) -> None:
    put(tmp_path / ".kube", GOOD)
    (told,) = mistakes(None, {"HOME": str(tmp_path), "KUBECONFIG": ":"})
    assert told.startswith("no kubeconfig: $KUBECONFIG names no file")


def test_no_file_at_all(tmp_path: Path) -> None:
    (told,) = mistakes(None, {"HOME": str(tmp_path)})
    assert told.startswith(f"no kubeconfig: {tmp_path}/.kube/config: name one with --kubeconfig")


def test_an_explicit_file_must_exist_and_stands_alone(tmp_path: Path) -> None:
    other = put(tmp_path, GOOD)
    missing = f"{tmp_path}/none"
    assert mistakes(missing, {"KUBECONFIG": other}) == [f"{missing}:1: there is no such kubeconfig"]


def test_every_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    paths = [
        put(tmp_path / "1", "a: [\n"),
        put(tmp_path / "2", "clusters:\n- name: 7\n"),
        put(tmp_path / "3", GOOD),
        str(tmp_path / "1"),
    ]
    told = mistakes(None, {"KUBECONFIG": ":".join(paths)})
    assert told[0] == f"{paths[0]}:2: is not valid YAML"
    assert told[1].startswith(f"{paths[1]}:2: must be text: put it in quotes")
    assert told[2] == f"{paths[3]}:1: cannot be read: Is a directory"


def test_names_that_lead_nowhere(tmp_path: Path) -> None:
    path = put(tmp_path, GOOD.replace("current-context: one", "current-context: ona"))
    assert mistakes(path) == [
        f"{path}: current-context: there is no context `ona` (did you mean `one`?)"
        " (contexts: one, two)"
    ]
    assert mistakes(path, context="x")[0].startswith("--context: there is no context `x` (contexts")
    path = put(tmp_path, GOOD.replace("{cluster: c, user: u}", "{cluster: d, user: u}"))
    assert mistakes(path, context="two") == [
        f"{path}:10: context `two` names the cluster `d`, which no kubeconfig defines"
    ]
    path = put(tmp_path, GOOD.replace("{cluster: c, user: u}", "{cluster: c, user: v}"))
    assert mistakes(path, context="two") == [
        f"{path}:10: context `two` names the user `v`, which no kubeconfig defines"
    ]


def test_no_current_context_is_no_guess(tmp_path: Path) -> None:
    path = put(tmp_path, GOOD.replace("current-context: one", ""))
    assert mistakes(path) == [
        f"{path}: no current-context: choose one with --context (contexts: one, two)"
    ]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "ca.crt",
            "no.crt",
            ":4: cluster `c`: certificate-authority {0}/no.crt cannot be read: No",
        ),
        ("ca.crt", "ca.crt, proxy-url: 'ftp://x'", ":4: cluster `c`: proxy-url must begin with"),
        ("ca.crt", "ca.crt, insecure-skip-tls-verify: true", ":4: cluster `c`: insecure-skip-"),
        ("ca.crt", "ca.crt, certificate-authority-data: eA==", ":4: cluster `c`: certificate-auth"),
        ('"https://10.0.0.1:6443"', '""', ":4: cluster `c` has no server"),
        ("token: s3cret", "token: s3cret, username: ops", ":7: user `u`: token and username"),
        ("token: s3cret", "tokenFile: gone", ":7: user `u`: tokenFile {0}/gone cannot be read"),
        ("as: ops, ", "", ":7: user `u`: as-uid, as-groups and as-user-extra need `as`"),
        ("token: s3cret", "client-certificate: ca.crt", ":7: user `u`: a client certificate needs"),
        ("token: s3cret", "client-certificate-data: '%'", ":8: is not base64"),
        ("token: s3cret", "token: 1e5", ":8: must be text"),
        ("name: two", "name: one", ":11: context `one` is defined twice in this file"),
        ("users:", "kind: Pod\nusers:", ":6: `kind` must be Config"),
    ],
)
def test_what_kubectl_refuses(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = put(tmp_path, GOOD.replace(old, new, 1))
    (said,) = mistakes(path)
    assert said.startswith(path + told.format(tmp_path))
    assert "s3cret" not in said


@pytest.mark.parametrize(
    ("written", "command"),
    [("aws", "aws"), ("./bin/login", "{0}/bin/login"), ("../x", "{1}/x"), ("/opt/x", "/opt/x")],
)
def test_a_plugin_with_a_slash_is_beside_its_file(
    tmp_path: Path, written: str, command: str
) -> None:
    found = load(tmp_path, EXEC.replace("CMD", written).replace("VERSION", "v1beta1"))
    assert found.user.exec is not None
    assert found.user.exec.command == command.format(tmp_path, tmp_path.parent)
    assert found.user.exec.interactive_mode == "IfAvailable"


def test_a_plugin_of_version_1_must_say_whether_it_prompts(tmp_path: Path) -> None:
    path = put(tmp_path, EXEC.replace("CMD", "aws").replace("VERSION", "v1"))
    (told,) = mistakes(path)
    assert told.endswith("interactiveMode of exec must be one of Never, IfAvailable, Always")


@pytest.mark.parametrize(
    ("server", "answer"),
    [
        ("https://rancher.example/k8s/clusters/c-m-1a2b3c4d", True),
        ("https://rancher.example/base/k8s/clusters/local/", True),
        ("https://10.0.0.1:6443", False),
        ("https://x.example/k8s/clusters/", False),
        ("https://x.example/?to=/k8s/clusters/c-1", False),
    ],
)
def test_management_proxy(server: str, answer: bool) -> None:
    assert management_proxy(server) is answer


@pytest.mark.parametrize(
    ("token", "end"),
    [
        (jwt({"exp": END}), float(END)),
        (jwt({"exp": END + 0.5}), END + 0.5),
        (jwt({"exp": True}), None),
        (jwt({"exp": "soon"}), None),
        (jwt({"exp": 10**400}), None),
        (jwt({}), None),
        (jwt([]), None),
        ("s3cret", None),
        ("a.b.c", None),
        ("a.é.c", None),
    ],
)
def test_token_end(token: str, end: float | None) -> None:
    assert token_end(token) == end


def test_certificate_end() -> None:
    assert certificate_end(self_signed()) == END
    assert certificate_end(b"nothing of the kind") is None


def test_the_earliest_known_end_counts_and_a_token_file_outranks_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(jwt({"exp": END - 60}) + "\n")
    pem = base64.b64encode(self_signed()).decode()
    user = f"client-certificate-data: {pem}, client-key-data: eA==, tokenFile: token"
    found = load(tmp_path, GOOD.replace("token: s3cret", f"{user}, token: {jwt({'exp': 5})}"))
    assert credential_ends(found) == (
        CredentialEnd("certificate", END),
        CredentialEnd("token", END - 60),
    )
    assert credential_end(found) == END - 60


def test_a_credential_that_does_not_say_its_end_is_unknown(tmp_path: Path) -> None:
    found = load(tmp_path, GOOD)
    assert credential_ends(found) == (CredentialEnd("token", None),)
    assert credential_end(found) is None


def test_without_https_no_credential_is_sent(tmp_path: Path) -> None:
    for server in ("http://10.0.0.1", "10.0.0.1:6443"):
        found = load(tmp_path, GOOD.replace("https://10.0.0.1:6443", server))
        assert (found.sends_credentials, credential_ends(found)) == (False, ())
    assert load(tmp_path, GOOD).sends_credentials
