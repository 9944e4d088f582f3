# SPDX-License-Identifier: Apache-2.0

"""Record the state of files and directories, so that they are read again only after a change."""

import os
import time
from collections.abc import Iterable

_SECOND = 1_000_000_000
# A file that changes twice within one tick of the file system's clock keeps its time of change. A
# tick is a whole second or some milliseconds; these are upper limits, in nanoseconds.
_COARSE_TICK = 2 * _SECOND
_FINE_TICK = _SECOND // 20

# The results of ``stat`` that change with the content; the error number if the path is unreadable.
_Stamp = tuple[int, ...]


class FileStamps:
    """The state of files and directories, recorded before their content is read."""

    def __init__(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        self._stamps = {os.fspath(path): _stamp(path) for path in paths}
        now = time.time_ns()
        self._is_certain = all(_is_past(stamp, now) for stamp in self._stamps.values())

    @property
    def unchanged(self) -> bool:
        """Whether no path was changed, replaced or removed since its state was recorded."""
        return all(_stamp(path) == stamp for path, stamp in self._stamps.items())

    @property
    def surely_unchanged(self) -> bool:
        """Whether it is certain that no path was changed since its state was recorded.

        Two changes may have the same time, if they follow each other within a tick of the file
        system's clock. So this is also false if the state was recorded too soon after a change.
        """
        return self._is_certain and self.unchanged


def _stamp(path: str | os.PathLike[str]) -> _Stamp:
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError as error:
        return (error.errno or -1,)
    # The first value is the time of the last change of any kind, which no program can set.
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode


def _is_past(stamp: _Stamp, now: int) -> bool:
    changed = stamp[0]
    tick = _FINE_TICK if changed % _SECOND else _COARSE_TICK
    return changed + tick < now
