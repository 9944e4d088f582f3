# SPDX-License-Identifier: Apache-2.0

"""Last-used times of files, which are kept as their modification times.

A new time is the present time, or the latest time plus a nanosecond where a clock
was set back, or the clock of another host is behind. So the times always keep the
order of use.
"""

import os
import pathlib
import time


class LastUsedTimes:
    """A source of increasing times; methods raise ``OSError`` if writing fails."""

    def __init__(self, path: pathlib.Path) -> None:
        """Use an existing file, whose own modification time is the latest time."""
        self._path = path

    def update(self, path: pathlib.Path) -> None:
        """Set the last-used time of a file to a new time."""
        now = max(time.time_ns(), last_used(self._path) + 1)
        os.utime(self._path, ns=(now, now))
        os.utime(path, ns=(now, now))

    def advance_to(self, latest: int) -> None:
        """Give only later times from now on; in a copied cache, files can be ahead."""
        if latest > last_used(self._path):
            os.utime(self._path, ns=(latest, latest))


def last_used(path: pathlib.Path) -> int:
    """Return the last-used time of a file, in nanoseconds, or 0 for a missing file."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
