"""Reading the files of the operator's keys: how long can each route be used?"""

from pathlib import Path

from stressor.checks.key_life import UNKNOWN, KeyLife, judge
from stressor.checks.routes import RouteLife, hops
from stressor.model import Host, Route

LIMIT_BYTES = 64 * 1024


def lives(host: Host) -> tuple[RouteLife, ...]:
    """Of each route: the earliest end on it, jump hosts included."""
    return tuple(_life(route) for route in host.routes)


def _life(route: Route) -> RouteLife:
    found = tuple(_key(hop.key_path) for hop in hops(route))
    ends = [life.ends_unix_s for life in found if life.ends_unix_s is not None]
    begins = [life.begins_unix_s for life in found if life.begins_unix_s is not None]
    return RouteLife(
        route,
        ends_unix_s=min(ends, default=None),
        needs_touch=any(life.needs_touch for life in found),
        known=all(life.known for life in found),
        begins_unix_s=max(begins, default=None),
    )


def _key(path: str | None) -> KeyLife:
    if path is None:
        return UNKNOWN
    certificate = Path(f"{path}-cert.pub")
    text = _text(certificate)
    if text is None and certificate.exists():
        return UNKNOWN
    return judge(_text(Path(path)), text)


def _text(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(LIMIT_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
