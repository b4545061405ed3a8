"""Settings: flag, environment, project, user, system, default; and no guess at an inventory."""

import os
from pathlib import Path

import pytest

from stressor.config.layers import (
    KEYS,
    Layer,
    find_project,
    permission_flaw,
)
from stressor.config.settings import Resolved, Settings, resolve, settings
from stressor.errors import ConfigError
from stressor.log import Level

ENV = {"STRESSOR_STATE": "/state", "STRESSOR_INVENTORY": "/env.yaml"}


class Desk:
    """A machine made of folders: a home, a system file, and a project with a folder below it."""

    def __init__(self, path: Path) -> None:
        self.user = path / "home" / ".config" / "stressor" / "config.yaml"
        self.system = path / "etc" / "config.yaml"
        self.root, self.cwd = path / "project", path / "project" / "deep" / "er"
        self.project = self.root / "stressor.yaml"
        self.env = {"HOME": str(path / "home"), "STRESSOR_STATE": str(path / "state")}
        for folder in (self.user.parent, self.system.parent, self.cwd):
            folder.mkdir(parents=True)

    def resolve(self, env: dict[str, str] | None = None, **flags: object) -> Resolved:
        return resolve({**self.env, **(env or {})}, flags=flags, cwd=self.cwd, system=self.system)

    def settings(self, flag: str | None = None, **env: str) -> Settings:
        whole = {**self.env, **env}
        return settings(whole, inventory_flag=flag, cwd=self.cwd, system=self.system)

    def mistakes(self, env: dict[str, str] | None = None, **flags: object) -> tuple[str, ...]:
        with pytest.raises(ConfigError) as raised:
            self.resolve(env, **flags)
        return raised.value.mistakes


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_flag_beats_the_environment(desk: Desk) -> None:
    found = desk.settings("/flag.yaml", **ENV)
    assert (found.inventory_path, found.inventory_origin) == (Path("/flag.yaml"), "--inventory")
    found = desk.settings(**ENV)
    assert (found.inventory_path, found.inventory_origin) == (
        Path("/env.yaml"),
        "$STRESSOR_INVENTORY",
    )
    assert found.state_dir == Path("/state")


def test_no_inventory_is_no_default(desk: Desk) -> None:
    with pytest.raises(ConfigError, match="name one with --inventory"):
        desk.settings(**{**ENV, "STRESSOR_INVENTORY": ""})


def test_each_layer_beats_all_below_it_and_says_what_it_beat(desk: Desk) -> None:
    desk.system.write_text("image: system\n")
    desk.user.write_text("# mine\nimage: user\n")
    desk.project.write_text("image: project\n")
    env = {"STRESSOR_IMAGE": "environment"}
    found = {one.key.name: one for one in desk.resolve(env, image="flag").settings}["image"]
    assert [(str(one.origin), one.value) for one in (found.given, *found.overridden)] == [
        ("--image", "flag"),
        ("$STRESSOR_IMAGE", "environment"),
        (f"{desk.project}:1", "project"),
        (f"{desk.user}:2", "user"),
        (f"{desk.system}:1", "system"),
    ]
    expected = ("environment", "project", "user", "system")
    for lower, gone in zip(expected, (None, None, desk.project, desk.user), strict=True):
        if gone is not None:
            gone.unlink()
        now = desk.resolve(env if lower == "environment" else {}).given("image")
        assert (now.value, now.origin.layer) == (lower, Layer(lower))
    desk.system.unlink()
    assert desk.resolve().given("image").value is None


def test_layers_are_merged_key_by_key(desk: Desk) -> None:
    desk.project.write_text("inventory: site.yaml\n")
    desk.user.write_text("image: registry.example/load:1\ninventory: /elsewhere.yaml\n")
    desk.system.write_text("election_timeout: 2500ms\nlog_level: info\n")
    found = desk.settings()
    assert found.inventory_path == desk.root / "site.yaml"
    assert found.image == "registry.example/load:1"
    assert found.election_timeout_s == 2.5
    assert found.log_level is Level.INFO
    assert found.log_file is None


def test_paths_in_a_file_are_beside_it_and_those_of_options_are_as_written(desk: Desk) -> None:
    desk.project.write_text("inventory: inventories/a.yaml\nlog_file: ~/stressor.log\n")
    found = desk.resolve()
    assert found.given("inventory").value == str(desk.root / "inventories/a.yaml")
    assert found.log_file == desk.user.parents[2] / "stressor.log"
    assert desk.resolve(inventory="b.yaml").given("inventory").value == "b.yaml"
    assert desk.resolve({"STRESSOR_LOG_FILE": "c.log"}).log_file == Path("c.log")


def test_what_a_file_decided_is_a_note_and_what_an_option_said_is_not(desk: Desk) -> None:
    desk.project.write_text("inventory: /site.yaml\nlog_level: debug\nelection_timeout: 5s\n")
    assert desk.settings().notes == (
        f"election_timeout 5s (from {desk.project}:3)",
        f"inventory /site.yaml (from {desk.project}:1)",
    )
    assert desk.settings("/other.yaml").notes == (f"election_timeout 5s (from {desk.project}:3)",)


def test_every_mistake_of_every_layer_is_told_with_its_place(desk: Desk) -> None:
    desk.project.write_text("inventroy: a\nelection_timeout: 10\nimage: !vault x\n")
    desk.user.write_text("log_level: loud\nlog_level: info\n")
    desk.system.write_text("- a\n")
    env = {"STRESSOR_ELECTION_TIMEOUT": "0s"}
    assert desk.mistakes(env, election_timeout=-1.0, log_level="x") == (
        "--election-timeout: -1 s is no time-out: it must be above 0",
        "-v, -q: `x` is no level: use one of debug, info, warning, error",
        "$STRESSOR_ELECTION_TIMEOUT: 0 s is no time-out: it must be above 0",
        f"{desk.project}:1: unknown key `inventroy` (did you mean `inventory`?)",
        f"{desk.project}:2: `election_timeout`: `10` is not a duration: "
        "write it like 90s, 10m or 2h",
        f"{desk.project}:3: `image`: a value tagged `!vault` is not read: "
        "stressor has no vault key",
        f"{desk.user}:1: `log_level`: `loud` is no level: use one of debug, info, warning, error",
        f"{desk.user}:2: duplicate key `log_level` (first on line 1)",
        f"{desk.system}:1: the file must be a mapping of names to values",
    )


@pytest.mark.parametrize("text", ["inventory:\n", "inventory: ''\n", "inventory: 7\n"])
def test_a_value_that_says_nothing_is_a_mistake_in_a_file(desk: Desk, text: str) -> None:
    desk.user.write_text(text)
    assert desk.mistakes()[0].startswith(f"{desk.user}:1: `inventory`: ")


def test_i6_the_state_folder_stands_in_no_file_for_an_abort_reads_none(desk: Desk) -> None:
    desk.user.write_text("state: /srv/stressor\n")
    (mistake,) = desk.mistakes()
    assert mistake.startswith(f"{desk.user}:1: `state` is not read from files, because an abort")
    assert "export STRESSOR_STATE=" in mistake


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing yet\n  # nor here\n"])
def test_an_empty_file_sets_nothing(desk: Desk, text: str) -> None:
    desk.user.write_text(text)
    assert desk.resolve().given("image").value is None


def test_the_project_file_is_the_nearest_one_up_to_the_folder_with_git(desk: Desk) -> None:
    above = desk.root.parent / "stressor.yaml"
    above.write_text("image: above\n")
    assert find_project(desk.cwd) == above
    (desk.root / ".git").mkdir()
    assert find_project(desk.cwd) is None
    desk.project.write_text("image: root\n")
    assert find_project(desk.cwd) == desk.project
    (desk.cwd / "stressor.yaml").write_text("log_level: info\n")
    assert find_project(desk.cwd) == desk.cwd / "stressor.yaml"
    assert desk.resolve().given("image").value is None, "the nearest file only"


def test_a_named_project_file_takes_the_place_of_the_search(desk: Desk) -> None:
    desk.project.write_text("image: found\n")
    named = desk.root / "other.yaml"
    named.write_text("image: named\n")
    named.chmod(0o666)
    found = desk.resolve({"STRESSOR_CONFIG": str(named)}).given("image")
    assert (found.value, str(found.origin)) == ("named", f"{named}:1")
    assert desk.resolve({"STRESSOR_CONFIG": "/dev/null"}).given("image").value is None
    (mistake,) = desk.mistakes({"STRESSOR_CONFIG": "/nowhere.yaml"})
    assert mistake == "/nowhere.yaml: cannot be read: No such file or directory"


def test_a_relative_xdg_folder_is_ignored(desk: Desk, tmp_path: Path) -> None:
    desk.user.write_text("image: home\n")
    assert desk.resolve({"XDG_CONFIG_HOME": "relative"}).given("image").value == "home"
    other = tmp_path / "xdg" / "stressor" / "config.yaml"
    other.parent.mkdir(parents=True)
    other.write_text("image: xdg\n")
    assert desk.resolve({"XDG_CONFIG_HOME": str(tmp_path / "xdg")}).given("image").value == "xdg"


def test_a_file_that_anybody_may_write_is_refused_not_passed_over(desk: Desk) -> None:
    desk.user.write_text("inventory: /mine.yaml\n")
    desk.project.write_text("inventory: /theirs.yaml\n")
    desk.project.chmod(0o666)
    assert desk.mistakes() == (f"{desk.project}: may be written by anybody: chmod o-w it",)
    desk.project.chmod(0o664)
    assert desk.resolve().notes[0] == f"{desk.project}: may be written by its group: chmod g-w it"
    desk.project.chmod(0o644)
    desk.root.chmod(0o777)
    assert desk.mistakes() == (f"{desk.project}: may be replaced by anybody: chmod o-w its folder",)
    desk.root.chmod(0o1777)
    assert len(desk.resolve().notes) == 1, "others cannot rename in a sticky folder"


@pytest.mark.parametrize(
    ("owner", "own", "refused"), [(0, 1000, False), (1000, 1000, False), (1001, 1000, True)]
)
def test_a_file_of_somebody_else_is_refused(owner: int, own: int, refused: bool) -> None:
    flaw = permission_flaw(owner, 0o100644, 0o40755, own)
    assert (flaw is not None and "export STRESSOR_CONFIG=FILE" in flaw) is refused


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_root_does_not_believe_a_users_file(desk: Desk) -> None:
    desk.project.write_text("inventory: /theirs.yaml\n")
    os.chown(desk.project, 12345, 12345)
    (mistake,) = desk.mistakes()
    assert mistake.startswith(f"{desk.project}: belongs to uid 12345")
    assert desk.resolve({"STRESSOR_CONFIG": str(desk.project)}).settings


def test_the_state_folder_comes_from_the_environment_alone(desk: Desk) -> None:
    found = desk.resolve()
    assert (found.state_dir, str(found.state_origin)) == (
        Path(desk.env["STRESSOR_STATE"]),
        "$STRESSOR_STATE",
    )
    del desk.env["STRESSOR_STATE"]
    assert str(desk.resolve({"XDG_STATE_HOME": "/x"}).state_origin) == "$XDG_STATE_HOME"
    assert str(desk.resolve({"XDG_STATE_HOME": "x"}).state_origin) == "default"


def test_the_docs_table_has_every_key_with_its_option_and_variable() -> None:
    text = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    rows = [line.split("|")[1:] for line in text.splitlines() if line.startswith("| `")]
    told = {row[0].strip().strip("`"): row for row in rows if len(row) > 5}
    assert set(told) == {key.name for key in KEYS}
    for key in KEYS:
        _, option, variable, *_ = told[key.name]
        assert variable.strip() == f"`{key.variable}`"
        assert key.flag.split(",")[0] in option
