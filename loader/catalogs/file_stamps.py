# SPDX-License-Identifier: Apache-2.0
"""How files and folders stood when they were read, so that they are read once.

It tells by ``stat`` whether they still stand so. It does not read them, and
neither waits nor is told of changes.
"""

import os
import time
from collections.abc import Iterable

_SECOND = 1_000_000_000
# How long a file can change again and have the same time: a tick of the clock
# of the file system, which counts in whole seconds or in milliseconds.
_COARSE_TICK = 2 * _SECOND
_FINE_TICK = _SECOND // 20

# What changes with the content; of a path that cannot be looked at, why.
_Stamp = tuple[int, ...]


class Snapshot:
    """How some paths stand now. Take it before they are read."""

    def __init__(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        self._stamps = {os.fspath(path): _stamp(path) for path in paths}
        now = time.time_ns()
        self._is_certain = all(_is_past(stamp, now) for stamp in self._stamps.values())

    @property
    def stands(self) -> bool:
        """Whether none has been changed, replaced or removed since."""
        return all(_stamp(path) == stamp for path, stamp in self._stamps.items())

    @property
    def stands_for_sure(self) -> bool:
        """The same, but false also where a change could not be told by its time."""
        return self._is_certain and self.stands


def _stamp(path: str | os.PathLike[str]) -> _Stamp:
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError as error:
        return (error.errno or -1,)
    # The time of the last change of any kind comes first: nobody can set it.
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode


def _is_past(stamp: _Stamp, now: int) -> bool:
    changed = stamp[0]
    tick = _FINE_TICK if changed % _SECOND else _COARSE_TICK
    return changed + tick < now
