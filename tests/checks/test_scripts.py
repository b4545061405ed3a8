"""The scripts themselves: clean sh, and whole answers from the shells that are here."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stressor.checks import CHECKS, snapshot, sshd
from stressor.checks.base import joined, parse_facts, script_argv
from stressor.model import Host, Role, Route

HOST = Host(
    "cp-1",
    (Route("10.0.0.1"),),
    frozenset({Role.CONTROL_PLANE}),
    scratch_dir="/no such/folder",
    etcd_data_dir="/var/lib/etcd",
)
SCRIPTS = {**{each.NAME: each.argv(HOST) for each in CHECKS}, sshd.NAME: sshd.argv(HOST)}
SHELLS = {"sh": ["sh"], "dash": ["dash"], "bash": ["bash"], "busybox": ["busybox", "ash"]}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_clean_posix_sh(name: str) -> None:
    shellcheck = Path(sys.executable).parent / "shellcheck"
    checked = subprocess.run(
        [shellcheck, "-s", "sh", "-"],
        input=SCRIPTS[name][2],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (checked.stdout, checked.returncode) == ("", 0)


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shutil.which(shell)])
def test_a_script_answers_whole_and_says_nothing_else(shell: str, name: str) -> None:
    argv = [*SHELLS[shell], *SCRIPTS[name][1:]]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20)
    facts = parse_facts(name, done.stdout)
    assert facts is not None
    assert (done.stderr, done.returncode) == ("", 0)
    assert not list(Path("/run").glob(".stressor-preflight.*"))


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shutil.which(shell)])
def test_joined_scripts_answer_each_in_a_frame_of_its_own(shell: str) -> None:
    first = script_argv("first", 'for word; do echo "word=$word"; done', "a b", "$(id)", "'")
    broken = script_argv("broken", "exit 3")
    last = script_argv("last", 'echo "count=$#"; cat')
    argv = joined((first, broken, last))
    done = subprocess.run(
        [*SHELLS[shell], *argv[1:]], capture_output=True, text=True, timeout=20, input="noise=1\n"
    )
    found = {name: parse_facts(name, done.stdout) for name in ("first", "broken", "last")}
    assert found["first"] is not None
    assert found["first"].all("word") == ("a b", "$(id)", "'")
    assert found["broken"] is None
    assert found["last"] is not None
    assert found["last"].values == {"count": ("0",)}


def facts(shell: str, name: str, **instead: str) -> dict[str, tuple[str, ...]]:
    """What the script of `name` finds when parts of it stand for other ones."""
    argv = [*SHELLS[shell], *SCRIPTS[name][1:]]
    at = len(SHELLS[shell]) + 1
    for part, other in instead.items():
        assert OTHERS[part] in argv[at]
        argv[at] = argv[at].replace(OTHERS[part], other)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20)
    found = parse_facts(name, done.stdout)
    assert (done.stderr, done.returncode, found is None) == ("", 0, False)
    return dict(found.values) if found else {}


OTHERS = {
    "settings": "$limit sshd -T",
    "resolver": "getent hosts 192.0.2.1",
    "patience": "-s KILL 3",
    "rancher": "/etc/rancher",
    "own_name": 'getent hosts "$name"',
}


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shutil.which(shell)])
@pytest.mark.parametrize(
    ("usedns", "resolver", "slow"),
    [("yes", "sleep 9", True), ("yes", "true", False), ("yes", "false", False), ("no", "", False)],
)
def test_a_dead_resolver_is_noticed_where_sshd_asks_it(
    shell: str, usedns: str, resolver: str, slow: bool
) -> None:
    settings = f"printf 'port 22\\nusedns {usedns}\\nlast 1\\n'"
    found = facts(shell, "sshd", settings=settings, resolver=resolver, patience="-s KILL 0.2")
    assert ("stressor-lookup" in found) is slow
    assert found["last"] == ("1",)


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shutil.which(shell)])
def test_a_dead_resolver_is_noticed_where_sudo_asks_it(shell: str) -> None:
    found = facts(shell, "own-name", own_name="sleep 9", patience="-s KILL 0.2")
    assert found["lookup"] == ("slow",)
    assert "lookup" not in facts(shell, "own-name", own_name="false")


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shutil.which(shell)])
@pytest.mark.parametrize("quoted", ["{}", "'{}'", '"{}"'])
def test_snapshots_are_found_where_rke2_was_told_to_put_them(
    shell: str, quoted: str, tmp_path: Path
) -> None:
    place = tmp_path / "some place"
    (tmp_path / "rke2").mkdir()
    place.mkdir()
    line = f"etcd-snapshot-dir: {quoted.format(place)}"
    (tmp_path / "rke2" / "config.yaml").write_text(f"token: x\n{line}\n")
    (place / "etcd-1.db").write_bytes(bytes(20480))
    (place / "note").write_bytes(b"x")
    assert len(facts(shell, snapshot.NAME, rancher=str(tmp_path))["at"]) == 1
