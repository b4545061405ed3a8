"""Events for paramiko's buffers, in place of the pipe behind its `Channel.fileno`.

That pipe is shared by a channel's two buffers without a lock (paramiko 5.1, pipe.py, OrPipe): by
the code, output on one while the other is being emptied can leave it unreadable with data waiting,
and a lost wake-up would be a lost acknowledgement. It also costs two descriptors a channel, and
closing it can race with a write to a number that somebody else has got by then.
"""

import threading


class News(threading.Event):
    """Set whenever a buffer gets something; only the reader takes it back, before it looks."""

    def clear(self) -> None:
        """Buffers call this when they are empty; it must not undo the other buffer's set."""

    def take(self) -> None:
        """Forget what was told so far."""
        super().clear()
