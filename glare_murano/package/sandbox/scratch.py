# SPDX-License-Identifier: Apache-2.0

"""Remove the temporary directories of child processes."""

import contextlib
import os
import pathlib
import shutil
import time

# The prefix of the names of these directories.
PREFIX = "glare-murano-child-"
# The age at which a directory that was left over is removed, in seconds.
_ABANDONED = 24 * 3600


def remove(directory: pathlib.Path) -> None:
    """Remove a directory of a child, even if the child has changed permissions in it."""
    # A child can nest directories too deeply for these functions.
    with contextlib.suppress(OSError, RecursionError):
        _permit(directory)
        for parent, names, _ in os.walk(directory):
            for path in (pathlib.Path(parent, name) for name in names):
                _permit(path)
    with contextlib.suppress(RecursionError):
        shutil.rmtree(directory, ignore_errors=True)


def _permit(path: pathlib.Path) -> None:
    """Try to set the permissions of a directory so that the directory can be removed.

    Symbolic links are skipped.
    """
    # A link may lead out of the directory of the child, and nothing outside of it may be changed.
    if not path.is_symlink():
        with contextlib.suppress(OSError):
            path.chmod(0o700)


def remove_abandoned(directory: pathlib.Path) -> None:
    """Remove old directories that children have left behind, such as after a restart of the host.

    :param directory: the directory that contains the directories of children.
    """
    oldest = time.time() - _ABANDONED
    for path in directory.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if path.lstat().st_mtime < oldest and not path.is_symlink():
                remove(path)
