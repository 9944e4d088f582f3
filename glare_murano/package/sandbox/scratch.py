# SPDX-License-Identifier: Apache-2.0

"""The directories for temporary files that children get, and their removal."""

import contextlib
import os
import pathlib
import shutil
import time

# The prefix of their names.
PREFIX = "glare-murano-child-"
# A directory that nobody has removed before is removed at this age, in seconds.
_ABANDONED = 24 * 3600


def remove(directory: pathlib.Path) -> None:
    """Remove a directory of a child, even if the child has changed permissions in it."""
    # A child can nest directories too deeply.
    with contextlib.suppress(OSError, RecursionError):
        _permit(directory)
        for parent, names, _ in os.walk(directory):
            for path in (pathlib.Path(parent, name) for name in names):
                _permit(path)
    with contextlib.suppress(RecursionError):
        shutil.rmtree(directory, ignore_errors=True)


def _permit(path: pathlib.Path) -> None:
    """Permit the removal of a directory, if that is possible."""
    # Nothing outside of the directory is changed.
    if not path.is_symlink():
        with contextlib.suppress(OSError):
            path.chmod(0o700)


def remove_abandoned(directory: pathlib.Path) -> None:
    """Remove the old directories that nobody has removed, as after a restart of the host.

    :param directory: the directory that contains them.
    """
    oldest = time.time() - _ABANDONED
    for path in directory.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if path.lstat().st_mtime < oldest and not path.is_symlink():
                remove(path)
