"""Generated kubeconfigs: what kubectl answers is what stressor uses.

Each seed is a situation: one to three files (YAML, JSON, some missing, some broken), a way to name
them, and every context in turn. kubectl merges them (`config view`), and is then sent to a closed
port on loopback: it either gets as far as dialling, or refuses the configuration. stressor must
have the same records, and refuse exactly what kubectl refuses.
"""

import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from stressor.config.kubeconfig import Kubeconfig, load_kubeconfig
from stressor.config.kubeconfig_file import Cluster, Context, User
from stressor.errors import ConfigError
from stressor.lab.places import KUBERNETES_VERSION, places
from tests.config.kubeconfig_maker import EVERY_FILE, NAMES, ODD_TEXTS, Maker

SEEDS = range(48)
DIALLED = ("connection refused", "was refused", "proxyconnect", "socks connect")
"""How kubectl says that it accepted the configuration and reached for the (closed) port."""
ASKED = ("executable", "fork/exec")
"""It accepted the configuration and went for its plugin, which is not there."""

pytestmark = [pytest.mark.slow, pytest.mark.lab]


@dataclass(frozen=True, slots=True)
class Situation:
    """Where kubectl and stressor are called, with which flag and environment."""

    folder: Path
    env: dict[str, str]
    explicit_path: str | None


@pytest.fixture(scope="module")
def kubectl() -> str:
    built = sorted(places().cache.glob(f"lab/kubernetes-{KUBERNETES_VERSION}-*/kubectl"))
    found = str(built[-1]) if built else shutil.which("kubectl")
    assert found, "no kubectl: `stressor lab build` makes one, or put one on PATH"
    return found


@pytest.fixture(scope="module")
def pair() -> tuple[bytes, bytes]:
    """A certificate that signs itself, and its key: kubectl reads both before it dials."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ops")])
    start = datetime(2026, 1, 1, tzinfo=UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=9000))
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def situation(folder: Path, maker: Maker, pair: tuple[bytes, bytes]) -> Situation:
    paths = []
    for number in range(maker.draw.randint(1, 3)):
        home = folder / f"d{number}"
        pki(home, number, pair)
        paths.append(f"{home}/config" if maker.chance(0.7) else f"d{number}/config")
        if not maker.chance(0.08):
            (home / "config").write_text(maker.file())
    env = {"HOME": str(folder / "home"), "PATH": "/usr/bin:/bin"}
    if maker.chance(0.2):
        return Situation(folder, env, paths[0])
    more: list[str] = maker.draw.choice(([], [""], [paths[0]]))
    listed = maker.draw.choice(("", ":")) + os.pathsep.join((*paths, *more))
    return Situation(folder, env | {"KUBECONFIG": listed}, None)


def pki(home: Path, number: int, pair: tuple[bytes, bytes]) -> None:
    """Files whose content tells the folder, so that a wrong folder shows."""
    (home / "pki").mkdir(parents=True)
    mark = f"# d{number}\n".encode()
    for name, text in (("ca.crt", pair[0]), ("ops.crt", pair[0]), ("ops.key", pair[1])):
        (home / "pki" / name).write_bytes(text + mark)
    (home / "pki" / "token").write_text("t0ken\n")


def ask(kubectl: str, where: Situation, *words: str) -> subprocess.CompletedProcess[str]:
    flag = () if where.explicit_path is None else ("--kubeconfig", where.explicit_path)
    return subprocess.run(
        (kubectl, *words, *flag),
        cwd=where.folder,
        env=where.env,
        text=True,
        timeout=30,
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def view(kubectl: str, where: Situation, *words: str) -> Any:
    """`config view` as JSON, None where kubectl refuses."""
    done = ask(kubectl, where, "config", "view", "--merge=true", "-o", "json", *words)
    return json.loads(done.stdout) if done.returncode == 0 else None


def use(kubectl: str, where: Situation, context: str | None) -> tuple[bool, str]:
    """Whether kubectl uses this configuration, as far as it comes without a server; what it said.

    It prompts for a user without a credential; then it is given one, to see how it goes on.
    """
    words = ["get", "--raw", "/", "--request-timeout=5s"]
    words += [] if context is None else ["--context", context]
    said = ask(kubectl, where, *words)
    if "Please enter Username" in said.stdout + said.stderr:
        said = ask(kubectl, where, *words, "--username=ops", "--password=none")
    assert said.returncode != 0
    text = said.stdout + said.stderr
    return any(sign in text for sign in (*DIALLED, *ASKED)), text


def ours(where: Situation, context: str | None) -> Kubeconfig | ConfigError:
    before = Path.cwd()
    os.chdir(where.folder)
    try:
        return load_kubeconfig(where.explicit_path, where.env, context=context)
    except ConfigError as error:
        return error
    finally:
        os.chdir(before)


def trimmed(value: Any) -> Any:
    """Without what is null, empty or false, which JSON may leave out or not."""
    if isinstance(value, Mapping):
        return {k: trimmed(v) for k, v in value.items() if k != "extensions" and trimmed(v)}
    return [trimmed(item) for item in value] if isinstance(value, list) else value


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile", "command")


def unplaced(value: Any) -> Any:
    """JSON without the folders of its paths: `config view` shows those as they are written, so
    where they lead is compared by other means."""
    if not isinstance(value, dict):
        return value
    return {k: os.path.basename(v) if k in PATHS else unplaced(v) for k, v in value.items()}


def content(path: str, data: bytes) -> bytes:
    return Path(path).read_bytes() if path else data


def flat_json(found: Kubeconfig) -> dict[str, Any]:
    """Every certificate and key as `config view --flatten` puts it in."""
    cluster, user = found.cluster, found.user
    return {
        "certificate-authority-data": b64(content(cluster.ca_path, cluster.ca_data)),
        "client-certificate-data": b64(content(user.certificate_path, user.certificate_data)),
        "client-key-data": b64(content(user.key_path, user.key_data)),
    }


def cluster_json(one: Cluster) -> dict[str, Any]:
    return {
        "server": one.server,
        "tls-server-name": one.tls_server_name,
        "insecure-skip-tls-verify": one.insecure,
        "certificate-authority": one.ca_path,
        "certificate-authority-data": b64(one.ca_data),
        "proxy-url": one.proxy_url,
        "disable-compression": one.disable_compression,
    }


def user_json(one: User) -> dict[str, Any]:
    return {
        "client-certificate": one.certificate_path,
        "client-certificate-data": b64(one.certificate_data),
        "client-key": one.key_path,
        "client-key-data": b64(one.key_data),
        "token": one.token,
        "tokenFile": one.token_path,
        "username": one.username,
        "password": one.password,
        "as": one.impersonation.user,
        "as-uid": one.impersonation.uid,
        "as-groups": list(one.impersonation.groups),
        "as-user-extra": {key: list(values) for key, values in one.impersonation.extra},
        "exec": exec_json(one),
    }


def exec_json(one: User) -> dict[str, Any] | None:
    plugin = one.exec
    if plugin is None:
        return None
    return {
        "command": plugin.command,
        "args": list(plugin.args),
        "env": [{"name": name, "value": value} for name, value in plugin.env],
        "apiVersion": plugin.api_version,
        "interactiveMode": plugin.interactive_mode,
        "installHint": plugin.install_hint,
        "provideClusterInfo": plugin.provide_cluster_info,
    }


def context_json(one: Context) -> dict[str, Any]:
    return {"cluster": one.cluster, "user": one.user, "namespace": one.namespace}


def only(found: Any, key: str) -> Any:
    """The one entry that a minified view has of a kind, or an empty one."""
    entries = found[f"{key}s"] or [{key: {}}]
    assert len(entries) == 1
    return trimmed(entries[0][key])


@pytest.mark.parametrize("seed", SEEDS)
def test_kubectl_and_stressor_answer_alike(
    seed: int, kubectl: str, pair: tuple[bytes, bytes], tmp_path: Path
) -> None:
    compare(kubectl, situation(tmp_path, Maker(seed, pair), pair))


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_odd_texts_before_a_plain_file(text: str, kubectl: str, tmp_path: Path) -> None:
    (tmp_path / "odd").write_text(text)
    (tmp_path / "plain").write_text(EVERY_FILE)
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "KUBECONFIG": "odd:plain"}
    compare(kubectl, Situation(tmp_path, env, None))


@pytest.mark.parametrize("server", ["http://127.0.0.1:1", "https://127.0.0.1:1"])
def test_what_is_refused_only_where_there_is_tls(
    server: str, kubectl: str, pair: tuple[bytes, bytes], tmp_path: Path
) -> None:
    authority = f", insecure-skip-tls-verify: true, certificate-authority-data: {b64(pair[0])}"
    plain = EVERY_FILE.replace('"https://127.0.0.1:1"', f'"{server}"')
    texts = (
        plain.replace('127.0.0.1:1"', f'127.0.0.1:1"{authority}'),
        plain.replace("token: t", "tokenFile: gone"),
    )
    for number, text in enumerate(texts):
        (tmp_path / str(number)).write_text(text)
        env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "KUBECONFIG": str(number)}
        where = Situation(tmp_path, env, None)
        compare(kubectl, where)
        assert isinstance(ours(where, None), Kubeconfig) == server.startswith("http:")


def compare(kubectl: str, where: Situation) -> None:
    merged = view(kubectl, where, "--raw")
    for context in (None, *NAMES, "2026-01-02"):
        found = ours(where, context)
        chosen = () if context is None else ("--context", context)
        small = view(kubectl, where, "--raw", "--minify", *chosen)
        if small is None or not only(small, "cluster").get("server"):
            # Without a server kubectl dials localhost:8080; a guess is no cluster to load.
            assert isinstance(found, ConfigError), context
            continue
        usable, said = use(kubectl, where, context)
        assert isinstance(found, Kubeconfig) == usable, (context, found, said)
        if isinstance(found, ConfigError):
            same_refusal(found, said)
        else:
            same_records(found, small, merged)
            same_places(found, view(kubectl, where, "--flatten", "--minify", *chosen), said)


def same_refusal(found: ConfigError, said: str) -> None:
    """A path that one cannot read is the path that the other cannot read."""
    for path in re.findall(r"(/\S+) cannot be read", str(found)):
        assert f"open {path}: no such file" in said


def same_records(found: Kubeconfig, small: Any, merged: Any) -> None:
    for shown, record in (
        ("cluster", cluster_json(found.cluster)),
        ("user", user_json(found.user)),
        ("context", context_json(found.context)),
    ):
        assert unplaced(trimmed(record)) == unplaced(only(small, shown))
    assert found.context.name == small["current-context"]
    assert [
        {"name": one.name, "context": trimmed(context_json(one))} for one in found.contexts
    ] == [{"name": one["name"], "context": trimmed(one["context"])} for one in merged["contexts"]]


def same_places(found: Kubeconfig, flat: Any, said: str) -> None:
    """Certificates and keys come from the same folders, and so does the plugin's program.

    kubectl flattens nothing when one file is missing, even one that it would not use.
    """
    if flat is not None:
        shown = only(flat, "cluster") | only(flat, "user")
        expected = {key: shown[key] for key in flat_json(found) if key in shown}
        assert trimmed(flat_json(found)) == expected
    plugin = re.search(r"executable (\S+) not found|fork/exec (\S+): no such file", said)
    if plugin:
        assert found.user.exec
        assert found.user.exec.command == (plugin[1] or plugin[2])


def test_the_situations_are_not_all_of_a_kind(pair: tuple[bytes, bytes], tmp_path: Path) -> None:
    """The comparison is worth something only while enough of it is accepted and enough refused."""
    wheres = [situation(tmp_path / str(seed), Maker(seed, pair), pair) for seed in SEEDS]
    answers = [isinstance(ours(where, name), Kubeconfig) for where in wheres for name in NAMES]
    assert min(answers.count(True), answers.count(False)) > 40
