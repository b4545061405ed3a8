"""Whether there is a recent etcd snapshot to go back to, where a member's data is.

A snapshot is a file that somebody saved apart from the live data. etcd's own member/snap folder is
part of that data: it does not count.
"""

from stressor.checks.base import Finding, Level, Reading, script_argv, unknown
from stressor.model import Host, Role

NAME = "snapshot"
FRESH_S = 24 * 3600.0
"""RKE2 and k3s save one every 12 h by default; two missed ones are no accident."""
_FOLDERS = (
    "/var/lib/rancher/rke2/server/db/snapshots",
    "/var/lib/rancher/k3s/server/db/snapshots",
    "/opt/rke/etcd-snapshots",
    "/var/backups/etcd",
    "/var/lib/etcd-snapshots",
    "/var/lib/etcd-backup",
    "/backup/etcd",
)
"""RKE2's and k3s' defaults, RKE's, and where how-tos put `etcdctl snapshot save`. kubeadm makes
none by itself."""
_SCRIPT = """\
[ "$#" -eq 0 ] && echo skip=yes
[ "$#" -gt 0 ] && for file in /etc/rancher/rke2/config.yaml /etc/rancher/k3s/config.yaml; do
    [ -r "$file" ] && while read -r key value; do
        value=${value#[\\"\\']}
        [ "$key" = etcd-snapshot-dir: ] && set -- "$@" "${value%[\\"\\']}"
    done <"$file"
done
echo "now=$(date +%s </dev/null)"
limit=''
command -v timeout >/dev/null 2>&1 && limit='timeout -s KILL 5'
for folder; do
    [ -d "$folder" ] || continue
    $limit find "$folder" -maxdepth 2 -type f -size +19k 2>/dev/null </dev/null |
        while IFS= read -r file; do
            at=$(stat -c %Y -- "$file" 2>/dev/null </dev/null) && echo "at=$at"
        done
done
echo looked=yes
"""
_REMEDY = "etcdctl snapshot save /var/backups/etcd/now.db"


def argv(host: Host) -> tuple[str, ...]:
    """The times of all snapshots in the folders where they usually are, and where RKE2 or k3s are
    told to put them. An empty database makes one of 20 KiB: smaller files are something else."""
    named = host.etcd_data_dir is not None or host.etcd_metrics_url is not None
    has_etcd = named and Role.CONTROL_PLANE in host.roles
    return script_argv(NAME, _SCRIPT, *(_FOLDERS if has_etcd else ()))


def judge(reading: Reading) -> tuple[Finding, ...]:
    """WARN at worst: no snapshot makes nothing less safe, but a recovery harder."""
    host, facts = reading.host, reading.facts
    if facts.one("skip") is not None:
        return (Finding(NAME, host, Level.SKIP, "no etcd of the control plane here"),)
    now = facts.one("now")
    if facts.one("looked") is None or now is None or not now.isdigit():
        return (unknown(NAME, host, Level.WARN, "whether there is a snapshot", _REMEDY),)
    times = [int(at) for at in facts.all("at") if at.isdigit()]
    if not times:
        text = "no etcd snapshot in the usual folders"
        return (Finding(NAME, host, Level.WARN, text, _REMEDY),)
    age_s = int(now) - max(times)
    if age_s < 0:
        why = "the newest snapshot lies in the future"
        return (unknown(NAME, host, Level.WARN, why, "date; ls -l"),)
    text = f"the newest of {len(times)} snapshots is {age_s / 3600:.1f} h old"
    if age_s > FRESH_S:
        return (Finding(NAME, host, Level.WARN, text, _REMEDY),)
    return (Finding(NAME, host, Level.PASS, text),)
