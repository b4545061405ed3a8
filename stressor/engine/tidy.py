"""Removing what a run left on a host: units, its folder under /run, its scratch files.

Only names that carry the run's id are touched, and only after a proof that none of its processes
lives: the caller kills first and tidies hosts that were proven.
"""

from stressor.model import Host
from stressor.remote.base import Completed, Remote

TIDY_DEADLINE_S = 15.0

_SCRIPT = """\
run=$1 scratch=$2 left=0
for unit in "stressor-$run.timer" "stressor-$run.service" "stressor-late-$run.service"; do
    timeout 5 systemctl stop "$unit" >/dev/null 2>&1
done
if [ -r "/run/stressor/$run/late.pid" ]; then
    read -r pid start <"/run/stressor/$run/late.pid"
    now=$(cut -d' ' -f22 "/proc/$pid/stat" 2>/dev/null)
    [ -n "$now" ] && [ "$now" = "$start" ] && kill -9 "$pid"
fi
if [ -n "$scratch" ] && [ -d "$scratch" ]; then
    timeout 5 find "$scratch" -maxdepth 1 -type f -name "stressor-$run.*" -delete
fi
rm -rf -- "/run/stressor/$run"
[ -e "/run/stressor/$run" ] && left=1
exit "$left"
"""


def tidy(remote: Remote, host: Host, run: str) -> str | None:
    """Remove the run's leftovers on `host`; None, or why that is not certain."""
    argv = ("sh", "-c", _SCRIPT, "stressor-tidy", run, host.scratch_dir or "")
    outcome = remote.run(argv, deadline_s=TIDY_DEADLINE_S)
    if not isinstance(outcome, Completed):
        return f"{host.name}: not tidied ({type(outcome).__name__})"
    if outcome.returncode != 0:
        said = outcome.stderr.decode("utf-8", "replace").strip()
        return f"{host.name}: not tidied (exit {outcome.returncode}) {said}".rstrip()
    return None
