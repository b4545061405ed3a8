"""What OpenSSH's own log lines mean. It has no other words for why it gave up."""

import re

from stressor.remote.base import UnreachableReason as Reason
from stressor.remote.fault import Fault

_MEANINGS: tuple[tuple[re.Pattern[str], Reason], ...] = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r"HOST IDENTIFICATION HAS CHANGED|REVOKED HOST KEY|marked as revoked", Reason.KEY_CHANGED),
        (r"No \S+ host key is known for|Host key verification failed", Reason.KEY_UNKNOWN),
        (r"administratively prohibited|forwarding disabled", Reason.FORBIDDEN),
        (
            r"Permission denied|Too many authentication failures|no such identity|Load key",
            Reason.AUTH,
        ),
        (r"Connection refused", Reason.REFUSED),
        (r"No route to host|Network is unreachable|Host is down", Reason.NO_ROUTE),
        (r"timed out|Timeout, server", Reason.SILENT),
        (r"no matching|Bad configuration|unknown key type|Invalid|protocol", Reason.PROTOCOL),
        (
            r"[Cc]onnection (to \S+ )?(closed|reset)|Broken pipe|closed by|read from master failed"
            r"|send disconnect|kex_exchange_identification|Session open refused",
            Reason.LOST,
        ),
    )
)

_NARRATION = re.compile(
    r"debug\d:|OpenSSH_|Authenticated to|Transferred:|Bytes per second|@@@|Warning: Permanently"
)


def authenticated(log: str, address: str) -> bool:
    """Whether the log says that the login to this address succeeded."""
    return f"Authenticated to {address} " in log


def fault_in(log: str) -> Fault | None:
    """The first meaning in order of the table, with the line that says it; None without one."""
    lines = [line.strip() for line in log.splitlines() if not _NARRATION.match(line)]
    for pattern, reason in _MEANINGS:
        said = next((line for line in lines if pattern.search(line)), None)
        if said is not None:
            return Fault(reason, said)
    return None


def fault_or_protocol(log: str) -> Fault:
    """As `fault_in`, PROTOCOL with the last line for what nobody has seen before."""
    lines = [line.strip() for line in log.splitlines() if not _NARRATION.match(line)]
    said = next((line for line in reversed(lines) if line), "ssh ended and did not say why")
    return fault_in(log) or Fault(Reason.PROTOCOL, said)
