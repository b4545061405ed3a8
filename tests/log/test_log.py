"""The log: key=value lines for screen and file, and nothing that it meets stops a run."""

import io
import os
import re
import select
import stat
import sys
from pathlib import Path

import pytest
import structlog

from stressor import log
from stressor.errors import ConfigError
from stressor.log import Level, Silent
from tests.cli.child import run

STAMP = re.compile(r"timestamp=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z ")


class GoneTerminal(io.StringIO):
    """A screen whose other end was closed."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def _lines(text: str) -> list[str]:
    """The lines without their time, each of which must begin with one."""
    lines = text.splitlines()
    assert all(STAMP.match(line) for line in lines), lines
    return [STAMP.sub("", line) for line in lines]


def test_a_line_begins_with_time_level_event_run_phase_and_node() -> None:
    screen = io.StringIO()
    with log.start(Level.INFO, stderr=screen) as base:
        base.bind(node="n1", run="r1").info("host tidied", took_s=1.23456789, phase="cpu", n=None)
        base.warning("100% full", names=("a", "b"), ok=True)
    assert _lines(screen.getvalue()) == [
        'level=info event="host tidied" run=r1 phase=cpu node=n1 took_s=1.23457 n=?',
        'level=warning event="100% full" names=a,b ok=true',
    ]


def test_what_a_host_says_stays_one_line_of_printable_ascii() -> None:
    screen = io.StringIO()
    with log.start(Level.INFO, stderr=screen) as base:
        base.info("x", detail='a "b"\nlevel=error\x1b[2J\u202e é')
    (line,) = _lines(screen.getvalue())
    assert line.isascii()
    assert line.isprintable()
    assert line.startswith('level=info event=x detail="a \\"b\\" level=error')


def test_the_screen_has_its_level_and_the_file_at_least_info(tmp_path: Path) -> None:
    file = tmp_path / "stressor.log"
    for level, on_screen, in_file in (
        (Level.ERROR, ["e"], ["i", "w", "e"]),
        (Level.INFO, ["i", "w", "e"], ["i", "w", "e"]),
        (Level.DEBUG, ["d", "i", "w", "e"], ["d", "i", "w", "e"]),
    ):
        screen = io.StringIO()
        with log.start(level, file, screen) as base:
            base.debug("d")
            base.info("i")
            base.warning("w")
            base.error("e")
        found = re.compile(r"event=(\w)")
        assert found.findall(screen.getvalue()) == on_screen
        assert found.findall(file.read_text()) == in_file
        file.unlink()


def test_the_file_is_private_and_appended_to(tmp_path: Path) -> None:
    file = tmp_path / "stressor.log"
    for word in ("first", "second"):
        with log.start(Level.WARNING, file) as base:
            base.info(word)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert _lines(file.read_text()) == ["level=info event=first", "level=info event=second"]


def test_a_full_disk_costs_lines_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with log.start(Level.WARNING, Path("/dev/full")) as base:
        base.error("one")
        base.error("two")
    assert capsys.readouterr().err == "stressor: /dev/full: 2 log lines were lost\n"


def test_a_reader_that_stands_still_holds_nobody_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with log.start(Level.WARNING, pipe) as base:
        for _ in range(200):
            base.info("x" * 1000)
    kept = os.read(reader, 1 << 20).count(b"event=")
    os.close(reader)
    assert f"{200 - kept} log lines were lost" in capsys.readouterr().err
    assert 0 < kept < 200


def test_a_line_cut_by_a_full_disk_is_ended_before_the_next(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with log.start(Level.WARNING, pipe) as base:
        base.info("x" * (1 << 17))
        got = b""
        for _ in range(40):
            got += _available(reader)
            if b"event=next" in got:
                break
            if got:
                base.info("next")
    os.close(reader)
    first, *rest = got.decode().splitlines()
    assert re.search("event=x+$", first), "cut, and ended"
    assert _lines(rest[0]) == ["level=info event=next"]


def _available(reader: int) -> bytes:
    """What comes within a second."""
    ready, _, _ = select.select([reader], [], [], 1.0)
    return os.read(reader, 1 << 20) if ready else b""


def test_a_file_that_cannot_be_opened_is_said_before_anything_starts(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for file in (tmp_path / "none" / "x.log", tmp_path, pipe):
        with (
            pytest.raises(ConfigError, match=f"{file}: the log cannot be written: "),
            log.start(Level.INFO, file),
        ):
            pytest.fail("started")


def test_a_terminal_that_goes_away_stops_nothing(tmp_path: Path) -> None:
    file = tmp_path / "stressor.log"
    closed = io.StringIO()
    closed.close()
    for screen in (GoneTerminal(), closed):
        with log.start(Level.INFO, file, screen) as base:
            base.error("one")
            base.error("two")
    assert len(_lines(file.read_text())) == 4


def test_a_silent_log_takes_everything_and_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    base = Silent().bind(run="r1")
    for say in (base.debug, base.info, base.warning, base.error):
        say("x", node="n")
    with log.start(Level.DEBUG) as nobody:
        nobody.error("x")
    assert capfd.readouterr() == ("", "")


def test_a_log_leaves_the_librarys_own_settings_alone() -> None:
    with log.start(Level.DEBUG) as base:
        base.error("x")
    assert not structlog.is_configured()


HELP = """\
import json, sys
from stressor.main import main
try:
    main(["-v", "--log-file", "/nowhere/x.log", "abort", "--help"])
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)))
"""


def test_i6_an_emergency_verb_imports_no_log_and_no_settings(tmp_path: Path) -> None:
    done = run(sys.executable, "-c", HELP, state=tmp_path)
    assert done.returncode == 0, done.stderr
    loaded = set(re.findall(r'"([^"]+)"', done.stdout.splitlines()[-1]))
    assert "stressor.cli.abort" in loaded
    light = {"structlog", "yaml", "pydantic", "stressor.log", "stressor.config.settings"}
    assert loaded & light == set()


def test_structlog_comes_with_the_first_log_only(tmp_path: Path) -> None:
    """Settings know the levels: reading them must not cost its import."""
    code = "import sys, stressor.log; print('structlog' in sys.modules)"
    assert run(sys.executable, "-c", code, state=tmp_path).stdout == "False\n"
