"""Parameters of workloads: literals as phase files write them, and mistakes said in words.

Every mistake names its parameter in backticks, so that the phase file's reader can point at the
line. Values arrive as written (`40%`, `64MiB`): a workload alone knows what its words mean.
"""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping

from stressor.model import ParamValue
from stressor.workloads import literals

Check = Callable[[ParamValue], str | None]
"""What is wrong with a value, as the rest of a sentence that begins with its name; None: fine."""


def size_bytes(value: ParamValue) -> int:
    """Bytes of a literal like `64MiB`. Raises ValueError when it is none."""
    size = literals.size_bytes(value)
    if size is None:
        raise ValueError(f"is not a size: {value!r}; write it like 4KiB, 64MiB or 2GiB")
    return size


def ratio(value: ParamValue) -> float:
    """The part of one in a literal like `40%` (0.4). Raises ValueError when it is none."""
    share = literals.share(value)
    if share is None:
        raise ValueError(f"is not a share: {value!r}; write it like 40%")
    return share


def whole(value: ParamValue) -> int:
    """A whole number. Raises ValueError for anything else; true is no number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"is not a whole number: {value!r}")
    return value


def between(read: Callable[[ParamValue], float], low: str, high: str) -> Check:
    """A check that a value reads and lies in [low, high], which are literals themselves."""
    lowest, highest = read(_literal(low)), read(_literal(high))

    def check(value: ParamValue) -> str | None:
        try:
            number = read(value)
        except ValueError as error:
            return str(error)
        return None if lowest <= number <= highest else f"must be {low} to {high}: {value!r}"

    return check


def complaints(
    params: Mapping[str, ParamValue], checks: Mapping[str, Check]
) -> Iterator[tuple[str, str]]:
    """(name, sentence) for each unknown parameter and each value that its check refuses."""
    for name, value in params.items():
        check = checks.get(name)
        if check is None:
            yield name, f"unknown parameter `{name}`{_hint(name, checks)}"
        elif (problem := check(value)) is not None:
            yield name, f"`{name}` {problem}"


def _literal(text: str) -> ParamValue:
    return int(text) if text.isdecimal() else text


def _hint(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    if close:
        return f" (did you mean `{close[0]}`?)"
    return f" (known: {', '.join(f'`{one}`' for one in known)})"
