"""Free space and inodes where guard, kubelet, etcd and load write."""

from stressor.checks.base import Finding, Level, Reading, script_argv, unknown
from stressor.model import Host

NAME = "free-disk"
_PLACES = ("/run", "/var/lib")
# A folder that is not there yet counts as the nearest one above it.
_SCRIPT = """\
limit=''
command -v timeout >/dev/null 2>&1 && limit='timeout -s KILL 4'
for place; do
    at=$place
    while [ ! -d "$at" ] && [ "$at" != "${at%/*}" ]; do at=${at%/*}; done
    echo "place=$place"
    for kind in k i; do
        $limit df -P$kind -- "${at:-/}" 2>/dev/null </dev/null | while IFS= read -r line; do
            echo "$kind:$place=$line"
        done
    done
done
"""
FAIL_USED_PERCENT = 97
"""The kubelet evicts pods from 90 % of space and 95 % of inodes on (its default hard eviction:
nodefs.available < 10 %, nodefs.inodesFree < 5 %): so full, load is evicted and not measured. 97 %
is beyond both: nothing holds the filesystem back from filling up any more."""
WARN_USED_PERCENT = 90
WARN_INODES_PERCENT = 95
FAIL_FREE_BYTES = 256 * 2**20
"""Four segments of etcd's write-ahead log, 64 MiB each: it allocates the next one beforehand, and
an etcd without space takes no writes."""
FAIL_RUN_FREE_BYTES = 16 * 2**20
"""/run is a small tmpfs, often smaller than 256 MiB on a healthy host. A guard keeps 0.1 MiB there
and containerd some KiB a container."""


def argv(host: Host) -> tuple[str, ...]:
    """df in KiB and in inodes of /run, /var/lib, the scratch folder and etcd's data."""
    own = [place for place in (host.scratch_dir, host.etcd_data_dir) if place]
    return script_argv(NAME, _SCRIPT, *dict.fromkeys((*_PLACES, *own)))


def judge(reading: Reading) -> tuple[Finding, ...]:
    """One finding a place."""
    places = reading.facts.all("place")
    if not places:
        return (unknown(NAME, reading.host, Level.FAIL, "df gave no answer", "df -P /run"),)
    return tuple(_place(reading, place) for place in places)


def _place(reading: Reading, place: str) -> Finding:
    space = _row(reading.facts.all(f"k:{place}"))
    inodes = _inodes(reading.facts.all(f"i:{place}"))
    if space is None or inodes is None:
        why = f"df said nothing of {place[-30:]}"
        return unknown(NAME, reading.host, Level.FAIL, why, "df -P there, as root")
    used, free_bytes = space[0], space[1] * 1024
    text = f"{place[-24:]}: {used} % used, {free_bytes / 2**20:.0f} MiB free"
    if inodes >= WARN_INODES_PERCENT and inodes > used:
        text = f"{place[-24:]}: {inodes} % of inodes used"
    level = _level(used, inodes, free_bytes, place)
    remedy = "" if level is Level.PASS else "make room; crictl rmi --prune, journalctl"
    return Finding(NAME, reading.host, level, text, remedy)


def _level(used: int, inodes_used: int, free_bytes: int, place: str) -> Level:
    least_bytes = FAIL_RUN_FREE_BYTES if place == "/run" else FAIL_FREE_BYTES
    if max(used, inodes_used) >= FAIL_USED_PERCENT or free_bytes < least_bytes:
        return Level.FAIL
    if used >= WARN_USED_PERCENT or inodes_used >= WARN_INODES_PERCENT:
        return Level.WARN
    return Level.PASS


def _inodes(lines: tuple[str, ...]) -> int | None:
    """Percent of inodes used; 0 for btrfs and others without a fixed number, which print "-"."""
    row = _row(lines)
    if row is None:
        return 0 if lines and "-" in lines[-1].split() else None
    return row[0]


def _row(lines: tuple[str, ...]) -> tuple[int, int] | None:
    """Percent used and units free, from the last line of df -P: blanks may be in the first and
    the last column, so the numbers are found around the percent sign."""
    words = lines[-1].split() if lines else []
    for at, word in enumerate(words):
        if word.endswith("%") and word[:-1].isdigit() and at and words[at - 1].isdigit():
            return int(word[:-1]), int(words[at - 1])
    return None
