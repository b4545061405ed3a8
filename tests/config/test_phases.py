"""Phase files: what a good one means, and that a bad one tells every mistake with its line."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from stressor.config.phases import load_suite
from stressor.errors import ConfigError
from stressor.model import (
    Comparison,
    Gate,
    GateAction,
    Host,
    Inventory,
    ParamValue,
    Role,
    Route,
    SignalSpec,
    Subject,
    Suite,
)


@dataclass(frozen=True, slots=True)
class CpuLike:
    """A workload that knows two parameters."""

    KIND: str = "cpu"

    def mistakes(self, params: Mapping[str, ParamValue]) -> tuple[str, ...]:
        unknown = [f"unknown parameter `{key}`" for key in params if key not in ("workers", "load")]
        if not isinstance(params.get("workers"), int):
            unknown.append("`workers` must be a whole number")
        return tuple(unknown)


SIGNALS = (
    SignalSpec("etcd_wal_fsync_slow_count", Subject.ETCD, 1.0, "slow fsyncs"),
    SignalSpec("psi_cpu_some_ratio", Subject.HOST, 1.0, "cpu pressure"),
    SignalSpec("etcd_wal_fsync_p99_s", Subject.ETCD, 1.0, "fsync"),
)


def _host(name: str, role: Role) -> Host:
    return Host(name, (Route("10.0.0.1"),), frozenset({role}))


INVENTORY = Inventory(
    "lab",
    (
        _host("node1", Role.CONTROL_PLANE),
        _host("node2", Role.WORKER),
        _host("node3", Role.WORKER),
        _host("other", Role.BYSTANDER),
    ),
)
GOOD = """\
suite: demo
baseline: 5s
phases:
  - name: cpu
    kind: cpu
    placement: {nodes: [node1, node2]}
    warm_up: 2s
    hold: 10s
    cool_down: 1m30s
    deadline: 60s
    params: {workers: 1, load: 50%}
    steps: [{load: 25%}, {load: 50%}]
    gates:
      - {signal: etcd_wal_fsync_slow_count, above: 0, action: stop}
      - {signal: psi_cpu_some_ratio, above: 60%, hold: 10s, window: 30s, action: warn}
      - {signal: etcd_wal_fsync_p99_s, below: 250ms}
"""


def load(path: Path, text: str, inventory: Inventory | None = INVENTORY) -> Suite:
    path = path / "p.yaml"
    path.write_text(text)
    return load_suite(path, inventory=inventory, signals=SIGNALS, workloads=(CpuLike(),))


def mistakes(path: Path, text: str, inventory: Inventory | None = INVENTORY) -> list[str]:
    with pytest.raises(ConfigError) as told:
        load(path, text, inventory)
    return [line.removeprefix(f"{path}/") for line in told.value.mistakes]


def test_a_good_file_becomes_the_records_it_describes(tmp_path: Path) -> None:
    suite = load(tmp_path, GOOD)
    (phase,) = suite.phases
    assert (suite.name, suite.baseline_s) == ("demo", 5.0)
    assert suite.source_path == str(tmp_path / "p.yaml")
    assert (phase.name, phase.kind, phase.nodes) == ("cpu", "cpu", ("node1", "node2"))
    assert (phase.warm_up_s, phase.hold_s, phase.cool_down_s, phase.deadline_s) == (2, 10, 90, 60)
    assert phase.params == {"workers": 1, "load": "50%"}
    assert [dict(step) for step in phase.steps] == [{"load": "25%"}, {"load": "50%"}]
    warn, stop = GateAction.WARN, GateAction.STOP
    assert phase.gates == (
        Gate("etcd_wal_fsync_slow_count", Comparison.ABOVE, 0.0, 0.0, 0.0, stop),
        Gate("psi_cpu_some_ratio", Comparison.ABOVE, 0.6, 10.0, 30.0, warn),
        Gate("etcd_wal_fsync_p99_s", Comparison.BELOW, 0.25, 0.0, 0.0, stop),
    )


def test_ten_different_mistakes_print_ten_errors_with_lines(tmp_path: Path) -> None:
    text = """\
suite: demo
baseline: 5
phases:
  - name: cpu
    kind: cpuu
    placement: {nodes: [node1, nod2]}
    hold: 10s
    hold: 20s
    deadline: 5s
    gates:
      - {signal: psi_cpu_some_rato, above: 60%}
      - {signal: psi_cpu_some_ratio, above: 60}
  - name: cpu
    kind: cpu
    placement: {role: worker}
    hold: 10s
    cooldown: 3s
    params: {workers: 1}
"""
    assert mistakes(tmp_path, text) == [
        "p.yaml:2: `baseline`: `5` is not a duration: write it like 90s, 10m or 2h",
        "p.yaml:5: unknown kind `cpuu` (did you mean `cpu`?)",
        "p.yaml:6: unknown node `nod2` (did you mean `node2`?)",
        "p.yaml:8: duplicate key `hold` (first on line 7)",
        "p.yaml:9: `deadline` of 5s is shorter than warm_up + hold = 10s",
        "p.yaml:11: unknown signal `psi_cpu_some_rato` (did you mean `psi_cpu_some_ratio`?)",
        "p.yaml:12: `above` of `psi_cpu_some_ratio`: `60` is not a share: write it like 40%",
        "p.yaml:13: duplicate phase name `cpu` (first on line 4)",
        "p.yaml:13: missing `deadline`",
        "p.yaml:17: unknown key `cooldown` (did you mean `cool_down`?)",
    ]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("hold: 10s\n    cool", "hold: [1]\n    cool", "8: `hold`: `[1]` is not a duration"),
        ("hold: 10s\n    cool", "hold: 0s\n    cool", "8: `hold` must be above 0"),
        ("deadline: 60s", "deadline: 25h", "10: `deadline` is above 24h"),
        ("suite: demo", "suite: 12", "1: `suite` must be text"),
        ("suite: demo", "suite: De mo", "1: `suite` must be lower-case"),
        ("kind: cpu", "kind: !vault cpu", "5: a value tagged `!vault` is not read here"),
        ("load: 50%}\n", "load: [1]}\n", "11: `load` must be text, a number, true or false"),
        ("workers: 1", "workers: x", "11: `workers` must be a whole number"),
        ("{load: 25%}", "{lod: 25%}", "12: unknown parameter `lod`"),
        ("[{load: 25%}, {load: 50%}]", "[]", "12: `steps` must not be empty"),
        ("above: 60%", "above: 60%, below: 1%", "15: a gate needs either `above` or `below`"),
        ("action: stop", "action: halt", "14: `action` is `halt`: use one of warn, stop"),
        ("above: 0,", "", "14: a gate needs either `above` or `below`"),
        ("above: 0,", "above: 1s,", "14: `above` of `etcd_wal_fsync_slow_count`: `1s` is not a ba"),
        ("below: 250ms", "below: 250", "16: `below` of `etcd_wal_fsync_p99_s`: `250` is not a dur"),
        ("[node1, node2]", "[node1, node1]", "6: node `node1` is named twice"),
        ("[node1, node2]", "[other]", "6: no load is placed on `other`: not in this cluster"),
        ("[node1, node2]", "[]", "6: `nodes` must not be empty"),
        ("{nodes: [node1, node2]}", "{}", "6: `placement` needs either `nodes` or `role`"),
        ("{nodes: [node1, node2]}", "{role: wrker}", "6: no load is placed on role `wrker` (did y"),
        ("{nodes: [node1, node2]}", "{role: bystander}", "6: no load is placed on role `bystander"),
        ("{nodes: [node1, node2]}", "{role: worker, count: 3}", "6: 2 nodes have role `worker`, 3"),
        ("{nodes: [node1, node2]}", "*here", "6: "),
    ],
)
def test_each_mistake_is_told_once_with_its_line(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    assert old in GOOD
    found = mistakes(tmp_path, GOOD.replace(old, new, 1))
    assert [line.startswith(f"p.yaml:{told}") for line in found] == [True], found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ":1: the file is empty"),
        ("suite: a\nphases: [\n", ":3: not valid YAML: "),
        ("suite: a\n  b: c\n", ":2: not valid YAML: mapping values are not allowed here"),
        ("suite: a\x01b\n", ":1: not valid YAML: special characters are not allowed"),
        ("a: 1\n---\nb: 2\n", ":2: not valid YAML: but found another document"),
        ("suite: &s demo\nbaseline: *s\n", ":2: alias `*s`: write the value out"),
        ("suite: demo\n<<: {baseline: 5s}\n", ":1: missing `phases`"),
        ("<<: {baseline: 5s}\n", ":1: merge keys and keys that are not text are not read"),
        ("- 1\n", ":1: the file must be a mapping of names to values"),
    ],
)
def test_what_is_no_phase_file_at_all_says_so(tmp_path: Path, text: str, told: str) -> None:
    assert mistakes(tmp_path, text)[0].startswith(f"p.yaml{told}")


def test_a_missing_file_and_other_bytes_are_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_suite(path, inventory=None, signals=(), workloads=())
    path.write_bytes(b"suite: \xff\n")
    with pytest.raises(ConfigError, match=r"not UTF-8 text \(byte 7\)"):
        load_suite(path, inventory=None, signals=(), workloads=())


def test_a_role_chooses_nodes_in_inventory_order(tmp_path: Path) -> None:
    by_role = GOOD.replace("{nodes: [node1, node2]}", "{role: worker}")
    assert load(tmp_path, by_role).phases[0].nodes == ("node2", "node3")
    one = by_role.replace("{role: worker}", "{role: worker, count: 1}")
    assert load(tmp_path, one).phases[0].nodes == ("node2",)


def test_without_an_inventory_the_file_alone_is_checked(tmp_path: Path) -> None:
    elsewhere = GOOD.replace("[node1, node2]", "[far1]")
    assert load(tmp_path, elsewhere, None).phases[0].nodes == ("far1",)
    assert len(mistakes(tmp_path, elsewhere.replace("above: 0", "above: x"), None)) == 1
