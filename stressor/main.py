"""The command: verbs are imported when they are called, so that each pays for itself alone."""

import contextlib
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TextIO

import click

from stressor import __version__
from stressor.errors import StressorError

VERBS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "abort": ("stressor.cli.abort:abort", "Stop all load now, over SSH, and prove it"),
        "cleanup": ("stressor.cli.cleanup:cleanup", "Remove what a run left behind"),
        "config": ("stressor.cli.config:config", "Which settings hold, and who set them"),
        "demo": ("stressor.lab.demo:demo", "The main job, shown on the lab"),
        "drill": ("stressor.cli.drill:drill", "Try every way of an abort before it is needed"),
        "init": ("stressor.cli.init:init", "Draft an inventory from what is there already"),
        "lab": ("stressor.lab.command:lab", "A real Kubernetes on this machine, with faults"),
        "plan": ("stressor.cli.plan:plan", "What a phase file would do, without touching anything"),
        "preflight": (
            "stressor.cli.preflight:preflight",
            "May load start, and could it be stopped?",
        ),
        "report": ("stressor.cli.report:report", "What a run did and found, from its journal"),
        "run": ("stressor.cli.run:run", "Run a phase file: watched, guarded, stopped at a limit"),
        "unlock": ("stressor.cli.unlock:unlock", "Give back the lock of a run that is over"),
        "status": ("stressor.cli.status:status", "Where a run stands, from its journal"),
    }
)


class Verbs(click.Group):
    """A group whose commands are named as text and imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module, _, name = VERBS[cmd_name][0].partition(":")
        found = getattr(importlib.import_module(module), name)
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, VERBS[name][1]) for name in sorted(VERBS)])


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
@click.option("-v", "--verbose", count=True, help="Log to stderr what is done; -vv: everything.")
@click.option("-q", "--quiet", is_flag=True, help="Log errors only.")
@click.option("--log-file", metavar="FILE", help="Append the log to FILE, too.")
@click.pass_context
def stressor(ctx: click.Context, verbose: int, quiet: bool, log_file: str | None) -> None:
    """Find out what a Kubernetes cluster can carry, without killing it.

    In an emergency: `stressor abort`, from any terminal. It needs no Kubernetes API.
    """
    ctx.obj = {"log_file": log_file, "log_level": _log_level(verbose, quiet)}


def _log_level(verbose: int, quiet: bool) -> str | None:
    """None: not given. The names are those of `log.Level`, which is not imported for a verb that
    logs nothing."""
    if verbose and quiet:
        raise click.UsageError("--verbose and --quiet contradict each other")
    if quiet:
        return "error"
    return (None, "info", "debug")[min(verbose, 2)]


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line; errors that stressor names end with their exit code, others with 1."""
    try:
        stressor.main(args=None if argv is None else list(argv), prog_name="stressor")
    except StressorError as error:
        print(f"stressor: {error}", file=sys.stderr)
        sys.exit(int(error.exit_code))
    finally:
        _let_go(sys.stdout)
        _let_go(sys.stderr)


def _let_go(stream: TextIO | None) -> None:
    """Leave nothing in a stream that takes nothing: Python would try once more at its end, and put
    120 in the place of the exit code (a full disk under a redirected abort, for one)."""
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
