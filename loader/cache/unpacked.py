# SPDX-License-Identifier: Apache-2.0

"""Packages on disk as files: unpacked once, and looked at before they are used.

A package lies in a folder that is named by the SHA-256 of its archive::

    DIGEST/files/       the files
    DIGEST/record       their sizes and sums; without it, there is no package

Files and record are written out to the disk before one rename makes both
appear. The module knows folders; what they are unpacked from, and who uses or
removes them when, it does not.
"""

import contextlib
import errno
import os
import pathlib
import shutil
from collections.abc import Callable

from loader.cache.checksums import Record
from loader.cache.staging import Workspaces
from loader.fs import is_passing, remove, sync_folder

_FILES = "files"
_RECORD = "record"


class Unpacked:
    """A folder of packages; whoever changes one must have locked its digest."""

    def __init__(self, root: pathlib.Path, workspaces: Workspaces) -> None:
        """Use a folder that is there.

        :param workspaces: where packages are made; on the same file system.
        """
        self._root = root
        self._workspaces = workspaces

    def folder(self, digest: str) -> pathlib.Path:
        """Where the files of a package are, if it is there."""
        return self._root / digest / _FILES

    def digests(self) -> set[str]:
        """Whatever has a folder, be it a package or not.

        :raises OSError: if they cannot be listed.
        """
        return {path.name for path in self._root.iterdir()}

    def is_whole(self, digest: str) -> bool:
        """Whether a package is there as it was unpacked; it is read only if it was written to.

        :raises OSError: if it cannot be read for a reason that may pass.
        """
        return self.is_untouched(digest) or self.damage(digest) == []

    def is_untouched(self, digest: str) -> bool:
        """Whether a package is there to which nobody has written since it was unpacked."""
        try:
            return Record.load(self._record(digest)).untouched(self.folder(digest))
        except (OSError, ValueError):
            return False

    def damage(self, digest: str) -> list[str] | None:
        """Read a package: what is wrong with it, or none if it is not there.

        :raises OSError: if it cannot be read for a reason that may pass.
        """
        folder = self.folder(digest)
        try:
            record = Record.load(self._record(digest))
            copy = record.restamped(folder)
            damage = record.differences(folder)
            if not damage and copy != record:
                self._replace_record(digest, copy)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and is_passing(error):
                raise
            damage = [str(error)]
        # Its record is the first that goes when a package is removed.
        return damage if self._record(digest).exists() else None

    def make(self, digest: str, unpack: Callable[[pathlib.Path], object]) -> None:
        """Have a package appear when all of it is on the disk.

        :param unpack: writes the files below a folder that does not exist yet.
        :raises OSError: if that fails; nothing is left then.
        """
        with self._workspaces.folder(digest) as work:
            unpack(work / _FILES)
            Record.seal(work / _FILES).save(work / _RECORD)
            self._replace(work)
        sync_folder(self._root)

    def forget(self, digest: str) -> None:
        """Have a package be missing for good; its files stay for those who use them.

        :raises OSError: if that fails.
        """
        self._remove_record(digest)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            # A power cut does not bring it back.
            sync_folder(self._root / digest)

    def remove(self, digest: str) -> None:
        """Remove all of a package, as far as it can be.

        :raises OSError: if it would still be a package.
        """
        self._remove_record(digest)
        shutil.rmtree(self._root / digest, ignore_errors=True)
        # A file that somebody has put in its place.
        with contextlib.suppress(OSError):
            (self._root / digest).unlink()

    def is_gone(self, digest: str) -> bool:
        """Whether nothing is left of a package."""
        return not os.path.lexists(self._root / digest)

    def size(self, digest: str) -> int:
        """What the files of a package take up on the disk, in bytes."""
        try:
            return Record.load(self._record(digest)).size
        except (OSError, ValueError):
            return 0

    def _record(self, digest: str) -> pathlib.Path:
        return self._root / digest / _RECORD

    def _remove_record(self, digest: str) -> None:
        # Where somebody has put a file in the place of the folder, there is none.
        with contextlib.suppress(NotADirectoryError):
            remove(self._record(digest))

    def _replace(self, made: pathlib.Path) -> None:
        target = self._root / made.name
        try:
            made.rename(target)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                raise
            # Damaged, not removed to the end, or no folder at all.
            with self._workspaces.new() as before:
                target.rename(before / made.name)
                made.rename(target)

    def _replace_record(self, digest: str, record: Record) -> None:
        # Where it cannot be written the old one does, but all files are read each time.
        with contextlib.suppress(OSError), self._workspaces.new() as folder:
            record.save(folder / _RECORD)
            (folder / _RECORD).rename(self._record(digest))
