# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The shared package store on disk: archives, fetched once and unpacked once.

A package lies in a folder named by the SHA-256 of its archive, so its content
never changes and any number of processes can use it. The store knows digests,
not names or versions::

    lock                         where names are locked; its time is the clock of uses
    packages/DIGEST/files/       a package as it was unpacked
    packages/DIGEST/record       its files and their sums; without it, there is no package
    partial/DIGEST/              a package that is being made

Files and record are written out to the disk before one rename makes both
appear, after the digest has been checked. So whoever is killed leaves nothing
but a folder in ``partial`` that nobody has locked any more, and whoever finds
that removes it; a power cut leaves no more.

Two locks keep the users of a package, those who fetch it and those who remove
it apart. All that are needed are taken in this order, so nobody waits in a ring:

1. *use*, shared: taken before one looks whether a package is there, and kept
   until the cache is closed or its process ends.
2. *work*, exclusive: taken by who did not find it, who then looks again,
   and fetches only if it is still missing. All others wait here. Who fetches
   several takes *use* of all, then *work* of those that are free, and waits for
   none.

Who removes a package takes *use* exclusively, and only if it is free: whoever
has looked, waits, fetches or works has it, and whoever comes later looks when
all is gone. It takes the record away first, so that a removal that is cut
short leaves no package. Those who prune, one at a time, take *prune* first.
Who verifies a package has *work*, so that nobody replaces it meanwhile.
"""

import contextlib
import dataclasses
import errno
import hashlib
import io
import logging
import os
import pathlib
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from types import TracebackType
from typing import IO
from typing import Self

from glare_murano.package import Archive
from glare_murano.package import InvalidPackage
from glare_murano.package import Limits
from glare_murano.package.entries import DEFAULT_LIMITS
from glare_murano.package.entries import check_size
from loader import errors
from loader.counters import Counters
from loader.locks import LockFile
from loader.records import Record
from loader.records import sync_folder
from loader.uses import NEVER
from loader.uses import UseClock
from loader.uses import last_use
from loader.workspaces import Workspaces

LOG = logging.getLogger(__name__)

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_FILES = "files"
_RECORD = "record"


@dataclasses.dataclass(frozen=True, slots=True)
class _Entry:
    """One package; ``used`` is the stamp of its last use."""

    digest: str
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
    """A folder of unpacked packages, to be closed when they are used no more.

    :ivar folder: where it is.
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
            is stored, those that were not used for longest give way. Those in
            use stay, even if they take up more.
        :raises CacheError: if the folder cannot be used.
        """
        self.folder = pathlib.Path(folder).absolute()
        self.counters = Counters()
        self._limits = limits
        self._max_size = max_size
        self._packages = self.folder / "packages"
        self._used: set[str] = set()
        partial = self.folder / "partial"
        lock = self.folder / "lock"
        with self._told("make folders"):
            for path in (self.folder, self._packages, partial):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
                _check_owner(path)
            self._locks = LockFile(lock)
        self._workspaces = Workspaces(partial, self._locks)
        self._clock = UseClock(lock)

    def close(self) -> None:
        """Give up all packages: from now on they may be removed."""
        self._locks.close()
        self._used.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def package(self, digest: str, fetch: Callable[[], Iterable[bytes]]) -> pathlib.Path:
        """The folder of a package, which is fetched if it is not there yet.

        However many threads and processes ask at once, one fetches. What was
        written to since it was unpacked, and is not the same any more, is
        fetched again.

        :param digest: the SHA-256 of the archive, in lower-case hexadecimal.
        :param fetch: gives the archive, piece by piece.
        :raises DigestMismatch: if something else arrives.
        :raises InvalidArchive: if it breaks a rule of safety.
        :raises CacheError: if it cannot be stored.
        """
        _check_digest(digest)
        if digest in self._used or not self._take(digest, fetch):
            self.counters.count(hits=1)
        else:
            self.counters.count(downloads=1)
            self._make_room()
        return self._packages / digest / _FILES

    def store(
        self,
        digests: Iterable[str],
        fetch: Callable[[Collection[str]], Iterable[tuple[str, bytes]]],
    ) -> None:
        """Store small packages that arrive together, and write them out to the disk together.

        What somebody else is fetching, what does not arrive, and what is not as
        it must be, is left to ``package``, which waits for it, fetches it or
        tells what is wrong.

        :param digests: the SHA-256 of the archives.
        :param fetch: gives archives with their digests, of those asked for.
        :raises CacheError: if they cannot be stored.
        """
        with contextlib.ExitStack() as stack:
            with self._told("find packages"):
                missing = [digest for digest in digests if not self._has_in_use(digest)]
                free = stack.enter_context(self._workspaces.lock_those_free(missing))
                self._look_anew()
                claimed = [d for d in missing if d in free and not self.has(d)]
            made: dict[str, pathlib.Path] = {}
            for digest, archive in fetch(claimed) if claimed else ():
                if digest in claimed and digest not in made:
                    with self._told(f"store package {digest}"):
                        work = stack.enter_context(self._workspaces.folder(digest))
                        if self._is_made(digest, archive, work):
                            made[digest] = work
                    _let_others_run()
            with self._told("store packages"):
                self._publish(made.values())
        for digest in made:
            self._note_use(digest)
        if made:
            self.counters.count(downloads=len(made))
            self._make_room()

    def has(self, digest: str) -> bool:
        """Whether a package is there, to be had without fetching it."""
        return bool(_DIGEST.match(digest)) and (self._packages / digest / _RECORD).is_file()

    def verify(self, *digests: str) -> dict[str, list[str]]:
        """Read packages and compare them with what was unpacked.

        A damaged one counts as missing from now on, so that it is fetched
        again when it is asked for. Who has it in use keeps its files until then.

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
                    problems = self._damage(digest)
                    if problems:
                        damaged[digest] = problems
                        self._forget(digest)
                        self._warn(digest, problems)
                if problems:
                    self._remove(digest, NEVER)
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
            entries = sorted(self._entries(), key=lambda entry: entry.used)
            if entries:
                self._clock.catch_up(entries[-1].used)
            size = sum(entry.size for entry in entries)
            for entry in entries:
                # What has no record is no package.
                if size <= max_size and entry.used != NEVER:
                    break
                if self._remove(entry.digest, entry.used):
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
            return sum(entry.size for entry in self._entries())

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
        """Find a package or fetch it, and keep it from being removed; tell if it was fetched."""
        with self._told(f"find package {digest}"):
            self._locks.share(_use(digest))
            found = self._is_there(digest)
        fetched = not found and self._fetch(digest, fetch)
        self._note_use(digest)
        return fetched

    def _note_use(self, digest: str) -> None:
        self._used.add(digest)
        # What cannot be written cannot be pruned.
        with contextlib.suppress(OSError):
            self._clock.stamp(self._packages / digest / _RECORD)

    def _has_in_use(self, digest: str) -> bool:
        """Keep a package from being removed, and tell whether it is there."""
        _check_digest(digest)
        self._locks.share(_use(digest))
        return self.has(digest)

    def _is_made(self, digest: str, archive: bytes, work: pathlib.Path) -> bool:
        """Unpack an archive, unless it is not what it must be."""
        if hashlib.sha256(archive).hexdigest() != digest:
            LOG.info("Something else arrived in the place of package %s", digest)
            return False
        try:
            self._unpack(io.BytesIO(archive), work)
        except InvalidPackage as error:
            LOG.info("Package %s was not stored: %s", digest, error)
            return False
        return True

    def _look_anew(self) -> None:
        # On NFS, opening a folder asks the server what is new in it.
        os.close(os.open(self._packages, os.O_RDONLY))

    def _fetch(self, digest: str, fetch: Callable[[], Iterable[bytes]]) -> bool:
        """Store a package, unless somebody else has done so while we waited."""
        with contextlib.ExitStack() as stack:
            with self._told(f"store package {digest}"):
                stack.enter_context(self._workspaces.lock(digest))
                self._look_anew()
                if self._is_there(digest):
                    return False
                damage = self._damage(digest)
                if damage:
                    self._warn(digest, damage)
                work = stack.enter_context(self._workspaces.folder(digest))
                archive = stack.enter_context(tempfile.TemporaryFile(buffering=0, dir=work))
            self._download(digest, fetch, archive)
            with self._told(f"store package {digest}"):
                with open(archive.fileno(), "rb", closefd=False) as stream:
                    self._unpack(stream, work)
                # On NFS it has a name as long as it is open.
                archive.close()
                self._publish([work])
        return True

    def _download(
        self, digest: str, fetch: Callable[[], Iterable[bytes]], archive: IO[bytes]
    ) -> None:
        found = hashlib.sha256()
        size = 0
        for chunk in fetch():
            size += len(chunk)
            check_size(size, self._limits)
            found.update(chunk)
            # What the download itself raises is not ours to explain.
            with self._told(f"store package {digest}"):
                _write(archive, chunk)
        if found.hexdigest() != digest:
            raise errors.DigestMismatch(
                f"an archive with SHA-256 {digest} was expected, but "
                f"{found.hexdigest()} arrived; nothing of it was kept"
            )

    def _unpack(self, archive: IO[bytes], work: pathlib.Path) -> None:
        with Archive.open(archive, self._limits) as package:
            package.unpack(work / _FILES)

    def _publish(self, made: Collection[pathlib.Path]) -> None:
        """Make packages appear; all are written out to the disk before the first does."""
        records = Record.seal(work / _FILES for work in made)
        for work, record in zip(made, records, strict=True):
            record.save(work / _RECORD)
            _let_others_run()
        for work in made:
            self._replace(work)
        if made:
            sync_folder(self._packages)

    def _replace(self, made: pathlib.Path) -> None:
        target = self._packages / made.name
        try:
            made.rename(target)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            # Damaged, or not removed to the end.
            with self._workspaces.new() as before:
                target.rename(before / made.name)
                made.rename(target)

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
        path = self._packages / digest
        with self._locks.exclusive_if_free(_use(digest)) as free:
            if not free or last_use(path / _RECORD) != used:
                return False
            self._forget(digest)
            shutil.rmtree(path, ignore_errors=True)
        return not path.exists()

    def _forget(self, digest: str) -> None:
        (self._packages / digest / _RECORD).unlink(missing_ok=True)
        self._used.discard(digest)

    def _is_there(self, digest: str) -> bool:
        """Whether a package is there as it was unpacked; it is read only if it was written to."""
        path = self._packages / digest
        try:
            if Record.load(path / _RECORD).untouched(path / _FILES):
                return True
        except (OSError, ValueError):
            pass
        return self._damage(digest) == []

    def _damage(self, digest: str) -> list[str] | None:
        """Read a package: what is wrong with it, or none if it is not there."""
        path = self._packages / digest
        try:
            record = Record.load(path / _RECORD)
            copy = record.restamped(path / _FILES)
            damage = record.differences(path / _FILES)
            if not damage and copy != record:
                self._replace_record(path, copy)
        except (OSError, ValueError) as error:
            damage = [str(error)]
        # Its record is the first that goes when a package is removed.
        return damage if (path / _RECORD).exists() else None

    def _replace_record(self, package: pathlib.Path, record: Record) -> None:
        # Where it cannot be written the old one does, but all files are read each time.
        with contextlib.suppress(OSError), self._workspaces.new() as folder:
            record.save(folder / _RECORD)
            (folder / _RECORD).rename(package / _RECORD)

    def _warn(self, digest: str, damage: list[str]) -> None:
        LOG.warning(
            "Package %s in the cache %s is damaged, and has to be fetched again: %s",
            digest,
            self.folder,
            "; ".join(damage),
        )

    def _digests(self) -> set[str]:
        return {path.name for path in self._packages.iterdir() if _DIGEST.match(path.name)}

    def _entries(self) -> Iterator[_Entry]:
        for digest in self._digests():
            record = self._packages / digest / _RECORD
            used = last_use(record)
            try:
                size = Record.load(record).size
            except (OSError, ValueError):
                size = 0
            yield _Entry(digest, size, used)

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


def _write(file: IO[bytes], data: bytes) -> None:
    """Write all to a raw file, which may take a part at a time.

    A buffered one would try once more when it is closed, and fail out of place.
    """
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _let_others_run() -> None:
    # Green threads: the disk keeps all of them waiting, the next package need not.
    time.sleep(0)


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
