# SPDX-License-Identifier: Apache-2.0

"""The shared package store on disk: archives, fetched once, and unpacked once if at all.

An archive is named by its SHA-256, so its content never changes and any number
of processes can use it. The store knows digests, not names or versions::

    lock                         where names are locked; its time is the clock of uses
    archives/DIGEST              an archive as it was downloaded
    notes/DIGEST                 how it looked when it was whole; its time is that of its last use
    packages/DIGEST/files/       the archive unpacked, for those who need files
    packages/DIGEST/record       these files and their sums; without it, there are none
    partial/NAME/                what is being made

An archive is read where it is. Only who needs files of their own, such as
those that an agent is to be sent, has it unpacked; without its archive, what
was unpacked counts for nothing. Everything is written out to the disk before
one rename makes it appear, an archive after its digest has been checked. So
whoever is killed leaves nothing but a folder in ``partial`` that nobody has
locked any more, and whoever finds that removes it; a power cut leaves no more.

Two locks keep the users of a package, those who fetch or unpack it and those
who remove it apart. All that are needed are taken in this order, so nobody
waits in a ring:

1. *use*, shared: taken before one looks whether an archive is there, and kept
   until the cache is closed or its process ends.
2. *work*, exclusive: taken by who did not find it, who then looks again,
   and fetches or unpacks only if it is still missing. All others wait here. Who
   fetches several takes *use* of all, then *work* of those that are free, and
   waits for none.

Who removes a package takes *use* exclusively, and only if it is free: whoever
has looked, waits, fetches or works has it, and whoever comes later looks when
all is gone. Those who prune, one at a time, take *prune* first. Who verifies a
package has *work*, so that nobody replaces it meanwhile.
"""

import contextlib
import dataclasses
import errno
import functools
import hashlib
import io
import logging
import os
import pathlib
import re
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from types import TracebackType
from typing import IO, Self

from glare_murano.package import Archive, InvalidPackage, Limits
from glare_murano.package.archive_rules import DEFAULT_LIMITS, check_size
from loader import errors
from loader.cache.archives import Archives
from loader.cache.locks import LockFile
from loader.cache.lru import UseClock, last_use
from loader.cache.staging import Workspaces
from loader.cache.unpacked import Unpacked
from loader.counters import Counters
from loader.fs import private

LOG = logging.getLogger(__name__)

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_ARCHIVES, _NOTES, _PACKAGES, _PARTIAL = "archives", "notes", "packages", "partial"


@dataclasses.dataclass(frozen=True, slots=True)
class _Entry:
    """One package; ``used`` is the stamp of its last use, and ``whole`` whether it is there."""

    digest: str
    whole: bool
    size: int
    used: int


@dataclasses.dataclass(frozen=True)
class Pruned:
    """What pruning has removed.

    :param removed: the digests, the least recently used first.
    :param freed: bytes.
    """

    removed: tuple[str, ...]
    freed: int


class Cache:
    """A folder of packages, to be closed when they are used no more.

    :ivar folder: where it is.
    :ivar limits: what an archive may take up.
    :ivar counters: downloads and hits.
    """

    def __init__(
        self,
        folder: "str | os.PathLike[str]",
        limits: Limits = DEFAULT_LIMITS,
        max_size: int | None = None,
    ) -> None:
        """Use a folder, and make it if it is missing.

        :param limits: what an archive may take up.
        :param max_size: how many bytes all packages may take up; whenever one
            is stored or unpacked, those that were not used for longest give
            way. Those in use stay, even if they take up more.
        :raises CacheError: if the folder cannot be used.
        """
        self.folder = pathlib.Path(folder).absolute()
        self.counters = Counters()
        self.limits = limits
        self._max_size = max_size
        self._used: set[str] = set()
        self._unpacked_before: set[str] = set()
        lock = self.folder / "lock"
        with self._told("make folders"):
            for name in ("", _ARCHIVES, _NOTES, _PACKAGES, _PARTIAL):
                path = self.folder / name
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
                _check_owner(path)
            self._locks = LockFile(lock)
        self._workspaces = Workspaces(self.folder / _PARTIAL, self._locks)
        self._clock = UseClock(lock)
        self._archives = Archives(self.folder / _ARCHIVES, self.folder / _NOTES)
        self._unpacked = Unpacked(self.folder / _PACKAGES, self._workspaces)

    def close(self) -> None:
        """Give up all packages: from now on they may be removed."""
        self._locks.close()
        self._used.clear()
        self._unpacked_before.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def archive(self, digest: str, fetch: Callable[[], Iterable[bytes]]) -> pathlib.Path:
        """The archive of a package, which is fetched if it is not there yet.

        However many threads and processes ask at once, one fetches. What was
        written to since it was stored, and is not the same any more, is
        fetched again.

        :param digest: the SHA-256 of the archive, in lower-case hexadecimal.
        :param fetch: gives the archive, piece by piece.
        :raises DigestMismatch: if something else arrives.
        :raises InvalidArchive: if it breaks a rule of safety.
        :raises CacheError: if it cannot be stored.
        """
        _check_digest(digest)
        with self._told(f"find package {digest}"):
            # Who verifies may have found it damaged while it is in use.
            found = digest in self._used and self._archives.has(digest)
        if not found:
            if self._take(digest, fetch):
                self.counters.count(downloads=1)
                self._make_room()
            else:
                self.counters.count(hits=1)
        return self._archives.path(digest)

    def package(self, digest: str, fetch: Callable[[], Iterable[bytes]]) -> pathlib.Path:
        """The folder of a package's files, which is made if it is not there yet.

        However many threads and processes ask at once, one unpacks. What was
        written to since, and is not the same any more, is unpacked again.

        :param digest: as for ``archive``, whose errors are raised here as well.
        """
        archive = self.archive(digest, fetch)
        if digest not in self._unpacked_before:
            with self._told(f"unpack package {digest}"):
                is_new = not self._unpacked.is_whole(digest) and self._unpack(digest, archive)
            self._unpacked_before.add(digest)
            if is_new:
                self._make_room()
        return self._unpacked.folder(digest)

    def store(
        self,
        digests: Iterable[str],
        fetch: Callable[[Collection[str]], Iterable[tuple[str, bytes]]],
    ) -> None:
        """Store small packages that arrive together, and write them out to the disk together.

        What somebody else is fetching is waited for, and asked for only if that
        one does not get it. What does not arrive, and what is not as it must
        be, is left to ``archive``, which fetches it or tells what is wrong.

        :param digests: the SHA-256 of the archives.
        :param fetch: gives archives with their digests, of those asked for.
        :raises CacheError: if they cannot be stored.
        """
        with self._told("find packages"):
            missing = [digest for digest in digests if not self._has_in_use(digest)]
        while missing:
            with self._told("find packages"), contextlib.ExitStack() as stack:
                free = stack.enter_context(self._workspaces.lock_those_free(missing))
                self._look_anew()
                claimed = [digest for digest in missing if digest in free and not self.has(digest)]
                locked = stack.pop_all()
            with locked:
                stored = self._store(claimed, fetch(claimed)) if claimed else 0
            if stored:
                self.counters.count(downloads=stored)
                self._make_room()
            missing = [digest for digest in missing if digest not in free and not self.has(digest)]
            if missing:
                is_stored = functools.partial(self.has, missing[0])
                with (
                    self._told("wait for others"),
                    self._workspaces.lock_unless(missing[0], is_stored),
                ):
                    pass

    def has(self, digest: str) -> bool:
        """Whether a package is there, to be had without fetching it."""
        return bool(_DIGEST.match(digest)) and self._archives.has(digest)

    def verify(self, *digests: str) -> dict[str, list[str]]:
        """Read packages, and compare them with what was downloaded and unpacked.

        A damaged archive counts as missing from now on, so that it is fetched
        again when it is asked for; damaged files are unpacked again. Who has
        them in use keeps them until then.

        :param digests: which ones; by default, all that are there.
        :return: what was found wrong with the damaged ones, file by file.
        :raises CacheError: if the cache cannot be read, or a damaged package
            not be removed.
        """
        for digest in digests:
            _check_digest(digest)
        damaged = {}
        with self._told("verify packages"):
            for digest in digests or sorted(self._digests()):
                # With the lock, nobody stores it anew while we read.
                with self._workspaces.lock(digest):
                    problems = self._find_damage(digest)
                if problems:
                    damaged[digest] = problems
        return damaged

    def prune(self, max_size: int) -> Pruned:
        """Remove what was not used for longest, until the rest fits.

        What any process has in use stays, even if it does not fit then.

        :param max_size: how many bytes the packages may take up.
        :raises CacheError: if the cache cannot be read or written.
        """
        removed: list[_Entry] = []
        with self._told("remove packages"), self._locks.exclusive("prune"):
            self._workspaces.sweep()
            entries = sorted(self._entries(), key=lambda entry: (entry.whole, entry.used))
            if entries:
                self._clock.catch_up(entries[-1].used)
            size = sum(entry.size for entry in entries if entry.whole)
            for entry in entries:
                if size <= max_size and entry.whole:
                    break
                if self._remove(entry.digest, entry.used) and entry.whole:
                    removed.append(entry)
                    size -= entry.size
        freed = sum(entry.size for entry in removed)
        if removed:
            LOG.info(
                "Removed %d packages (%d bytes) from the cache %s",
                len(removed),
                freed,
                self.folder,
            )
        return Pruned(tuple(entry.digest for entry in removed), freed)

    @property
    def size(self) -> int:
        """How many bytes the packages take up.

        :raises CacheError: if the cache cannot be read.
        """
        with self._told("measure packages"):
            return sum(entry.size for entry in self._entries() if entry.whole)

    @contextlib.contextmanager
    def workspace(self) -> Iterator[pathlib.Path]:
        """A folder for the caller alone, which is removed afterwards, also if it is killed.

        :raises CacheError: if it cannot be made.
        """
        with contextlib.ExitStack() as stack:
            with self._told("make a folder"):
                self._workspaces.sweep()
                folder = stack.enter_context(self._workspaces.new())
            yield folder

    def _take(self, digest: str, fetch: Callable[[], Iterable[bytes]]) -> bool:
        """Find an archive or fetch it, and keep it from being removed; tell if it was fetched."""
        with self._told(f"find package {digest}"):
            self._locks.share(_use(digest))
            found = self._archives.is_whole(digest)
        fetched = not found and self._fetch(digest, fetch)
        self._note_use(digest)
        return fetched

    def _note_use(self, digest: str) -> None:
        self._used.add(digest)
        # What cannot be written cannot be pruned.
        with contextlib.suppress(OSError):
            self._clock.stamp(self._archives.note(digest))

    def _has_in_use(self, digest: str) -> bool:
        """Keep an archive from being removed, and tell whether it is there."""
        _check_digest(digest)
        self._locks.share(_use(digest))
        return self.has(digest)

    def _store(self, claimed: Collection[str], arriving: Iterable[tuple[str, bytes]]) -> int:
        """Store what arrives and is as it must be, and tell how many that are."""
        with contextlib.ExitStack() as stack:
            with self._told("store packages"):
                work = stack.enter_context(self._workspaces.new())
            made: dict[str, pathlib.Path] = {}
            for digest, archive in arriving:
                if digest in claimed and digest not in made and self._is_sound(digest, archive):
                    with self._told(f"store package {digest}"):
                        made[digest] = work / digest
                        _write_new(made[digest], archive)
                # Green threads: the disk keeps all of them waiting, the next package need not.
                time.sleep(0)
            with self._told("store packages"):
                self._archives.place(made.values())
        for digest in made:
            self._note_use(digest)
        return len(made)

    def _is_sound(self, digest: str, archive: bytes) -> bool:
        """Whether an archive is what it must be."""
        if hashlib.sha256(archive).hexdigest() != digest:
            LOG.info("Something else arrived in the place of package %s", digest)
            return False
        try:
            self._check(io.BytesIO(archive))
        except InvalidPackage as error:
            LOG.info("Package %s was not stored: %s", digest, error)
            return False
        return True

    def _check(self, archive: IO[bytes] | pathlib.Path) -> None:
        with Archive.open(archive, self.limits) as package:
            package.verify()

    def _look_anew(self) -> None:
        # On NFS, opening a folder asks the server what is new in it.
        for name in (_ARCHIVES, _PACKAGES):
            os.close(os.open(self.folder / name, os.O_RDONLY))

    def _fetch(self, digest: str, fetch: Callable[[], Iterable[bytes]]) -> bool:
        """Store an archive, unless somebody else has done so while we waited."""
        is_stored = functools.partial(self._archives.is_untouched, digest)
        with contextlib.ExitStack() as stack:
            with self._told(f"store package {digest}"):
                is_ours = stack.enter_context(self._workspaces.lock_unless(digest, is_stored))
                self._look_anew()
                damage = self._archives.damage(digest) if is_ours else []
                if damage == []:
                    return False
                self._warn(digest, damage)
                archive = stack.enter_context(self._workspaces.folder(digest)) / digest
            self._download(digest, fetch, archive)
            with self._told(f"store package {digest}"):
                self._check(archive)
                self._archives.place([archive])
        return True

    def _download(
        self, digest: str, fetch: Callable[[], Iterable[bytes]], archive: pathlib.Path
    ) -> None:
        found = hashlib.sha256()
        size = 0
        # What the download itself raises is not ours to explain.
        with contextlib.ExitStack() as stack:
            with self._told(f"store package {digest}"):
                stream = stack.enter_context(_new(archive))
            for chunk in fetch():
                size += len(chunk)
                check_size(size, self.limits)
                found.update(chunk)
                with self._told(f"store package {digest}"):
                    _write(stream, chunk)
        if found.hexdigest() != digest:
            raise errors.DigestMismatch(
                f"an archive with SHA-256 {digest} was expected, but "
                f"{found.hexdigest()} arrived; nothing of it was kept"
            )

    def _unpack(self, digest: str, archive: pathlib.Path) -> bool:
        """Unpack an archive, unless somebody else has done so while we waited."""

        def unpack(target: pathlib.Path) -> None:
            with Archive.open(archive, self.limits) as package:
                package.unpack(target)

        is_unpacked = functools.partial(self._unpacked.is_untouched, digest)
        with self._workspaces.lock_unless(digest, is_unpacked) as is_ours:
            self._look_anew()
            damage = self._unpacked.damage(digest) if is_ours else []
            if damage == []:
                return False
            self._warn(digest, damage)
            self._unpacked.make(digest, unpack)
        return True

    def _make_room(self) -> None:
        try:
            with self._told("sweep"):
                self._workspaces.sweep()
            if self._max_size is not None:
                self.prune(self._max_size)
        except errors.CacheError as error:
            # What was asked for is there.
            LOG.warning("%s", error)

    def _remove(self, digest: str, used: int) -> bool:
        """Remove a package that nobody uses, nor has used since it had this stamp."""
        with self._locks.exclusive_if_free(_use(digest)) as free:
            if not free or last_use(self._archives.note(digest)) != used:
                return False
            # The archive first: without it, the rest is no package.
            self._archives.remove(digest)
            self._unpacked.remove(digest)
        return self._unpacked.is_gone(digest)

    def _find_damage(self, digest: str) -> list[str]:
        """Read a package, and have what is damaged be missing from now on."""
        of_archive = self._archives.damage(digest) or []
        of_files = self._unpacked.damage(digest) or []
        self._warn(digest, [*of_archive, *of_files])
        if of_archive:
            self._archives.discard(digest)
        if of_files:
            self._unpacked.forget(digest)
            self._unpacked_before.discard(digest)
            with self._locks.exclusive_if_free(_use(digest)) as free:
                if free:
                    self._unpacked.remove(digest)
        return [*of_archive, *of_files]

    def _warn(self, digest: str, damage: list[str] | None) -> None:
        if damage:
            LOG.warning(
                "Package %s in the cache %s is damaged, and is mended when it is used: %s",
                digest,
                self.folder,
                "; ".join(damage),
            )

    def _digests(self) -> set[str]:
        return set(filter(_DIGEST.match, self._archives.digests() | self._unpacked.digests()))

    def _entries(self) -> Iterator[_Entry]:
        for digest in self._digests():
            size = self._archives.size(digest) + self._unpacked.size(digest)
            used = last_use(self._archives.note(digest))
            yield _Entry(digest, self._archives.has(digest), size, used)

    @contextlib.contextmanager
    def _told(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            room = _room(self.folder) if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
            raise errors.CacheError(
                f"cannot {doing} in the cache {self.folder}: {error}{room}"
            ) from error


class TemporaryCache(Cache):
    """A cache for one user within the folder of another; closing it removes it.

    It is removed by the next user of that folder if its process is killed.
    """

    def __init__(self, folder: "str | os.PathLike[str]", limits: Limits = DEFAULT_LIMITS) -> None:
        """Make a cache in the folder of another.

        :raises CacheError: if the folder cannot be used.
        """
        with contextlib.ExitStack() as outer:
            shared = outer.enter_context(Cache(folder, limits))
            super().__init__(outer.enter_context(shared.workspace()), limits)
            self._outer = outer.pop_all()

    def close(self) -> None:
        """Remove it."""
        super().close()
        self._outer.close()


def _new(path: pathlib.Path) -> IO[bytes]:
    """A new file; a raw one, since another would try once more when it is closed."""
    return open(path, "xb", buffering=0, opener=private)


def _write(file: IO[bytes], data: bytes) -> None:
    """Write all to a raw file, which may take a part at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _write_new(path: pathlib.Path, data: bytes) -> None:
    with _new(path) as stream:
        _write(stream, data)


def _check_digest(digest: str) -> None:
    if not _DIGEST.match(digest):
        raise errors.DigestMismatch(f"{digest!r} is no SHA-256 digest")


def _use(digest: str) -> str:
    return f"use {digest}"


def _room(folder: pathlib.Path) -> str:
    """What is free where a folder is, in words."""
    there = os.statvfs(folder)
    mount = next(path for path in (folder, *folder.parents) if path.is_mount())
    return (
        f"; on {mount}, {there.f_bavail * there.f_frsize} bytes and {there.f_favail} files are free"
    )


def _check_owner(path: pathlib.Path) -> None:
    there = path.stat()
    if there.st_uid not in (os.geteuid(), 0) or there.st_mode & stat.S_IWOTH:
        raise errors.CacheError(
            f"cannot use {path} as a cache: others can write to it, and so choose what is loaded"
        )
