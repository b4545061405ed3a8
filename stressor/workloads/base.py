"""What every workload module offers: the words that the run side uses for a kind of load."""

from collections.abc import Mapping
from typing import Protocol

from stressor.model import Gate, LoadResult, ParamValue
from stressor.workloads.needs import Needs


class Workload(Protocol):
    """A kind of load. Modules implement it: `cpu`, `disk`.

    All but `mistakes` expect parameters in which `mistakes` found none; they raise ValueError
    otherwise.
    """

    @property
    def KIND(self) -> str:  # noqa: N802 - a module's constant
        """The word that a phase's `kind` uses."""
        ...

    @property
    def DEFAULTS(self) -> Mapping[str, ParamValue]:  # noqa: N802 - a module's constant
        """The parameters that a phase need not name."""
        ...

    @property
    def touches_storage(self) -> bool:
        """Whether it writes to storage on purpose, so that storage isolation must be proven."""
        ...

    def mistakes(self, params: Mapping[str, ParamValue]) -> tuple[str, ...]:
        """What is wrong with a step's merged parameters; each names its parameter in backticks."""
        ...

    def default_gates(self) -> tuple[Gate, ...]:
        """Gates beside the safety gates that suit this load."""
        ...

    def needs(self, params: Mapping[str, ParamValue]) -> Needs:
        """What its pod may use."""
        ...

    def argv(self, params: Mapping[str, ParamValue], hold_s: float) -> tuple[str, ...]:
        """The tool's command line for `hold_s` seconds of load."""
        ...

    def parse(
        self, stdout: str, exit_code: int | None, requested_s: float, node: str
    ) -> LoadResult:
        """What the tool's output and exit code prove about the load on `node`."""
        ...
