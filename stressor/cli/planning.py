"""From files to a Plan: what `run` and `plan` share, so that one cannot show what the other does
not do. Nothing here talks to a host or an API."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from stressor import __version__
from stressor.config.units import duration_s
from stressor.config.yamlfile import did_you_mean
from stressor.core import schedule
from stressor.core.drift import ClusterFooting, Footing
from stressor.errors import ConfigError
from stressor.model import Inventory, Plan, Route, Suite
from stressor.probes import SIGNALS
from stressor.remote.fault import Fault, hops
from stressor.remote.trust import trust_of
from stressor.workloads import WORKLOADS
from stressor.workloads.gates import safety_gates


def make_plan(
    suite: Suite,
    inventory: Inventory,
    *,
    run: str,
    image: str | None,
    election_timeout_s: float,
    storage_notes: Iterable[str] = (),
) -> Plan:
    """The plan of `suite` under the name `run`. Raises ConfigError when no load image is named."""
    chosen = image or inventory.load_image
    if chosen is None:
        raise ConfigError(("no load image: --image, or stressor_load_image in the inventory",))
    return schedule.plan(
        suite,
        inventory,
        run=run,
        image=chosen,
        signals=SIGNALS,
        safety_gates=safety_gates(election_timeout_s),
        kind_gates={kind.KIND: kind.default_gates() for kind in WORKLOADS},
        storage_notes=tuple(storage_notes),
    )


def storage_kinds() -> frozenset[str]:
    """The kinds of load that write to a disk."""
    return frozenset(kind.KIND for kind in WORKLOADS if kind.touches_storage)


def names(text: str | None) -> tuple[str, ...]:
    """The names in the value of --phases, as written; none when it was not given. Raises
    ConfigError for a value that names nothing."""
    if text is None:
        return ()
    found = tuple(name.strip() for name in text.split(",") if name.strip())
    if not found:
        raise ConfigError(("--phases names no phase: write it like --phases warm,soak",))
    return found


def choose_phases(suite: Suite, wanted: tuple[str, ...]) -> Suite:
    """The suite with the phases that are `wanted`, in the order of its file; all when none are.
    Raises ConfigError for names that it does not have."""
    if not wanted:
        return suite
    known = [phase.name for phase in suite.phases]
    unknown = [name for name in dict.fromkeys(wanted) if name not in known]
    if unknown:
        mistakes = (_unknown(name, known) for name in unknown)
        raise ConfigError(tuple(f"{suite.source_path}: --phases: {text}" for text in mistakes))
    return replace(suite, phases=tuple(p for p in suite.phases if p.name in wanted))


def _unknown(name: str, known: list[str]) -> str:
    hint = did_you_mean(name, known) or f": there are {', '.join(known)}"
    return f"no phase is called `{name}`{hint}"


def limit_s(text: str | None) -> float | None:
    """The value of --max-duration in seconds; None when it was not given. Raises ConfigError."""
    if text is None:
        return None
    try:
        return duration_s(text)
    except ValueError as error:
        raise ConfigError((f"--max-duration: {error}",)) from error


def footing(
    suite: Suite,
    inventory: Inventory,
    plan: Plan,
    *,
    election_timeout_s: float,
    cluster: ClusterFooting | None = None,
) -> Footing:
    """What `plan`, made of the suite and the inventory, stands on. Reads known_hosts files."""
    return Footing(
        stressor_version=__version__,
        election_timeout_s=election_timeout_s,
        image=plan.image,
        inventory=inventory,
        known_hosts=_known_hosts(inventory),
        suite=suite,
        steps=plan.steps,
        cluster=cluster,
    )


def _known_hosts(inventory: Inventory) -> Mapping[str, tuple[str, ...]]:
    return {
        host.name: tuple(key for hop in ways for key in _keys(hop))
        for host in inventory.hosts
        if (ways := [h for r in host.routes for h in hops(r) if h.host_key is None])
    }


def _keys(route: Route) -> tuple[str, ...]:
    """None where the file cannot be read: then nothing vouches for the host."""
    try:
        trust = trust_of(route)
    except Fault:
        return ()
    revoked = (f"revoked {key.kind} {key.blob}" for key in trust.revoked)
    return (*(f"{key.kind} {key.blob}" for key in trust.keys), *revoked)
