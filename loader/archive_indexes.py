# SPDX-License-Identifier: Apache-2.0

"""Keep indexes of archives in memory, so that an archive is checked and listed only once.

The cache makes the index of an archive when it stores the archive. Later readers of the archive get
the same index, unless it was evicted from memory.
"""

import contextlib
import functools
import io
import os
import pathlib
import threading
from collections.abc import Iterator
from typing import NamedTuple, Self

import cachetools

from glare_murano.package import Archive, Limits, read_manifest
from glare_murano.package.manifest import MANIFEST_FILE, Manifest

# The memory for all indexes, in bytes. With indexes in memory, a process needs 7 ms of CPU time to
# load 30 packages of 9 files from the cache; without them, it needs 23 ms. Indexes are evicted at
# random. If the oldest were evicted first, a closure that needs a little more than this memory
# would never find an index.
_MEMORY = 64 * 1024**2


class Identity(NamedTuple):
    """The key of an archive's index: the archive's path, size and time of change, and the limits.

    If an archive is replaced, its identity changes. The size is in bytes, and the time is in
    nanoseconds. The limits are part of the key, since an archive may exceed the limits of one
    reader, but not of another.
    """

    path: str
    size: int
    changed: int
    limits: Limits

    @classmethod
    def of(cls, path: pathlib.Path, limits: Limits) -> Self:
        """Return the present identity of an archive.

        :param limits: the limits of the reader, which the archive must not exceed.
        :raises OSError: if the archive is missing.
        """
        status = path.stat()
        return cls(str(path), status.st_size, status.st_ctime_ns, limits)


class ArchiveIndex:
    """The list of the files in an archive, and its manifest, which is parsed on first use.

    Several threads may read files at once.

    :ivar identity: the identity of the indexed archive.
    :ivar archive: an object that reads files. The archive on disk is open only during a read, or
        within ``kept_open``.
    """

    def __init__(self, identity: Identity, file: io.FileIO | None = None) -> None:
        """Open an archive, check it by the rules for archives, and list its files.

        :param identity: the identity of the archive, with its path and the limits.
        :param file: the archive, if it is already open for reading.
        :raises InvalidArchive: if a rule is broken.
        :raises OSError: if the archive cannot be read.
        """
        self.identity = identity
        self._file = _ReopenedFile(identity.path)
        with self.kept_open(file):
            self.archive = Archive.open(io.BufferedReader(self._file), identity.limits)

    @functools.cached_property
    def manifest(self) -> Manifest:
        """The manifest of the package.

        :raises InvalidPackage: if the manifest breaks a rule.
        """
        return read_manifest(self.archive)

    @property
    def memory(self) -> int:
        """The estimated memory for this index and its manifest, in bytes; they may take less."""
        paths = self.archive.paths
        manifest = self.archive.size(MANIFEST_FILE) if MANIFEST_FILE in paths else 0
        return 16_000 + 600 * len(paths) + 30 * manifest

    def kept_open(self, file: io.FileIO | None = None) -> contextlib.AbstractContextManager[None]:
        """Keep the archive open for this thread during the ``with`` block; open it only once.

        :param file: the archive, if it is already open for reading.
        :raises OSError: if the archive cannot be opened.
        """
        return self._file.kept_open(file)

    def move(self, target: pathlib.Path) -> None:
        """Move the archive to another path, and keep this index in memory under the new path.

        ``find`` then does not have to read the archive again.

        :raises OSError: if the archive cannot be moved.
        """
        pathlib.Path(self.identity.path).rename(target)
        self.use(target)

    def use(self, path: pathlib.Path) -> None:
        """Read the archive at another path from now on, and keep this index under that path.

        :param path: the path of a file with the same content.
        :raises OSError: if the file is missing.
        """
        self._file.path = str(path)
        self.identity = Identity.of(path, self.identity.limits)
        _keep(self)


_indexes: cachetools.Cache[Identity, ArchiveIndex] = cachetools.RRCache(
    _MEMORY, getsizeof=lambda index: index.memory
)
_lock = threading.Lock()


def kept(identity: Identity) -> ArchiveIndex | None:
    """Return the index of an archive, if it is in memory."""
    with _lock:
        return _indexes.get(identity)


def find(identity: Identity) -> ArchiveIndex:
    """Return the index of an archive; make the index if it is not in memory.

    :raises InvalidArchive: if the archive breaks a rule.
    :raises OSError: if the archive cannot be read.
    """
    index = kept(identity)
    if index is None:
        index = ArchiveIndex(identity)
        _keep(index)
    return index


def _keep(index: ArchiveIndex) -> None:
    # An index that is larger than the whole memory is not kept.
    with _lock, contextlib.suppress(ValueError):
        _indexes[index.identity] = index


class _ReopenedFile(io.RawIOBase):
    """A file that is open only during a read, since the number of open files is limited."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self._offset = 0
        # Each thread opens the file itself, since it may close it while another thread reads.
        self._kept = threading.local()

    @contextlib.contextmanager
    def kept_open(self, file: io.FileIO | None = None) -> Iterator[None]:
        """Keep the file open for this thread during the ``with`` block."""
        with contextlib.ExitStack() as stack:
            self._kept.file = file or stack.enter_context(open(self.path, "rb", buffering=0))
            try:
                yield
            finally:
                del self._kept.file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_CUR:
            offset += self._offset
        elif whence == io.SEEK_END:
            offset += os.stat(self.path).st_size
        if offset < 0:
            raise OSError(f"cannot seek to {offset}, before the start of {self.path}")
        self._offset = offset
        return offset

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]
        file: io.FileIO | None = getattr(self._kept, "file", None)
        if file is None:
            with self.kept_open():
                return self.readinto(buffer)
        file.seek(self._offset)
        count = file.readinto(buffer)
        self._offset += count
        return count
