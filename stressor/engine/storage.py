"""What load storage and etcd's data stand on, by each host's own word (read over SSH)."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from stressor.core.placement import Mount
from stressor.model import Host
from stressor.remote.base import Completed, Remote

READ_DEADLINE_S = 15.0
_STAT = ("findmnt", "--noheadings", "--output", "MAJ:MIN,SOURCE", "--target")


def mounts(
    paths: Mapping[str, str], hosts: Iterable[Host], connect: Callable[[Host], Remote]
) -> dict[str, Mount | None]:
    """For each host named in `paths` the mount that its path stands on; None where that could not
    be read, for whatever cause: it counts as unknown."""
    chosen = [host for host in hosts if host.name in paths]
    with ThreadPoolExecutor(max_workers=max(1, len(chosen))) as pool:
        found = pool.map(lambda host: _mount(connect(host), paths[host.name]), chosen)
        return {host.name: mount for host, mount in zip(chosen, found, strict=True)}


def _mount(remote: Remote, path: str) -> Mount | None:
    try:
        outcome = remote.run((*_STAT, path), deadline_s=READ_DEADLINE_S)
    finally:
        remote.close()
    if not isinstance(outcome, Completed) or outcome.returncode != 0:
        return None
    words = outcome.stdout.decode("utf-8", "replace").split()
    return Mount(words[0], words[1]) if len(words) >= 2 else None
