# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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
