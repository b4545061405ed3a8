"""What a run is made from: a phase file, or a plan that somebody agreed to before.

A plan's own steps count: they are what was agreed to. What they stand on must be as it was; else
nothing is started, and each difference is said. A phase file that says something else by now is
named and changes nothing.
"""

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from stressor.cli.inventories import open_inventory
from stressor.cli.planning import (
    ELECTION_TIMEOUT_S,
    choose_phases,
    footing,
    limit_s,
    make_plan,
    names,
)
from stressor.cli.server_checks import cluster_footing
from stressor.config.phases import load_suite
from stressor.config.planfile import PlanFile, is_plan_file, read_plan
from stressor.config.settings import Settings, settings
from stressor.core.drift import (
    ClusterFooting,
    Difference,
    Footing,
    cluster_drift,
    drift,
    suite_drift,
)
from stressor.core.schedule import late_flaws
from stressor.errors import ConfigError, KubeError, Refused
from stressor.kube.base import Kube
from stressor.model import Inventory, Plan, Suite
from stressor.report.lines import ascii_only

RUN_NAME = "planned"
"""Stands for the name that `run` will draw."""
FIXED = "is fixed by the plan: plan anew with it"


@dataclass(frozen=True, slots=True)
class Asked:
    """The options that say what is planned; None: not given."""

    inventory: str | None = None
    image: str | None = None
    election_timeout_s: float | None = None
    phases: str | None = None
    max_duration: str | None = None

    def words(self) -> tuple[str, ...]:
        """The options that make the plan another one, as a command line has them."""
        given = {
            "--image": self.image,
            "--election-timeout": self.election_timeout_s,
            "--phases": self.phases,
            "--max-duration": self.max_duration,
        }
        return tuple(
            word
            for name, value in given.items()
            if value is not None
            for word in (name, value if isinstance(value, str) else f"{value:g}")
        )


@dataclass(frozen=True, slots=True)
class Source:
    """What was read, planned and found sound as far as files can tell.

    `path` is the file that was named, `phasefile` the phase file behind it. `plan` carries
    RUN_NAME; a run plans once more, under its own name. `max_duration_s` is the limit that the plan
    was held against, and `phases` the names that --phases chose. `agreed` is what the plan file
    says that the cluster was; None without one, or where its API was not asked. `notes` are worth a
    line before anything starts.
    """

    path: str
    phasefile: str
    inventory: Inventory
    inventory_path: str
    suite: Suite
    phases: tuple[str, ...]
    image: str | None
    election_timeout_s: float
    max_duration_s: float | None
    plan: Plan
    footing: Footing
    agreed: ClusterFooting | None = None
    notes: tuple[str, ...] = ()

    @property
    def late(self) -> tuple[str, ...]:
        """Why it may take longer than --max-duration allows."""
        return late_flaws(self.plan, self.max_duration_s)


def open_source(
    path: Path,
    asked: Asked,
    env: Mapping[str, str],
    known: Callable[[Inventory], None] = lambda _: None,
) -> Source:
    """The phase file or the plan file at `path`, whichever its content says that it is. `known` is
    called with the inventory before anything else is read: what it has to say must not be lost to
    a mistake in the phase file.

    Raises ConfigError for mistakes, and Refused for a plan whose footing is another one now.
    """
    if is_plan_file(path):
        return _agreed(path, asked, env, known)
    chosen = _settings(asked, env)
    hosts = open_inventory(chosen.inventory_path)
    known(hosts)
    wanted = names(asked.phases)
    suite = choose_phases(load_suite(path, inventory=hosts), wanted)
    limit, timeout_s = limit_s(asked.max_duration), chosen.election_timeout_s
    source = _source(path, suite, hosts, chosen.image, timeout_s, limit, wanted)
    return replace(source, notes=chosen.notes)


def refuse_late(source: Source) -> None:
    """Raises Refused when the plan may take longer than --max-duration allows."""
    if source.late:
        raise Refused(f"REFUSED: {'; '.join(source.late)}. Nothing was started.")


def refuse_moved_cluster(source: Source, kube: Kube, deadline_s: float) -> None:
    """Compares the cluster with what the plan file says of it, where it says something. Raises
    Refused with each difference, and when the API does not answer: unknown is no "as before"."""
    if source.agreed is None:
        return
    try:
        now = cluster_footing(kube, deadline_s)
    except KubeError as error:
        text = f"REFUSED: {source.path} knows its cluster, whose API does not say what it is now: "
        raise Refused(f"{text}{error}. Nothing was started.") from error
    _refuse(source.path, _again(source.path, source), cluster_drift(source.agreed, now))


def _source(
    path: Path,
    suite: Suite,
    hosts: Inventory,
    image: str | None,
    election_timeout_s: float,
    max_duration_s: float | None,
    wanted: tuple[str, ...],
) -> Source:
    plan = make_plan(suite, hosts, run=RUN_NAME, image=image, election_timeout_s=election_timeout_s)
    return Source(
        path=str(path),
        phasefile=str(path.absolute()),
        inventory=hosts,
        inventory_path=str(Path(hosts.source_path).absolute()),
        suite=suite,
        phases=wanted,
        image=image,
        election_timeout_s=election_timeout_s,
        max_duration_s=max_duration_s,
        plan=plan,
        footing=footing(suite, hosts, plan, election_timeout_s=election_timeout_s),
    )


def _settings(asked: Asked, env: Mapping[str, str]) -> Settings:
    """Config files have a word on what is planned anew, and none on what a plan file fixes."""
    given = {
        "inventory": asked.inventory,
        "image": asked.image,
        "election_timeout": asked.election_timeout_s,
    }
    return settings(env, flags=given)


def _agreed(
    path: Path, asked: Asked, env: Mapping[str, str], known: Callable[[Inventory], None]
) -> Source:
    _refuse_fixed(path, asked)
    plan = read_plan(path)
    then = plan.footing
    # No config file is read for it: a plan stands on its own.
    hosts = open_inventory(Path(asked.inventory or plan.inventory_path))
    known(hosts)
    limits = (limit_s(asked.max_duration), plan.max_duration_s)
    lowest_s = min((limit for limit in limits if limit is not None), default=None)
    source = _source(
        path, then.suite, hosts, then.image, then.election_timeout_s, lowest_s, plan.phases
    )
    source = replace(source, phasefile=plan.phasefile, agreed=then.cluster)
    moved = drift(replace(then, cluster=None), source.footing)
    _refuse(str(path), _again(str(path), source), moved)
    return replace(source, notes=tuple(_phase_file(plan, hosts)))


def _refuse_fixed(path: Path, asked: Asked) -> None:
    given = {
        "--image": asked.image,
        "--election-timeout": asked.election_timeout_s,
        "--phases": asked.phases,
    }
    wrong = tuple(f"{path}: {name} {FIXED}" for name, value in given.items() if value is not None)
    if wrong:
        raise ConfigError(wrong)


def _phase_file(plan: PlanFile, hosts: Inventory) -> Iterable[str]:
    """What the phase file says by now, where that is something else. It may be on another machine:
    the plan needs it no more."""
    path = Path(plan.phasefile)
    if not path.exists():
        return
    try:
        suite = choose_phases(load_suite(path, inventory=hosts), plan.phases)
    except ConfigError as error:
        yield f"{path} can be planned no more ({error.mistakes[0]}); the plan's own steps count"
        return
    for difference in suite_drift(plan.footing.suite, suite):
        yield f"{path} says otherwise by now, the plan's own steps count: {difference}"


def _refuse(path: str, again: str, differences: tuple[Difference, ...]) -> None:
    if not differences:
        return
    lines = "\n".join(f"  {ascii_only(str(one))}" for one in differences)
    raise Refused(
        f"REFUSED: {path} stands on something else by now. Nothing was started.\n{lines}\n"
        f"  -> look at it, then: {again}"
    )


def _again(path: str, source: Source) -> str:
    """The command that plans the same anew, into the same file."""
    image = None if source.image == source.inventory.load_image else source.image
    default = source.election_timeout_s == ELECTION_TIMEOUT_S
    limit = None if source.max_duration_s is None else f"{source.max_duration_s:.15g}s"
    asked = Asked(
        image=image,
        election_timeout_s=None if default else source.election_timeout_s,
        phases=",".join(source.phases) or None,
        max_duration=limit,
    )
    named = ("--inventory", source.inventory_path)
    words = ("stressor", "plan", source.phasefile, *named, *asked.words())
    dry_run = () if source.agreed is None else ("--dry-run=server",)
    return shlex.join((*words, *dry_run, "--out", path, "--force"))
