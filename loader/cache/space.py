# SPDX-License-Identifier: Apache-2.0

"""Keep the total size of all packages in a file that all users of a cache share.

If a process is killed after it has stored a package, but before it has added the package's size,
the total is too small. So each process measures the whole cache once before it relies on the total.
"""

import os
import pathlib

from loader.cache.locks import LockFile
from loader.fs import private_opener

# The length of the file, in characters; a shorter number is padded with spaces.
_LENGTH = 20


class UsedSpace:
    """The total size of all packages, kept in a file; a missing or invalid file counts as 0.

    Methods raise ``OSError`` if the disk fails, and ``CacheBusy`` if another process locks the file
    for too long.
    """

    def __init__(self, path: pathlib.Path, locks: LockFile) -> None:
        """Keep the total in a file, which is created when the total is first changed.

        :param locks: the lock file that protects the total.
        """
        self._path = path
        self._locks = locks

    def add(self, size: int) -> int:
        """Add a size to the total, and return the new total."""
        with self._locks.exclusive("size", "the size of the cache"):
            total = self._read() + size
            self._write(total)
        return total

    def correct(self, measured: int, before: int) -> None:
        """Set the total to a measured size, plus what was added during the measurement.

        :param measured: the measured size.
        :param before: the total before the measurement.
        """
        with self._locks.exclusive("size", "the size of the cache"):
            self._write(measured + self._read() - before)

    def _read(self) -> int:
        try:
            return int(self._path.read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def _write(self, total: int) -> None:
        # If a file was emptied, ext4 writes it to the disk at once, which takes as long as to
        # unpack a file. So the file is not emptied, and all totals have the same length.
        file = private_opener(str(self._path), os.O_WRONLY | os.O_CREAT)
        with open(file, "wb", buffering=0) as stream:
            stream.write(f"{total:<{_LENGTH}}".encode())
            stream.truncate()
