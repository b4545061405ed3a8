"""Judging the routes to hosts before anybody logs in: what ends too soon, and what all share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stressor.checks.base import Finding, Level, unknown
from stressor.model import Host, Route

NAME = "routes"
RESERVE_S = 24 * 3600.0
"""After the worst-case end of a run somebody still has to get in: to recover, on the next day."""


@dataclass(frozen=True, slots=True)
class RouteLife:
    """How long a route can be used. `ends_unix_s`: the earliest end of a certificate or token on
    it, None for a plain key; `known` is false when that could not be read. `needs_touch`: a
    hardware key that somebody must touch, which no script at night does."""

    route: Route
    ends_unix_s: float | None = None
    needs_touch: bool = False
    known: bool = True


def judge_lifetimes(
    host: str, lives: Sequence[RouteLife], *, worst_case_end_unix_s: float
) -> tuple[Finding, ...]:
    """FAIL when no route of `host` lasts until the worst-case end + 24 h by itself. When none is
    known to, and some are unknown: WARN. A route that falls short beside a lasting one: WARN."""
    until_unix_s = worst_case_end_unix_s + RESERVE_S
    short = tuple(life for life in lives if _falls_short(life, until_unix_s))
    if not lives:
        return (Finding(NAME, host, Level.FAIL, "no route at all", "inventory: ansible_host"),)
    if len(short) == len(lives):
        return tuple(_short(host, Level.FAIL, life, until_unix_s) for life in short)
    if not any(life.known for life in lives if life not in short):
        why = "how long the key of a route is valid"
        return (unknown(NAME, host, Level.WARN, why, "ssh-keygen -L -f KEY-cert.pub"),)
    found = tuple(_short(host, Level.WARN, life, until_unix_s) for life in short)
    unread = len([life for life in lives if not life.known])
    if unread:
        why = f"how long {unread} of {len(lives)} routes are valid"
        found = (*found, unknown(NAME, host, Level.WARN, why, "ssh-keygen -L -f KEY-cert.pub"))
    text = f"all {len(lives)} routes outlast the run by a day"
    return found or (Finding(NAME, host, Level.PASS, text),)


def _falls_short(life: RouteLife, until_unix_s: float) -> bool:
    return life.needs_touch or (life.ends_unix_s is not None and life.ends_unix_s < until_unix_s)


def _short(host: str, level: Level, life: RouteLife, until_unix_s: float) -> Finding:
    where = f"{life.route.user}@{life.route.address}"[:32]
    if life.needs_touch:
        text = f"{where}: the key needs a touch"
    else:
        short_s = until_unix_s - (life.ends_unix_s or 0.0)
        text = f"{where}: ends {short_s / 3600:.1f} h too early"
    return Finding(NAME, host, level, text, "add a route with a plain key, or renew it")


def judge_shared(hosts: Sequence[Host]) -> tuple[Finding, ...]:
    """WARN for each of key, user and jump host that every route of every host depends on: it
    alone decides whether anybody gets in. Concerns the cluster, so no host is named."""
    routes = tuple(route for host in hosts for route in host.routes)
    if not routes:
        return (Finding(NAME, "", Level.FAIL, "no route at all", "inventory: ansible_host"),)
    found = tuple(Finding(NAME, "", Level.WARN, *words) for words in _shared(routes))
    text = "no key, user or jump host is on every route"
    return found or (Finding(NAME, "", Level.PASS, text),)


def _shared(routes: Sequence[Route]) -> Iterator[tuple[str, str]]:
    keys = {route.key_path for route in routes}
    if len(keys) == 1:
        name = (keys.pop() or "the default key")[-32:]
        yield f"one key for all routes: {name}", "add a second key to each host"
    users = {route.user for route in routes}
    if len(users) == 1:
        yield f"one user for all routes: {users.pop()[:24]}", "add a route with another user"
    jumps = [{jump.address for jump in route.jumps} for route in routes]
    for address in sorted(set.intersection(*jumps)):
        yield f"one jump host for all routes: {address[:24]}", "add a route around it"
