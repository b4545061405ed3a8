"""Whether an API server says that it is ready, from one GET of /readyz.

No answer at all is unknown (`unanswered`), not "unready": the path to the server may be what is
broken. Staleness fires like a breach, so nothing is lost by saying what is known.
"""

from stressor.model import Sample, SignalSpec, Subject

PERIOD_S = 2.0
"""A good answer is promised every two seconds, though it is asked for every second: an answer may
take its whole deadline of 1 s, so that three of them say more about a busy machine than about the
server. Silence fires after 6 s; a server that answers "not ready" fires by its gate's own hold."""

SIGNALS = (
    SignalSpec(
        "apiserver_ready",
        Subject.APISERVER,
        PERIOD_S,
        "1 when /readyz answered 200, 0 when it answered otherwise",
    ),
    SignalSpec(
        "apiserver_readyz_s", Subject.APISERVER, PERIOD_S, "time that /readyz took to answer"
    ),
)

# The server refused the question, which says nothing about its health.
_NOT_ASKED = frozenset({401, 403, 404})


def parse(
    status: int, body: bytes | str, took_s: float, *, source: str, at_s: float
) -> tuple[Sample, ...]:
    """The two signals of an answered request: HTTP `status`, `body` and how long it took."""
    return (
        _ready(status, body, source, at_s),
        Sample(at_s, "apiserver_readyz_s", source, took_s, 1),
    )


def unanswered(source: str, at_s: float, detail: str) -> tuple[Sample, ...]:
    """Both signals as unknown: nothing came back within the deadline."""
    return tuple(Sample(at_s, spec.name, source, None, None, detail) for spec in SIGNALS)


def _ready(status: int, body: bytes | str, source: str, at_s: float) -> Sample:
    if status == 200:
        return Sample(at_s, "apiserver_ready", source, 1.0, 1)
    if status in _NOT_ASKED:
        detail = f"/readyz answered {status}: not allowed to ask"
        return Sample(at_s, "apiserver_ready", source, None, None, detail)
    return Sample(at_s, "apiserver_ready", source, 0.0, 1, _reason(status, body))


def _reason(status: int, body: bytes | str) -> str:
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    failed = [line[3:].strip() for line in text.splitlines() if line.startswith("[-]")]
    return f"/readyz answered {status}" + (": " + "; ".join(failed) if failed else "")
