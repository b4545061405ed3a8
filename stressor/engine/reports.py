"""What a guard says, as events: sequence numbers are matched, PSI totals differenced, survivors
gathered until their proof line. Pure but for what it remembers of one host."""

from dataclasses import dataclass, field
from typing import assert_never

from stressor.core import events as ev
from stressor.guard import protocol
from stressor.model import Survivor
from stressor.probes import psi

Asked = tuple[str, float] | None


@dataclass(slots=True)
class Reports:
    """The translator of one host's guard."""

    host: str
    _totals: psi.PsiTotals | None = field(default=None, init=False)
    _survivors: dict[int, list[Survivor]] = field(default_factory=dict, init=False)
