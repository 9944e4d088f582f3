# SPDX-License-Identifier: Apache-2.0
"""A file elsewhere of which only some ranges are read, as an open file.

It asks for what is missing, and for a little more than was asked for, up to a
limit. It knows nothing of HTTP.
"""

from collections.abc import Callable

from loader.seeking import SeekableFile

# What is asked for at least.
_LEAST = 16 * 1024


class TooMuch(Exception):
    """More of a file was wanted than may be read by ranges."""


class RangeFile(SeekableFile):
    """A file of a known size whose end has been read already."""

    def __init__(
        self, size: int, tail: bytes, fetch: Callable[[int, int], bytes], budget: int
    ) -> None:
        """Make a file.

        :param tail: its last bytes.
        :param fetch: gives the bytes from one offset up to another.
        :param budget: how many bytes may be asked for.
        """
        super().__init__()
        self._size = size
        self._parts = {size - len(tail): tail}
        self._fetch = fetch
        self._budget = budget

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self._size

    def read(self, size: int | None = -1) -> bytes:
        """Read so many bytes, fewer only at the end of the file."""
        start = min(self._offset, self._size)
        wanted = self._size - start if size is None or size < 0 else size
        end = min(start + wanted, self._size)
        data = self._between(start, end) if end > start else b""
        self._offset += len(data)
        return data

    def _between(self, start: int, end: int) -> bytes:
        for offset, part in self._parts.items():
            if offset <= start and end <= offset + len(part):
                return part[start - offset : end - offset]
        further = min(max(end, start + _LEAST), self._size)
        self._budget -= further - start
        if self._budget < 0:
            raise TooMuch
        self._parts[start] = self._fetch(start, further)
        return self._parts[start][: end - start]
