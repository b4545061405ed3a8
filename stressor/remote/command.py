"""The one place where an argv becomes the command string that ssh needs, and how it is read back.

Every command is started by a constant script that prints BEGIN on both outputs and then becomes
the command. What came before BEGIN is noise of the login shell's start-up files or of sudo; what
comes after it is the command's own, byte for byte. No BEGIN means that the command never started,
in whatever language sudo said so.
"""

import shlex
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from stressor.model import Host
from stressor.remote.base import Completed, Outcome, UnreachableReason
from stressor.remote.fault import Fault

OUTPUT_LIMIT_BYTES = 8 * 1024 * 1024
"""What is kept of each output stream. The rest is read and dropped, so that the command ends."""

BEGIN = b"stressor-begin\n"
BEGIN_SCRIPT = "printf 'stressor-begin\\n'; printf 'stressor-begin\\n' >&2; exec \"$@\""
_NOISE_LIMIT_BYTES = 64 * 1024

_PUT_SCRIPT = """\
case "$1" in /*) ;; *) echo "not an absolute path: $1" >&2; exit 2 ;; esac
if [ -d "$1" ]; then echo "is a directory: $1" >&2; exit 2; fi
umask 077
temp="$1.stressor-$$"
trap 'rm -f -- "$temp"' EXIT
set -C
cat > "$temp" || exit 1
size=$(wc -c < "$temp") || exit 1
if [ "$size" -ne "$3" ]; then echo "got $size of $3 bytes" >&2; exit 1; fi
chmod -- "$2" "$temp" && mv -f -- "$temp" "$1"
"""


def put_argv(path: str, *, mode: int, size: int) -> tuple[str, ...]:
    """A command that writes its stdin to `path` with `mode`, by way of a new file beside it.

    It compares the size first: a connection that broke half-way ends stdin like a whole file does,
    and must not leave half a script in place of a whole one.
    """
    return ("sh", "-c", _PUT_SCRIPT, "sh", path, format(mode, "o"), str(size))


def get_argv(path: str) -> tuple[str, ...]:
    """A command that prints the file."""
    return ("cat", "--", path)


class FilesByRun(ABC):
    """`put` and `get` of a Remote, by way of its `run`."""

    @abstractmethod
    def run(self, argv: Sequence[str], *, deadline_s: float, stdin: bytes = b"") -> Outcome:
        """See Remote.run."""

    def put(self, data: bytes, path: str, *, mode: int, deadline_s: float) -> Outcome:
        """See Remote.put."""
        argv = put_argv(path, mode=mode, size=len(data))
        return self.run(argv, deadline_s=deadline_s, stdin=data)

    def get(self, path: str, *, deadline_s: float) -> Outcome:
        """See Remote.get."""
        return self.run(get_argv(path), deadline_s=deadline_s)


def elevated(host: Host, argv: Sequence[str]) -> tuple[str, ...]:
    """`argv`, under sudo without a prompt where the host asks for that."""
    if not argv:
        raise ValueError("an empty argv names no command")
    return ("sudo", "-n", "--", *argv) if host.become else tuple(argv)


def begun(host: Host, argv: Sequence[str]) -> tuple[str, ...]:
    """`argv` behind the script that marks where its own output begins."""
    if not argv:
        raise ValueError("an empty argv names no command")
    return elevated(host, ("sh", "-c", BEGIN_SCRIPT, "sh", *argv))


def command_line(host: Host, argv: Sequence[str]) -> str:
    """The string for the remote login shell: quoted here and nowhere else."""
    return shlex.join(begun(host, argv))


def own_output(raw: bytes) -> bytes | None:
    """What follows BEGIN, up to the limit, or None when the command never began."""
    _, mark, own = raw.partition(BEGIN)
    return own[:OUTPUT_LIMIT_BYTES] if mark else None


def completed(host: Host, returncode: int, out: bytes, err: bytes, took_s: float) -> Outcome:
    """The outcome of a session that ended by itself."""
    own = own_output(out)
    if own is None:
        return not_begun(host, returncode, err).at(host)
    own_err = own_output(err)
    kept = err[:OUTPUT_LIMIT_BYTES] if own_err is None else own_err
    return Completed(returncode, own, kept, took_s, noise_bytes=out.index(BEGIN))


def not_begun(host: Host, returncode: int, err: bytes) -> Fault:
    """Why a session ended before the command began: sudo, else the login shell."""
    said = last_line(err)
    if host.become:
        return Fault(UnreachableReason.SUDO, said or f"sudo -n ended with {returncode}")
    what = f"the login shell ended with {returncode} before the command began"
    return Fault(UnreachableReason.PROTOCOL, f"{what}: {said}" if said else what)


def last_line(text: bytes) -> str:
    """The last line that says something, for a message of one line."""
    lines = [line.strip() for line in text.decode("utf-8", "replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")


@dataclass(slots=True)
class Output:
    """One bounded output stream of a command, as it comes in."""

    kept: bytearray

    @classmethod
    def empty(cls) -> "Output":
        """A stream on which nothing has arrived."""
        return cls(bytearray())

    def add(self, data: bytes) -> None:
        """Keep what fits below the limit (the login shell's noise has its own allowance)."""
        room = OUTPUT_LIMIT_BYTES + _NOISE_LIMIT_BYTES - len(self.kept)
        self.kept += data[:room]

    def raw(self) -> bytes:
        """Everything kept."""
        return bytes(self.kept)
