# SPDX-License-Identifier: Apache-2.0

"""Remove the temporary directories of child processes."""

import contextlib
import os
import pathlib
import time
import uuid
from collections.abc import Iterator

# The prefix of the names of these directories.
PREFIX = "glare-murano-child-"
# The age at which a directory that was left over is removed, in seconds.
_ABANDONED = 24 * 3600


def remove(directory: pathlib.Path) -> None:
    """Remove a directory of a child, even if the child has changed permissions in it.

    A child can make millions of files, and can nest directories very deep. So no list of files is
    made, and directories are lifted to the top instead of being entered.
    """
    with contextlib.suppress(OSError):
        # Without walls, a child can put a link to another directory in the place of its own.
        if directory.is_symlink():
            directory.unlink()
            return
        directory.chmod(0o700)
        while _remove_once(directory):
            pass
        directory.rmdir()


def abandon(directory: pathlib.Path) -> None:
    """Let the next supervisor that ends remove a directory; see ``remove_abandoned``."""
    with contextlib.suppress(OSError):
        os.utime(directory, (0, 0), follow_symlinks=False)


def _remove_once(top: pathlib.Path) -> bool:
    """Remove the files and the directories in a directory.

    Directories in these directories are moved to the top, and have to be removed the next time.

    :returns: whether anything was removed.
    """
    is_changed = False
    for path, is_directory in _entries(top):
        with contextlib.suppress(OSError):
            if is_directory:
                _empty(path, top)
                path.rmdir()
            else:
                path.unlink()
            is_changed = True
    return is_changed


def _empty(directory: pathlib.Path, top: pathlib.Path) -> None:
    """Remove the files in a directory, and move the directories in it to the top."""
    directory.chmod(0o700)
    for path, is_directory in _entries(directory):
        with contextlib.suppress(OSError):
            if is_directory:
                # A directory that cannot be written cannot be moved either.
                path.chmod(0o700)
                path.rename(top / uuid.uuid4().hex)
            else:
                path.unlink()


def _entries(directory: pathlib.Path) -> Iterator[tuple[pathlib.Path, bool]]:
    """Yield each path in a directory, and whether it is a directory.

    A symbolic link is not a directory: it may lead out of the directory of the child, and nothing
    outside of it may be changed.
    """
    with os.scandir(directory) as entries:
        for entry in entries:
            yield pathlib.Path(entry.path), entry.is_dir(follow_symlinks=False)


def remove_abandoned(directory: pathlib.Path) -> None:
    """Remove the directories that are older than a day, or marked by ``abandon``.

    A directory is left behind if a supervisor is killed, such as by a restart of the host.

    :param directory: the directory that contains the directories of children.
    """
    oldest = time.time() - _ABANDONED
    for path in directory.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if path.lstat().st_mtime < oldest and not path.is_symlink():
                remove(path)
