"""Bytes to lines and back, for resident channels."""

from stressor.errors import ChannelClosed

UNSENT_LIMIT_BYTES = 64 * 1024
"""What a channel holds for a peer that does not read, before it counts as gone."""

LINE_LIMIT_BYTES = 1024 * 1024
"""A line longer than this is no line of any protocol of ours."""


def encode_line(line: str) -> bytes:
    """The line with its end. Raises ValueError when it holds a line end already."""
    if "\n" in line or "\r" in line:
        raise ValueError("a line must not contain a line end")
    return line.encode() + b"\n"


def require_room(unsent: int, more: int) -> None:
    """Raise ChannelClosed when `more` bytes do not fit behind `unsent` ones."""
    if unsent + more > UNSENT_LIMIT_BYTES:
        raise ChannelClosed(f"the peer has not read {unsent} bytes; {more} more do not fit")


class LineBuffer:
    """Assembles complete lines from pieces. Text is UTF-8, with bad bytes replaced."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> tuple[str, ...]:
        """The lines that `data` completed. Raises ChannelClosed on an endless line."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_LIMIT_BYTES:
            raise ChannelClosed(f"a line above {LINE_LIMIT_BYTES} bytes without an end")
        return tuple(line.decode("utf-8", "replace").removesuffix("\r") for line in lines)
