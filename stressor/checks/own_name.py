"""Whether a host knows its own name without DNS: sudo asks for it and waits for dead resolvers."""

from stressor.checks.base import Finding, Level, Reading, script_argv, unknown
from stressor.model import Host

NAME = "own-name"
_SCRIPT = """\
name=$(hostname 2>/dev/null </dev/null) || name=$(cat /proc/sys/kernel/hostname)
echo "name=$name"
[ -r /etc/hosts ] && echo hosts=read && while read -r word rest; do
    case $word in '#'*) continue ;; esac
    for one in $rest; do [ "$one" = "$name" ] && echo "known=hosts"; done
done </etc/hosts
command -v timeout >/dev/null 2>&1 && {
    { timeout -s KILL 3 getent hosts "$name" >/dev/null </dev/null; } 2>/dev/null
    [ "$?" -eq 137 ] && echo lookup=slow
}
while read -r word rest; do
    [ "$word" = nameserver ] && echo "resolver=$rest"
    [ "$word" = hosts: ] && case " $rest " in *' myhostname '*) echo known=myhostname ;; esac
done <<END
$(cat /etc/resolv.conf /etc/nsswitch.conf 2>/dev/null)
END
"""


def argv(host: Host) -> tuple[str, ...]:
    """The host's name, whether /etc/hosts or nss-myhostname know it, its resolvers, and whether
    looking it up takes more than 3 s now."""
    return script_argv(NAME, _SCRIPT)


def judge(reading: Reading) -> tuple[Finding, ...]:
    """WARN where only a resolver could know the name (sudoers(5), `fqdn`; sudo looks it up for
    its log in any case): `sudo -n` then takes as long as that resolver needs to fail."""
    facts, host = reading.facts, reading.host
    name = facts.one("name")
    if name is None or facts.one("hosts") is None:
        why = "its own name, or /etc/hosts"
        return (unknown(NAME, host, Level.WARN, why, "hostname; cat /etc/hosts"),)
    remedy = f"echo '127.0.1.1 {name[:30]}' >>/etc/hosts"
    if facts.one("lookup") == "slow":
        # Whatever the files say: this is the look-up that sudo makes, by the host's own nsswitch.
        text = f"looking up {name[:20]} takes more than 3 s: sudo -n, too"
        return (Finding(NAME, host, Level.WARN, text, remedy),)
    if facts.one("known") is not None:
        return (Finding(NAME, host, Level.PASS, f"knows {name[:30]} without DNS"),)
    resolvers = facts.all("resolver")
    if not resolvers:
        text = f"{name[:30]} is not in /etc/hosts, and there is no resolver to wait for"
        return (Finding(NAME, host, Level.PASS, text),)
    text = f"{name[:30]} is not in /etc/hosts: sudo waits for {resolvers[0][:40]}"
    return (Finding(NAME, host, Level.WARN, text, remedy),)
