"""Journals of whole runs, from real events and effects, encoded as the journal encodes them."""

import json
from collections.abc import Iterable

from stressor.core import effects as fx
from stressor.core import events as ev
from stressor.journal import Header, Journal, encode, kind_of, parse
from stressor.model import (
    Breach,
    Comparison,
    Gate,
    GateAction,
    HostProof,
    HostState,
    LoadResult,
    Plan,
    Sample,
    Step,
    StopReason,
    Survivor,
    Verdict,
)

SLOW = Gate("etcd_wal_fsync_slow_count", Comparison.ABOVE, 0.0)
PRESSURE = Gate("psi_cpu_some_ratio", Comparison.ABOVE, 0.6, hold_s=10.0, action=GateAction.WARN)
STEP = Step(
    index=0,
    phase="disk",
    kind="disk",
    nodes=("node1", "node2"),
    params={"jobs": 32, "size": "16MiB"},
    warm_up_s=0.0,
    hold_s=60.0,
    cool_down_s=0.0,
    deadline_s=120.0,
    gates=(SLOW, PRESSURE),
)
HOSTS = ("node1", "node2", "far1")
PLAN = Plan(
    run="7f3a",
    cluster="lab",
    suite="demo",
    baseline_s=5.0,
    steps=(STEP,),
    guarded=HOSTS,
    sources={SLOW.signal: ("node1",)},
    periods_s={SLOW.signal: 1.0},
    deadline_s=275.0,
    namespace="stressor-7f3a",
    image="load:1",
    storage_notes=("storage of load on node1 and of etcd on node1: shared (same device 254:0)",),
    accepted=("node2: free-disk: /run: 98 % used; accepted: a spare node",),
)
BY_HAND = ["stressor abort --host 10.0.0.1 --user root --host-key SHA256:" + "A" * 43]
HEADER = Header(
    run="7f3a",
    cluster="lab",
    suite="demo",
    anchor_unix_s=1_790_000_000.0,
    anchor_boot_s=4242.0,
    who="ops",
    host="desk",
    argv=("stressor", "run", "phases/demo.yaml"),
    reason="weekly check",
    pid=7,
)
BREACH = Breach(12.1, SLOW, "node1", 7.0, 12.1)
Item = tuple[float, str, object]


def event(item: ev.Event) -> Item:
    return (item.at_s, kind_of("event", item), item)


def effect(at_s: float, item: fx.Effect) -> Item:
    return (at_s, kind_of("effect", item), item)


def raw(items: Iterable[Item]) -> bytes:
    head = {"kind": "header", **dict(encode(HEADER))}  # type: ignore[call-overload]
    records = [{"t": t, "kind": kind, "data": encode(data)} for t, kind, data in items]
    return b"".join(json.dumps(one).encode() + b"\n" for one in (head, *records))


def journal(items: Iterable[Item]) -> Journal:
    return parse(raw(items), "j")


def sample(at_s: float, value: float | None, source: str = "node1") -> Item:
    return event(ev.SampleTaken(at_s, Sample(at_s - 0.05, SLOW.signal, source, value)))


def proven(
    at_s: float, host: str, state: HostState = HostState.CLEAN, stopped: int = 0, cold: bool = False
) -> Item:
    return event(ev.HostProven(at_s, HostProof(host, state, stopped, took_s=0.3), cold))


def armed() -> list[Item]:
    facts = ("dead-man 5 s", "host timer", "cgroup v2 kill")
    return [
        (0.0, "note.Plan", PLAN),
        (0.0, "note.ByHand", {"commands": BY_HAND}),
        effect(0.0, fx.ArmGuards(HOSTS)),
        *(event(ev.GuardArmed(0.4, host, facts)) for host in HOSTS),
    ]


def loading() -> list[Item]:
    return [
        *armed(),
        sample(5.0, 0.0),
        sample(6.0, None),
        effect(6.1, fx.StartLoad(STEP, 6.1)),
        event(ev.LoadCreated(6.5, 0)),
        *(event(ev.LoadSeen(7.5, host, 33, ("fio",))) for host in STEP.nodes),
        event(ev.GuardAcknowledged(11.0, "node1", "beat", 0.01)),
        effect(11.5, fx.WarnOperator(Breach(11.5, PRESSURE, "node1", 0.7, 1.5))),
    ]


def clean() -> list[Item]:
    results = (
        LoadResult("node1", Verdict.PASS, {"write_iops": 812.5, "sync_p99_s": 0.0123}),
        LoadResult("node2", Verdict.PASS, {"write_iops": 801.0}),
    )
    return [
        *loading(),
        *(event(ev.LoadFinished(67.0, 0, result)) for result in results),
        effect(67.1, fx.ProveClean(HOSTS)),
        *(proven(67.6, host) for host in HOSTS),
        effect(67.7, fx.CleanUp(suspend_only=False)),
        event(ev.CleanupDone(68.0, True, "2 jobs, 1 namespace")),
        effect(68.0, fx.Disarm()),
        effect(68.0, fx.Finish(0, "all steps ended by themselves: pass")),
    ]


def stopping() -> list[Item]:
    return [
        *loading(),
        sample(12.1, 7.0),
        effect(12.102, fx.StopLoad(StopReason.THRESHOLD, "slow fsyncs 7 above 0", BREACH)),
        *(event(ev.GuardAcknowledged(12.11, host, "kill", 0.008)) for host in HOSTS[:2]),
        proven(12.5, "node1", HostState.STOPPED, 33),
        proven(12.7, "node2", HostState.STOPPED, 33),
    ]


def aborted() -> list[Item]:
    return [
        *stopping(),
        event(ev.GuardAcknowledged(12.2, "far1", "kill", 0.09)),
        proven(12.8, "far1"),
        proven(13.0, "node1"),
        effect(13.0, fx.CleanUp(suspend_only=True)),
        event(ev.CleanupDone(15.0, False, "the API did not answer in 2 s")),
        effect(15.0, fx.Disarm()),
        effect(15.0, fx.Finish(99, "stopped, every host proven clean: slow fsyncs")),
    ]


def unproven() -> list[Item]:
    stuck = Survivor(4711, "fio\x1b[2J", "D", "blk_mq_get_tag", 33.0)
    return [
        *stopping(),
        event(ev.GuardLost(12.3, "far1", "channel closed")),
        effect(12.7, fx.ColdKill("far1")),
        event(
            ev.HostProven(
                19.7, HostProof("far1", HostState.UNREACHABLE, detail="no answer: König"), True
            )
        ),
        event(ev.HostProven(20.0, HostProof("node2", HostState.SURVIVORS, 33, (stuck,)))),
        effect(42.2, fx.CleanUp(suspend_only=True)),
        event(ev.CleanupDone(43.0, True, "2 jobs suspended")),
        effect(43.0, fx.Disarm()),
        effect(43.0, fx.Finish(98, "NOT PROVEN DEAD on node2, far1: slow fsyncs")),
    ]


def killed() -> Journal:
    """Killed while it wrote its last line."""
    return parse(raw(loading())[:-9], "j")
