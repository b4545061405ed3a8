"""Clusters for the contract: memory, memory behind real HTTP and the real client, and the lab."""

import json
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import pytest

from stressor.config.kubeconfig import load_kubeconfig
from stressor.config.login import login_of
from stressor.errors import KubeError
from stressor.kube.base import Kube
from stressor.kube.client import connect
from stressor.kube.login import Login
from stressor.kube.transport import Request
from stressor.testing.kube import FakeKube, MemoryApi
from tests.lab.bed import Bed


@dataclass(frozen=True)
class Cluster:
    """A cluster, a second way into it, and a run id that nothing else uses."""

    kube: Kube
    other: Kube
    run: str
    node: str


def serve(api: MemoryApi) -> ThreadingHTTPServer:
    """An HTTP server on loopback that answers from `api`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 65536

        def answer(self) -> None:
            url = urlsplit(self.path)
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.loads(raw) if raw else None
            query = dict(parse_qsl(url.query))
            kind = self.headers.get("Content-Type", "")
            request = Request(self.command, url.path, query, body, kind)
            try:
                response = api.send(request, deadline_s=1.0)
            except KubeError:
                self.close_connection = True
                return
            self.send_response_only(response.status)
            self.send_header("Date", formatdate(api.unix_s, usegmt=True))
            self.send_header("Content-Length", str(len(response.body)))
            for text in response.warnings:
                quoted = text.replace("\\", "\\\\").replace('"', '\\"')
                self.send_header("Warning", f'299 - "{quoted}"')
            self.end_headers()
            self.wfile.write(response.body)

        def log_message(self, *_: object) -> None:
            """Silence."""

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.answer)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server


def login(server: str, *, token: str = "sesame") -> Login:
    """The way into `server`."""
    return Login(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": token}}],
        },
        "context c of k",
    )


@pytest.fixture
def api() -> MemoryApi:
    """The memory that stands behind the fake clusters, to script them."""
    memory = MemoryApi()
    memory.add_node("w-1")
    return memory


@pytest.fixture
def http_url(api: MemoryApi) -> Iterator[str]:
    """`api` behind HTTP on loopback."""
    server = serve(api)
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(
    params=[
        "memory",
        "http",
        # The first of them may bring the lab up.
        pytest.param("lab", marks=[pytest.mark.lab, pytest.mark.timeout(1500)]),
    ]
)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """One cluster of each sort. What a test made under the run's label is removed afterwards."""
    run = f"t{uuid.uuid4().hex[:12]}"
    if request.param == "memory":
        api = request.getfixturevalue("api")
        yield Cluster(FakeKube(api), FakeKube(api), run, "w-1")
        return
    if request.param == "http":
        way = login(request.getfixturevalue("http_url"))
        yield Cluster(connect(way), connect(way), run, "w-1")
        return
    lab: Bed = request.getfixturevalue("lab")
    way = login_of(load_kubeconfig(lab.inventory.kubeconfig_path, {}))
    kube = connect(way)
    node = next(n.hostname for n in kube.nodes(deadline_s=10.0) if not n.taints)
    yield Cluster(kube, connect(way), run, node)
    kube.delete_run(run, deadline_s=40.0)
    # A test that failed half way may have left its lock behind.
    lease = kube.read_lease(deadline_s=10.0)
    if lease is not None and lease.holder.startswith(("ann@", "bob@", "racer-")):
        kube.release_lease(lease, deadline_s=10.0)
