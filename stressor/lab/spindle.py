"""One slow disk under several hosts: a FUSE pass-through whose flushes take turns.

`python -m stressor.lab.spindle BACKING MOUNT DELAY_FILE` serves BACKING at MOUNT.  Every fsync
and fdatasync, from whatever host, waits for one lock and sleeps the milliseconds that
DELAY_FILE says at that moment: separate "pools", the same spindle, as in field report 003.
Reads and writes go straight through, each on a thread of its own.
"""

from __future__ import annotations

import contextlib
import ctypes.util
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DEFAULT_DELAY_MS = 1.0
"""Gives each etcd member WAL fsyncs of about 2–4 ms: an ordinary virtual machine's disk."""
MAX_DELAY_MS = 60_000.0
_THREADS = 256
"""libfuse 3 allows 10 threads by default; 64 sleeping flushes of one fio job would stop reads."""

_STAT_FIELDS = (
    "st_atime_ns st_ctime_ns st_mtime_ns st_gid st_mode st_nlink st_size st_uid st_ino "
    "st_blocks st_blksize st_rdev"
).split()
_STATVFS_FIELDS = (
    "f_bavail f_bfree f_blocks f_bsize f_favail f_ffree f_files f_flag f_frsize f_namemax"
).split()


def read_delay_ms(path: Path) -> float:
    """The set time; anything unreadable or out of range counts as the default."""
    try:
        value = float(path.read_text())
    except (OSError, ValueError):
        return DEFAULT_DELAY_MS
    return value if 0.0 <= value <= MAX_DELAY_MS else DEFAULT_DELAY_MS


class Spindle:
    """The operations that FUSE calls; paths are as seen from the mount point."""

    use_ns = True

    def __init__(
        self,
        backing: Path,
        delay_file: Path,
        caller: Callable[[], tuple[int, int, int]],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._backing = os.fspath(backing)
        self._delay_file = delay_file
        self._caller = caller
        self._sleep = sleep
        # Not `lock`: FUSE would take that name for its record-locking operation.
        self._turn = threading.Lock()

    def _real(self, path: str) -> str:
        return self._backing + path

    def _give(self, path: str) -> None:
        """A new file belongs to who made it, not to this process."""
        uid, gid, _ = self._caller()
        os.lchown(self._real(path), uid, gid)

    def _flush(self, sync: Callable[[int], None], handle: int) -> int:
        with self._turn:
            self._sleep(read_delay_ms(self._delay_file) / 1000.0)
            sync(handle)
        return 0

    def init(self, path: str) -> None:
        """Nothing to prepare; the backing folder exists."""

    def destroy(self, path: str) -> None:
        """Nothing to finish; every write went straight through."""

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        state = os.lstat(self._real(path)) if fh is None else os.fstat(fh)
        fields = {name: getattr(state, name) for name in _STAT_FIELDS}
        for name in ("st_atime", "st_ctime", "st_mtime"):
            fields[name] = fields.pop(f"{name}_ns")
        return fields

    def statfs(self, path: str) -> dict[str, int]:
        state = os.statvfs(self._real(path))
        return {name: getattr(state, name) for name in _STATVFS_FIELDS}

    def readdir(self, path: str, fh: int) -> Iterator[str]:
        yield from (".", "..")
        yield from os.listdir(self._real(path))

    def readlink(self, path: str) -> str:
        return os.readlink(self._real(path))

    def mkdir(self, path: str, mode: int) -> int:
        os.mkdir(self._real(path), mode)
        self._give(path)
        return 0

    def mknod(self, path: str, mode: int, dev: int) -> int:
        os.mknod(self._real(path), mode, dev)
        self._give(path)
        return 0

    def symlink(self, target: str, source: str) -> int:
        os.symlink(source, self._real(target))
        self._give(target)
        return 0

    def link(self, target: str, source: str) -> int:
        os.link(self._real(source), self._real(target))
        return 0

    def unlink(self, path: str) -> int:
        os.unlink(self._real(path))
        return 0

    def rmdir(self, path: str) -> int:
        os.rmdir(self._real(path))
        return 0

    def rename(self, old: str, new: str) -> int:
        os.rename(self._real(old), self._real(new))
        return 0

    def chmod(self, path: str, mode: int) -> int:
        os.chmod(self._real(path), mode)
        return 0

    def chown(self, path: str, uid: int, gid: int) -> int:
        keep = 0xFFFFFFFF
        owner = tuple(-1 if value in (keep, -1) else value for value in (uid, gid))
        os.lchown(self._real(path), *owner)
        return 0

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        if times is None:
            os.utime(self._real(path), follow_symlinks=False)
        else:
            os.utime(self._real(path), ns=times, follow_symlinks=False)
        return 0

    def create(self, path: str, mode: int, fi: int | None = None) -> int:
        handle = os.open(self._real(path), os.O_RDWR | os.O_CREAT, mode)
        self._give(path)
        return handle

    def open(self, path: str, flags: int) -> int:
        # O_APPEND would make pwrite ignore offsets; the kernel already computed them.
        return os.open(self._real(path), flags & ~os.O_APPEND)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return os.pread(fh, size, offset)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        return os.pwrite(fh, data, offset)

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        os.truncate(self._real(path) if fh is None else fh, length)
        return 0

    def fallocate(self, path: str, mode: int, offset: int, size: int, fh: int) -> int:
        if mode:
            import errno

            raise OSError(errno.EOPNOTSUPP, "only plain allocation")
        os.posix_fallocate(fh, offset, size)
        return 0

    def flush(self, path: str, fh: int) -> int:
        return 0

    def release(self, path: str, fh: int) -> int:
        os.close(fh)
        return 0

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        return self._flush(os.fdatasync if datasync else os.fsync, fh)

    def fsyncdir(self, path: str, datasync: int, fh: int) -> int:
        handle = os.open(self._real(path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            return self._flush(os.fsync, handle)
        finally:
            os.close(handle)


def library_present() -> bool:
    """True when a libfuse that mfusepy can drive is installed."""
    return bool(ctypes.util.find_library("fuse") or ctypes.util.find_library("fuse3"))


def serve(backing: Path, mount: Path, delay_file: Path) -> None:
    """Serve until unmounted or told to end; needs root."""
    import mfusepy

    os.umask(0)
    options: dict[str, Any] = {"default_permissions": True, "allow_other": True}
    if mfusepy.fuse_version_major >= 3:
        options["max_threads"] = _THREADS
    mfusepy.FUSE(
        Spindle(backing, delay_file, mfusepy.fuse_get_context),
        os.fspath(mount),
        foreground=True,
        fsname="stressor-spindle",
        **options,
    )


def set_delay_ms(path: Path, delay_ms: float) -> None:
    """Turn the knob while everything runs; raises ValueError outside 0…60 000 ms."""
    if not 0.0 <= delay_ms <= MAX_DELAY_MS:
        raise ValueError(f"a delay of {delay_ms:g} ms is not within 0…{MAX_DELAY_MS:g}")
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(f"{delay_ms:g}\n")
    draft.replace(path)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        serve(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
