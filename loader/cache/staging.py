# SPDX-License-Identifier: Apache-2.0

"""Staging directories, in which files are completed before they are moved to their places.

A process locks the name of its staging directory. If a directory is not locked, its process
was killed; ``sweep`` removes such directories.
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
    """The staging directories below a root; methods raise ``OSError`` if the disk fails."""

    def __init__(self, root: pathlib.Path, locks: LockFile) -> None:
        """Use an existing directory."""
        self._root = root
        self._locks = locks

    @contextlib.contextmanager
    def directory(self, name: str) -> Iterator[pathlib.Path]:
        """Lock a name, make an empty directory with this name, and remove it at exit.

        The caller may move the directory away.
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
        """Make an empty directory with a new name, and remove it at exit."""
        name = uuid.uuid4().hex
        with self._locks.exclusive(lock_name(name), name), self.directory(name) as path:
            yield path

    def sweep(self) -> None:
        """Remove the directories of killed processes."""
        for path in self._root.iterdir():
            with self._locks.try_exclusive([lock_name(path.name)]) as locked:
                if locked:
                    shutil.rmtree(path, ignore_errors=True)
