# SPDX-License-Identifier: Apache-2.0

"""Read the files and the manifest of a package, from a directory or from an archive."""

import abc
import os
import pathlib
import posixpath
from collections.abc import Callable
from typing import TypeVar

from glare_murano.package import Archive, Limits, read_manifest
from glare_murano.package.archive_rules import DEFAULT_LIMITS
from glare_murano.package.manifest import Manifest
from loader import archive_indexes, errors
from loader.archive_indexes import ArchiveIndex, Identity

_T = TypeVar("_T")


class PackageSource(os.PathLike[str]):
    """The files of one package.

    ``os.fspath`` returns the path of a directory with the files, and unpacks an archive if
    necessary.
    """

    @abc.abstractmethod
    def __fspath__(self) -> str:
        """Return the path of a directory with all files.

        :raises LoaderError: if the directory cannot be made.
        :raises InvalidArchive: if the archive breaks a rule for archives.
        """

    def __str__(self) -> str:
        """Return the path of the package's directory or archive, for messages."""
        return str(self.path)

    @property
    @abc.abstractmethod
    def path(self) -> pathlib.Path:
        """The path of the package's directory or archive.

        :raises LoaderError: if the archive cannot be fetched.
        """

    @abc.abstractmethod
    def fetch(self) -> None:
        """Fetch the files to this host if they are missing; an archive is not unpacked.

        :raises LoaderError: if they cannot be fetched.
        :raises InvalidArchive: if the archive breaks a rule for archives.
        """

    @abc.abstractmethod
    def manifest(self) -> Manifest:
        """Return the manifest.

        :raises InvalidPackage: if the manifest breaks a rule.
        :raises LoaderError: if the archive cannot be read.
        """

    def read(self, name: str, directory: str = "") -> bytes | None:
        """Return the content of a file; None if the package lacks it.

        :param name: a path with slashes, relative to the directory.
        :param directory: a directory of the package; by default, its top directory.
        :raises ValueError: if the path leaves the directory.
        :raises LoaderError: if the file cannot be read.
        :raises InvalidArchive: if the archive breaks a rule for archives.
        """
        return self._read(path_within(directory, name))

    @abc.abstractmethod
    def _read(self, path: str) -> bytes | None:
        """Return the content of a file; None if it is missing.

        :param path: the path of the file in the package.
        """


class DirectorySource(PackageSource):
    """The files in a directory, which other programs may change."""

    def __init__(self, root: pathlib.Path, limits: Limits = DEFAULT_LIMITS) -> None:
        self._root = root
        self._limits = limits

    def __fspath__(self) -> str:
        return str(self._root)

    @property
    def path(self) -> pathlib.Path:
        return self._root

    def fetch(self) -> None:
        """Do nothing: the files are on this host."""

    def manifest(self) -> Manifest:
        with Archive.open(self._root, self._limits) as archive:
            return read_manifest(archive)

    def _read(self, path: str) -> bytes | None:
        file = self._root / path
        return file.read_bytes() if file.is_file() else None


class ArchiveSource(PackageSource):
    """The files in an archive of the cache, which does not change while it is used."""

    def __init__(
        self,
        archive: Callable[[], pathlib.Path],
        unpacked: Callable[[], pathlib.Path],
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Make a source; nothing is fetched yet.

        :param archive: a function that fetches the archive if it is missing, and returns its path.
        :param unpacked: a function that unpacks the archive, and returns the directory of the
            files.
        :param limits: the limits for the archive.
        """
        self._archive = archive
        self._unpacked = unpacked
        self._limits = limits
        self._path: pathlib.Path | None = None
        self._kept: ArchiveIndex | None = None

    def __fspath__(self) -> str:
        return str(self._unpacked())

    @property
    def path(self) -> pathlib.Path:
        return self._path or self._archive()

    def fetch(self) -> None:
        self._path = self._archive()

    def manifest(self) -> Manifest:
        return self._use_index(lambda index: index.manifest)

    def _read(self, path: str) -> bytes | None:
        def read(index: ArchiveIndex) -> bytes | None:
            try:
                size = index.archive.size(path)
            except KeyError:
                return None
            return index.archive.read(path, size)

        return self._use_index(read)

    def _use_index(self, use: Callable[[ArchiveIndex], _T]) -> _T:
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

    def _index(self, path: pathlib.Path) -> ArchiveIndex:
        identity = Identity.of(path, self._limits)
        if self._kept is None or self._kept.identity != identity:
            self._kept = archive_indexes.find(identity)
        return self._kept


def path_within(directory: str, name: str) -> str:
    """Return the path of a file in a package.

    :param directory: a directory of the package.
    :param name: the path of the file, relative to the directory.
    :raises ValueError: if the path leaves the directory, even if it comes back.
    """
    path = posixpath.normpath(name)
    if posixpath.isabs(path) or path.partition("/")[0] == "..":
        raise ValueError(f"{name!r} leaves the directory {directory or 'of the package'}")
    return posixpath.normpath(posixpath.join(directory, path))
