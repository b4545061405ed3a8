"""`stressor config view` as an operator calls it, and what it says of misspelt variables."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stressor.cli.config import strangers


class Desk:
    """A project folder with a home beside it; each call is a process of its own."""

    def __init__(self, path: Path) -> None:
        self.path, self.home = path, path / "home"
        self.cwd = path / "project" / "deep"
        self.project = path / "project" / "stressor.yaml"
        self.user = self.home / ".config" / "stressor" / "config.yaml"
        for folder in (self.cwd, self.user.parent):
            folder.mkdir(parents=True)
        (path / "project" / ".git").mkdir()

    def stressor(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("STRESSOR_", "XDG_"))}
        own = {"HOME": str(self.home), "STRESSOR_STATE": str(self.path / "state"), **env}
        return subprocess.run(
            (sys.executable, "-m", "stressor", *words),
            cwd=self.cwd,
            env={"PYTHONPATH": os.pathsep.join(sys.path), **clean, **own},
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_view_lists_every_key_with_its_value(desk: Desk) -> None:
    desk.project.write_text("inventory: site.yaml\n")
    desk.user.write_text("inventory: /mine.yaml\n")
    done = desk.stressor("config", "view")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "election_timeout = 1s",
        "image = (stressor_load_image of the inventory)",
        f"inventory = {desk.project.parent}/site.yaml",
        "log_file = (none)",
        "log_level = warning",
        f"state = {desk.path}/state",
    ]


def test_show_origin_names_file_and_line_and_what_was_overridden(desk: Desk) -> None:
    desk.project.write_text("# ours\ninventory: site.yaml\n")
    desk.user.write_text("inventory: /mine.yaml\nelection_timeout: 1500ms\n")
    done = desk.stressor("-vv", "config", "view", "--show-origin", STRESSOR_IMAGE="load:2")
    assert (done.returncode, done.stderr) == (0, "")
    rows, files = done.stdout.split("\n\n")
    assert [line.split(maxsplit=1) for line in rows.splitlines() if "-v" not in line] == [
        [f"{desk.user}:2", "election_timeout = 1.5s"],
        ["default", "overrides 1s"],
        ["$STRESSOR_IMAGE", "image = load:2"],
        [f"{desk.project}:2", f"inventory = {desk.project.parent}/site.yaml"],
        [f"{desk.user}:1", "overrides /mine.yaml"],
        ["default", "log_file = (none)"],
        ["default", "overrides warning"],
        ["$STRESSOR_STATE", f"state = {desk.path}/state"],
    ]
    assert any(
        line.startswith("-v, -q ") and "log_level = debug" in line for line in rows.split("\n")
    )
    found = dict(line.split(maxsplit=1) for line in files.splitlines())
    assert found["project"] == str(desk.project)
    assert found["user"] == str(desk.user)
    assert found["system"].startswith("/etc/stressor/config.yaml")


def test_json_carries_what_every_json_does_and_the_same_facts(desk: Desk) -> None:
    desk.project.write_text("inventory: site.yaml\n")
    done = desk.stressor("-v", "--log-file", "a.log", "config", "view", "-o", "json")
    said = json.loads(done.stdout)
    assert list(said)[:4] == ["schema_version", "verdict", "exit_code", "next_command"]
    assert (said["verdict"], said["exit_code"]) == ("pass", 0)
    assert said["next_command"] == "stressor preflight"
    keys = {one["key"]: one for one in said["settings"]}
    assert keys["inventory"] == {
        "key": "inventory",
        "value": f"{desk.project.parent}/site.yaml",
        "layer": "project",
        "origin": f"{desk.project}:1",
        "file": str(desk.project),
        "line": 1,
        "overrides": [],
    }
    assert [one["value"] for one in keys["log_level"]["overrides"]] == ["warning"]
    assert (keys["log_file"]["value"], keys["log_file"]["layer"]) == ("a.log", "flag")
    assert (keys["image"]["value"], keys["image"]["file"]) == (None, None)
    assert keys["election_timeout"]["value"] == 1.0
    assert keys["state"]["origin"] == "$STRESSOR_STATE"
    assert [one["layer"] for one in said["files"]] == ["project", "user", "system"]
    assert not (desk.cwd / "a.log").exists(), "viewing opens no log"


def test_json_without_an_inventory_says_how_to_name_one(desk: Desk) -> None:
    said = json.loads(desk.stressor("config", "view", "-o", "json").stdout)
    assert said["next_command"] == "export STRESSOR_INVENTORY=FILE"
    assert said["files"][0] == {"layer": "project", "path": None, "exists": False}


def test_mistakes_are_exit_2_with_file_and_line(desk: Desk) -> None:
    desk.project.write_text("inventroy: site.yaml\n")
    done = desk.stressor("config", "view", "-o", "json")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{desk.project}:1: unknown key `inventroy` (did you mean `inventory`?)" in done.stderr


def test_verbose_and_quiet_contradict_each_other(desk: Desk) -> None:
    done = desk.stressor("-v", "-q", "config", "view")
    assert done.returncode == 2
    assert "--verbose and --quiet contradict each other" in done.stderr


def test_a_misspelt_variable_is_named_and_a_foreign_one_is_not(desk: Desk) -> None:
    env = {
        "STRESSOR_INVENTROY": "x",
        "STRESSOR_INVENTORY": "x",
        "STRESSOR_STATE": "x",
        "STRESSOR_SERVICE_HOST": "10.0.0.1",
        "INVENTORY": "x",
    }
    line = "$STRESSOR_INVENTROY sets nothing (did you mean $STRESSOR_INVENTORY?)"
    assert list(strangers(env)) == [line]
    done = desk.stressor("config", "view", STRESSOR_INVENTROY="x")
    assert done.stderr == f"WARNING  {line}\n"
