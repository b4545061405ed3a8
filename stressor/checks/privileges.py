"""What the guard may do for itself: be root, hide from the OOM killer, run before the load."""

from stressor.checks.base import Finding, Level, Reading, script_argv, unknown
from stressor.model import Host

NAME = "privileges"
# Each try is made by a process that ends with it: nothing of the host is changed.
_SCRIPT = """\
echo "uid=$(id -u 2>/dev/null </dev/null)"
sh -c 'echo -1000 >/proc/$$/oom_score_adj && read -r now </proc/$$/oom_score_adj &&
    echo "oom=$now"' 2>/dev/null </dev/null
for tool in chrt nice; do
    command -v "$tool" >/dev/null 2>&1 && echo "$tool=found" || echo "$tool=missing"
done
chrt -f 1 true >/dev/null 2>&1 </dev/null && echo fifo=granted
echo "niceness=$(nice -n -20 nice 2>/dev/null </dev/null)"
"""


def argv(host: Host) -> tuple[str, ...]:
    """The user, and whether the kernel grants each privilege to a short-lived process."""
    return script_argv(NAME, _SCRIPT)


def judge(reading: Reading) -> tuple[Finding, ...]:
    """The user, the OOM score and the priority, one finding each."""
    return (_user(reading), _oom(reading), _priority(reading))


def _user(reading: Reading) -> Finding:
    uid = reading.facts.one("uid")
    if uid is None:
        return unknown(NAME, reading.host, Level.FAIL, "id -u said nothing", "run id -u there")
    if uid != "0":
        remedy = "log in as root, or set become: true"
        return Finding(NAME, reading.host, Level.FAIL, f"uid {uid[:10]}, not root", remedy)
    return Finding(NAME, reading.host, Level.PASS, "root")


def _oom(reading: Reading) -> Finding:
    if reading.facts.one("oom") == "-1000":
        return Finding(NAME, reading.host, Level.PASS, "the guard is spared by the OOM killer")
    text = "oom_score_adj -1000 refused: OOM may take the guard"
    return Finding(NAME, reading.host, Level.WARN, text, "CAP_SYS_RESOURCE is missing")


def _priority(reading: Reading) -> Finding:
    """Real time is best effort: with CONFIG_RT_GROUP_SCHED a cgroup gets EPERM (systemd #329)."""
    facts = reading.facts
    if facts.one("fifo"):
        return Finding(NAME, reading.host, Level.PASS, "real-time priority is granted")
    why = "chrt is missing" if facts.one("chrt") == "missing" else "real time is refused"
    if facts.one("niceness") == "-20":
        return Finding(NAME, reading.host, Level.PASS, f"nice -20 is granted ({why})")
    text = f"no higher priority ({why}): a late kill"
    return Finding(NAME, reading.host, Level.WARN, text, "CAP_SYS_NICE; install util-linux")
