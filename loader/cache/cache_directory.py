# SPDX-License-Identifier: Apache-2.0

"""Open the directory of a cache, check its owner, and report the errors of its disk.

The document "The package cache" describes the layout.
"""

import contextlib
import errno
import os
import pathlib
import stat
from collections.abc import Iterator
from typing import TypeVar

import platformdirs

from loader import errors

_ARCHIVES, _RECORDS, _PACKAGES, _STAGING = "archives", "records", "packages", "staging"
# Modules outside of ``loader.cache`` write into these directories.
RESOLVED, _CATALOGS = "resolved", "catalogs"

_T = TypeVar("_T")


class CacheDirectory:
    """A directory that is used as a cache, until it is closed.

    :ivar path: the absolute path of the directory.
    :ivar archives: the directory of the archives.
    :ivar records: the directory of the archives' records.
    :ivar packages: the directory of unpacked packages.
    :ivar staging: the directory of files that are not complete yet.
    :ivar resolved: the directory of the offline indexes.
    :ivar lock: the lock file.
    :ivar size: the file that contains the total size of all packages.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Use a directory as a cache, and make missing directories in it.

        :raises CacheError: if the directory cannot be used.
        """
        self.path = pathlib.Path(folder).absolute()
        self.archives = self.path / _ARCHIVES
        self.records = self.path / _RECORDS
        self.packages = self.path / _PACKAGES
        self.staging = self.path / _STAGING
        self.resolved = self.path / RESOLVED
        self.lock = self.path / "lock"
        self.size = self.path / "size"
        self._is_closed = False
        with self.errors("make directories"):
            for name in ("", _ARCHIVES, _RECORDS, _PACKAGES, _STAGING, RESOLVED, _CATALOGS):
                path = self.path / name
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
                _check_owner(path)

    def close(self) -> None:
        """Close the cache: from now on, ``errors`` raises CacheError for every use of it."""
        self._is_closed = True

    def refresh(self) -> None:
        """Make an NFS client fetch changes from its server, by opening the directories."""
        for directory in (self.archives, self.packages):
            os.close(os.open(directory, os.O_RDONLY))

    @contextlib.contextmanager
    def errors(self, action: str) -> Iterator[None]:
        """Raise CacheError instead of an OSError that the ``with`` block raises.

        If the cache is closed, CacheError is raised before the block begins.

        :param action: what the block does, for the message.
        :raises CacheError: if the cache is closed, or its disk fails.
        """
        if self._is_closed:
            raise errors.CacheError(f"cannot {action}: the cache {self.path} is closed")
        try:
            yield
        except OSError as error:
            space = _free_space(self.path) if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
            raise errors.CacheError(
                f"cannot {action} in the cache {self.path}: {error}{space}"
            ) from error

    @contextlib.contextmanager
    def entered(self, action: str, context: contextlib.AbstractContextManager[_T]) -> Iterator[_T]:
        """Enter a context manager; if it cannot be entered, raise CacheError instead of OSError.

        An OSError of the ``with`` block itself is raised unchanged.

        :param action: what the context manager does, for the message.
        :raises CacheError: if the cache is closed, or its disk fails.
        """
        with contextlib.ExitStack() as stack:
            with self.errors(action):
                entered = stack.enter_context(context)
            yield entered


def is_cache(folder: str | os.PathLike[str]) -> bool:
    """Return whether a directory has the layout of a cache."""
    return (pathlib.Path(folder) / _ARCHIVES).is_dir()


def of_user() -> pathlib.Path:
    """Return the directory of the user's own cache, which a loader uses by default."""
    return platformdirs.user_cache_path("glare-murano")


def _free_space(folder: pathlib.Path) -> str:
    """Return a part of a message that says how much space is free on a directory's file system."""
    space = os.statvfs(folder)
    mount = next(path for path in (folder, *folder.parents) if path.is_mount())
    return (
        f"; on {mount}, {space.f_bavail * space.f_frsize} bytes and {space.f_favail} files are free"
    )


def _check_owner(path: pathlib.Path) -> None:
    found = path.stat()
    if found.st_uid not in (os.geteuid(), 0):
        problem = f"it belongs to the user id {found.st_uid}, not {os.geteuid()}; run as its user"
    elif found.st_mode & stat.S_IWOTH:
        problem = "other users can write to it; remove their permissions"
    else:
        return
    raise errors.CacheError(
        f"cannot use {path} as a cache directory: {problem}, or use another directory"
    )
