# SPDX-License-Identifier: Apache-2.0

"""List the packages in a cache by their last use, and remove the least recently used.

Each user of a package has the shared lock ``use_lock``, so packages in use are not removed. Only
one process prunes at a time.
"""

import contextlib
import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from loader import fs
from loader.cache import lru
from loader.cache.archives import ArchiveFiles
from loader.cache.locks import LockFile
from loader.cache.space import UsedSpace
from loader.cache.staging import StagingDirectories
from loader.cache.unpacked import UnpackedPackages

DIGEST = re.compile(r"[0-9a-f]{64}\Z")


class KeptPackage(NamedTuple):
    """A package, sorted for pruning: packages without an archive first, then by last use."""

    is_complete: bool
    used: int
    digest: str
    size: int


class Pruner:
    """Lists and prunes the packages in a cache.

    Methods raise ``OSError`` if the disk fails, and ``CacheBusy`` if another process locks
    the cache for too long.
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
        """Use the parts of a cache.

        :param resolved: the directory of the offline indexes.
        """
        self._archives = archives
        self._unpacked = unpacked
        self._staging = staging
        self._locks = locks
        self._used_space = used_space
        self._resolved = resolved

    def digests(self) -> set[str]:
        """Return the digests of all packages, also of incomplete ones."""
        names = {*self._archives.names(), *self._unpacked.names()}
        return set(filter(DIGEST.match, names))

    def packages(self) -> Iterator[KeptPackage]:
        """Yield all packages, also incomplete ones."""
        for digest in self.digests():
            yield KeptPackage(
                is_complete=self._archives.has(digest),
                used=lru.last_used(self._archives.record(digest)),
                digest=digest,
                size=self._archives.size(digest) + self._unpacked.size(digest),
            )

    def prune(self, limit: int, goal: int) -> tuple[list[KeptPackage], int]:
        """Remove packages until the size is at most a goal, if the size exceeds a limit.

        :returns: the removed packages, and the remaining size.
        """
        removed: list[KeptPackage] = []
        with self._locks.exclusive("prune", "pruning"):
            self._staging.sweep()
            before = self._used_space.add(0)
            packages = sorted(self.packages())
            if packages:
                lru.advance(self._locks.path, packages[-1].used)
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
        """Remove a package, unless it is in use; return whether it was removed completely."""
        digest = package.digest
        with self._locks.try_exclusive([use_lock(digest)]) as locked:
            if not locked or lru.last_used(self._archives.record(digest)) != package.used:
                return False
            # The archive is removed first: unpacked files without an archive are not used.
            self._archives.remove(digest)
            return self._unpacked.remove(digest)

    def _forget_resolved(self) -> None:
        """Remove the releases in offline indexes whose archives are missing."""
        for path in self._resolved.glob("*/*.json"):
            if not self._archives.has(path.stem):
                fs.remove(path)
        for project in self._resolved.iterdir():
            # ``rmdir`` fails for a directory that still has releases.
            with contextlib.suppress(OSError):
                project.rmdir()


def use_lock(digest: str) -> str:
    """Return the name of the lock that users of a package share."""
    return f"use {digest}"
