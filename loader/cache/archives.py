# SPDX-License-Identifier: Apache-2.0

"""Archives on disk, as they were downloaded: the name of each is its SHA-256.

Nothing else has to be known to tell whether an archive is what it must be. It
is read for that when it is used first, and again if it was written to since:
a note beside the archive says what it looked like when it was found to be
whole. A note may be missing or wrong, then the archive is read once more; its
time is the stamp of the archive's last use.

The module knows files; what is in them, and who uses or removes them when, it
does not.
"""

import contextlib
import hashlib
import os
import pathlib
import shutil
from collections.abc import Collection

from loader.fs import (
    begin_to_sync,
    is_passing,
    private,
    remove,
    size_on_disk,
    sync_file,
    sync_folder,
)

_LONGEST_NOTE = 100


class Archives:
    """A folder of archives and one of notes; whoever changes one must have locked its digest."""

    def __init__(self, root: pathlib.Path, notes: pathlib.Path) -> None:
        """Use two folders that are there."""
        self._root = root
        self._notes = notes

    def path(self, digest: str) -> pathlib.Path:
        """Where an archive is, if it is there."""
        return self._root / digest

    def note(self, digest: str) -> pathlib.Path:
        """The file whose time tells when an archive was used."""
        return self._notes / digest

    def digests(self) -> set[str]:
        """Whatever has an archive or a note.

        :raises OSError: if they cannot be listed.
        """
        return {path.name for folder in (self._root, self._notes) for path in folder.iterdir()}

    def has(self, digest: str) -> bool:
        """Whether an archive is there; it is not read."""
        return self.path(digest).is_file()

    def is_whole(self, digest: str) -> bool:
        """Whether an archive is there as it must be; it is read only if it was written to.

        :raises OSError: if it cannot be looked at.
        """
        return self.is_untouched(digest) or self.damage(digest) == []

    def is_untouched(self, digest: str) -> bool:
        """Whether an archive is there that was found whole, and not written to since."""
        # Texts, not pathlib: it is done for each package of each task.
        try:
            with open(f"{self._notes}/{digest}", "rb", buffering=0) as note:
                return note.read(_LONGEST_NOTE) == _look(f"{self._root}/{digest}")
        except OSError:
            return False

    def damage(self, digest: str) -> list[str] | None:
        """Read an archive: what is wrong with it, or none if it is not there.

        :raises OSError: if it cannot be read for a reason that may pass.
        """
        path = self.path(digest)
        try:
            look = _look(path)
            if not path.is_file() or path.is_symlink():
                return ["its archive is no file"]
            with path.open("rb", buffering=0) as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
        except FileNotFoundError:
            return None
        except OSError as error:
            if is_passing(error):
                raise
            return [f"its archive cannot be read: {error}"]
        if found != digest:
            return ["its archive is not what was downloaded"]
        self._take_note(digest, look)
        return []

    def place(self, made: Collection[pathlib.Path]) -> None:
        """Have archives appear when all of them are on the disk.

        :param made: files that are named by their digests; they are moved.
        :raises OSError: if that fails.
        """
        begin_to_sync(made)
        for path in made:
            sync_file(path)
        for path in made:
            _move(path, self.path(path.name))
            # Only now, since a rename shows in how it looks.
            self._take_note(path.name, _look(self.path(path.name)))
        sync_folder(self._root)

    def remove(self, digest: str) -> None:
        """Remove an archive and its note.

        :raises OSError: if that fails.
        """
        remove(self.path(digest))
        remove(self.note(digest))

    def discard(self, digest: str) -> None:
        """Remove an archive for good: a power cut does not bring it back.

        :raises OSError: if that fails.
        """
        self.remove(digest)
        sync_folder(self._root)

    def size(self, digest: str) -> int:
        """What an archive takes up on the disk, in bytes."""
        try:
            return size_on_disk(self.path(digest).lstat().st_size)
        except FileNotFoundError:
            return 0

    def _take_note(self, digest: str, look: bytes) -> None:
        # Where none can be written, the archive is read each time a cache is opened.
        with (
            contextlib.suppress(OSError),
            open(self.note(digest), "wb", opener=private) as stream,
        ):
            stream.write(look)


def _move(made: pathlib.Path, target: pathlib.Path) -> None:
    """Put a file in the place of whatever is there."""
    try:
        made.rename(target)
    except IsADirectoryError:
        shutil.rmtree(target)
        made.rename(target)


def _look(path: str | pathlib.Path) -> bytes:
    """How a file looks that nobody has written to.

    The time of its last change can be set by nobody, so a file that has it
    still was not written to since, but for the few milliseconds of one tick.
    """
    there = os.lstat(path)
    return f"{there.st_ino} {there.st_size} {there.st_ctime_ns}".encode()
