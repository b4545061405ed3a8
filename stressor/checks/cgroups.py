"""Which way a cgroup of load can be killed on the host, as the guard would find it."""

from stressor.checks.base import Finding, Level, Reading, script_argv, unknown
from stressor.model import Host

NAME = "cgroup"
_SCRIPT = """\
while read -r _ at type opts _; do
    case $type,$opts, in
    cgroup2,*) echo "v2=$at" && v2=$at ;;
    cgroup,*,freezer,*) echo "freezer_v1=$at" ;;
    esac
done </proc/self/mounts && echo mounts=read
for file in "${v2:-/nowhere}"/*/cgroup.kill; do [ -e "$file" ] && echo "kill=$file"; done
for file in "${v2:-/nowhere}"/*/cgroup.freeze; do [ -e "$file" ] && echo "freeze=$file"; done
"""


def argv(host: Host) -> tuple[str, ...]:
    """The mounts of cgroup hierarchies, and the files that a kill would write."""
    return script_argv(NAME, _SCRIPT)


def judge(reading: Reading) -> tuple[Finding, ...]:
    """PASS for each way that kills a tree at once; the text names the one in force.

    Where a freezer of version 1 is mounted, the guard takes it before version 2 (hybrid hosts).
    cgroup.kill needs Linux 5.14 and handles racing forks (runc #3199); freezing first does as well.
    """
    facts = reading.facts
    if facts.one("mounts") is None:
        return (unknown(NAME, reading.host, Level.FAIL, "/proc/self/mounts", "is /proc mounted?"),)
    if facts.one("freezer_v1"):
        return (Finding(NAME, reading.host, Level.PASS, "v1 freezer: freeze, kill, thaw"),)
    if facts.one("kill"):
        return (Finding(NAME, reading.host, Level.PASS, "v2 with cgroup.kill"),)
    if facts.one("freeze"):
        return (Finding(NAME, reading.host, Level.PASS, "v2 without cgroup.kill: freeze, kill"),)
    text = "no freezer, no cgroup.kill: killed one by one"
    return (Finding(NAME, reading.host, Level.WARN, text, _remedy(facts.one("v2"))),)


def _remedy(v2: str | None) -> str:
    if v2 is None:
        return "mount cgroup v2, or the v1 freezer hierarchy"
    return "kernel 5.14 has cgroup.kill, 5.2 the v2 freezer"
