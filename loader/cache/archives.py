# SPDX-License-Identifier: Apache-2.0

"""Archives on disk, as they were downloaded; each is named by its SHA-256 digest.

The first use of an archive checks its digest, and writes a record into another
directory. The next use checks the archive again if a process has written to it, or if its
record is missing or damaged.

The modification time of a record is the archive's last-used time.
"""

import contextlib
import pathlib
from collections.abc import Collection, Iterator

from loader import fs
from loader.cache.checksums import Record


class ArchiveFiles:
    """A directory of archives, and another of their records.

    A digest is locked while its archive is changed. Methods raise ``OSError`` if
    the disk fails.
    """

    def __init__(self, root: pathlib.Path, records: pathlib.Path) -> None:
        """Use two existing directories."""
        self._root = root
        self._records = records

    def names(self) -> Iterator[str]:
        """Yield the names of all archives and records."""
        for directory in (self._root, self._records):
            yield from (path.name for path in directory.iterdir())

    def path(self, digest: str) -> pathlib.Path:
        """Return the path of an archive, which may be missing."""
        return self._root / digest

    def record(self, digest: str) -> pathlib.Path:
        """Return the path of an archive's integrity record; the file may be missing."""
        return self._records / digest

    def has(self, digest: str) -> bool:
        """Return whether an archive exists; it may be damaged."""
        return self.path(digest).is_file()

    def is_untouched(self, digest: str) -> bool:
        """Return whether an archive was intact at its last check, and was not written to since."""
        try:
            # Every load of a package runs this, and strings are faster than pathlib.
            return Record.load(f"{self._records}/{digest}") == self._stamp(digest)
        except (OSError, ValueError):
            return False

    def damage(self, digest: str) -> list[str] | None:
        """Read an archive, and return its problems, or None for a missing archive."""
        try:
            record = self._stamp(digest)
        except FileNotFoundError:
            return None
        problems = record.problems(self._root)
        if not problems and not self.is_untouched(digest):
            self._save(digest, record)
        return [f"its archive {problem}" for problem in problems.values()]

    def place(self, made: Collection[pathlib.Path]) -> None:
        """Move new archives to their places, after all of them are on the disk.

        :param made: the files, whose names are their digests.
        """
        fs.sync_files(made)
        for path in made:
            target = self.path(path.name)
            if target.is_dir():
                fs.remove(target)
            path.rename(target)
            # Renaming changes the time of change, so the record is made afterwards.
            self._save(path.name, self._stamp(path.name))
        fs.sync(self._root)

    def remove(self, digest: str) -> None:
        """Remove an archive and its record."""
        fs.remove(self.path(digest))
        fs.remove(self.record(digest))

    def discard(self, digest: str) -> None:
        """Remove an archive and its record, so that a power failure does not bring them back."""
        self.remove(digest)
        fs.sync(self._root)

    def size(self, digest: str) -> int:
        """Return how many bytes an archive occupies on the disk."""
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
