"""The plan file: what was written comes back, and nothing else is taken for it."""

import json
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from stressor.config.planfile import (
    PlanFile,
    _digest,
    _mistakes,
    is_plan_file,
    read_plan,
    write_plan,
)
from stressor.core.drift import drift
from stressor.errors import ConfigError
from stressor.model import Host, Role, Route
from tests.footings import FOOTING, GATE, INVENTORY, PHASE, changes

PLAN = PlanFile(1_800_000_000.25, "/phases.yaml", "/inventory.yaml", ("warm",), 7200.0, FOOTING)


def written(tmp_path: Path, plan: PlanFile = PLAN) -> Path:
    write_plan(tmp_path / "plan.json", plan)
    return tmp_path / "plan.json"


def edited(tmp_path: Path, change: Mapping[str, Any], *, sign: bool = True) -> Path:
    """A plan file with other top-level values; with `sign`, its digest fits."""
    document = {**json.loads(written(tmp_path).read_text()), **change}
    kept = {k: v for k, v in document.items() if k not in ("stressor_plan", "sha256")}
    document |= {"sha256": _digest(kept)} if sign else {}
    (tmp_path / "plan.json").write_text(json.dumps(document))
    return tmp_path / "plan.json"


def refused(path: Path) -> str:
    with pytest.raises(ConfigError) as error:
        read_plan(path)
    (line,) = error.value.mistakes
    assert line.startswith(f"{path}: ")
    assert line.endswith("stressor plan PHASEFILE --out FILE")
    return line


def test_what_was_written_comes_back(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert is_plan_file(path)
    assert read_plan(path) == PLAN
    assert drift(PLAN.footing, read_plan(path).footing) == ()


@pytest.mark.slow
def test_every_value_survives_the_file(tmp_path: Path) -> None:
    """Among them floats that a rounded file would lose, and a plan that asked no API."""
    others = {
        place: footing
        for place, footing in changes(FOOTING)
        # Not: an item of another type than the record's own, and what no phase file may say.
        if not place.endswith(("known_hosts+", "jumps+", "gates+")) and not list(_mistakes(footing))
    }
    assert len(others) > 80
    plain = replace(FOOTING, election_timeout_s=0.1 + 0.2, cluster=None)
    for place, footing in {**others, "plain": plain}.items():
        write_plan(tmp_path / "plan.json", replace(PLAN, footing=footing), force=True)
        assert read_plan(tmp_path / "plan.json").footing == footing, place


def test_read_only_mappings_of_a_phase_file_are_written(tmp_path: Path) -> None:
    phase = replace(PHASE, params=MappingProxyType({"workers": 1}), steps=(MappingProxyType({}),))
    suite = replace(FOOTING.suite, phases=(phase,))
    path = written(tmp_path, replace(PLAN, footing=replace(FOOTING, suite=suite)))
    assert read_plan(path).footing.suite.phases[0].params == {"workers": 1}


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["plan.json"]


def test_a_file_that_exists_is_replaced_by_force_only(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write_plan(path, replace(PLAN, phases=("kept",)))
    with pytest.raises(ConfigError, match=r"exists already: name another file, or --force"):
        write_plan(path, PLAN)
    assert read_plan(path).phases == ("kept",)
    write_plan(path, PLAN, force=True)
    assert read_plan(path) == PLAN
    assert [one.name for one in tmp_path.iterdir()] == ["plan.json"]


@pytest.mark.parametrize("text", ["suite: s\n", "", '{"schema_version": 1, "plan": {}}'])
def test_force_replaces_plans_only(tmp_path: Path, text: str) -> None:
    path = tmp_path / "phases.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="no"):
        write_plan(path, PLAN, force=True)
    assert path.read_text() == text


def test_a_disk_that_refuses_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        write_plan(tmp_path / "nowhere" / "plan.json", PLAN)


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    whole = path.read_bytes()
    for length in (30, 200, len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:length])
        assert is_plan_file(path)
        assert "damaged plan file" in refused(path)


def test_an_edited_value_is_refused(tmp_path: Path) -> None:
    path = edited(tmp_path, {"max_duration_s": 1.0}, sign=False)
    assert "does not match its sha256" in refused(path)


@pytest.mark.parametrize("schema", [0, 2, "1", None, True])
def test_another_format_is_refused(tmp_path: Path, schema: object) -> None:
    assert "this program knows 1" in refused(edited(tmp_path, {"stressor_plan": schema}))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"max_duration_s": "2h"}, "max_duration_s"),
        ({"added": 1}, "keys that this program does not know"),
        ({"footing": {}}, "footing.stressor_version"),
        ({"phases": "warm"}, "phases"),
    ],
)
def test_a_file_of_another_shape_is_refused(
    tmp_path: Path, change: Mapping[str, object], told: str
) -> None:
    assert told in refused(edited(tmp_path, change))


def test_a_key_that_is_missing_or_strange_further_down_is_refused(tmp_path: Path) -> None:
    footing = json.loads(written(tmp_path).read_text())["footing"]
    (tmp_path / "plan.json").unlink()
    del footing["inventory"]["disposable"]
    assert "or lacks some" in refused(edited(tmp_path, {"footing": footing}))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"nodes": ("mgmt",)}, "no load is placed on `mgmt`: not in this cluster"),
        ({"nodes": ("elsewhere",)}, "no load is placed on `elsewhere`"),
        ({"nodes": ()}, "it names no node"),
        ({"nodes": ("node4", "node4")}, "or one twice"),
        ({"deadline_s": 90000.0}, "above 24h"),
        ({"deadline_s": 10.5}, "`deadline` is shorter than warm_up + hold"),
        ({"hold_s": 0.0}, "`hold` is 0"),
        ({"cool_down_s": -1.0}, "below 0"),
        ({"kind": "quake"}, "unknown kind `quake`"),
        ({"params": {"workers": 5000}}, "`workers` must be 1 to 1024"),
        ({"gates": (replace(GATE, signal="nobody_s"),)}, "unknown signal `nobody_s`"),
    ],
)
def test_what_no_phase_file_may_say_no_plan_says_either(
    tmp_path: Path, change: Mapping[str, Any], told: str
) -> None:
    phase = replace(PHASE, steps=({},), **change)
    mgmt = Host("mgmt", (Route("10.0.0.8"),), frozenset({Role.BYSTANDER}))
    footing = replace(
        FOOTING,
        inventory=replace(INVENTORY, hosts=(*INVENTORY.hosts, mgmt)),
        suite=replace(FOOTING.suite, phases=(phase,)),
    )
    assert told in refused(written(tmp_path, replace(PLAN, footing=footing)))


def test_one_name_twice_and_nan_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    whole = path.read_text()
    path.write_text(whole.replace('"phases": [', '"phases": [], "phases": [', 1))
    assert "not JSON" in refused(path)
    path.write_text(whole.replace("7200.0", "NaN"))
    assert "not JSON" in refused(path)


def test_phase_files_are_no_plans_and_a_report_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "some"
    for text in (
        "suite: s\nphases: []\n",
        '{"suite": "s", "phases": []}',
        "",
        "stressor_plan: 1\n",
    ):
        path.write_text(text)
        assert not is_plan_file(path)
    path.write_text('{"schema_version": 1, "plan": {}}')
    with pytest.raises(ConfigError, match=r"a report of `stressor plan -o json`, not a plan file"):
        is_plan_file(path)


def test_a_plan_is_known_by_its_content_also_with_its_keys_sorted(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True))
    assert is_plan_file(path)
    assert read_plan(path) == PLAN
