"""The words that every room of the house uses: frozen records without behaviour or I/O.

Times are seconds. `at_s` is always seconds since the run's anchor on CLOCK_BOOTTIME (it goes on
while a laptop sleeps), never wall-clock time: the journal header holds the one wall-clock anchor.
Missing values are None and mean *unknown*; nothing turns them into a zero (I4).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

ParamValue = str | int | float | bool


class Role(StrEnum):
    """What a host is to a run. One host may have several roles."""

    CONTROL_PLANE = "control_plane"
    WORKER = "worker"
    BYSTANDER = "bystander"


class Transport(StrEnum):
    """Which backend reaches a host."""

    PARAMIKO = "paramiko"
    OPENSSH = "openssh"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Route:
    """One way to log in to a host. `address` is an IP address: abort never asks DNS.

    `host_key` is the pinned public key ("ssh-ed25519 AAAA…"); without one, `known_hosts_path` must
    vouch for the host. `jumps` are dialled in order, outermost first.
    """

    address: str
    port: int = 22
    user: str = "root"
    key_path: str | None = None
    host_key: str | None = None
    known_hosts_path: str | None = None
    jumps: tuple["Route", ...] = ()


@dataclass(frozen=True, slots=True)
class Host:
    """A machine as the inventory has it. `become` means: commands run under `sudo -n`.

    `fence` is the argv that cuts the host's power from here, the last resort (empty: none known).
    `hypervisor` names the machine that it stands on, by the operator's word; None: nobody said.
    """

    name: str
    routes: tuple[Route, ...]
    roles: frozenset[Role] = frozenset()
    become: bool = False
    transport: Transport = Transport.PARAMIKO
    etcd_metrics_url: str | None = None
    etcd_data_dir: str | None = None
    scratch_dir: str | None = None
    apiserver_url: str | None = None
    fence: tuple[str, ...] = ()
    hypervisor: str | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """The hosts of one cluster and its bystanders, as read from an Ansible inventory.

    `bystanders_none_reason` is the written reason of an operator who says that there are none;
    None together with no bystander host means that nobody has answered the question.
    `disposable` is true only where the inventory says so (the lab): proven shared storage may be
    overridden there and nowhere else. `kubeconfig_path` and `context` say which API it is meant
    with (None: what kubectl would use); `cluster_uid`, the UID of its kube-system namespace, pins
    the cluster, whatever its names and addresses may come to mean.
    """

    cluster: str
    hosts: tuple[Host, ...]
    kubeconfig_path: str | None = None
    context: str | None = None
    cluster_uid: str | None = None
    load_image: str | None = None
    disposable: bool = False
    bystanders_none_reason: str | None = None
    source_path: str = ""

    def with_role(self, role: Role) -> tuple[Host, ...]:
        """The hosts that have `role`, in inventory order."""
        return tuple(host for host in self.hosts if role in host.roles)

    def host(self, name: str) -> Host:
        """The host called `name`. Raises KeyError when there is none."""
        for host in self.hosts:
            if host.name == name:
                return host
        raise KeyError(name)


class Comparison(StrEnum):
    """Which side of the limit is bad."""

    ABOVE = "above"
    BELOW = "below"


class GateAction(StrEnum):
    """What a firing gate does: `warn` is reported, `stop` aborts the run."""

    WARN = "warn"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Gate:
    """A limit on a signal, applied to each source (host) that reports it.

    `hold_s` 0 fires on the first bad sample; otherwise the signal must be bad for that long without
    a good sample between. `window_s` is the span over which a counting signal is summed (0: each
    sample alone). A stale signal fires like a breach (I4).
    """

    signal: str
    comparison: Comparison
    limit: float
    hold_s: float = 0.0
    window_s: float = 0.0
    action: GateAction = GateAction.STOP


class Subject(StrEnum):
    """What a signal is about, hence which hosts must report it."""

    ETCD = "etcd"
    APISERVER = "apiserver"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class SignalSpec:
    """A signal that probes report: its name ends in its unit. Stale after 3 × `period_s`."""

    name: str
    subject: Subject
    period_s: float
    meaning: str


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading of one signal at one source. `value` None = asked, and no answer that counts.

    `n` is the number of observations behind the value where there is one (fsyncs in the window);
    `detail` says why a value is None, or is empty.
    """

    at_s: float
    signal: str
    source: str
    value: float | None
    n: int | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Breach:
    """A gate that fired: which, where, on what value (None: stale), since when."""

    at_s: float
    gate: Gate
    source: str
    value: float | None
    since_s: float
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of a phase file, validated. Durations in seconds.

    `nodes` are inventory names chosen at planning. `steps` override `params` one after the other,
    each held for `hold_s`; a phase without steps has one empty step. `deadline_s` bounds each
    step's load from its start, whatever else fails (I2).
    """

    name: str
    kind: str
    nodes: tuple[str, ...]
    hold_s: float
    deadline_s: float
    warm_up_s: float = 0.0
    cool_down_s: float = 0.0
    gates: tuple[Gate, ...] = ()
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    steps: tuple[Mapping[str, ParamValue], ...] = ({},)


@dataclass(frozen=True, slots=True)
class Suite:
    """A whole phase file. `baseline_s` is watched without load before the first phase."""

    name: str
    baseline_s: float
    phases: tuple[Phase, ...]
    source_path: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One piece of load: a phase's step on its nodes, with its parameters merged.

    `index` counts steps over the whole suite from 0 and is the step's identity in a run.
    """

    index: int
    phase: str
    kind: str
    nodes: tuple[str, ...]
    params: Mapping[str, ParamValue]
    warm_up_s: float
    hold_s: float
    cool_down_s: float
    deadline_s: float
    gates: tuple[Gate, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run will do, complete before anything is touched.

    `guarded` names every host that must be armed: control plane, bystanders, load hosts.
    `sources` names, for each signal, the hosts that must report it, and `periods_s` how often.
    `storage_notes` are the sentences about storage isolation that head plan and report.
    `accepted` are failures of preflight that the operator accepted, with the reason; they head the
    report as well. `deadline_s` is the worst-case end of all load, from the run's anchor.
    """

    run: str
    cluster: str
    suite: str
    baseline_s: float
    steps: tuple[Step, ...]
    guarded: tuple[str, ...]
    sources: Mapping[str, tuple[str, ...]]
    periods_s: Mapping[str, float]
    deadline_s: float
    namespace: str
    image: str
    storage_notes: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    beat_timeout_s: float = 5.0


class HostState(StrEnum):
    """What is known of a host after a kill. Only CLEAN and STOPPED are proof of death (I5)."""

    CLEAN = "CLEAN"
    STOPPED = "STOPPED"
    SURVIVORS = "SURVIVORS"
    UNVERIFIED = "UNVERIFIED"
    UNREACHABLE = "UNREACHABLE"
    KEY_CHANGED = "KEY_CHANGED"


PROVEN = frozenset({HostState.CLEAN, HostState.STOPPED})


@dataclass(frozen=True, slots=True)
class Survivor:
    """A marked process that outlived the kill. `wchan` is the kernel function it waits in."""

    pid: int
    comm: str
    state: str
    wchan: str
    age_s: float


@dataclass(frozen=True, slots=True)
class HostProof:
    """The evidence of one host after a kill: `stopped` processes were killed there by it.

    `took_s` is from the order to the host's last word; None when there was none.
    """

    host: str
    state: HostState
    stopped: int = 0
    survivors: tuple[Survivor, ...] = ()
    took_s: float | None = None
    detail: str = ""


class StopReason(StrEnum):
    """Why load is stopped: one stop path, and its cause in journal and verdict."""

    COMPLETED = "completed"
    THRESHOLD = "threshold"
    STALE = "stale"
    OPERATOR = "operator"
    TERMINATED = "terminated"
    ABORTED_ELSEWHERE = "aborted_elsewhere"
    GUARD_LOST = "guard_lost"
    GUARD_TRIPPED = "guard_tripped"
    LATE_TICK = "late_tick"
    LATE_JOURNAL = "late_journal"
    DEADLINE = "deadline"
    START_FAILED = "start_failed"
    LEFTOVERS = "leftovers"
    INTERNAL = "internal"


class Verdict(StrEnum):
    """The answer of a step or a run. On merging, fail beats unknown beats pass."""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load tool reported from one node: `metrics` with units in their names.

    `verdict` is UNKNOWN when the output is missing, cut, or contradicts the exit code; `problems`
    says so in words (exit codes lie: docs/signals.md).
    """

    node: str
    verdict: Verdict
    metrics: Mapping[str, float] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
