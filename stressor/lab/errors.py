"""What can go wrong in the lab, with the exit code that each error ends the program with."""

from __future__ import annotations

from stressor.errors import ExitCode, Refused, StressorError


class LabError(StressorError):
    """A lab step failed; the message names the step, the command and what it said."""


class LabRefused(LabError, Refused):
    """The machine or its state does not allow the step; nothing was started."""

    exit_code = ExitCode.REFUSED


class LabSick(LabError):
    """The lab runs, but it is not healthy; the message names what is missing."""

    exit_code = ExitCode.FAILED
