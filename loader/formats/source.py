# SPDX-License-Identifier: Apache-2.0

"""The files and the manifest of a package, which are in a directory or an archive."""

import abc
import contextlib
import functools
import io
import os
import pathlib
import posixpath
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import cachetools

from glare_murano.package import Archive, Limits, read_manifest
from glare_murano.package.archive_rules import DEFAULT_LIMITS
from glare_murano.package.manifest import MANIFEST_FILE, Manifest
from loader import errors

_T = TypeVar("_T")


class PackageSource(os.PathLike[str]):
    """The files of one package.

    If a source is used as a path, an archive is unpacked to a directory.
    """

    @abc.abstractmethod
    def __fspath__(self) -> str:
        """Return the path of a directory with all files.

        :raises LoaderError: if the directory cannot be made.
        :raises InvalidArchive: if the archive breaks a safety rule.
        """

    @abc.abstractmethod
    def __str__(self) -> str:
        """Return the package's location for messages, without unpacking it."""

    @abc.abstractmethod
    def fetch(self) -> None:
        """Fetch the files to this host if they are missing; do not unpack them.

        :raises LoaderError: if they cannot be fetched.
        :raises InvalidArchive: if the archive breaks a safety rule.
        """

    @abc.abstractmethod
    def manifest(self) -> Manifest:
        """Return the manifest.

        :raises InvalidPackage: if the manifest breaks a rule.
        :raises LoaderError: if the archive cannot be read.
        """

    def read(self, name: str, directory: str = "") -> bytes | None:
        """Return the content of a file, or None if the package lacks it.

        :param name: a path with slashes, relative to the directory.
        :param directory: a directory of the package; by default, the top.
        :raises ValueError: if the name leaves the directory.
        :raises LoaderError: if the file cannot be read.
        :raises InvalidArchive: if the archive breaks a safety rule.
        """
        return self._read(path_within(directory, name))

    @abc.abstractmethod
    def _read(self, path: str) -> bytes | None:
        """Return the content of the file with this path in the package; None if it is missing."""


class DirectorySource(PackageSource):
    """The files in a directory; other programs may change them."""

    def __init__(self, root: pathlib.Path) -> None:
        self._root = root

    def __fspath__(self) -> str:
        return str(self._root)

    __str__ = __fspath__

    def fetch(self) -> None:
        """Do nothing: the files are on this host."""

    def manifest(self) -> Manifest:
        with Archive.open(self._root) as archive:
            return read_manifest(archive)

    def _read(self, path: str) -> bytes | None:
        file = self._root / path
        return file.read_bytes() if file.is_file() else None


class ArchiveSource(PackageSource):
    """The files in an archive of the cache; the archive does not change while it is used."""

    def __init__(
        self,
        archive: Callable[[], pathlib.Path],
        unpacked: Callable[[], pathlib.Path],
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Make a source from an archive.

        :param archive: fetches the archive if it is missing, and returns its path.
        :param unpacked: returns the path of a directory with its files.
        :param limits: the limits on the archive's size and contents.
        """
        self._archive = archive
        self._unpacked = unpacked
        self._limits = limits
        self._path: pathlib.Path | None = None
        self._kept: _ArchiveIndex | None = None

    def __fspath__(self) -> str:
        return str(self._unpacked())

    def __str__(self) -> str:
        return str(self._path or self._archive())

    def fetch(self) -> None:
        self._path = self._archive()

    def manifest(self) -> Manifest:
        return self._use_index(lambda index: index.manifest)

    def _read(self, path: str) -> bytes | None:
        def read(index: _ArchiveIndex) -> bytes | None:
            try:
                size = index.archive.size(path)
            except KeyError:
                return None
            return index.archive.read(path, size)

        return self._use_index(read)

    def _use_index(self, use: "Callable[[_ArchiveIndex], _T]") -> _T:
        is_second_try = False
        while True:
            path = self._path = self._archive()
            try:
                return use(self._index(path))
            except OSError as error:
                # The command that verifies the cache may just have removed the archive.
                if is_second_try or not isinstance(error, FileNotFoundError):
                    raise errors.CacheError(f"cannot read the archive {path}: {error}") from error
                is_second_try = True

    def _index(self, path: pathlib.Path) -> "_ArchiveIndex":
        status = path.stat()
        key = _Key(str(path), status.st_size, status.st_ctime_ns, self._limits)
        if self._kept is None or self._kept.key != key:
            self._kept = _shared_index(key)
        return self._kept


class _Key(NamedTuple):
    """The identity of an archive's content; an archive that was replaced gets another key."""

    path: str
    size: int
    changed: int
    limits: Limits


class _ArchiveIndex:
    """The list of an archive's files, and its manifest, which is read on first use."""

    def __init__(self, key: _Key) -> None:
        self.key = key
        stream = _ReopenedFile(key.path)
        with stream.kept_open():
            self.archive = Archive.open(io.BufferedReader(stream), key.limits)

    @functools.cached_property
    def manifest(self) -> Manifest:
        return read_manifest(self.archive)

    @property
    def memory(self) -> int:
        """An upper estimate of the memory for this index and its parsed manifest, in bytes."""
        paths = self.archive.paths
        manifest = self.archive.size(MANIFEST_FILE) if MANIFEST_FILE in paths else 0
        return 16_000 + 600 * len(paths) + 30 * manifest


# To load 30 packages of 9 files from a full cache takes 7 ms of CPU time with these indexes
# in memory, and 23 ms without them. Indexes are evicted at random: if the oldest were evicted
# first, a closure a little larger than this memory would never find an index.
_INDEX_MEMORY = 64 * 1024**2
_indexes: cachetools.Cache[_Key, _ArchiveIndex] = cachetools.RRCache(
    _INDEX_MEMORY, getsizeof=lambda index: index.memory
)
_shared_index = cachetools.cached(_indexes, key=lambda key: key, lock=threading.Lock())(
    _ArchiveIndex
)


class _ReopenedFile(io.RawIOBase):
    """A file that is open only during a read, so that many archives need no descriptors."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._offset = 0
        self._file: io.FileIO | None = None

    @contextlib.contextmanager
    def kept_open(self) -> Iterator[None]:
        """Keep the file open for several reads."""
        with open(self._path, "rb", buffering=0) as stream:
            self._file = stream
            try:
                yield
            finally:
                self._file = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_CUR:
            offset += self._offset
        elif whence == io.SEEK_END:
            offset += os.stat(self._path).st_size
        if offset < 0:
            raise OSError(f"cannot seek to {offset}, before the start of {self._path}")
        self._offset = offset
        return offset

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]
        if self._file is None:
            with self.kept_open():
                return self.readinto(buffer)
        self._file.seek(self._offset)
        count = self._file.readinto(buffer)
        self._offset += count
        return count


def path_within(directory: str, name: str) -> str:
    """Return the path of a file in the package.

    :param directory: a directory of the package.
    :param name: the path of the file, relative to the directory.
    :raises ValueError: if the path leaves the directory.
    """
    top = "/package"
    base = posixpath.join(top, directory).rstrip("/")
    path = posixpath.normpath(posixpath.join(base, name))
    if posixpath.isabs(name) or posixpath.commonpath([base, path]) != base:
        raise ValueError(f"{name!r} leaves the directory {directory or 'of the package'}")
    return posixpath.relpath(path, top)
