"""`stressor plan` and `stressor run PLAN` as an operator starts them, and what they touch."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stressor.testing.kube import MemoryApi
from tests.cli.child import run
from tests.cli.test_plan import CPU, INVENTORY
from tests.contract.kube.conftest import serve

WATCHED = """\
import sys
def watch(event, args):
    if event in ("socket.__new__", "socket.connect", "socket.getaddrinfo", "subprocess.Popen"):
        print("TOUCHED", event, file=sys.stderr)
sys.addaudithook(watch)
from stressor.main import main
main(sys.argv[1:])
"""
"""The verb in a process that tells of each socket and each child, whoever opens it."""


class Desk:
    """An operator's folder; each call is a process of its own."""

    def __init__(self, path: Path, server: str = "http://127.0.0.1:1") -> None:
        self.path, self.plan = path, path / "plan.json"
        self.phases, self.inventory = path / "phases.yaml", path / "inventory.yaml"
        self.phases.write_text(CPU)
        kube = f"    stressor_kubeconfig: {path / 'kubeconfig'}\n  children:"
        self.inventory.write_text(INVENTORY.replace("  children:", kube))
        config = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": "sesame"}}],
        }
        (path / "kubeconfig").write_text(json.dumps(config))

    def planned(self, *words: str) -> subprocess.CompletedProcess[str]:
        named = ("plan", str(self.phases), "--inventory", str(self.inventory))
        return run(sys.executable, "-c", WATCHED, *named, *words, state=self.path / "state")

    def stressor(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run(sys.executable, "-m", "stressor", *words, state=self.path / "state")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def api() -> MemoryApi:
    api = MemoryApi()
    api.add_node("n1", control_plane=True)
    api.add_node("n2")
    return api


@pytest.fixture
def served(tmp_path: Path, api: MemoryApi) -> Iterator[Desk]:
    """With an API on loopback."""
    server = serve(api)
    yield Desk(tmp_path, f"http://127.0.0.1:{server.server_address[1]}")
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_a_plan_opens_no_socket_and_starts_no_child(desk: Desk) -> None:
    done = desk.planned("--out", str(desk.plan), "-o", "json")
    assert done.returncode == 0, done.stderr
    assert "TOUCHED" not in done.stderr
    assert json.loads(done.stdout)["api_was_asked"] is False
    # The same watch sees the sockets of a plan that may open some.
    assert "TOUCHED socket.__new__" in desk.planned("--dry-run=server").stderr


@pytest.mark.slow
def test_the_plan_file_is_written_whole_and_named(desk: Desk) -> None:
    done = desk.planned("--out", str(desk.plan))
    assert done.returncode == 0, done.stderr
    assert "WRITTEN " in done.stdout
    assert done.stdout.splitlines()[-1] == f"NEXT      stressor run {desk.plan}"
    assert desk.plan.stat().st_mode & 0o777 == 0o600
    again = desk.planned("--out", str(desk.plan))
    assert again.returncode == 2
    assert "exists already" in again.stderr
    assert desk.planned("--out", str(desk.plan), "--force").returncode == 0


@pytest.mark.slow
def test_a_plan_that_would_be_refused_is_not_written(desk: Desk) -> None:
    done = desk.planned("--out", str(desk.plan), "--max-duration", "3m", "-o", "json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["exit_code"], document["verdict"]) == (3, 3, "refused")
    assert document["flaws"] == [
        "the worst-case end is 215 s after the start, --max-duration allows 180 s: 35 s too late; "
        "choose fewer --phases or shorter deadlines"
    ]
    assert document["plan_file"] is None
    assert not desk.plan.exists()


@pytest.mark.slow
def test_run_refuses_a_plan_whose_ground_moved_and_touches_nothing(desk: Desk) -> None:
    assert desk.planned("--out", str(desk.plan)).returncode == 0
    text = desk.inventory.read_text()
    desk.inventory.write_text(text.replace("192.0.2.2}", "192.0.2.3}"))
    done = desk.stressor("run", str(desk.plan))
    assert done.returncode == 3
    assert "\n  n2 address 192.0.2.2 -> 192.0.2.3\n" in done.stderr
    assert not (desk.path / "state").exists()
    assert desk.stressor("plan", str(desk.plan)).returncode == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--max-duration", "3m"), 3, "35 s too late"),
        (("--phases", "warm"), 2, "--phases is fixed by the plan"),
    ],
)
def test_run_holds_a_plan_to_its_options(
    desk: Desk, words: tuple[str, ...], code: int, told: str
) -> None:
    assert desk.planned("--out", str(desk.plan)).returncode == 0
    done = desk.stressor("run", str(desk.plan), *words)
    assert (done.returncode, told in done.stderr) == (code, True), done.stderr
    assert not (desk.path / "state").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--max-duration", "3m"), 3, "35 s too late"),
        (("--phases", "wram"), 2, "did you mean `warm`?"),
    ],
)
def test_run_holds_a_phase_file_to_them_too(
    desk: Desk, words: tuple[str, ...], code: int, told: str
) -> None:
    named = (str(desk.phases), "--inventory", str(desk.inventory))
    done = desk.stressor("run", *named, *words)
    assert (done.returncode, told in done.stderr) == (code, True), done.stderr
    assert not (desk.path / "state").exists()


@pytest.mark.slow
def test_a_cut_plan_and_a_report_are_named_as_such(desk: Desk) -> None:
    done = desk.planned("--out", str(desk.plan), "-o", "json")
    whole = desk.plan.read_bytes()
    desk.plan.write_bytes(whole[: len(whole) // 2])
    cut = desk.stressor("run", str(desk.plan))
    assert cut.returncode == 2
    assert "damaged plan file" in cut.stderr
    desk.plan.write_text(done.stdout)
    report = desk.stressor("run", str(desk.plan))
    assert report.returncode == 2
    assert "a report of `stressor plan -o json`" in report.stderr


@pytest.mark.slow
def test_the_api_is_read_and_its_word_kept_in_the_plan(served: Desk, api: MemoryApi) -> None:
    done = served.planned("--dry-run=server", "--out", str(served.plan))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PLANNED   nothing was started; the API was read, no host was asked" in done.stdout
    assert {request.method for request in api.requests} == {"GET"}
    cluster = json.loads(served.plan.read_text())["footing"]["cluster"]
    assert [node["kubelet_version"] for node in cluster["nodes"]] == ["v1.36.0"] * 2
    api.objects["/api/v1/nodes/n2"]["status"]["nodeInfo"]["kubeletVersion"] = "v1.37.0"
    again = served.stressor("plan", str(served.plan), "--dry-run=server")
    assert again.returncode == 3
    said = " ".join(again.stdout.split())
    assert "REFUSED cluster node n2 kubelet_version v1.36.0 -> v1.37.0" in said


@pytest.mark.slow
def test_what_the_api_says_against_a_plan_refuses_it(served: Desk, api: MemoryApi) -> None:
    api.objects["/api/v1/nodes/n2"]["spec"] = {"unschedulable": True}
    done = served.planned("--dry-run=server", "--out", str(served.plan))
    assert done.returncode == 3
    assert "FAIL      n2: placement: node n2 is cordoned" in done.stdout
    assert "-> kubectl uncordon n2" in done.stdout
    assert not served.plan.exists()


@pytest.mark.slow
def test_i4_an_api_that_does_not_answer_refuses_the_plan(desk: Desk) -> None:
    done = desk.planned("--dry-run=server", "--out", str(desk.plan), "-o", "json")
    document = json.loads(done.stdout)
    assert done.returncode == 3, done.stderr
    (finding,) = document["findings"]
    assert (finding["level"], finding["unknown"]) == ("fail", True)
    assert not desk.plan.exists()
