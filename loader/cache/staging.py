# SPDX-License-Identifier: Apache-2.0

"""Folders for work in progress, which outlive their makers for no longer than need be.

Each belongs to whoever has locked its name. What killed processes have left
has no owner, and is removed by the next one who sweeps. What is made in a
folder, and where it goes, is not known here.
"""

import contextlib
import pathlib
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager

from loader.cache.locks import LockFile


class Workspaces:
    """The folders below one folder."""

    def __init__(self, root: pathlib.Path, locks: LockFile) -> None:
        """Use a folder that is there.

        :param locks: where names are locked; others may lock other names there.
        """
        self._root = root
        self._locks = locks

    def lock(self, name: str) -> AbstractContextManager[None]:
        """Wait until nobody else has a name, and keep it."""
        return self._locks.exclusive(_lock(name))

    def lock_unless(self, name: str, is_done: Callable[[], bool]) -> AbstractContextManager[bool]:
        """Wait until nobody else has a name and keep it, or give false once something is done."""
        return self._locks.exclusive_unless(_lock(name), is_done)

    @contextlib.contextmanager
    def lock_those_free(self, names: Iterable[str]) -> Iterator[set[str]]:
        """Keep those of the names that nobody else has."""
        locks = {_lock(name): name for name in names}
        with self._locks.exclusive_those_free(locks) as free:
            yield {locks[lock] for lock in free}

    @contextlib.contextmanager
    def folder(self, name: str) -> Iterator[pathlib.Path]:
        """An empty folder for whoever has locked its name; it may be moved away.

        :raises OSError: if it cannot be made.
        """
        folder = self._root / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def new(self) -> Iterator[pathlib.Path]:
        """An empty folder with a name that nobody else has.

        :raises OSError: if it cannot be made.
        """
        name = uuid.uuid4().hex
        with self.lock(name), self.folder(name) as folder:
            yield folder

    def sweep(self) -> None:
        """Remove what killed processes have left.

        :raises OSError: if the folders cannot be listed, or names not be locked.
        """
        for path in self._root.iterdir():
            with self._locks.exclusive_if_free(_lock(path.name)) as free:
                if free:
                    shutil.rmtree(path, ignore_errors=True)


def _lock(name: str) -> str:
    return f"work {name}"
