# SPDX-License-Identifier: Apache-2.0

"""Make staging directories, in which files are completed before they are moved to their places.

A process locks the name of its staging directory. A directory without such a lock was left by a
killed process, and ``sweep`` removes it.
"""

import contextlib
import pathlib
import shutil
import uuid
from collections.abc import Iterator

from loader.cache.locks import LockFile


def lock_name(name: str) -> str:
    """Return the name of the lock for a staging directory."""
    return f"staging {name}"


class StagingDirectories:
    """The staging directories below a root.

    Files in a staging directory are not complete yet; they are moved to their places later. Methods
    raise ``OSError`` if the disk fails.
    """

    def __init__(self, root: pathlib.Path, locks: LockFile) -> None:
        """Use an existing directory.

        :param root: the directory in which staging directories are made.
        """
        self._root = root
        self._locks = locks

    @contextlib.contextmanager
    def directory(self, name: str) -> Iterator[pathlib.Path]:
        """Make an empty staging directory, and remove it after the ``with`` block.

        The caller must have locked the name, and may move the directory to another place.
        """
        path = self._root / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(0o700)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    @contextlib.contextmanager
    def new(self) -> Iterator[pathlib.Path]:
        """Make a staging directory with a new name, and remove it after the ``with`` block."""
        name = uuid.uuid4().hex
        with self._locks.exclusive(lock_name(name), name), self.directory(name) as path:
            yield path

    def sweep(self) -> None:
        """Remove the staging directories that killed processes have left."""
        for path in self._root.iterdir():
            with self._locks.try_exclusive([lock_name(path.name)]) as locked:
                if locked:
                    shutil.rmtree(path, ignore_errors=True)
