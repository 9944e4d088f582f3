# SPDX-License-Identifier: Apache-2.0

"""Read batches; a batch is an answer of a service that contains several archives, as TAR."""

import tarfile
from collections.abc import Iterator, Mapping

# The errors that ``read_batch`` raises.
BATCH_ERRORS = (tarfile.TarError, ValueError)
_END_OF_BATCH = bytes(tarfile.BLOCKSIZE)


def read_batch(pieces: Iterator[bytes], sizes: Mapping[str, int]) -> Iterator[tuple[str, bytes]]:
    """Yield the id and the archive of each package in a batch.

    The server writes only plain files into a batch, so other entries are refused. ``tarfile.open``
    is not used: it accepts every kind of header, and some headers make it read without an end.

    :param pieces: the content of the answer.
    :param sizes: a mapping of the ids of the requested packages to the sizes of their archives.
    :raises BATCH_ERRORS: if the stream ends too early, or contains anything but these archives.
    """
    stream = _Stream(pieces)
    missing = dict(sizes)
    while (header := stream.read(tarfile.BLOCKSIZE)) != _END_OF_BATCH:
        member = tarfile.TarInfo.frombuf(header, "ascii", "strict")
        if member.type != tarfile.REGTYPE or missing.pop(member.name, None) != member.size:
            raise ValueError(
                f"the batch contains {member.name[:80]!r}, which was not requested with its size"
            )
        yield member.name, stream.read(member.size)
        stream.read(-member.size % tarfile.BLOCKSIZE)


class _Stream:
    """A stream that gets pieces of any size, and returns as many bytes as are requested."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int) -> bytes:
        while len(self._rest) < size:
            piece = next(self._pieces, b"")
            if not piece:
                raise ValueError("the batch breaks off")
            self._rest += piece
        found, self._rest = self._rest[:size], self._rest[size:]
        return found
