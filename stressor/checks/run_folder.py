"""Whether the guard can keep its state in /run, and whether that is memory."""

from stressor.checks.base import Finding, Level, Reading, script_argv, unknown
from stressor.model import Host

NAME = "run-folder"
# The last mount on /run, else the one on /, is what a write to /run meets.
_SCRIPT = """\
while read -r _ at type opts _; do
    case $at in / | /run) echo "$at=$type ${opts%%,*}" ;; esac
done </proc/self/mounts
probe=/run/.stressor-preflight.$$
said=$( { echo x >"$probe"; } 2>&1 </dev/null) && echo write=ok || echo "write=$said"
rm -f -- "$probe"
"""
_MEMORY = ("tmpfs", "ramfs")


def argv(host: Host) -> tuple[str, ...]:
    """The mount under /run, and the end of a write there (the file is removed again)."""
    return script_argv(NAME, _SCRIPT)


def judge(reading: Reading) -> tuple[Finding, ...]:
    """FAIL when nothing can be written: no tombstone, no kill.sh, arming refuses."""
    facts, host = reading.facts, reading.host
    write = facts.one("write")
    if write is None:
        return (unknown(NAME, host, Level.FAIL, "writing to /run", "touch /run/x as root"),)
    if write != "ok":
        text = f"cannot write to /run: {write.rpartition(': ')[2][:32]}"
        return (Finding(NAME, host, Level.FAIL, text, "mount -o remount,rw /run"),)
    mount = facts.one("/run") or facts.one("/")
    if mount is None:
        why = "what /run is mounted from"
        return (unknown(NAME, host, Level.WARN, why, "findmnt -T /run"),)
    kind = mount.split()[0]
    if kind not in _MEMORY:
        text = f"/run is on {kind[:16]}: a stuck disk delays the kill"
        return (Finding(NAME, host, Level.WARN, text, "mount a tmpfs on /run"),)
    return (Finding(NAME, host, Level.PASS, f"/run is a writable {kind}"),)
