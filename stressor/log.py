"""The log: narration for people and grep, key=value on stderr and in a file of its own.

The journal is the record; nothing is ever decided by a line here. structlog is imported by `start`,
because the verbs of an emergency log nothing and must start at once.
"""

from enum import StrEnum


class Level(StrEnum):
    """How much a line matters, least first."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
