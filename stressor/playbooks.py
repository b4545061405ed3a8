"""Programs of ansible-core as children under a deadline: no shell, no prompt, no open end.

Nothing here knows what the programs answer; `config.ansible_inventory` does.
"""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

INVENTORY_PROGRAM = "ansible-inventory"
TEMPLATE_PROGRAM = "ansible"
_REAP_S = 2.0

SETTINGS: Mapping[str, str] = {
    # An inventory that cannot be parsed is otherwise a warning, and the answer has no hosts.
    "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "True",
    "ANSIBLE_INVENTORY_UNPARSED_FAILED": "True",
    # The shape of the answer must not hang on the operator's settings.
    "ANSIBLE_INVENTORY_EXPORT": "False",
    "ANSIBLE_LOAD_CALLBACK_PLUGINS": "False",
    "ANSIBLE_VERBOSITY": "0",
    "ANSIBLE_NOCOLOR": "True",
    "ANSIBLE_FORCE_COLOR": "False",
    "ANSIBLE_DEPRECATION_WARNINGS": "False",
    "ANSIBLE_SYSTEM_WARNINGS": "False",
    # Decrypted values are for this process only.
    "ANSIBLE_LOG_PATH": "/dev/null",
}
"""What overrides the operator's configuration (names: Ansible's documentation of its settings).
Everything else stays theirs, vault password files above all."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program left: `returncode` None means that it was killed at the deadline."""

    returncode: int | None
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True)
class Ansible:
    """An ansible-core that is installed in `folder`."""

    folder: Path

    def ask(self, program: str, arguments: tuple[str, ...], deadline_s: float) -> Answer:
        """The program's answer within `deadline_s` seconds. It runs in the current folder, where
        Ansible looks for its configuration, and in a session of its own with an empty stdin: it
        has no terminal to ask for a password on. Raises OSError when it cannot be started."""
        child = subprocess.Popen(
            (str(self.folder / program), *arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, **SETTINGS},
        )
        with child:
            try:
                stdout, stderr = child.communicate(timeout=deadline_s)
            except subprocess.TimeoutExpired:
                return Answer(None, b"", _ended(child))
            except BaseException:
                _ended(child)
                raise
        return Answer(child.returncode, stdout, stderr)


def find_ansible(interpreter: str, search_path: str | None) -> Ansible | None:
    """The ansible-core beside the Python `interpreter` (`sys.executable`), else the one in the
    folders of `search_path` ($PATH); None when no `ansible-inventory` is there."""
    for places in (str(Path(interpreter).parent), search_path):
        found = shutil.which(INVENTORY_PROGRAM, path=places) if places else None
        if found is not None:
            return Ansible(Path(found).absolute().parent)
    return None


def _ended(child: subprocess.Popen[bytes]) -> bytes:
    """Kills the child's process group; what it had written to stderr by then."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    try:
        return child.communicate(timeout=_REAP_S)[1]
    except subprocess.TimeoutExpired:
        return b""
