"""The log of a verb: from the options before the verb, the environment and the config files."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager

import click

from stressor import log
from stressor.config.settings import Resolved, Settings, resolve
from stressor.errors import ConfigError
from stressor.log import Level, Log


def given() -> Mapping[str, object]:
    """The options before the verb, by key of the settings; none outside of a command."""
    context = click.get_current_context(silent=True)
    found = None if context is None else context.find_root().obj
    return found if isinstance(found, Mapping) else {}


def start(chosen: Settings | Resolved, *, narrated: bool = False) -> AbstractContextManager[Log]:
    """The log that the settings ask for. `narrated`: the verb tells people on stderr itself, so
    that the log comes beside it only when more was asked for. Raises ConfigError as `log.start`."""
    more = chosen.log_level in (Level.DEBUG, Level.INFO)
    return log.start(
        chosen.log_level, chosen.log_file, sys.stderr if more or not narrated else None
    )


@contextmanager
def start_anyway() -> Iterator[Log]:
    """The log of a verb that must do its work whatever config files say, and whether or not the
    log can be written: then it says so, and logs to stderr alone."""
    with ExitStack() as stack:
        try:
            kept = stack.enter_context(start(resolve(os.environ, flags=given())))
        except ConfigError as error:
            for mistake in error.mistakes:
                click.echo(f"WARNING  {mistake}", err=True)
            level = Level(str(given().get("log_level") or Level.WARNING))
            kept = stack.enter_context(log.start(level, None, sys.stderr))
        yield kept
