# SPDX-License-Identifier: Apache-2.0

"""Keep archives on disk as they were downloaded; each file is named after its SHA-256 digest.

When an archive is stored or first used, its digest is checked, and a record of its size and time of
change is written into another directory. Later uses check the digest again only if a process has
written to the archive, or if its record is missing or damaged. The modification time of the record
is the archive's last-used time.
"""

import contextlib
import pathlib
from collections.abc import Iterator, Mapping

from loader import fs
from loader.archive_indexes import ArchiveIndex
from loader.cache.checksums import Record


class ArchiveFiles:
    """A directory of archives, and a directory of their records.

    A record has the size and the time of change that an archive had when its digest was last
    checked. The caller locks a digest before it changes the archive. Methods raise ``OSError`` if
    the disk fails.
    """

    def __init__(self, root: pathlib.Path, records: pathlib.Path) -> None:
        """Use existing directories.

        :param root: the directory of the archives.
        :param records: the directory of the records.
        """
        self._root = root
        self._records = records

    def names(self) -> Iterator[str]:
        """Yield the file names of all archives and records."""
        for directory in (self._root, self._records):
            yield from (path.name for path in directory.iterdir())

    def path(self, digest: str) -> pathlib.Path:
        """Return the path at which an archive is stored; the file may be missing."""
        return self._root / digest

    def record(self, digest: str) -> pathlib.Path:
        """Return the path of an archive's record; the file may be missing."""
        return self._records / digest

    def has(self, digest: str) -> bool:
        """Return whether an archive exists; it may be damaged."""
        return self.path(digest).is_file()

    def is_untouched(self, digest: str) -> bool:
        """Return whether nothing was written to an archive since its digest was last checked.

        :returns: false if the archive or its record is missing, or if its record is damaged.
        """
        try:
            # Every load of a package runs this, and strings are faster than pathlib.
            return Record.load(f"{self._records}/{digest}") == self._stamp(digest)
        except (OSError, ValueError):
            return False

    def damage(self, digest: str) -> list[str] | None:
        """Read an archive, and return what is wrong with it; None if the archive is missing.

        If the archive is intact, but its record is missing, damaged or out of date, a new record
        is written.

        :returns: problems such as "its archive has changed since it was stored"; an empty list for
            an intact archive.
        """
        try:
            record = self._stamp(digest)
        except FileNotFoundError:
            return None
        problems = record.problems(self._root)
        if not problems and not self.is_untouched(digest):
            self._save(digest, record)
        return [f"its archive {problem}" for problem in problems.values()]

    def place(self, made: Mapping[str, ArchiveIndex]) -> None:
        """Sync new archives to the disk, move them to their places, and write their records.

        :param made: a mapping of digests to the indexes of the archives.
        """
        for index in made.values():
            fs.sync(index.identity.path)
        for digest, index in made.items():
            target = self.path(digest)
            if target.is_dir():
                fs.remove(target)
            index.move(target)
            # Renaming changes the time of change, so the record is made afterwards.
            self._save(digest, self._stamp(digest))
        fs.sync(self._root)

    def remove(self, digest: str) -> None:
        """Remove an archive and its record."""
        fs.remove(self.path(digest))
        fs.remove(self.record(digest))

    def discard(self, digest: str) -> None:
        """Remove an archive and its record; a power failure cannot bring them back."""
        self.remove(digest)
        fs.sync(self._root)

    def size(self, digest: str) -> int:
        """Return how many bytes an archive occupies on the disk; 0 if the archive is missing."""
        try:
            return fs.size_on_disk(self.path(digest).lstat().st_size)
        except FileNotFoundError:
            return 0

    def _stamp(self, digest: str) -> Record:
        return Record.stamp(self._root, {digest: digest})

    def _save(self, digest: str, record: Record) -> None:
        # If the record cannot be written, each use of the archive checks its digest.
        with contextlib.suppress(OSError):
            record.save(self.record(digest))
