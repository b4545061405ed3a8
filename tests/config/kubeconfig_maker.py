"""Drawn kubeconfig files, good and doubtful, for the comparison with kubectl."""

import base64
import json
import random
from typing import Any

import yaml

NAMES = ("a", "b", "c")
V1, V1BETA1 = (f"client.authentication.k8s.io/{v}" for v in ("v1", "v1beta1"))


class Maker:
    """Draws entries; about one in six has something that kubectl may not like."""

    def __init__(self, seed: int, pair: tuple[bytes, bytes]) -> None:
        self.draw = random.Random(seed)
        self.cert, self.key = (base64.b64encode(one).decode() for one in pair)

    def chance(self, share: float = 0.16) -> bool:
        return self.draw.random() < share

    def pick(self, *choices: dict[str, Any]) -> dict[str, Any]:
        return self.draw.choice(choices)

    def cluster(self) -> dict[str, Any]:
        usual = ("https://127.0.0.1:1",) * 5
        odd = ("https://127.0.0.1:1/k8s/clusters/c-a", "http://127.0.0.1:1", "127.0.0.1:1", "")
        made: dict[str, Any] = {"server": self.draw.choice(usual + odd)}
        made |= self.pick(
            {"certificate-authority": "pki/ca.crt"},
            {"certificate-authority": "./pki/../pki/ca.crt"},
            {"certificate-authority-data": self.cert},
            {"insecure-skip-tls-verify": True},
            {},
        )
        if self.chance():
            made |= self.pick(
                {"certificate-authority": "pki/gone.crt"},
                {"certificate-authority": "pki/ca.crt", "certificate-authority-data": self.cert},
                {"certificate-authority-data": self.cert, "insecure-skip-tls-verify": True},
                {"proxy-url": "ftp://127.0.0.1:1"},
                {"proxy-url": "127.0.0.1:1"},
            )
        elif self.chance(0.3):
            made["proxy-url"] = self.draw.choice(("http://127.0.0.1:1", "socks5://127.0.0.1:1"))
        if self.chance(0.3):
            made |= {"tls-server-name": "kubernetes.default", "disable-compression": True}
        if self.chance(0.3):
            made |= {"unheard-of": {"x": [1, 2]}, "extensions": [{"name": "e", "extension": {}}]}
        return made

    def user(self) -> dict[str, Any]:
        if self.chance():
            return self.doubtful_user()
        made = self.pick(
            {"client-certificate": "pki/ops.crt", "client-key": "pki/ops.key"},
            {"client-certificate-data": self.cert, "client-key": "pki/ops.key"},
            {"client-certificate-data": self.cert, "client-key-data": self.key},
            {"token": "t0ken"},
            {"tokenFile": "pki/token"},
            {"token": "t0ken", "tokenFile": "pki/gone"},
            {"username": "u", "password": "p"},
            {"exec": self.exec()},
            {},
        )
        asked = {"as": "ops", "as-uid": "7", "as-groups": ["g", "h"]}
        extra = {"as-user-extra": {"k": ["v", "w"]}}
        return made | asked | extra if self.chance(0.3) else made

    def doubtful_user(self) -> dict[str, Any]:
        data = {"client-certificate-data": self.cert, "client-key-data": self.key}
        return self.pick(
            {"client-certificate": "pki/ops.crt"},
            {"client-key": "pki/gone.key"},
            {"client-certificate": "pki/gone.crt", "client-key": "pki/ops.key"},
            {**data, "client-key": "pki/ops.key"},
            {"token": "t", "username": "u"},
            {"tokenFile": "pki/gone"},
            {"token": "t", "as-groups": ["g"]},
            {"exec": self.exec() | {"interactiveMode": "Perhaps"}},
            {"exec": self.exec() | {"apiVersion": V1, "interactiveMode": None}},
            {"exec": self.exec() | {"env": [{"value": "x"}]}},
            {"exec": self.exec() | {"command": ""}},
        )

    def exec(self) -> dict[str, Any]:
        version, mode = self.draw.choice(((V1, "Never"), (V1, "IfAvailable"), (V1BETA1, None)))
        commands = ("bin/none", "./bin/none", "../none", "/none/none", "none-such")
        return {
            "command": self.draw.choice(commands),
            "apiVersion": version,
            "interactiveMode": mode,
            "args": self.draw.choice((None, [], ["get-token", "--cluster", "a b"])),
            "env": self.draw.choice((None, [{"name": "N", "value": "v"}])),
            "installHint": "install it",
            "provideClusterInfo": self.draw.choice((True, False)),
        }

    def context(self) -> dict[str, Any]:
        made = {
            "cluster": self.draw.choice((*NAMES * 8, "nowhere", "")),
            "user": self.draw.choice((*NAMES * 8, "nobody", "")),
        }
        return made | self.pick({}, {"namespace": "load"})

    def named(self, key: str) -> list[dict[str, Any]]:
        make = {"cluster": self.cluster, "user": self.user, "context": self.context}[key]
        names = self.draw.sample(NAMES, self.draw.randint(2, 3))
        return [{"name": name, key: make()} for name in names]

    def file(self) -> str:
        """The text of one file."""
        if self.chance(0.12):
            return self.draw.choice(ODD_TEXTS)
        data: dict[str, Any] = {
            f"{key}s": self.named(key) for key in ("cluster", "user", "context")
        }
        data |= self.pick({}, {"kind": "Config", "apiVersion": "v1", "preferences": {}})
        data |= self.pick({}, *({"current-context": name} for name in (*NAMES, "gone")))
        if self.chance(0.04):
            wrong = {"users": {"a": 1}}, {"current-context": 7}
            data |= self.pick({"clusters": None}, {"kind": "Pod"}, *wrong)
        return self.draw.choice((yaml.safe_dump(data), json.dumps(data, indent="\t")))


ODD_TEXTS = (
    "",
    "# nothing\n",
    "current-context: [\n",
    "current-context: y\n",
    "current-context: a\ncurrent-context: b\n",
    "current-context: 1e3\n",
    "current-context: 123e4567\n",
    "current-context: a\n---\nkind: Pod\n",
    "x: &x {name: a, context: {cluster: b}}\ncontexts:\n- <<: *x\n  name: b\n",
    "contexts:\n- {name: a}\n- {name: a}\n",
    "contexts: [{name: on}]\n",
    "clusters: [{name: a, cluster: {certificate-authority-data: '%%'}}]\n",
    "contexts: [{name: 0o17, context: {cluster: a}}]\n",
    "contexts: [{name: 2026-01-02, context: {cluster: a, user: b}}]\n",
)
EVERY_FILE = """\
current-context: a
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: b, user: {token: t}}]
contexts: [{name: a, context: {cluster: a, user: b}}]
"""
