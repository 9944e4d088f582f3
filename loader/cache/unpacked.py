# SPDX-License-Identifier: Apache-2.0

"""Keep unpacked packages on disk, each in a directory named after its archive's SHA-256 digest.

The directory contains the package's ``files``, and a ``record`` of their sizes and checksums. Files
without a record are not used. The files and the record are completed in a staging directory, and
moved to their place by a single rename. They are not synced to the disk. So after a power cut, the
files are compared with the record before they are used.
"""

import contextlib
import errno
import os
import pathlib
import shutil
from collections.abc import Iterator

from glare_murano.package import Limits
from loader import archive_indexes, fs
from loader.archive_indexes import Identity
from loader.cache.checksums import Record
from loader.cache.staging import StagingDirectories

_FILES = "files"
_RECORD = "record"


class UnpackedPackages:
    """A directory of unpacked packages.

    The caller locks a digest before it changes the package. Methods raise ``OSError`` if the disk
    fails.
    """

    def __init__(self, root: pathlib.Path, staging: StagingDirectories) -> None:
        """Use an existing directory.

        :param root: the directory of the packages, on the same file system as the staging
            directories.
        :param staging: the staging directories.
        """
        self._root = root
        self._staging = staging

    def names(self) -> Iterator[str]:
        """Yield the names of the packages' directories."""
        return (path.name for path in self._root.iterdir())

    def files(self, digest: str) -> pathlib.Path:
        """Return the directory of a package's files; it may be missing."""
        return self._root / digest / _FILES

    def is_untouched(self, digest: str) -> bool:
        """Return whether a package exists, and its files have not changed since their last check.

        After a restart of the host, this is false until the files are checked again.
        """
        try:
            record = Record.load(self._record(digest))
            return record.is_of_this_boot and record.restamped(self.files(digest)) == record
        except (OSError, ValueError):
            return False

    def damage(self, digest: str) -> list[str] | None:
        """Read a package's files, and return their problems; None if the package is missing.

        If the files are intact, but their record is out of date, it is written again.
        """
        files = self.files(digest)
        present = None
        try:
            record = Record.load(self._record(digest))
            # ``problems`` below reports a missing file.
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                present = record.restamped(files).confirmed()
            problems = [f"{path} {problem}" for path, problem in record.problems(files).items()]
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and fs.is_temporary(error):
                raise
            problems = [str(error)]
        if not problems and present is not None and present != record:
            # If the record cannot be replaced, each use of the package checks its files.
            with contextlib.suppress(OSError), self._staging.new() as made:
                present.save(made / _RECORD)
                (made / _RECORD).rename(self._record(digest))
        # If the record is missing, another process is removing the package.
        return problems if self._record(digest).exists() else None

    def make(self, digest: str, path: pathlib.Path, limits: Limits) -> None:
        """Unpack an archive, and move its files to their place.

        :param path: the archive.
        :param limits: the limits for an archive.
        :raises InvalidArchive: if the archive breaks a rule.
        """
        with self._staging.directory(digest) as made:
            index = archive_indexes.find(Identity.of(path, limits))
            with index.kept_open():
                index.archive.unpack(made / _FILES)
            Record.of_tree(made / _FILES).save(made / _RECORD)
            self._place(made)

    def forget(self, digest: str) -> None:
        """Remove the record of a package, so that its files are not used any more.

        The files stay. A power failure cannot bring the record back.
        """
        fs.remove(self._record(digest))
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            fs.sync(self._root / digest)

    def remove(self, digest: str) -> bool:
        """Remove a package's record, and then its files as far as possible.

        :returns: whether nothing of the package is left.
        """
        fs.remove(self._record(digest))
        shutil.rmtree(self._root / digest, ignore_errors=True)
        # There may be a file instead of the directory.
        with contextlib.suppress(OSError):
            (self._root / digest).unlink()
        return not os.path.lexists(self._root / digest)

    def size(self, digest: str) -> int:
        """Return how many bytes the files of a package occupy on the disk."""
        try:
            return Record.load(self._record(digest)).size
        except (OSError, ValueError):
            return 0

    def _record(self, digest: str) -> pathlib.Path:
        return self._root / digest / _RECORD

    def _place(self, made: pathlib.Path) -> None:
        target = self._root / made.name
        try:
            made.rename(target)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                raise
            # The target is damaged, partly removed, or not a directory.
            with self._staging.new() as old:
                target.rename(old / made.name)
                made.rename(target)
