"""What load storage and etcd's data stand on, by each host's own word (read over SSH)."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from stressor.core.placement import Mount, Place
from stressor.model import Host
from stressor.remote.base import Completed, Remote

READ_DEADLINE_S = 15.0
_STAT = ("findmnt", "--noheadings", "--output", "MAJ:MIN,SOURCE", "--target")


def mounts(
    places: Iterable[Place], hosts: Iterable[Host], connect: Callable[[Host], Remote]
) -> dict[Place, Mount | None]:
    """The mount that each place stands on; None where that could not be read, for whatever cause:
    it counts as unknown."""
    known = {host.name: host for host in hosts}
    wanted = tuple(dict.fromkeys(places))
    with ThreadPoolExecutor(max_workers=32) as pool:
        found = pool.map(lambda place: _mount_at(place, known.get(place.host), connect), wanted)
        return dict(zip(wanted, found, strict=True))


def _mount_at(place: Place, host: Host | None, connect: Callable[[Host], Remote]) -> Mount | None:
    return None if host is None or place.path is None else _mount(connect(host), place.path)


def _mount(remote: Remote, path: str) -> Mount | None:
    try:
        outcome = remote.run((*_STAT, path), deadline_s=READ_DEADLINE_S)
    finally:
        remote.close()
    if not isinstance(outcome, Completed) or outcome.returncode != 0:
        return None
    words = outcome.stdout.decode("utf-8", "replace").split()
    return Mount(words[0], words[1]) if len(words) >= 2 else None
