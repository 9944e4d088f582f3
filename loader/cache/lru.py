# SPDX-License-Identifier: Apache-2.0

"""The order in which files were used, kept as their times of change.

A stamp is the time, or more than the last stamp where the clock has been set
back, or another host's is behind. So stamps keep their order whatever clocks
do, and one from the future is soon an old one. The module knows files; what
they stand for, it does not.
"""

import os
import pathlib
import time

# The stamp of a file that is not there.
NEVER = 0


class UseClock:
    """A file that bears the last stamp, and gives later ones to others."""

    def __init__(self, path: pathlib.Path) -> None:
        """Use a file that is there."""
        self._path = path

    def stamp(self, path: pathlib.Path) -> None:
        """Note that a file is used now.

        :raises OSError: if that cannot be written.
        """
        now = max(time.time_ns(), last_use(self._path) + 1)
        os.utime(self._path, ns=(now, now))
        os.utime(path, ns=(now, now))

    def catch_up(self, stamp: int) -> None:
        """Let no file be ahead of the clock, as where its own file is a new one.

        :raises OSError: if that cannot be written.
        """
        if stamp > last_use(self._path):
            os.utime(self._path, ns=(stamp, stamp))


def last_use(path: pathlib.Path) -> int:
    """The stamp of a file, to be compared with others."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return NEVER
