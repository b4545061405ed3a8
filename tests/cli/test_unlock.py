"""When a lock may be given back: the hosts decide, and silence is no yes."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stressor import lifeline
from stressor.checks.base import Answer, Facts, Reading, read
from stressor.checks.leftovers import NAME, Hold, argv, hold, judge
from stressor.cli.unlock import CLOCKS_APART_S, Outcome, _hosts_say, _json, _lease
from stressor.errors import ExitCode, KubeError
from stressor.lifeline import Lifeline, RunEntry
from stressor.model import Host, Transport
from stressor.testing.kube import FakeKube, Fault
from tests.cli.child import run
from tests.guard.trees import fresh_run
from tests.sshd import running_sshd

STAT = "S 1 " + "0 " * 17 + "77"


def reading(**facts: tuple[str, ...]) -> Reading:
    return Reading("n1", Facts(facts), 0.0, 0.0)


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({"folder": ("none",)}, Hold.FREE),
        ({"folder": ("read",)}, Hold.FREE),
        ({}, None),
        ({"folder": ("read",), "run": ("r1",), "tombstone": ("r1",)}, Hold.UNPROVEN),
        (
            {"folder": ("read",), "run": ("r1",), "tombstone": ("r1",), "unproven": ("r1",)},
            Hold.UNPROVEN,
        ),
        (
            {"folder": ("read",), "run": ("r1",), "tombstone": ("r1",), "proven": ("r1",)},
            Hold.FREE,
        ),
        (
            {
                "folder": ("read",),
                "run": ("r1",),
                "tombstone": ("r1",),
                "proven": ("r1",),
                "guard": (f"r1 9 77 {STAT}",),
            },
            Hold.HELD,
        ),
        ({"folder": ("read",), "run": ("r1",), "proven": ("r1",)}, Hold.UNPROVEN),
        ({"folder": ("read",), "run": ("r1",)}, Hold.UNPROVEN),
        ({"folder": ("read",), "run": ("r1",), "guard": (f"r1 9 77 {STAT}",)}, Hold.HELD),
        ({"folder": ("read",), "run": ("r2",), "guard": (f"r2 9 77 {STAT}",)}, Hold.FREE),
    ],
)
def test_what_a_run_is_to_a_host(facts: dict[str, tuple[str, ...]], found: Hold | None) -> None:
    assert hold(reading(**facts), "r1") is found


@pytest.mark.parametrize(
    ("found", "code", "text"),
    [
        ({"n1": Hold.FREE, "n2": Hold.HELD}, ExitCode.LOCK_HELD, "its guard is on n2"),
        ({"n1": Hold.UNPROVEN, "n2": None}, ExitCode.UNVERIFIED_HOSTS, "not proven dead on n1"),
        ({"n1": Hold.FREE, "n2": None}, ExitCode.UNVERIFIED_HOSTS, "no answer from n2"),
        ({}, ExitCode.UNVERIFIED_HOSTS, "no host is known"),
    ],
)
def test_a_lock_stays_until_every_host_has_said_that_it_may_go(
    found: dict[str, Hold | None], code: ExitCode, text: str
) -> None:
    outcome = _hosts_say("r1", found)
    assert outcome is not None
    assert outcome.code is code
    assert text in outcome.text
    assert outcome.next_command == "stressor abort --run r1"


def held(kube: FakeKube, run: str = "r1") -> None:
    kube.acquire_lease(
        holder="ann@desk:7", run=run, abort_command="a", expires_s=60, deadline_s=1.0
    )


def test_free_hosts_leave_it_to_the_lease() -> None:
    assert _hosts_say("r1", {"n1": Hold.FREE}) is None
    kube = FakeKube()
    now_s = kube.api.unix_s
    assert _lease("r1", kube, now_s).text == "free: nobody holds the cluster"
    held(kube)
    other = _lease("r2", kube, now_s)
    assert (other.code, other.next_command) == (ExitCode.LOCK_HELD, "a")
    assert "run r1 of ann@desk:7 holds it since 2027-01-15T08:00:00Z, until" in other.text
    assert kube.read_lease(deadline_s=1.0) is not None
    assert _lease("r1", kube, now_s).code is ExitCode.PASS
    assert kube.read_lease(deadline_s=1.0) is None


def test_another_runs_lease_that_has_expired_holds_nobody_up_and_is_left_alone() -> None:
    kube = FakeKube()
    held(kube)
    expired_s = kube.api.unix_s + 60
    assert _lease("r2", kube, expired_s + CLOCKS_APART_S).code is ExitCode.LOCK_HELD
    later = _lease("r2", kube, expired_s + CLOCKS_APART_S + 1)
    assert (later.code, later.next_command) == (ExitCode.PASS, "stressor preflight")
    assert "expired at 2027-01-15T08:01:00Z" in later.text
    assert kube.read_lease(deadline_s=1.0) is not None


def test_i5_a_lease_that_is_still_there_was_not_given_back() -> None:
    """A holder that lives renews between our look and our delete: the API refuses the delete."""
    kube = FakeKube()
    held(kube)
    kube.api.fail(Fault("DELETE", "/leases/", status=409))
    outcome = _lease("r1", kube, kube.api.unix_s)
    assert outcome.code is ExitCode.LOCK_HELD
    assert "still there" in outcome.text
    assert kube.read_lease(deadline_s=1.0) is not None


def test_i4_an_api_that_does_not_answer_is_unknown() -> None:
    outcome = _lease("r1", KubeError("nobody listens"), 1_800_000_000.0)
    assert outcome.code is ExitCode.UNVERIFIED_HOSTS
    assert "expires by itself, at 2027-01-15T08:01:00Z" in outcome.text
    assert "nobody listens" in outcome.text


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (ExitCode.PASS, "pass"),
        (ExitCode.LOCK_HELD, "fail"),
        (ExitCode.UNVERIFIED_HOSTS, "unknown"),
    ],
)
def test_the_verdict_for_programs_tells_no_from_unknown(code: ExitCode, verdict: str) -> None:
    said = json.loads(_json("r1", {"n1": None}, Outcome(code, "why", "next")))
    assert (said["verdict"], said["exit_code"]) == (verdict, int(code))
    assert (said["hosts"], said["lease"]) == ({"n1": "unknown"}, None)


ENTRY = RunEntry("r1", 1.0, 2.0, "/j", "ns", "/none/kubeconfig", ("loop", "gone"))


def test_i5_a_host_of_the_run_that_nobody_has_a_route_to_is_not_free(tmp_path: Path) -> None:
    """The whole command. The host that there is has no route either, and nothing of the run."""
    lifeline.write(tmp_path, Lifeline("c", 1.0, (Host("loop", ()),), runs=(ENTRY,)))
    done = run(sys.executable, "-m", "stressor", "unlock", "r1", "-o", "json", state=tmp_path)
    assert done.returncode == 4, done.stderr
    said = json.loads(done.stdout)
    assert said["hosts"] == {"loop": "unknown", "gone": "unknown"}
    assert said["next_command"] == "stressor abort --run r1"


@pytest.mark.ssh
def test_with_the_api_dead_the_hosts_word_and_the_end_of_the_lease_are_said(tmp_path: Path) -> None:
    name = fresh_run()
    entry = replace(ENTRY, run=name, hosts=("loop",))
    with running_sshd(tmp_path / "sshd") as sshd:
        hosts = (sshd.host(Transport.PARAMIKO),)
        lifeline.write(tmp_path, Lifeline("c", 1.0, hosts, runs=(entry,)))
        done = run(sys.executable, "-m", "stressor", "unlock", name, state=tmp_path)
    assert done.returncode == 4, done.stderr
    said = " ".join(done.stdout.split())
    assert said.startswith("loop free ")
    assert f"LOCKED {name}: hosts are free, the Lease is unknown; it expires by itself, at" in said
    assert said.endswith(f"NEXT stressor unlock {name}")


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_what_a_host_says_of_its_runs(tmp_path: Path, shell: str) -> None:
    """The script itself, on a folder of our own."""
    for name, files in {
        "a": {"tombstone": "x", "proof": "STOPPED"},
        "b": {"tombstone": "x", "proof": "SURVIVORS"},
        "c": {"tombstone": "x", "proof": ""},
        "d": {"tombstone": "x"},
    }.items():
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_text(f"{text}\n")
    _, flag, script, *words = argv(Host("n1", ()))
    script = script.replace("/run/stressor", str(tmp_path))
    done = subprocess.run(
        [shell, flag, script, *words], capture_output=True, text=True, timeout=20, check=True
    )
    facts = read(NAME, Answer("n1", done.stdout, 0.0, 0.0))
    assert isinstance(facts, Reading)
    assert {one: hold(facts, one) for one in ("a", "b", "c", "d", "e")} == {
        "a": Hold.FREE,
        "b": Hold.UNPROVEN,
        "c": Hold.UNPROVEN,
        "d": Hold.UNPROVEN,
        "e": Hold.FREE,
    }
    assert [one.text for one in judge(facts)] == [
        "run b killed, not proven dead: load may live",
        "run c killed, not proven dead: load may live",
    ]
