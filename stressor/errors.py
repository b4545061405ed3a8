"""The error tree and the exit codes: the bottom of the house, imported by everything.

Third-party exceptions are mapped to these at the seam where they arise, with the cause chained, so
that nothing above an adapter has to know which library was in use.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a verb answers to its caller. One table for every verb (docs/exit-codes.md)."""

    PASS = 0
    INTERNAL = 1
    USAGE = 2
    REFUSED = 3
    UNVERIFIED_HOSTS = 4
    LOCK_HELD = 5
    INCONCLUSIVE = 6
    FAILED = 7
    REGRESSION = 8
    NOT_PROVEN_DEAD = 98
    BREACH = 99
    BUDGET = 124
    INTERRUPTED = 130
    TERMINATED = 143


class StressorError(Exception):
    """Any failure that stressor names itself; `exit_code` is what a verb ends with on it."""

    exit_code = ExitCode.INTERNAL


class ConfigError(StressorError):
    """One or more mistakes in files or options, each line as `file:line: what, and the remedy`."""

    exit_code = ExitCode.USAGE

    def __init__(self, mistakes: tuple[str, ...]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class Refused(StressorError):
    """A precondition of load is not met; nothing was started."""

    exit_code = ExitCode.REFUSED


class LockHeld(StressorError):
    """Another run holds the cluster or a host; the message names it and how to abort it."""

    exit_code = ExitCode.LOCK_HELD


class RemoteError(StressorError):
    """A channel or stream to a host broke; the message names host, operation and deadline."""


class ChannelClosed(RemoteError):
    """The peer closed a channel, or it was closed here: nothing more can be sent or received."""


class KubeError(StressorError):
    """The Kubernetes API refused or did not answer in time; names verb, object and deadline."""


class JournalError(StressorError):
    """The journal could not be written or read."""
