"""The armed guards of a run: one channel a host, orders to all at once, answers as events.

Sending never waits: an order is written to every channel first, and answers are collected by one
reader thread (write to all, then read; in the other order one frozen host cost the healthy ones a
second each). A send that succeeded proves nothing; only acknowledgements count.
"""

import selectors
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from stressor.core import events as ev
from stressor.engine.clock import Clock
from stressor.engine.loop import EventQueue
from stressor.engine.reports import Reports
from stressor.engine.wakeup import Wakeup
from stressor.errors import ChannelClosed
from stressor.guard import protocol
from stressor.model import Host
from stressor.remote.base import Channel, Remote, TimedOut, Unreachable

ARM_DEADLINE_S = 20.0
"""Handshake, sudo and the guard's first answer, once: slow logins are refused, not waited for."""
PENDING_LIMIT = 256
"""Unanswered orders remembered per host: a frozen host gets four a second at most."""
SELECT_S = 0.5


@dataclass(slots=True)
class Member:
    """One host's channel. `pending` maps a sequence number to its verb and when it was sent."""

    host: str
    remote: Remote
    channel: Channel
    descriptor: int
    reports: Reports
    sequence: int = 0
    pending: dict[int, tuple[str, float]] = field(default_factory=dict)
    answered_s: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def order(self, words: str, at_s: float) -> int:
        """Send one order; its sequence number. Raises ChannelClosed."""
        with self.lock:
            self.sequence += 1
            self.pending[self.sequence] = (words.split(" ", 1)[0], at_s)
            while len(self.pending) > PENDING_LIMIT:
                del self.pending[next(iter(self.pending))]
            self.channel.send(f"{self.sequence} {words}")
            return self.sequence

    def settle(self, sequence: int, at_s: float, *, willing: bool) -> tuple[str, float] | None:
        """The verb and send time that an answer belongs to; None for one never asked. Only a
        `willing` answer to something that was asked counts as a sign of life."""
        with self.lock:
            asked = self.pending.pop(sequence, None)
            if willing and asked is not None:
                self.answered_s = at_s
            return asked


@dataclass(slots=True)
class Fleet:
    """All guards of one run. `connect` makes a Remote of a host; `rehearse` tries the way of an
    abort from outside, and says what is wrong with it; `guard_argv` starts a guard; `holder` says
    who does all this, for somebody whom the guards refuse."""

    run: str
    clock: Clock
    events: EventQueue
    connect: Callable[[Host], Remote]
    rehearse: Callable[[Host], str | None]
    guard_argv: tuple[str, ...]
    holder: str = "-"
    members: dict[str, Member] = field(default_factory=dict, init=False)
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector, init=False)
    _wakeup: Wakeup = field(default_factory=Wakeup.create, init=False)
    _joining: list[Member] = field(default_factory=list, init=False)
    _answered: threading.Condition = field(default_factory=threading.Condition, init=False)
    _closing: bool = field(default=False, init=False)

    def start(self) -> None:
        """Start the reader thread."""
        self._selector.register(self._wakeup.reader, selectors.EVENT_READ, None)
        threading.Thread(target=self._read, name="guards", daemon=True).start()

    def arm(self, hosts: Iterable[Host], *, left_s: float, beat_s: float) -> None:
        """Rehearse the abort route of each host and arm it, in a thread of its own; answers come
        as GuardArmed or GuardRefused."""
        for host in hosts:
            threading.Thread(
                target=self._arm, args=(host, left_s, beat_s), name=f"arm-{host.name}", daemon=True
            ).start()

    def order(self, words: str, hosts: Iterable[str] | None = None) -> None:
        """Write one order to all members (or those of `hosts`) without waiting for anybody."""
        names = self.members if hosts is None else hosts
        for name in tuple(names):
            member = self.members.get(name)
            if member is None:
                continue
            try:
                member.order(words, self.clock.now_s())
            except ChannelClosed as error:
                self._lost(member, str(error))

    def round_trip(self, hosts: tuple[str, ...], deadline_s: float) -> tuple[str, ...]:
        """Beat the guards of `hosts` and wait for their answers: those that did not in time."""
        asked_s = self.clock.now_s()
        self.order("beat", hosts)
        with self._answered:
            self._answered.wait_for(lambda: not self._silent(hosts, asked_s), timeout=deadline_s)
        return self._silent(hosts, asked_s)

    def wait_quit(self, deadline_s: float) -> None:
        """Wait, at most so long, until every guard that was told to quit has answered."""
        with self._answered:
            self._answered.wait_for(self._all_quit, timeout=deadline_s)

    def _all_quit(self) -> bool:
        pending = (verb for m in self.members.values() for verb, _ in tuple(m.pending.values()))
        return "quit" not in pending

    def close(self) -> None:
        """Close every channel without waiting; guards that were not told to quit will kill."""
        self._closing = True
        self._wakeup.wake()
        for member in self.members.values():
            member.channel.close()

    def _silent(self, hosts: tuple[str, ...], asked_s: float) -> tuple[str, ...]:
        members = {name: self.members.get(name) for name in hosts}
        return tuple(n for n, m in members.items() if m is None or m.answered_s <= asked_s)

    def _arm(self, host: Host, left_s: float, beat_s: float) -> None:
        refused = self._rehearsed(host) or self._open(host, left_s, beat_s)
        if refused is not None:
            self.events.put(ev.GuardRefused(self.clock.now_s(), host.name, refused))

    def _rehearsed(self, host: Host) -> str | None:
        why = self.rehearse(host)
        return None if why is None else f"abort could not get there: {why}"

    def _open(self, host: Host, left_s: float, beat_s: float) -> str | None:
        remote = self.connect(host)
        channel = remote.open_channel(self.guard_argv, deadline_s=ARM_DEADLINE_S)
        if isinstance(channel, Unreachable):
            return f"{channel.reason}: {channel.detail}"
        if isinstance(channel, TimedOut):
            return f"no guard within {channel.after_s:.0f} s"
        reports = Reports(host.name)
        member = Member(host.name, remote, channel, channel.fileno(), reports)
        self.members[host.name] = member
        self._joining.append(member)
        self._wakeup.wake()
        try:
            words = f"arm {self.run} {left_s:.0f} {beat_s:.0f} {self.holder}"
            member.order(words, self.clock.now_s())
        except ChannelClosed as error:
            return str(error)
        return None

    def _read(self) -> None:
        while not self._closing:
            self._admit()
            for key, _ in self._selector.select(SELECT_S):
                if isinstance(key.data, Member):
                    self._receive(key.data)
                else:
                    self._wakeup.drain()

    def _admit(self) -> None:
        while self._joining:
            member = self._joining.pop()
            self._selector.register(member.descriptor, selectors.EVENT_READ, member)

    def _receive(self, member: Member) -> None:
        try:
            lines = member.channel.receive()
        except ChannelClosed as error:
            self._selector.unregister(member.descriptor)
            self._lost(member, str(error))
            return
        at_s = self.clock.now_s()
        for line in lines:
            self._say(member, protocol.parse(line), at_s)

    def _say(self, member: Member, message: protocol.Message, at_s: float) -> None:
        asked = None
        if isinstance(message, protocol.Ack | protocol.Refusal | protocol.GuardSample):
            willing = not isinstance(message, protocol.Refusal)
            asked = member.settle(message.sequence, at_s, willing=willing)
            with self._answered:
                self._answered.notify_all()
        for event in member.reports.events(message, asked, at_s):
            self.events.put(event)

    def _lost(self, member: Member, why: str) -> None:
        if not self._closing and self.members.pop(member.host, None) is not None:
            self.events.put(ev.GuardLost(self.clock.now_s(), member.host, why))
