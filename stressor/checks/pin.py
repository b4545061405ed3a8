"""Whether the API belongs to the cluster that the inventory means.

Contexts are renamed and addresses handed on; the UID of the namespace kube-system names a cluster
for its whole life. An inventory that pins it cannot put load on another cluster by a wrong context.
"""

from stressor.checks.base import Finding, Level, unknown

NAME = "pin"
_REMEDY = "check stressor_kubeconfig, stressor_context and the server"


def judge(asked: str | None, pinned: str | None, problem: str = "") -> tuple[Finding, ...]:
    """`asked`: the UID by the API's word, None when there was no answer and `problem` says why;
    `pinned`: the inventory's. Another cluster, or an unknown one: FAIL. Not pinned: WARN."""
    if not asked:
        why = problem or "the API gave no UID of kube-system"
        return (unknown(NAME, "", Level.FAIL, why, _REMEDY),)
    if pinned is None:
        remedy = f"stressor_cluster_uid: {asked}"
        return (Finding(NAME, "", Level.WARN, f"its UID {asked} is not pinned", remedy),)
    if asked != pinned:
        text = f"another cluster: its UID is {asked}, pinned is {pinned}"
        return (Finding(NAME, "", Level.FAIL, text, _REMEDY),)
    return (Finding(NAME, "", Level.PASS, f"its UID is the pinned one, {asked}"),)
