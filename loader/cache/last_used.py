# SPDX-License-Identifier: Apache-2.0

"""Store the last-used times of files as their modification times.

Each new time is later than all earlier ones, so that files can be sorted by their last use.
Normally, the new time is the present time. If this host's clock is behind the latest time, the new
time is the latest time plus a nanosecond. The latest time is stored as the modification time of a
separate file.

Functions raise ``OSError`` if the disk fails.
"""

import os
import pathlib
import time


def mark_used(path: pathlib.Path, latest: pathlib.Path) -> None:
    """Set the last-used time of a file to a new time, which is later than all earlier ones.

    :param latest: the file that stores the latest time; it gets the new time as well.
    """
    now = max(time.time_ns(), time_of(latest) + 1)
    os.utime(latest, ns=(now, now))
    os.utime(path, ns=(now, now))


def advance(latest: pathlib.Path, used: int) -> None:
    """Set the latest time to a file's last-used time, if the file's time is later.

    This may be so in a cache that was copied.

    :param latest: the file that stores the latest time.
    :param used: the last-used time of a file, in nanoseconds.
    """
    if used > time_of(latest):
        os.utime(latest, ns=(used, used))


def time_of(path: pathlib.Path) -> int:
    """Return the last-used time of a file, in nanoseconds; 0 for a missing file."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
