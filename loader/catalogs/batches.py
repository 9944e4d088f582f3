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

"""Batches: several archives as one TAR stream, as Glare's filter of ``glare_murano`` gives them.

How they are asked for is the catalogue's affair; that an archive is the right
one, the cache's.
"""

import tarfile
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

PATH = "/murano/archives"

# What reading a stream that is none may end in, beside the errors of a request.
MALFORMED = (tarfile.TarError, ValueError, LookupError, OSError)


def body(ids: Iterable[str]) -> dict[str, Any]:
    """The request for the archives of artifacts."""
    return {"artifacts": list(ids)}


def read(pieces: Iterator[bytes], sizes: dict[str, int]) -> Iterator[tuple[str, bytes]]:
    """The archives in a batch, each with the id of its artifact.

    :param pieces: the stream.
    :param sizes: id of an artifact that was asked for -> size of its archive. What
        is not among them, or of another size, is passed over.
    :raises MALFORMED: if the stream is no batch, or larger than it can be.
    """
    # In steps of a block, for each a header and the archive; at the end a record of blocks.
    limit = tarfile.RECORDSIZE + sum(size + 2 * tarfile.BLOCKSIZE for size in sizes.values())
    with tarfile.open(fileobj=_Stream(pieces, limit), mode="r|") as batch:  # type: ignore[call-overload]
        for member in batch:
            if member.isreg() and sizes.get(member.name) == member.size:
                file = batch.extractfile(member)
                assert file is not None  # noqa: S101 - a regular file has a content
                yield member.name, file.read()


class _Stream:
    """Pieces as a file that can be read once, and not beyond a limit."""

    def __init__(self, pieces: Iterator[bytes], limit: int) -> None:
        self._pieces = pieces
        self._left = limit
        self._rest = b""

    def read(self, size: int) -> bytes:
        while len(self._rest) < size and (piece := next(self._pieces, b"")):
            self._left -= len(piece)
            if self._left < 0:
                raise ValueError("a batch is larger than what was asked for")
            self._rest += piece
        found, self._rest = self._rest[:size], self._rest[size:]
        return found
