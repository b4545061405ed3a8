"""Programs of ansible-core run under a deadline, with nothing to prompt on, and end whole."""

import os
import time
from pathlib import Path

from stressor.playbooks import Ansible, Answer, find_ansible

SCRIPT = "#!/bin/sh\n"


def program(folder: Path, text: str, name: str = "ansible-inventory") -> Ansible:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(SCRIPT + text)
    path.chmod(0o755)
    return Ansible(folder)


def test_the_one_beside_the_interpreter_comes_before_the_search_path(tmp_path: Path) -> None:
    other = program(tmp_path / "other", "")
    venv = tmp_path / "venv"
    interpreter = str(venv / "python")
    assert find_ansible(interpreter, None) is None
    assert find_ansible(interpreter, str(venv)) is None
    assert find_ansible(interpreter, f"{venv}:{other.folder}") == other
    assert find_ansible(interpreter, str(other.folder)) == other
    own = program(venv, "")
    assert find_ansible(interpreter, str(other.folder)) == own


def test_arguments_arrive_as_they_are_and_settings_win_over_the_operators(tmp_path: Path) -> None:
    text = 'printf "%s|" "$@" "$ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED"; echo said >&2; exit 7'
    answer = program(tmp_path, text).ask("ansible-inventory", ("-i", "a b;$(id)"), 5.0)
    assert answer == Answer(7, b"-i|a b;$(id)|True|", b"said\n")


def test_a_prompt_meets_an_empty_stdin_and_no_terminal(tmp_path: Path) -> None:
    text = "read -r word; echo read $?; (: </dev/tty) 2>/dev/null; echo tty $?"
    answer = program(tmp_path, text).ask("ansible-inventory", (), 5.0)
    told = answer.stdout.split()
    assert told[:2] == [b"read", b"1"]
    assert told[3] != b"0"


def test_at_the_deadline_the_program_and_its_children_are_killed(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    text = f"echo early >&2; sleep 30 & echo $! >'{pid_file}'; wait"
    began = time.monotonic()
    answer = program(tmp_path, text).ask("ansible-inventory", (), 0.2)
    assert answer == Answer(None, b"", b"early\n")
    assert time.monotonic() - began < 2
    assert _is_gone(int(pid_file.read_text()))


def _is_gone(pid: int) -> bool:
    """Whether the process ended within a second; one that only waits to be reaped has ended."""
    until = time.monotonic() + 1
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False
