# SPDX-License-Identifier: Apache-2.0

"""Last-used times of files, which are stored as modification times.

A new time is the present time. If a clock was set back, or another host's clock is slow, it is
the latest time plus a nanosecond. So the order of the times is always the order of use. The latest
time is the modification time of another file. Functions raise ``OSError`` if the disk fails.
"""

import os
import pathlib
import time


def mark_used(path: pathlib.Path, latest: pathlib.Path) -> None:
    """Set the last-used time of a file to a new time, and the latest time as well."""
    now = max(time.time_ns(), last_used(latest) + 1)
    os.utime(latest, ns=(now, now))
    os.utime(path, ns=(now, now))


def advance(latest: pathlib.Path, used: int) -> None:
    """Let new times follow a last-used time, which can be in the future in a copied cache."""
    if used > last_used(latest):
        os.utime(latest, ns=(used, used))


def last_used(path: pathlib.Path) -> int:
    """Return the last-used time of a file, in nanoseconds; 0 for a missing file."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
