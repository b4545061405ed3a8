"""docs/tutorial.md, typed by somebody who is not root, with a wheel outside of the checkout."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from stressor.lab.places import places
from tests.lab.bed import Bed
from tests.lab.tutorial import Exchange, Operator, difference, exchanges

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
NOBODY = 65534


def test_a_page_is_read_as_commands_and_their_output() -> None:
    page = "text\n```console\n$ a <<E\n> b\n> E\nout 1\nout 2\n$ c\n```\n```\n$ no\n```\n"
    assert list(exchanges(page)) == [
        Exchange("a <<E\nb\nE\n", "out 1\nout 2\n"),
        Exchange("c\n", ""),
    ]
    assert difference("one ... three\n", "one two three\n") is None
    assert difference("one two\n", "one three\n") is not None


@pytest.fixture
def operator(lab: Bed) -> Iterator[Operator]:
    """A folder of nobody's with the wheel installed, the lab's kubeconfig and key in it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="stressor-tutorial-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        _install(folder / "venv")
        home = folder / "home"
        home.mkdir()
        _hand_over(home)
        # What an installation wrote is on its way to the disk that the lab's etcds stand on.
        os.sync()
        image = str(lab.inventory.load_image)
        env = {"PATH": f"{folder / 'venv' / 'bin'}:/usr/bin:/bin", "HOME": str(home), "USER": "me"}
        env |= {"LC_ALL": "C.UTF-8", "COLUMNS": "80", "LOAD_IMAGE": image}
        yield Operator(NOBODY, home, env)


def _install(venv: Path) -> None:
    """The wheel, and what it needs in the versions of requirements.lock."""
    wheels = venv.with_name("wheels")
    build = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation")
    subprocess.run((*build, "-w", wheels, ROOT), check=True, timeout=120)
    pins = venv.with_name("pins.txt")
    lock = (ROOT / "requirements.lock").read_text()
    pins.write_text("\n".join(re.findall(r"^\S+==[^\s;\\]+", lock, re.MULTILINE)) + "\n")
    # A Python that others may read: root's own may lie in its home.
    subprocess.run(("/usr/bin/python3", "-m", "venv", venv), check=True, timeout=120)
    (wheel,) = wheels.glob("stressor-*.whl")
    pip = (venv / "bin" / "pip", "install", "-q", "--disable-pip-version-check")
    # Whatever else this process would import from must not count as installed.
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run((*pip, "-c", pins, wheel), check=True, timeout=400, env=bare)


def _hand_over(home: Path) -> None:
    """What an administrator gives to somebody: kubeconfig, key, host keys, a phase file."""
    lab = places()
    shutil.copy(lab.kubeconfig, home / "kubeconfig")
    shutil.copy(lab.client_key, home / "id_ed25519")
    (home / ".ssh").mkdir(mode=0o700)
    shutil.copy(lab.known_hosts, home / ".ssh" / "known_hosts")
    for path in (home, *home.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    (home / "id_ed25519").chmod(0o600)


def test_the_tutorial_is_what_happens(operator: Operator) -> None:
    for exchange in exchanges(PAGE.read_text()):
        got = operator.type(exchange.command, timeout_s=300)
        found = difference(exchange.output, got)
        assert found is None, f"$ {exchange.command}\n{found}"
