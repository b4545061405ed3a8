"""Judging the routes to hosts before anybody logs in: what ends too soon, and what all share."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from stressor.checks.base import Finding, Level, unknown
from stressor.model import Host, Role, Route

NAME = "routes"
RESERVE_S = 24 * 3600.0
"""After the worst-case end of a run somebody still has to get in: to recover, on the next day."""


@dataclass(frozen=True, slots=True)
class RouteLife:
    """From when and how long a route can be used. `ends_unix_s`: the earliest end of a certificate
    or token on it, None for a plain key; `begins_unix_s`: the latest beginning of one; `known` is
    false when that could not be read. `needs_touch`: a hardware key that somebody must touch,
    which no script at night does."""

    route: Route
    ends_unix_s: float | None = None
    needs_touch: bool = False
    known: bool = True
    begins_unix_s: float | None = None


def judge_lifetimes(
    host: str,
    lives: Sequence[RouteLife],
    *,
    worst_case_end_unix_s: float,
    now_unix_s: float | None = None,
) -> tuple[Finding, ...]:
    """FAIL when no route of `host` lasts until the worst-case end + 24 h by itself. When none is
    known to, and some are unknown: WARN. A route that falls short beside a lasting one: WARN.

    A certificate that is not valid yet falls short, too: it has to be good at `now_unix_s` (None:
    that is left to the login)."""
    until_unix_s = worst_case_end_unix_s + RESERVE_S
    why = [(life, _shortness(life, until_unix_s, now_unix_s)) for life in lives]
    short = [(life, text) for life, text in why if text is not None]
    if not lives:
        return (Finding(NAME, host, Level.FAIL, "no route at all", "inventory: ansible_host"),)
    if len(short) == len(why):
        return tuple(_short(host, Level.FAIL, life, text) for life, text in short)
    if not any(life.known for life, text in why if text is None):
        told = "how long the key of a route is valid"
        return (unknown(NAME, host, Level.WARN, told, "ssh-keygen -L -f KEY-cert.pub"),)
    found = tuple(_short(host, Level.WARN, life, text) for life, text in short)
    unread = len([life for life in lives if not life.known])
    if unread:
        told = f"how long {unread} of {len(lives)} routes are valid"
        found = (*found, unknown(NAME, host, Level.WARN, told, "ssh-keygen -L -f KEY-cert.pub"))
    text = f"all {len(lives)} routes outlast the run by a day"
    return found or (Finding(NAME, host, Level.PASS, text),)


def _shortness(life: RouteLife, until_unix_s: float, now_unix_s: float | None) -> str | None:
    """What keeps the route from being good all the time, None when nothing is known to."""
    if life.needs_touch:
        return "the key needs a touch"
    if life.ends_unix_s is not None and life.ends_unix_s < until_unix_s:
        return f"ends {(until_unix_s - life.ends_unix_s) / 3600:.1f} h too early"
    if now_unix_s is not None and (life.begins_unix_s or 0.0) > now_unix_s:
        return f"valid in {((life.begins_unix_s or 0.0) - now_unix_s) / 3600:.1f} h, not before"
    return None


def _short(host: str, level: Level, life: RouteLife, text: str) -> Finding:
    where = f"{life.route.user}@{life.route.address}"[:32]
    remedy = "add a route with a plain key, or renew it"
    return Finding(NAME, host, level, f"{where}: {text}", remedy)


def judge_shared(hosts: Sequence[Host]) -> tuple[Finding, ...]:
    """What the way in to each host hangs on.

    WARN for each of key, user and jump host that every route of every host depends on, or every
    route of a host that has several: it alone decides whether anybody gets in. These concern the
    cluster, so no host is named. FAIL for a host whose every route leads over a node of the tested
    cluster: what the load takes down would be the way to stop it."""
    routes = tuple(route for host in hosts for route in host.routes)
    if not routes:
        return (Finding(NAME, "", Level.FAIL, "no route at all", "inventory: ansible_host"),)
    by_all = tuple(_shared(routes))
    found = (
        *(Finding(NAME, "", Level.WARN, *words) for words in by_all),
        *_shared_of_one(hosts, by_all),
    )
    text = "no key, user or jump host is on every route"
    return (*(found or (Finding(NAME, "", Level.PASS, text),)), *judge_caught(hosts))


def hops(route: Route) -> Iterator[Route]:
    """Every machine on the way to the host and the host itself, outermost first."""
    for jump in route.jumps:
        yield from hops(jump)
    yield route


def _shared_of_one(hosts: Sequence[Host], told: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    """What all routes of one host share, once for all hosts that share the same, and not where
    everybody does: that is `told`."""
    whose: dict[tuple[str, str], list[str]] = {}
    for host in hosts:
        if len(host.routes) > 1:
            for words in _shared(host.routes):
                if words not in told:
                    whose.setdefault(words, []).append(host.name)
    for (text, remedy), names in whose.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield Finding(NAME, "", Level.WARN, f"{names[0][:16]}{more}: {text}", remedy)


Door = tuple[str, int]
"""Address and port."""


def judge_caught(
    hosts: Sequence[Host], others: Mapping[Door, Host] = MappingProxyType({})
) -> tuple[Finding, ...]:
    """FAIL for each host whose every route leads over a node of the tested cluster. `others`: jump
    hosts that are hosts of the inventory without having an address of it."""
    return tuple(_caught(hosts, others))


def _caught(hosts: Sequence[Host], others: Mapping[Door, Host]) -> Iterator[Finding]:
    for host in hosts:
        over = [_node_on(route, host, hosts, others) for route in host.routes]
        if over and None not in over:
            names = ", ".join(dict.fromkeys(node.name for node in over if node))[:24]
            text = f"every route leads over the tested cluster: {names}"
            remedy = "stressor_routes: [{address: IP, jumps: []}], a way around"
            yield Finding(NAME, host.name, Level.FAIL, text, remedy)


def _node_on(
    route: Route, host: Host, hosts: Sequence[Host], others: Mapping[Door, Host]
) -> Host | None:
    """The first node of the tested cluster that the route to `host` leads over."""
    met = (standing_at(j, hosts) or others.get((j.address, j.port)) for j in route.jumps)
    nodes = (one for one in met if one is not None and Role.BYSTANDER not in one.roles)
    return next((node for node in nodes if node.name != host.name), None)


def standing_at(jump: Route, hosts: Sequence[Host]) -> Host | None:
    """The host of the inventory that is this jump host. Where several hosts have one address (one
    gateway with a port for each), the port decides."""
    there = [host for host in hosts if any(way.address == jump.address for way in host.routes)]
    if len(there) > 1:
        door = (jump.address, jump.port)
        there = [h for h in there if any((way.address, way.port) == door for way in h.routes)]
    return there[0] if there else None


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
