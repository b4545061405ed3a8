"""Phase file or plan file: what was agreed to is what is run, on the ground that was agreed to."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from stressor.cli.plan_source import (
    Asked,
    Source,
    open_source,
    refuse_late,
    refuse_moved_cluster,
)
from stressor.cli.server_checks import cluster_footing
from stressor.config.planfile import PlanFile, read_plan, write_plan
from stressor.core.drift import ClusterFooting
from stressor.errors import ConfigError, Refused
from stressor.model import Inventory
from stressor.testing.kube import FakeKube, Fault
from tests.cli.test_plan import DISK, answered

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA=="
OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB=="
INVENTORY = answered().replace(
    "ansible_ssh_private", "stressor_known_hosts: known_hosts\n    ansible_ssh_private"
)


class Folder:
    """A folder with phases, inventory, known hosts and a plan made of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.phases, self.inventory = path / "phases.yaml", path / "inventory.yaml"
        self.known_hosts, self.plan = path / "known_hosts", path / "plan.json"
        self.phases.write_text(DISK)
        self.inventory.write_text(INVENTORY)
        self.known_hosts.write_text(f"192.0.2.1,192.0.2.2 {KEY}\n")

    def source(self, asked: Asked | None = None) -> Source:
        """What the phase file says."""
        asked = asked or Asked()
        flag = asked.inventory or str(self.inventory)
        return open_source(self.phases, replace(asked, inventory=flag), {})

    def write(self, asked: Asked | None = None, cluster: ClusterFooting | None = None) -> None:
        """Write the plan as `plan --out` does."""
        source = self.source(asked)
        plan = PlanFile(
            written_unix_s=1.0,
            phasefile=source.phasefile,
            inventory_path=source.inventory_path,
            phases=source.phases,
            max_duration_s=source.max_duration_s,
            footing=replace(source.footing, cluster=cluster),
        )
        write_plan(self.plan, plan, force=True)

    def agreed(self, asked: Asked | None = None) -> Source:
        """What the plan file says."""
        return open_source(self.plan, asked or Asked(), {})

    def refusal(self, asked: Asked | None = None) -> list[str]:
        """The lines of the refusal, its first one and the remedy left out."""
        with pytest.raises(Refused) as refused:
            self.agreed(asked)
        first, *lines, remedy = str(refused.value).splitlines()
        assert first == (
            f"REFUSED: {self.plan} stands on something else by now. Nothing was started."
        )
        assert remedy.startswith(f"  -> look at it, then: stressor plan {self.phases} --inventory ")
        assert remedy.endswith(f"--out {self.plan} --force")
        return [line.removeprefix("  ") for line in lines]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_an_unchanged_ground_gives_the_same_plan(folder: Folder) -> None:
    folder.write()
    planned, agreed = folder.source(), folder.agreed()
    assert agreed.plan == planned.plan
    assert agreed.suite == planned.suite
    assert agreed.notes == ()
    assert (agreed.path, agreed.phasefile) == (str(folder.plan), str(folder.phases))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("192.0.2.2}", "192.0.2.3}", "n2 address 192.0.2.2 -> 192.0.2.3"),
        ("cluster: c\n", "cluster: d\n", "inventory cluster c -> d"),
        ("cluster: c\n", "cluster: c\n    disposable: yes\n", "inventory disposable false -> true"),
        ("image:1", "image:2", "inventory load_image image:1 -> image:2"),
        ("https://192.0.2.1:6443", "https://192.0.2.1:7443", "n1 apiserver_url "),
        ("one cluster, own disks", "dunno", "inventory bystanders_none_reason "),
        ("/no/such/key", "/other/key", "n1 key_path /no/such/key -> /other/key"),
    ],
)
def test_a_changed_inventory_is_refused_with_the_difference(
    folder: Folder, old: str, new: str, told: str
) -> None:
    folder.write()
    edit(folder.inventory, old, new)
    assert folder.refusal()[0].startswith(told)


def test_a_host_more_or_less_is_refused(folder: Folder) -> None:
    folder.write()
    edit(
        folder.inventory,
        "        n2: {ansible_host: 192.0.2.2}\n",
        "        n2: {ansible_host: 192.0.2.2}\n        n3: {ansible_host: 192.0.2.3}\n",
    )
    assert folder.refusal() == ["n3 gone -> there", "known_hosts n3 (none) -> (empty)"]


def test_another_host_key_is_refused(folder: Folder) -> None:
    folder.write()
    folder.known_hosts.write_text(f"192.0.2.1 {KEY}\n192.0.2.2 {OTHER_KEY}\n")
    assert folder.refusal() == [f"known_hosts n2 {KEY} -> {OTHER_KEY}"]


def test_known_hosts_that_cannot_be_read_are_refused(folder: Folder) -> None:
    folder.write()
    folder.known_hosts.unlink()
    assert folder.refusal() == [f"known_hosts {n} {KEY} -> (empty)" for n in ("n1", "n2")]


def test_lines_of_other_hosts_in_known_hosts_are_no_drift(folder: Folder) -> None:
    folder.write()
    edit(folder.known_hosts, "192.0.2.1,", f"192.0.2.77 {OTHER_KEY}\n192.0.2.1,")
    assert folder.agreed().notes == ()


def rewritten(folder: Folder, **changed: object) -> None:
    """The plan file as another program would have written it."""
    plan = read_plan(folder.plan)
    footing = replace(plan.footing, **changed)  # type: ignore[arg-type]
    write_plan(folder.plan, replace(plan, footing=footing), force=True)


def test_another_program_is_refused(folder: Folder) -> None:
    folder.write()
    rewritten(folder, stressor_version="0.0.9")
    assert folder.refusal() == ["stressor_version 0.0.9 -> 0.1.0"]


def test_other_default_gates_are_refused_though_the_version_is_the_same(folder: Folder) -> None:
    folder.write()
    first, *others = read_plan(folder.plan).footing.steps
    gates = (replace(first.gates[0], limit=9.0), *first.gates[1:])
    rewritten(folder, steps=(replace(first, gates=gates), *others))
    assert folder.refusal() == ["steps 0 gates 0 limit 9 -> 0"]


def test_a_phase_file_that_changed_is_a_note_and_the_plans_own_steps_count(folder: Folder) -> None:
    folder.write()
    folder.phases.write_text(DISK.replace("hold: 10s", "hold: 20s", 1))
    agreed = folder.agreed()
    assert agreed.notes == (
        f"{folder.phases} says otherwise by now, the plan's own steps count: "
        "phase warm hold_s 10 -> 20",
    )
    assert [step.hold_s for step in agreed.plan.steps] == [10.0, 10.0]


def test_comments_in_a_phase_file_are_no_note(folder: Folder) -> None:
    folder.write()
    folder.phases.write_text(f"# later\n{DISK}")
    assert folder.agreed().notes == ()


def test_phases_that_the_plan_left_out_are_no_note(folder: Folder) -> None:
    folder.write(Asked(phases="write"))
    folder.phases.write_text(DISK.replace("hold: 10s", "hold: 20s", 1))
    assert folder.agreed().notes == ()


def test_a_phase_file_that_is_broken_by_now_is_a_note(folder: Folder) -> None:
    folder.write()
    folder.phases.write_text("suite: [")
    (note,) = folder.agreed().notes
    assert note.startswith(f"{folder.phases} can be planned no more (")


def test_a_plan_needs_its_phase_file_no_more(folder: Folder) -> None:
    folder.write()
    folder.phases.unlink()
    assert folder.agreed().notes == ()


def test_a_plan_knows_its_inventory_whatever_the_environment_says(folder: Folder) -> None:
    folder.write()
    agreed = open_source(folder.plan, Asked(), {"STRESSOR_INVENTORY": "/elsewhere.yaml"})
    assert agreed.inventory_path == str(folder.inventory)


def test_a_copy_of_the_inventory_may_be_named(folder: Folder) -> None:
    folder.write()
    folder.inventory.rename(folder.path / "copy.yaml")
    with pytest.raises(ConfigError, match="cannot be read"):
        folder.agreed()
    agreed = folder.agreed(Asked(inventory=str(folder.path / "copy.yaml")))
    assert (
        agreed.plan
        == open_source(folder.phases, Asked(inventory=str(folder.path / "copy.yaml")), {}).plan
    )


@pytest.mark.parametrize(
    ("asked", "option"),
    [
        (Asked(image="other"), "--image"),
        (Asked(election_timeout_s=5.0), "--election-timeout"),
        (Asked(phases="warm"), "--phases"),
    ],
)
def test_what_a_plan_fixes_cannot_be_asked_for_again(
    folder: Folder, asked: Asked, option: str
) -> None:
    folder.write()
    with pytest.raises(ConfigError, match=f"{option} is fixed by the plan: plan anew with it"):
        folder.agreed(asked)


def test_options_of_the_plan_are_kept_and_the_remedy_repeats_them(folder: Folder) -> None:
    asked = Asked(image="i:9", election_timeout_s=5.0, phases="warm", max_duration="2h")
    folder.write(asked)
    agreed = folder.agreed()
    assert (agreed.plan.image, agreed.election_timeout_s) == ("i:9", 5.0)
    assert [step.phase for step in agreed.plan.steps] == ["warm"]
    edit(folder.inventory, "192.0.2.2}", "192.0.2.3}")
    with pytest.raises(Refused) as refused:
        folder.agreed()
    again = (
        "--image i:9 --election-timeout 5 --phases warm --max-duration 7200s "
        f"--out {folder.plan} --force"
    )
    assert str(refused.value).endswith(again)


def test_phases_are_chosen_in_the_order_of_the_file(folder: Folder) -> None:
    chosen = folder.source(Asked(phases="write, warm,write"))
    assert [step.phase for step in chosen.plan.steps] == ["warm", "write"]
    (only,) = folder.source(Asked(phases="write")).plan.steps
    assert (only.index, only.phase) == (0, "write")


def test_unknown_phases_are_all_named_with_a_suggestion(folder: Folder) -> None:
    with pytest.raises(ConfigError) as error:
        folder.source(Asked(phases="wram,soak"))
    assert error.value.mistakes == (
        f"{folder.phases}: --phases: no phase is called `wram` (did you mean `warm`?)",
        f"{folder.phases}: --phases: no phase is called `soak`: there are warm, write",
    )
    with pytest.raises(ConfigError, match="names no phase"):
        folder.source(Asked(phases=" , "))


def test_a_plan_that_may_take_too_long_is_refused_with_the_figures(folder: Folder) -> None:
    # 60 s to settle, 5 s of baseline, two steps of 60 + 60 s, and 30 s for an abort.
    fits = folder.source(Asked(max_duration="335s"))
    assert fits.plan.deadline_s == 335.0
    refuse_late(fits)
    with pytest.raises(Refused, match=r"335 s after the start.* allows 334 s: 1 s too late"):
        refuse_late(folder.source(Asked(max_duration="334s")))
    with pytest.raises(ConfigError, match="--max-duration: `5` is not a duration"):
        folder.source(Asked(max_duration="5"))


@pytest.mark.parametrize(("now", "limit_s"), [("5m", 300.0), ("1h", 400.0), (None, 400.0)])
def test_the_lower_of_two_limits_holds(folder: Folder, now: str | None, limit_s: float) -> None:
    folder.write(Asked(max_duration="400s"))
    assert folder.agreed(Asked(max_duration=now)).max_duration_s == limit_s


def test_the_inventory_is_told_before_the_phase_file_is_read(folder: Folder) -> None:
    folder.phases.write_text("suite: [")
    told: list[Inventory] = []
    with pytest.raises(ConfigError):
        open_source(folder.phases, Asked(str(folder.inventory)), {}, told.append)
    assert [inventory.cluster for inventory in told] == ["c"]


def test_a_damaged_plan_is_no_phase_file(folder: Folder) -> None:
    folder.write()
    folder.plan.write_bytes(folder.plan.read_bytes()[:-200])
    with pytest.raises(ConfigError, match="damaged plan file"):
        folder.agreed()


def test_a_json_phase_file_is_a_phase_file(folder: Folder) -> None:
    phase = {
        "name": "warm", "kind": "cpu", "placement": {"nodes": ["n1"]}, "hold": "1s",
        "deadline": "60s",
    }  # fmt: skip
    folder.phases.write_text(json.dumps({"suite": "s", "phases": [phase]}))
    assert folder.source().agreed is None


def cluster() -> FakeKube:
    kube = FakeKube()
    kube.api.add_node("n1", control_plane=True)
    kube.api.add_node("n2")
    return kube


def test_a_cluster_that_is_as_it_was_is_let_through(folder: Folder) -> None:
    kube = cluster()
    folder.write(cluster=cluster_footing(kube))
    refuse_moved_cluster(folder.agreed(), kube, 1.0)


def test_a_cluster_that_moved_is_refused(folder: Folder) -> None:
    kube = cluster()
    folder.write(cluster=cluster_footing(kube))
    kube.api.objects["/api/v1/nodes/n2"]["status"]["nodeInfo"]["kubeletVersion"] = "v1.37.0"
    with pytest.raises(Refused) as refused:
        refuse_moved_cluster(folder.agreed(), kube, 1.0)
    _, difference, remedy = str(refused.value).splitlines()
    assert difference == "  cluster node n2 kubelet_version v1.36.0 -> v1.37.0"
    assert "--dry-run=server --out" in remedy


def test_i4_a_cluster_that_does_not_answer_is_not_as_it_was(folder: Folder) -> None:
    kube = cluster()
    folder.write(cluster=cluster_footing(kube))
    kube.api.fail(Fault("GET", "/", times=9))
    with pytest.raises(Refused, match="whose API does not say what it is now"):
        refuse_moved_cluster(folder.agreed(), kube, 1.0)


def test_a_plan_that_asked_no_api_asks_none_before_it_runs(folder: Folder) -> None:
    folder.write()
    kube = cluster()
    refuse_moved_cluster(folder.agreed(), kube, 1.0)
    refuse_moved_cluster(folder.source(), kube, 1.0)
    assert kube.api.requests == []
