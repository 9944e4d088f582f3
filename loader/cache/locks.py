# SPDX-License-Identifier: Apache-2.0

"""Locks on names, which the kernel releases when their process ends, even by a kill.

All names share a lock file, in which each name has a byte. So no lock files
accumulate, and none is removed while another process is about to lock it.

A lock belongs to an open file (``F_OFD_SETLK``), not to a process or a thread.
Threads, green threads and processes exclude each other alike. So do hosts, where
the file system passes locks on to its server.
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
from collections.abc import Callable, Iterable, Iterator

from loader import errors

LOG = logging.getLogger(__name__)

# In seconds.
DEFAULT_TIMEOUT = 600.0
_LOG_AFTER = 5.0

_PROCESSES = pathlib.Path("/proc")
_MOUNTS = pathlib.Path("/proc/self/mountinfo")
# Mount options of NFS by which fcntl locks stay on the host.
_LOCAL_LOCKS = re.compile(r"\blocal_lock=(all|posix)\b")
_UNSUPPORTED = (errno.ENOLCK, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)

_CLOSED = -1
# In seconds; so short that a released lock is noticed soon.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.02
_PAUSE_GROWTH = 1.25


class LockFile:
    """A lock file. Each object opens the file itself, so two objects exclude each other."""

    def __init__(self, path: pathlib.Path, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Open the file, and create a missing file.

        :param timeout: the longest wait for a lock, in seconds.
        :raises CacheError: if its locks would not exclude other hosts.
        :raises OSError: if the file can neither be read nor created.
        """
        self.path = path
        self._timeout = timeout
        try:
            self._file = self._open()
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES):
                raise
            # Shared locks need no write access.
            self._file = os.open(path, os.O_RDONLY)
        file_system = _file_system(os.fstat(self._file).st_dev)
        if file_system.startswith("nfs") and _LOCAL_LOCKS.search(file_system):
            self.close()
            raise errors.CacheError(
                f"{path} is on an NFS mount whose locks do not reach other hosts ({file_system}): "
                f"mount it without nolock and local_lock"
            )

    def close(self) -> None:
        """Release all shared locks."""
        if self._file != _CLOSED:
            os.close(self._file)
            self._file = _CLOSED

    def share(self, name: str, subject: str) -> None:
        """Wait for a shared lock on a name; ``close`` releases the lock.

        :param subject: what is locked, in messages.
        :raises CacheBusy: if the lock stays taken for too long.
        :raises CacheError: if this object is closed.
        """
        if self._file == _CLOSED:
            raise errors.CacheError(f"the lock file {self.path} is closed")
        self._wait(self._file, fcntl.F_RDLCK, name, subject, lambda: False)

    @contextlib.contextmanager
    def exclusive(
        self, name: str, subject: str, is_done: Callable[[], bool] = lambda: False
    ) -> Iterator[bool]:
        """Wait for an exclusive lock on a name.

        :param subject: what is locked, in messages.
        :param is_done: stops the wait when true, because another process has
            done the work. Otherwise all waiting processes would lock the name in
            turn, for nothing.
        :return: false if the wait was stopped.
        :raises CacheBusy: if the lock stays taken for too long.
        """
        with self._opened() as file:
            yield self._wait(file, fcntl.F_WRLCK, name, subject, is_done)

    @contextlib.contextmanager
    def try_exclusive(self, names: Iterable[str]) -> Iterator[set[str]]:
        """Lock names without waiting, and yield the names that were free."""
        with self._opened() as file:
            yield {name for name in names if self._try(file, fcntl.F_WRLCK, name)}

    def is_taken(self, name: str) -> bool:
        """Return whether a name is locked, except by this object."""
        wanted = _lock_range(fcntl.F_WRLCK, _offset(name), 1)
        (kind,) = struct.unpack_from("h", fcntl.fcntl(self._file, fcntl.F_OFD_GETLK, wanted))
        return bool(kind != fcntl.F_UNLCK)

    def _open(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        # A new open file, which also excludes the shared locks of this object.
        file = self._open()
        try:
            yield file
        finally:
            # Unlock before closing: a child process that another thread has forked
            # meanwhile shares the open file, and would keep the locks.
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, _lock_range(fcntl.F_UNLCK, 0, 0))
            os.close(file)

    def _wait(
        self, file: int, kind: int, name: str, subject: str, is_done: Callable[[], bool]
    ) -> bool:
        # Polling, since a wait in the kernel would stop all green threads of
        # the process, perhaps the one that has the lock.
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
        """Describe the processes that have a lock, as far as this user can see them."""
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


def _offset(name: str) -> int:
    # Offsets of seven bytes stay below the limit of every file system.
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7])


def _process(pid: str) -> str:
    """Describe a process by its id, name and state, such as ``sleeping`` or ``stopped``."""
    try:
        status = (_PROCESSES / pid / "status").read_text()
    except OSError:
        return f"process {pid}"
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return f"process {pid} ({fields['Name']}, {fields['State'].partition(' ')[2].strip('()')})"


def _lock_range(kind: int, start: int, length: int) -> bytes:
    """Return a ``struct flock``; length 0 reaches to the end of the file."""
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0)


@functools.lru_cache
def _file_system(device: int) -> str:
    """Return the type, source and options of a mounted file system."""
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in _MOUNTS.read_text().splitlines():
        mount, _, file_system = line.partition(" - ")
        if mount.split()[2] == number:
            return file_system
    return ""
