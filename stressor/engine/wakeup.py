"""A descriptor that wakes a selecting thread (the self-pipe trick)."""

import contextlib
import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wakeup:
    """`reader` selects readable after `wake` until `drain`."""

    reader: int
    writer: int

    @classmethod
    def create(cls) -> "Wakeup":
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        return cls(reader, writer)

    def wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self.writer, b"\0")

    def drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self.reader, 4096)

    def close(self) -> None:
        os.close(self.reader)
        os.close(self.writer)
