# SPDX-License-Identifier: Apache-2.0

"""Lock names; the kernel releases a lock when its process ends, even if the process is killed.

All names share one lock file, in which each name locks one byte. So the number of lock files does
not grow, and no process removes a lock file that another process is about to lock.

A lock belongs to an open file (``F_OFD_SETLK``), not to a process or a thread. So threads, green
threads and processes all exclude each other. Hosts exclude each other as well, if the file system
passes locks on to its server.

A forked process closes the lock files that its parent has opened. Otherwise, it would keep the
parent's locks until it ends. It takes its own locks on the packages that it uses.
"""

import contextlib
import errno
import fcntl
import functools
import hashlib
import logging
import os
import pathlib
import re
import struct
import time
import weakref
from collections.abc import Callable, Iterable, Iterator

from loader import errors

LOG = logging.getLogger(__name__)

# How many seconds a process waits for a lock, and after how many seconds it logs the wait.
DEFAULT_TIMEOUT = 600.0
_LOG_AFTER = 5.0

_PROCESSES = pathlib.Path("/proc")
_MOUNTS = pathlib.Path("/proc/self/mountinfo")
# The mount options of NFS that keep fcntl locks on the host.
_LOCAL_LOCKS = re.compile(r"\blocal_lock=(all|posix)\b")
_UNSUPPORTED = (errno.ENOLCK, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)

# These values replace a descriptor: the file was closed, or the parent process had opened it.
_CLOSED, _INHERITED = -1, -2
# The pauses between two attempts, in seconds; they are short, to notice a released lock soon.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.02
_PAUSE_GROWTH = 1.25

# The lock files of this process. A forked process closes their descriptors.
_lock_files = weakref.WeakSet["LockFile"]()


class LockFile:
    """An open lock file, with the locks that were taken through this object.

    Each object of this class opens the file itself, so the locks of two objects exclude each other,
    even in one process. An object has shared locks until it is closed, and exclusive locks for the
    time of a block.
    """

    def __init__(self, path: pathlib.Path, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Open the lock file; create it if it is missing.

        :param timeout: the longest wait for a lock, in seconds.
        :raises CacheError: if locks on the file would not exclude other hosts.
        :raises OSError: if the file can neither be read nor created.
        """
        self.path = path
        self._timeout = timeout
        self._names: set[str] = set()
        # The descriptors of the exclusive locks' open files.
        self._exclusive: set[int] = set()
        self._file = self._open_shared()
        _lock_files.add(self)
        file_system = _file_system(os.fstat(self._file).st_dev)
        if file_system.startswith("nfs") and _LOCAL_LOCKS.search(file_system):
            self.close()
            raise errors.CacheError(
                f"{path} is on an NFS mount whose locks do not reach other hosts ({file_system}): "
                f"mount it without nolock and local_lock"
            )

    def close(self) -> None:
        """Release all shared locks, and close the file."""
        if self._file >= 0:
            os.close(self._file)
        self._file = _CLOSED
        self._names.clear()

    def share(self, name: str, subject: str) -> None:
        """Wait for a shared lock on a name, and keep the lock until ``close``.

        :param subject: what is locked, in messages.
        :raises CacheBusy: if another process has an exclusive lock for too long.
        :raises CacheError: if this object is closed.
        """
        if self._file == _CLOSED:
            raise errors.CacheError(f"the lock file {self.path} is closed")
        self._wait(self._shared(), fcntl.F_RDLCK, name, subject, lambda: False)
        self._names.add(name)

    def is_shared(self, name: str) -> bool:
        """Return whether this object has a shared lock on a name."""
        return name in self._names

    @contextlib.contextmanager
    def exclusive(
        self, name: str, subject: str, is_done: Callable[[], bool] = lambda: False
    ) -> Iterator[bool]:
        """Wait for an exclusive lock on a name, and keep it while the ``with`` block runs.

        :param subject: what is locked, in messages.
        :param is_done: a function that returns true if another process has done the work for which
            the lock is needed. Then the wait ends without a lock. Without this function, all
            waiting processes would lock the name in turn.
        :returns: true if the name is locked; false if ``is_done`` has ended the wait.
        :raises CacheBusy: if the lock stays taken for too long.
        """
        with self._opened() as file:
            yield self._wait(file, fcntl.F_WRLCK, name, subject, is_done)

    @contextlib.contextmanager
    def try_exclusive(self, names: Iterable[str]) -> Iterator[set[str]]:
        """Lock names without waiting, and yield those that could be locked.

        The locks are exclusive, and are released after the ``with`` block.
        """
        with self._opened() as file:
            yield {name for name in names if self._try(file, fcntl.F_WRLCK, name)}

    def is_taken(self, name: str) -> bool:
        """Return whether another process, or another ``LockFile`` here, has a lock on a name."""
        wanted = _lock_range(fcntl.F_WRLCK, _offset(name), 1)
        (kind,) = struct.unpack_from("h", fcntl.fcntl(self._shared(), fcntl.F_OFD_GETLK, wanted))
        return bool(kind != fcntl.F_UNLCK)

    def _open(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)

    def _open_shared(self) -> int:
        try:
            return self._open()
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES):
                raise
            # A shared lock does not need write access.
            return os.open(self.path, os.O_RDONLY)

    def _shared(self) -> int:
        """Return the descriptor of the file with the shared locks.

        In a forked process, the file is opened again.
        """
        if self._file == _INHERITED:
            self._file = self._open_shared()
        return self._file

    def _leave_to_parent(self) -> None:
        """Close, in a forked process, the descriptors of its parent, which keeps its locks."""
        for file in self._exclusive:
            os.close(file)
        self._exclusive.clear()
        if self._file >= 0:
            os.close(self._file)
            self._file = _INHERITED
        self._names.clear()

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        # Locks through one open file do not exclude each other, so the file is opened again. Then
        # the new lock and the shared locks of this object exclude each other as well.
        file, process = self._open(), os.getpid()
        self._exclusive.add(file)
        try:
            yield file
        finally:
            # In a process that was forked meanwhile, the descriptor is already closed.
            if os.getpid() == process:
                self._exclusive.remove(file)
                # A process that was forked just now may still have the file open. Then closing
                # the file here would not release the lock.
                fcntl.fcntl(file, fcntl.F_OFD_SETLK, _lock_range(fcntl.F_UNLCK, 0, 0))
                os.close(file)

    def _wait(
        self, file: int, kind: int, name: str, subject: str, is_done: Callable[[], bool]
    ) -> bool:
        # The lock is polled: a wait in the kernel would stop all green threads of the
        # process, perhaps the one that has the lock.
        pause = _FIRST_PAUSE
        start = time.monotonic()
        is_logged = False
        while not self._try(file, kind, name):
            if is_done():
                return False
            waited = time.monotonic() - start
            if waited >= self._timeout:
                raise errors.CacheBusy(
                    f"{subject} is locked in {self.path} by {self._holder(file, name)} for more "
                    f"than {self._timeout:g} seconds; continue or end that process, or wait longer "
                    f"([package_loader] lock_timeout)"
                )
            if waited >= _LOG_AFTER and not is_logged:
                is_logged = True
                LOG.warning(
                    "Waiting for %s, which is locked in %s by %s, for %g seconds so far; an error "
                    "after %g",
                    subject,
                    self.path,
                    self._holder(file, name),
                    _LOG_AFTER,
                    self._timeout,
                )
            time.sleep(pause)
            pause = min(pause * _PAUSE_GROWTH, _LONGEST_PAUSE)
        return True

    def _holder(self, file: int, name: str) -> str:
        """Return the processes that have a lock, as a string for messages.

        Processes that this user cannot see are left out.
        """
        place = f":{os.fstat(file).st_ino} {_offset(name)} {_offset(name)}\n"
        pids = set()
        for open_file in _PROCESSES.glob("[0-9]*/fdinfo/*"):
            # The process may have ended, or belong to another user.
            with contextlib.suppress(OSError):
                if place in open_file.read_text():
                    pids.add(open_file.parts[2])
        return " and ".join(map(_process, sorted(pids))) or "a process of another user or host"

    def _try(self, file: int, kind: int, name: str) -> bool:
        try:
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, _lock_range(kind, _offset(name), 1))
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            raise errors.CacheError(
                f"the file system of {self.path} does not support locks ({error}): "
                f"use a cache directory on another file system"
            ) from error
        return True


def _leave_to_parent() -> None:
    for lock_file in _lock_files:
        lock_file._leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parent)


def _offset(name: str) -> int:
    # Offsets of seven bytes stay below the limit of every file system.
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7])


def _process(pid: str) -> str:
    """Return a process's id, name and state (such as ``sleeping``), for messages."""
    try:
        status = (_PROCESSES / pid / "status").read_text()
    except OSError:
        return f"process {pid}"
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return f"process {pid} ({fields['Name']}, {fields['State'].partition(' ')[2].strip('()')})"


def _lock_range(kind: int, start: int, length: int) -> bytes:
    """Return a ``struct flock`` for a lock on a part of the file.

    :param length: the number of bytes; 0 means all bytes from ``start`` on.
    """
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0)


@functools.lru_cache
def _file_system(device: int) -> str:
    """Return the type, the source and the options of the file system on a device."""
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in _MOUNTS.read_text().splitlines():
        mount, _, file_system = line.partition(" - ")
        if mount.split()[2] == number:
            return file_system
    return ""
