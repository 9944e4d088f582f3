# SPDX-License-Identifier: Apache-2.0

"""Files to be read that keep their place by themselves, wherever their bytes are."""

import abc
import io


class SeekableFile(io.RawIOBase):
    """Knows its place; what there is to read, those know that derive from it."""

    def __init__(self) -> None:
        """Begin at the beginning."""
        self._offset = 0

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """How many bytes it has."""

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def seekable(self) -> bool:
        """Whether it can seek."""
        return True

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._offset

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go elsewhere.

        :raises OSError: if that is before the file.
        """
        if whence == io.SEEK_CUR:
            offset += self._offset
        elif whence == io.SEEK_END:
            offset += self.size
        if offset < 0:
            raise OSError("a place before the file")
        self._offset = offset
        return offset
