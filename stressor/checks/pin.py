"""Whether the API leads to the cluster that the inventory means.

Names, contexts and addresses move; the UID of the kube-system namespace stays for a cluster's life.
"""

from stressor.checks.base import Finding, Level, unknown

NAME = "pin"
_REMEDY = "check stressor_kubeconfig, the context and the server"


def judge(pinned: str | None, uid: str | None, problem: str = "") -> tuple[Finding, ...]:
    """`pinned` is the inventory's `stressor_cluster_uid`, None where it says nothing; `uid` is the
    API's answer, None where there was none, and `problem` says why."""
    return (_judged(pinned, uid, problem),)


def _judged(pinned: str | None, uid: str | None, problem: str) -> Finding:
    if not uid:
        return unknown(NAME, "", Level.FAIL, f"the cluster's UID: {problem or 'none'}", _REMEDY)
    if pinned is None:
        remedy = f"stressor_cluster_uid: {uid}"
        return Finding(NAME, "", Level.WARN, "the inventory pins no cluster", remedy)
    if pinned != uid:
        text = f"another cluster: its UID is {uid}, pinned is {pinned}"
        return Finding(NAME, "", Level.FAIL, text, _REMEDY)
    return Finding(NAME, "", Level.PASS, f"its UID is the pinned one, {uid}")
