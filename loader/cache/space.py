# SPDX-License-Identifier: Apache-2.0

"""The total size of all packages, which all processes that use a cache share.

If a process is killed after it has stored a package, but before it has added the size, the total
is too small. Therefore each process measures the cache once before it relies on the total.
"""

import pathlib

from loader.cache.locks import LockFile
from loader.fs import private_opener


class UsedSpace:
    """A number of bytes in a file; a missing or invalid file counts as 0.

    Methods raise ``OSError`` if the disk fails, and ``CacheBusy`` if another process locks
    the file for too long.
    """

    def __init__(self, path: pathlib.Path, locks: LockFile) -> None:
        """Use a file; it may be missing."""
        self._path = path
        self._locks = locks

    def add(self, size: int) -> int:
        """Add a size to the total, and return the total."""
        with self._locks.exclusive("size", "the size of the cache"):
            total = self._read() + size
            self._write(total)
        return total

    def correct(self, measured: int, before: int) -> None:
        """Set the total to a measured size, plus the packages that were added meanwhile.

        :param before: the total at the start of the measurement.
        """
        with self._locks.exclusive("size", "the size of the cache"):
            self._write(measured + self._read() - before)

    def _read(self) -> int:
        try:
            return int(self._path.read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def _write(self, total: int) -> None:
        with open(self._path, "w", opener=private_opener) as stream:
            stream.write(str(total))
