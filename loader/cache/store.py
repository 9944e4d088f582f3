# SPDX-License-Identifier: Apache-2.0

"""Keep archives in a cache on disk, and unpack each of them once when its files are needed.

The document "The package cache" describes the layout of a cache directory, and what a cache
guarantees. Unpacked files are used only as long as their archive exists.

Two locks for each digest separate processes that use a package from processes that change it. All
processes take the locks in this order, so deadlocks are impossible:

1. ``use DIGEST``, shared: a process takes it before it looks for the archive, and keeps it until
the cache is closed or the process ends.
2. ``staging DIGEST``, exclusive: a process takes it to fetch or unpack a missing package. Other
processes wait for this lock until the package exists. For several packages, ``store`` takes the
locks that are free, and releases them before it waits for others.

To remove a package, ``prune`` takes ``use DIGEST`` exclusively, without a wait, so packages in use
are not removed. Because of the lock ``prune``, only one process prunes at a time. ``verify`` takes
``staging DIGEST``, so no process replaces the package meanwhile.
"""

import contextlib
import functools
import hashlib
import logging
import math
import os
import pathlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, Self

from glare_murano.package import InvalidPackage, Limits
from glare_murano.package.archive_rules import DEFAULT_LIMITS, limited
from loader import errors, fs, time_limits
from loader.archive_indexes import ArchiveIndex, Identity
from loader.cache import cache_directory, last_used
from loader.cache.archives import ArchiveFiles
from loader.cache.cache_directory import CacheDirectory
from loader.cache.locks import DEFAULT_TIMEOUT, LockFile
from loader.cache.pruning import DIGEST, KeptPackage, Pruner, use_lock
from loader.cache.space import UsedSpace
from loader.cache.staging import StagingDirectories, lock_name
from loader.cache.unpacked import UnpackedPackages
from loader.counters import Counters

LOG = logging.getLogger(__name__)

# If a cache exceeds its limit, packages are removed until an eighth of the limit is free. With less
# free space, the cache would have to be pruned more often, which takes long.
_SPARE = 8

_Kept = ArchiveFiles | UnpackedPackages


class StoredArchive(NamedTuple):
    """A package in a cache.

    :param digest: the SHA-256 digest of its archive.
    :param archive: the path of the archive, which another process may remove at any time.
    :param size: how many bytes the archive and the unpacked files occupy on the disk.
    :param used: when the package was last used, in nanoseconds since 1970; 0 if unknown.
    :param is_in_use: whether a process uses the package, so that it cannot be pruned.
    """

    digest: str
    archive: pathlib.Path
    size: int
    used: int
    is_in_use: bool


class Pruned(NamedTuple):
    """The result of ``Cache.prune``.

    :param removed: the digests of the removed packages, the least recently used first.
    :param freed: the size of the removed packages, in bytes.
    """

    removed: tuple[str, ...]
    freed: int


class Cache:
    """A cache of packages in a directory; a package that was used stays until the cache is closed.

    After ``close``, every method raises ``CacheError``.

    >>> with Cache("cache", max_size=2**30) as cache:
    ...     archive = cache.archive(release.digest, lambda: catalog.fetch(release))
    >>> cache.counters.downloads
    1

    :ivar folder: the absolute path of the directory.
    :ivar limits: the limits for an archive.
    :ivar counters: the numbers of downloads and hits.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        limits: Limits = DEFAULT_LIMITS,
        max_size: int | None = None,
        lock_timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        """Open a directory as a cache; a missing directory is created.

        :param limits: the limits for an archive.
        :param max_size: how many bytes all packages together may take. If they take more after a
            package was added, the least recently used packages are removed until an eighth of this
            limit is free. Packages in use are not removed.
        :param lock_timeout: the longest wait for another process, in seconds.
        :raises CacheError: if the directory cannot be used.
        :raises TypeError: if ``folder`` is not a path.
        :raises ValueError: if ``lock_timeout`` is not finite.
        """
        if not isinstance(folder, str | os.PathLike):
            raise TypeError(f"the directory of a cache must be a path, not {folder!r}")
        timeout = time_limits.check(lock_timeout, "lock_timeout")
        self._directory = CacheDirectory(folder)
        self.folder = self._directory.path
        self.counters = Counters()
        self.limits = limits
        self._max_size = max_size
        # The size beyond which packages are removed; negative until the cache was measured.
        self._due = -math.inf
        self._makes_room = True
        self._used: set[str] = set()
        self._titles: dict[str, str] = {}
        self._unpacked_before: set[str] = set()
        with self._directory.errors("make directories"):
            self._locks = LockFile(self._directory.lock, timeout)
        self._staging = StagingDirectories(self._directory.staging, self._locks)
        self._archives = ArchiveFiles(self._directory.archives, self._directory.records)
        self._unpacked = UnpackedPackages(self._directory.packages, self._staging)
        self._used_space = UsedSpace(self._directory.size, self._locks)
        self._pruner = Pruner(
            self._archives,
            self._unpacked,
            self._staging,
            self._locks,
            self._used_space,
            self._directory.resolved,
        )

    def __repr__(self) -> str:
        limit = f", max_size={self._max_size}" if self._max_size is not None else ""
        return f"{type(self).__name__}({str(self.folder)!r}{limit})"

    @classmethod
    def existing(cls, folder: str | os.PathLike[str]) -> Self:
        """Open an existing cache for maintenance; a missing cache is not created.

        :raises CacheError: if the directory is not a cache, or cannot be used.
        """
        if not cache_directory.is_cache(folder):
            raise errors.CacheError(
                f"{folder} is not a package cache; name the directory of one, such as "
                f"[engine] packages_cache of the engine"
            )
        return cls(folder)

    def close(self) -> None:
        """Release all packages, so that they can be pruned."""
        self._directory.close()
        self._locks.close()

    def __enter__(self) -> Self:
        with self._directory.errors("open packages"):
            return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def archive(
        self, digest: str, fetch: Callable[[], Iterable[bytes]], title: str = ""
    ) -> pathlib.Path:
        """Return the path of an archive; fetch the archive if it is missing or damaged.

        If many threads and processes need the archive at once, only one of them fetches it.

        :param digest: the SHA-256 digest of the archive, in lower-case hexadecimal.
        :param fetch: a function that returns the content of the archive, in pieces.
        :param title: the package's name in messages; by default, the digest.
        :raises DigestMismatch: if the fetched content has another digest.
        :raises InvalidArchive: if the archive breaks a rule for archives.
        :raises CacheBusy: if another process locks the archive for too long.
        :raises CacheError: if the archive cannot be stored.
        """
        _check_digest(digest)
        self._titles[digest] = title or digest
        path = self._archives.path(digest)
        with self._directory.errors(f"find package {digest}"):
            # ``verify`` removes a damaged archive, even if it is in use.
            is_kept = self._locks.is_shared(use_lock(digest))
            if is_kept and digest in self._used and self._archives.has(digest):
                return path
            self._locks.share(use_lock(digest), self._title(digest))
        is_new = self._fetch(digest, fetch)
        self._mark_used(digest)
        if is_new:
            self.counters.count(downloads=1)
            self._make_room(self._archives, [digest])
        else:
            self.counters.count(hits=1)
        return path

    def package(
        self, digest: str, fetch: Callable[[], Iterable[bytes]], title: str = ""
    ) -> pathlib.Path:
        """Return the directory of a package's unpacked files; unpack them if missing or damaged.

        If many threads and processes need the files at once, only one of them unpacks the archive.
        ``archive`` describes the parameters and the errors.
        """
        archive = self.archive(digest, fetch, title)
        if digest not in self._unpacked_before:
            with (
                self._directory.errors(f"unpack package {digest}"),
                self._lock_unless_intact(self._unpacked, digest) as is_new,
            ):
                if is_new:
                    self._unpacked.make(digest, archive, self.limits)
            self._unpacked_before.add(digest)
            if is_new:
                self._make_room(self._unpacked, [digest])
        return self._unpacked.files(digest)

    def store(
        self,
        packages: Mapping[str, object],
        fetch: Callable[[Collection[str]], Iterable[tuple[str, bytes]]],
    ) -> None:
        """Fetch missing archives together, and write them to the disk together.

        This is for small archives. If another process is fetching an archive, this process waits,
        and fetches the archive only if the other process fails. Archives that do not arrive, or are
        not valid, are skipped: ``archive`` fetches them later, and raises the error.

        :param packages: a mapping of the archives' SHA-256 digests to the packages' names in
            messages.
        :param fetch: a function that takes digests, and returns pairs of a digest and an archive.
        :raises CacheBusy: if another process locks an archive for too long.
        :raises CacheError: if archives cannot be stored.
        """
        self._titles |= {digest: str(package) for digest, package in packages.items()}
        with self._directory.errors("find packages"):
            missing = [digest for digest in packages if not self._share(digest)]
        while missing:
            with self._directory.entered("lock packages", self._lock_free(missing)) as free:
                wanted = [digest for digest in free if not self.has(digest)]
                stored = self._store(wanted, fetch(wanted)) if wanted else []
            if stored:
                self.counters.count(downloads=len(stored))
                self._make_room(self._archives, stored)
            missing = [digest for digest in missing if digest not in free and not self.has(digest)]
            if missing:
                is_stored = functools.partial(self.has, missing[0])
                lock = self._exclusive(missing[0], is_stored)
                with self._directory.errors("wait for other processes"), lock:
                    pass

    def has(self, digest: str) -> bool:
        """Return whether the cache has an archive, which may be damaged."""
        with self._directory.errors("find packages"):
            return bool(DIGEST.match(digest)) and self._archives.has(digest)

    def stored(self) -> list[StoredArchive]:
        """Return all packages that have an archive, in the order in which they would be pruned.

        This does not count as a use of the packages.

        :raises CacheError: if the cache cannot be read.
        """
        with self._directory.errors("list packages"):
            return [
                StoredArchive(
                    package.digest,
                    self._archives.path(package.digest),
                    package.size,
                    package.used,
                    self._locks.is_taken(use_lock(package.digest)),
                )
                for package in sorted(self._pruner.packages())
                if package.is_complete
            ]

    def verify(self, *digests: str) -> dict[str, list[str]]:
        """Read packages, and compare them with their digests and records.

        A damaged archive is removed, so that its next use fetches it again. If unpacked files are
        damaged, their record is removed, so that their next use unpacks them again. If a process
        uses the damaged files, they stay until they are unpacked again.

        :param digests: the packages; by default, all.
        :returns: a mapping of the digests of damaged packages to their problems.
        :raises CacheError: if the cache cannot be read, or a damaged package cannot be removed.
        """
        for digest in digests:
            _check_digest(digest)
        damaged = {}
        with self._directory.errors("verify packages"):
            for digest in digests or sorted(self._pruner.digests()):
                with self._exclusive(digest):
                    if problems := self._discard_damage(digest):
                        damaged[digest] = problems
        return damaged

    def prune(self, max_size: int) -> Pruned:
        """Remove the least recently used packages until the others fit into a size.

        Packages that a process uses are not removed, even if they do not fit.

        :param max_size: how many bytes all packages together may take.
        :raises CacheError: if the cache cannot be read or written.
        """
        removed, _ = self._prune(max_size, max_size)
        return Pruned(tuple(p.digest for p in removed), sum(p.size for p in removed))

    @property
    def size(self) -> int:
        """How many bytes all packages occupy on the disk.

        :raises CacheError: if the cache cannot be read.
        """
        with self._directory.errors("measure packages"):
            return sum(package.size for package in self._pruner.packages() if package.is_complete)

    @contextlib.contextmanager
    def staging_directory(self) -> Iterator[pathlib.Path]:
        """Make a private directory in the cache, and remove it after the ``with`` block.

        If the process is killed, the next user of the cache removes the directory.

        :raises CacheError: if the directory cannot be made.
        """
        with self._directory.errors("make a directory"):
            self._staging.sweep()
        with self._directory.entered("make a directory", self._staging.new()) as path:
            yield path

    def _fetch(self, digest: str, fetch: Callable[[], Iterable[bytes]]) -> bool:
        """Fetch an archive if it is missing or damaged, and return whether it was fetched."""
        lock = self._lock_unless_intact(self._archives, digest)
        with self._directory.entered(f"find package {digest}", lock) as is_needed:
            if is_needed:
                action = f"store package {digest}"
                with self._directory.entered(action, self._staging.directory(digest)) as staging:
                    index = self._write(digest, fetch(), staging / digest)
                    with self._directory.errors(action):
                        self._archives.place({digest: index})
        return is_needed

    def _title(self, digest: str) -> str:
        return f"package {self._titles.get(digest, digest)}"

    def _exclusive(
        self, digest: str, is_done: Callable[[], bool] = lambda: False
    ) -> contextlib.AbstractContextManager[bool]:
        """Return a context manager that locks a package, so that its block may change it.

        The parameters and the yielded value are those of ``LockFile.exclusive``.
        """
        return self._locks.exclusive(lock_name(digest), self._title(digest), is_done)

    @contextlib.contextmanager
    def _lock_unless_intact(self, kept: _Kept, digest: str) -> Iterator[bool]:
        """Lock a package if it is missing or damaged, and yield whether it has to be restored.

        An intact package is not locked, so that a cache on a read-only disk can be used. If another
        process restores the package during the wait for the lock, false is yielded.

        :param kept: the archives or the unpacked packages, in which the package is looked for.
        """
        if kept.is_untouched(digest) or kept.damage(digest) == []:
            yield False
            return
        is_restored = functools.partial(kept.is_untouched, digest)
        with self._exclusive(digest, is_restored) as locked:
            self._directory.refresh()
            problems = kept.damage(digest) if locked else []
            self._log_damage(digest, problems)
            yield problems != []

    def _write(self, digest: str, chunks: Iterable[bytes], path: pathlib.Path) -> ArchiveIndex:
        """Write an archive to a file, and check its digest and its files.

        An error that occurs while the chunks arrive is raised unchanged.

        :param chunks: the content of the archive.
        :param path: the path of the new file.
        """
        action = f"store package {digest}"
        found = hashlib.sha256()
        with contextlib.ExitStack() as stack:
            with self._directory.errors(action):
                # The file is not buffered: to close a buffered file would repeat a failed write.
                stream = stack.enter_context(
                    open(path, "w+b", buffering=0, opener=fs.private_opener)
                )
            for chunk in limited(chunks, self.limits):
                found.update(chunk)
                rest = memoryview(chunk)
                with self._directory.errors(action):
                    while rest:
                        rest = rest[stream.write(rest) :]
            if found.hexdigest() != digest:
                raise errors.DigestMismatch(
                    f"an archive with SHA-256 {digest} was expected, but one with "
                    f"{found.hexdigest()} arrived; it was discarded"
                )
            with self._directory.errors(action):
                fs.start_writing(stream.fileno())
                index = ArchiveIndex(Identity.of(path, self.limits), stream)
                with index.kept_open(stream):
                    index.archive.verify()
        return index

    def _mark_used(self, digest: str) -> None:
        self._used.add(digest)
        # If the cache is not writable, nobody prunes it, so the time is not needed.
        with contextlib.suppress(OSError):
            last_used.mark_used(self._archives.record(digest), self._directory.lock)

    def _share(self, digest: str) -> bool:
        """Take the shared lock on a package, and return whether its archive exists."""
        _check_digest(digest)
        self._locks.share(use_lock(digest), self._title(digest))
        return self.has(digest)

    @contextlib.contextmanager
    def _lock_free(self, digests: Iterable[str]) -> Iterator[list[str]]:
        """Lock the packages that no other process locks, and yield their digests."""
        names = {lock_name(digest): digest for digest in digests}
        with self._locks.try_exclusive(names) as locked:
            self._directory.refresh()
            yield [digest for name, digest in names.items() if name in locked]

    def _store(self, wanted: Collection[str], arriving: Iterable[tuple[str, bytes]]) -> list[str]:
        """Store archives as they arrive; return the digests of those that are valid.

        :param wanted: the requested digests; other archives are skipped.
        :param arriving: pairs of a digest and an archive.
        """
        made: dict[str, ArchiveIndex] = {}
        with self._directory.entered("store packages", self._staging.new()) as staging:
            for digest, archive in arriving:
                if digest in wanted and digest not in made:
                    try:
                        made[digest] = self._write(digest, [archive], staging / digest)
                    except (errors.DigestMismatch, InvalidPackage) as error:
                        LOG.info("Package %s was not stored: %s", digest, error)
                # A write to the disk blocks all green threads; here, the others can run.
                time.sleep(0)
            with self._directory.errors("store packages"):
                self._archives.place(made)
        for digest in made:
            self._mark_used(digest)
        return list(made)

    def _make_room(self, kept: _Kept, digests: Iterable[str]) -> None:
        """Add the sizes of new packages to the total size, and prune above the cache's limit.

        A failure is only logged, since the caller has the packages already.

        :param kept: the archives or the unpacked packages, to which the packages were added.
        """
        if not self._makes_room:
            return
        try:
            with self._directory.errors("count packages"):
                self._staging.sweep()
                size = self._used_space.add(sum(map(kept.size, digests)))
            if self._max_size is not None and size > self._due:
                _, left = self._prune(self._max_size, self._max_size - self._max_size // _SPARE)
                # Packages in use may exceed the limit. The next attempt is made when the cache
                # has grown by an eighth.
                self._due = max(self._max_size, left + left // _SPARE)
        except errors.CacheError as error:
            # The caller still gets the package. If this call has waited for a lock in vain, later
            # calls do not try again.
            LOG.warning("%s", error)
            self._makes_room = not isinstance(error, errors.CacheBusy)

    def _prune(self, limit: int, goal: int) -> tuple[list[KeptPackage], int]:
        """Prune the cache, and log how much was removed; see ``Pruner.prune``."""
        with self._directory.errors("remove packages"):
            removed, left = self._pruner.prune(limit, goal)
        if removed:
            freed = sum(package.size for package in removed)
            LOG.info("Removed %d packages, %d bytes, from %s", len(removed), freed, self.folder)
        return removed, left

    def _discard_damage(self, digest: str) -> list[str]:
        """Check a package, remove its archive or files if damaged, and return the problems."""
        of_archive = self._archives.damage(digest) or []
        of_files = self._unpacked.damage(digest) or []
        problems = [*of_archive, *of_files]
        self._log_damage(digest, problems)
        if of_archive:
            self._archives.discard(digest)
        if of_files:
            self._unpacked.forget(digest)
            self._unpacked_before.discard(digest)
            with self._locks.try_exclusive([use_lock(digest)]) as locked:
                if locked:
                    self._unpacked.remove(digest)
        return problems

    def _log_damage(self, digest: str, problems: list[str] | None) -> None:
        if problems:
            LOG.warning(
                "Package %s in the cache %s is damaged, and will be restored on its next use: %s",
                digest,
                self.folder,
                "; ".join(problems),
            )


class TemporaryCache(Cache):
    """A private cache inside another cache's directory; ``close`` removes it."""

    def __init__(self, folder: str | os.PathLike[str], limits: Limits = DEFAULT_LIMITS) -> None:
        """Make an empty cache inside the directory of another cache.

        :param folder: the directory of that other cache.
        :param limits: the limits for an archive.
        :raises CacheError: if the directory cannot be used.
        """
        with contextlib.ExitStack() as outer:
            shared = outer.enter_context(Cache(folder))
            super().__init__(outer.enter_context(shared.staging_directory()), limits)
            self._outer = outer.pop_all()

    def close(self) -> None:
        """Release all packages, and remove the cache."""
        super().close()
        self._outer.close()


def _check_digest(digest: str) -> None:
    if not DIGEST.match(digest):
        raise errors.DigestMismatch(f"{digest!r} is not a valid SHA-256 digest")
