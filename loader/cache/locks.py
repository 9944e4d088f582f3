# SPDX-License-Identifier: Apache-2.0

"""Locks on names, which the kernel drops when their holder ends, however it ends.

All names share one file: each is a byte of it, so that nothing is left behind
for a name that nobody uses any more, and no two holders ever lock two files of
one name. The module knows names; it does not know what they stand for.

The locks belong to the open file (``F_OFD_SETLK``): not to the process, which
would lose them as soon as any of its threads closed the file, nor to a thread.
So threads, green threads and processes keep each other out alike, and so do
hosts, where the file system passes the locks on.
"""

import contextlib
import errno
import fcntl
import functools
import hashlib
import os
import pathlib
import re
import struct
import time
from collections.abc import Callable, Iterable, Iterator

from loader import errors

_MOUNTS = pathlib.Path("/proc/self/mountinfo")
# Locks of NFS that never leave the host; those of flock(2) are none of ours.
_LOCAL_LOCKS = re.compile(r"\blocal_lock=(all|posix)\b")
_CANNOT_LOCK = (errno.ENOLCK, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)

_CLOSED = -1
_FIRST_PAUSE = 0.001
# Who has waited for a while sleeps for a fifth of that: no more comes on top.
_LONGER = 1.25
_LONGEST_PAUSE = 0.02


class LockFile:
    """One opening of a file of locks; others open it for themselves."""

    def __init__(self, path: pathlib.Path) -> None:
        """Open the file, and make it if it is missing.

        :raises CacheError: if its locks would not keep out other hosts.
        :raises OSError: if it can neither be read nor made.
        """
        self.path = path
        try:
            self._file = self._open()
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES):
                raise
            # It is enough for those who only share.
            self._file = os.open(path, os.O_RDONLY)
        try:
            _check_file_system(path, os.fstat(self._file).st_dev)
        except errors.CacheError:
            self.close()
            raise

    def close(self) -> None:
        """Give up all that is shared."""
        if self._file != _CLOSED:
            os.close(self._file)
            self._file = _CLOSED

    def share(self, name: str) -> None:
        """Lock a name with others who share it, until this is closed."""
        if self._file == _CLOSED:
            raise errors.CacheError(f"{self.path} is closed already")
        self._wait(self._file, fcntl.F_RDLCK, name)

    @contextlib.contextmanager
    def exclusive(self, name: str) -> Iterator[None]:
        """Wait until nobody has a name, and keep all others from it."""
        with self._opened() as file:
            self._wait(file, fcntl.F_WRLCK, name)
            yield

    @contextlib.contextmanager
    def exclusive_unless(self, name: str, is_done: Callable[[], bool]) -> Iterator[bool]:
        """Wait as for ``exclusive``, but give false as soon as others have done what it is for.

        Else all who have waited would lock it in turn, only to see that.
        """
        with self._opened() as file:
            yield self._wait(file, fcntl.F_WRLCK, name, is_done)

    @contextlib.contextmanager
    def exclusive_if_free(self, name: str) -> Iterator[bool]:
        """Keep all others from a name, or give false if somebody has it."""
        with self.exclusive_those_free([name]) as free:
            yield bool(free)

    @contextlib.contextmanager
    def exclusive_those_free(self, names: Iterable[str]) -> Iterator[set[str]]:
        """Keep all others from those of the names that nobody has, by one open file."""
        with self._opened() as file:
            yield {name for name in names if self._try(file, fcntl.F_WRLCK, name)}

    def _open(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        # Opened anew, so that it also keeps out who shares by this very object.
        file = self._open()
        try:
            yield file
        finally:
            # Closing is not enough where another thread has forked meanwhile:
            # the child has the open file, too.
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, _range(fcntl.F_UNLCK, 0, 0))
            os.close(file)

    def _wait(
        self, file: int, kind: int, name: str, is_done: Callable[[], bool] = lambda: False
    ) -> bool:
        # It asks again and again: to wait in the kernel would stop all green
        # threads of the process, and perhaps the one that has the lock.
        pause = _FIRST_PAUSE
        while not self._try(file, kind, name):
            if is_done():
                return False
            _sleep(pause)
            pause = min(pause * _LONGER, _LONGEST_PAUSE)
        return True

    def _try(self, file: int, kind: int, name: str) -> bool:
        try:
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, _range(kind, _place(name), 1))
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in _CANNOT_LOCK:
                raise
            raise errors.CacheError(f"the file system of {self.path} has no locks: {error}") from (
                error
            )
        return True


def _place(name: str) -> int:
    """The byte that stands for a name, far below what file systems take for an offset."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7])


def _range(kind: int, start: int, length: int) -> bytes:
    """A ``struct flock``; without a length, it reaches to the end of the file."""
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0)


def _check_file_system(path: pathlib.Path, device: int) -> None:
    found = _file_system(device)
    if found.startswith("nfs") and _LOCAL_LOCKS.search(found):
        raise errors.CacheError(
            f"{path} lies on NFS that is mounted so that locks do not reach other hosts ({found}): "
            f"mount it without nolock and local_lock"
        )


@functools.lru_cache
def _file_system(device: int) -> str:
    """The type and the options of a mounted file system."""
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in _MOUNTS.read_text().splitlines():
        mount, _, file_system = line.partition(" - ")
        if mount.split()[2] == number:
            return file_system
    return ""


def _sleep(seconds: float) -> None:
    # Looked up at each call: an engine makes time.sleep cooperative.
    time.sleep(seconds)
