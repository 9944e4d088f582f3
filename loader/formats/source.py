# SPDX-License-Identifier: Apache-2.0

"""Where the files of a package are: in a folder, or still in the package's archive.

A source knows files, and the manifest among them; what package type they make,
it does not.
"""

import abc
import contextlib
import functools
import io
import os
import pathlib
import posixpath
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from glare_murano.package import Archive, Limits, read_manifest
from glare_murano.package.archive_rules import DEFAULT_LIMITS
from glare_murano.package.manifest import FILE_NAME, Manifest
from loader import errors
from loader.seeking import SeekableFile

# Archives whose directories and manifests are kept, the files of one, and the bytes
# of one manifest: real ones are far smaller. A directory takes half a kilobyte for a
# file, a manifest at most fifty times its bytes, and so all 160 MB.
_MOST_KEPT = 256
_MOST_FILES = 500
_LARGEST_KEPT = 8192

_T = TypeVar("_T")


class Source(os.PathLike[str]):
    """The files of one package.

    Used as a path, it is that of a folder with all of them, which is made then
    if there is none yet.
    """

    @abc.abstractmethod
    def __fspath__(self) -> str:
        """The path of the folder.

        :raises LoaderError: if it cannot be made.
        :raises InvalidArchive: if the archive breaks a rule of safety.
        """

    @abc.abstractmethod
    def __str__(self) -> str:
        """The name of the package's place, for messages; nothing is unpacked for it."""

    @abc.abstractmethod
    def fetch(self) -> None:
        """Have the files on this host, in a folder or in their archive.

        :raises LoaderError: if they cannot be had.
        :raises InvalidArchive: if the archive breaks a rule of safety.
        """

    def read(self, name: str, folder: str = "") -> bytes | None:
        """Read a file, or none if there is no such file.

        :param name: its path, with slashes, relative to a folder.
        :param folder: that folder, which a name cannot leave; by default the
            top of the package.
        :raises ValueError: if the name leaves the folder.
        :raises LoaderError: if the file cannot be had.
        :raises InvalidArchive: if the archive breaks a rule of safety.
        """
        return self._read(path_within(folder, name))

    @abc.abstractmethod
    def _read(self, path: str) -> bytes | None:
        """Read a file by its path in the package."""

    @abc.abstractmethod
    def manifest(self) -> Manifest:
        """Read the manifest.

        :raises InvalidPackage: if it breaks a rule.
        """


class Folder(Source):
    """A folder that lies somewhere; others may change it."""

    def __init__(self, root: pathlib.Path) -> None:
        """Use a folder; nothing is read yet."""
        self._root = root

    def __fspath__(self) -> str:
        """See ``Source``."""
        return str(self._root)

    def __str__(self) -> str:
        """See ``Source``."""
        return str(self._root)

    def fetch(self) -> None:
        """See ``Source``: they are here."""

    def _read(self, path: str) -> bytes | None:
        file = self._root / path
        return file.read_bytes() if file.is_file() else None

    def manifest(self) -> Manifest:
        """See ``Source``."""
        with Archive.open(self._root) as archive:
            return read_manifest(archive)


class _Key(NamedTuple):
    """Tells an archive from what lay in its place before, be it damaged."""

    path: str
    size: int
    changed: int
    limits: Limits


class _TooLarge(Exception):
    """An archive is not to be kept for the whole process."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive


class Archived(Source):
    """An archive that is kept for as long as it is used, and never changes."""

    def __init__(
        self,
        archive: Callable[[], pathlib.Path],
        unpacked: Callable[[], pathlib.Path],
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Use an archive.

        :param archive: gives its path, and sees to it that it is there.
        :param unpacked: gives the path of a folder with its files.
        :param limits: what it may take up.
        """
        self._find = archive
        self._unpacked = unpacked
        self._limits = limits
        self._found: pathlib.Path | None = None
        self._large: tuple[_Key, Archive] | None = None

    def __fspath__(self) -> str:
        """See ``Source``."""
        return str(self._unpacked())

    def __str__(self) -> str:
        """See ``Source``."""
        return str(self._found or self._path())

    def fetch(self) -> None:
        """See ``Source``."""
        self._path()

    def _path(self) -> pathlib.Path:
        """Where the archive is, which is fetched if it must be."""
        self._found = found = self._find()
        return found

    def _read(self, path: str) -> bytes | None:
        def read(key: _Key) -> bytes | None:
            archive = self._archive(key)
            try:
                size = archive.size(path)
            except KeyError:
                return None
            return archive.read(path, size)

        return self._reading(read)

    def manifest(self) -> Manifest:
        """See ``Source``; what this process has read before is not read again."""

        def read(key: _Key) -> Manifest:
            archive = self._archive(key)
            return _manifest(key) if _is_small(archive) else read_manifest(archive)

        return self._reading(read)

    def _reading(self, read: Callable[[_Key], _T]) -> _T:
        """Read from the archive, which is fetched if it must be."""
        found = self._path()
        try:
            return read(self._key(found))
        except FileNotFoundError:
            # Who verifies has just removed it: now it is fetched again.
            found = self._path()
        except OSError as error:
            raise _unreadable(found, error) from error
        try:
            return read(self._key(found))
        except OSError as error:
            raise _unreadable(found, error) from error

    def _key(self, path: pathlib.Path) -> _Key:
        there = path.stat()
        return _Key(str(path), there.st_size, there.st_ctime_ns, self._limits)

    def _archive(self, key: _Key) -> Archive:
        if self._large is not None and self._large[0] == key:
            return self._large[1]
        try:
            return _opened(key)
        except _TooLarge as large:
            self._large = key, large.archive
            return large.archive


def _unreadable(path: pathlib.Path, error: OSError) -> errors.CacheError:
    return errors.CacheError(f"the archive {path} cannot be read: {error}")


def _is_small(archive: Archive) -> bool:
    """Whether the directory and the manifest of an archive are to be kept."""
    if len(archive.paths) > _MOST_FILES:
        return False
    return FILE_NAME not in archive.paths or archive.size(FILE_NAME) <= _LARGEST_KEPT


@functools.lru_cache(_MOST_KEPT)
def _opened(key: _Key) -> Archive:
    """An archive whose directory has been read."""
    stream = _Reopened(key.path)
    with stream.held():
        archive = Archive.open(io.BufferedReader(stream), key.limits)
    if not _is_small(archive):
        raise _TooLarge(archive)
    return archive


@functools.lru_cache(_MOST_KEPT)
def _manifest(key: _Key) -> Manifest:
    return read_manifest(_opened(key))


class _Reopened(SeekableFile):
    """A file that is open only while it is read."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._held: io.FileIO | None = None

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep the file open for a while."""
        with open(self._path, "rb", buffering=0) as stream:
            self._held = stream
            try:
                yield
            finally:
                self._held = None

    @property
    def size(self) -> int:
        return os.stat(self._path).st_size

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]
        if self._held is None:
            with self.held():
                return self.readinto(buffer)
        self._held.seek(self._offset)
        count = self._held.readinto(buffer)
        self._offset += count
        return count


def path_within(folder: str, name: str) -> str:
    """The path in a package of what a name means in a folder.

    :raises ValueError: if it leaves the folder.
    """
    top = "/package"
    base = posixpath.join(top, folder).rstrip("/")
    path = posixpath.normpath(posixpath.join(base, name))
    if posixpath.isabs(name) or posixpath.commonpath([base, path]) != base:
        raise ValueError(f"{name!r} leaves the folder {folder or 'of the package'}")
    return posixpath.relpath(path, top)
