# SPDX-License-Identifier: Apache-2.0

"""List the packages in a cache by their last use, and remove the least recently used ones.

Each process that uses a package has a shared lock on it, see ``use_lock``. So packages in use are
not removed. Only one process prunes at a time.
"""

import contextlib
import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from loader import fs
from loader.cache import last_used
from loader.cache.archives import ArchiveFiles
from loader.cache.locks import LockFile
from loader.cache.space import UsedSpace
from loader.cache.staging import StagingDirectories
from loader.cache.unpacked import UnpackedPackages

DIGEST = re.compile(r"[0-9a-f]{64}\Z")


class KeptPackage(NamedTuple):
    """A package in the cache; packages are sorted in the order in which they are removed.

    Packages without an archive come first, and then the least recently used packages.

    :param is_complete: whether the cache has the package's archive.
    :param used: the last-used time, in nanoseconds.
    :param digest: the SHA-256 digest of the archive.
    :param size: how many bytes the archive and the unpacked files occupy.
    """

    is_complete: bool
    used: int
    digest: str
    size: int


class Pruner:
    """Lists the packages in a cache, and removes packages from it.

    Methods raise ``OSError`` if the disk fails, and ``CacheBusy`` if another process locks the
    cache for too long.
    """

    def __init__(
        self,
        archives: ArchiveFiles,
        unpacked: UnpackedPackages,
        staging: StagingDirectories,
        locks: LockFile,
        used_space: UsedSpace,
        resolved: pathlib.Path,
    ) -> None:
        """Use the directories, the locks and the size of a cache.

        :param resolved: the directory of the offline indexes.
        """
        self._archives = archives
        self._unpacked = unpacked
        self._staging = staging
        self._locks = locks
        self._used_space = used_space
        self._resolved = resolved

    def digests(self) -> set[str]:
        """Return the digests of all packages, including those without an archive."""
        names = {*self._archives.names(), *self._unpacked.names()}
        return set(filter(DIGEST.match, names))

    def packages(self) -> Iterator[KeptPackage]:
        """Yield all packages, including those without an archive."""
        for digest in self.digests():
            yield KeptPackage(
                is_complete=self._archives.has(digest),
                used=last_used.time_of(self._archives.record(digest)),
                digest=digest,
                size=self._archives.size(digest) + self._unpacked.size(digest),
            )

    def prune(self, limit: int, goal: int) -> tuple[list[KeptPackage], int]:
        """Remove packages without an archive; above a limit, also remove the least recently used.

        Packages in use are not removed.

        :param limit: the largest allowed size of all packages, in bytes. If they are not larger,
            only packages without an archive are removed.
        :param goal: the size, in bytes, at which the removal stops.
        :returns: the removed packages that had an archive, and the total size of the remaining
            packages that have one, in bytes.
        """
        removed: list[KeptPackage] = []
        with self._locks.exclusive("prune", "pruning"):
            self._staging.sweep()
            before = self._used_space.add(0)
            packages = sorted(self.packages())
            if packages:
                last_used.advance(self._locks.path, packages[-1].used)
            size = sum(package.size for package in packages if package.is_complete)
            wanted = goal if size > limit else size
            for package in packages:
                if size <= wanted and package.is_complete:
                    break
                if self._remove(package) and package.is_complete:
                    removed.append(package)
                    size -= package.size
            self._used_space.correct(size, before)
            self._forget_resolved()
        return removed, size

    def _remove(self, package: KeptPackage) -> bool:
        """Remove a package, unless it is in use, or was used since it was listed.

        :returns: whether nothing of the package is left.
        """
        digest = package.digest
        with self._locks.try_exclusive([use_lock(digest)]) as locked:
            if not locked or last_used.time_of(self._archives.record(digest)) != package.used:
                return False
            # The archive is removed first: unpacked files without an archive are not used.
            self._archives.remove(digest)
            return self._unpacked.remove(digest)

    def _forget_resolved(self) -> None:
        """Remove releases from the offline indexes if their archives are missing."""
        for path in self._resolved.glob("*/*.json"):
            if not self._archives.has(path.stem):
                fs.remove(path)
        for project in self._resolved.iterdir():
            # ``rmdir`` fails for a directory that still has releases.
            with contextlib.suppress(OSError):
                project.rmdir()


def use_lock(digest: str) -> str:
    """Return the name of the lock that each process shares while it uses a package."""
    return f"use {digest}"
