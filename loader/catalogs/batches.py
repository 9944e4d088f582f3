# SPDX-License-Identifier: Apache-2.0

"""Batches: several archives as one TAR stream, as Glare's filter of ``glare_murano`` gives them.

How they are asked for is the catalogue's affair; that an archive is the right
one, the cache's.
"""

import tarfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

PATH = "/murano/archives"

# What a stream that is no batch ends in, beside the errors of a request.
MALFORMED = (tarfile.TarError, ValueError)

_END = bytes(tarfile.BLOCKSIZE)


def body(ids: Iterable[str]) -> dict[str, Any]:
    """The request for the archives of artifacts."""
    return {"artifacts": list(ids)}


def read(pieces: Iterator[bytes], sizes: Mapping[str, int]) -> Iterator[tuple[str, bytes]]:
    """The archives in a batch, each with the id of its artifact.

    Only plain files are read, as the server writes them: the library's own reader
    follows whatever a header says, and can be led round in circles.

    :param pieces: the stream.
    :param sizes: id of each artifact that was asked for -> size of its archive.
    :raises MALFORMED: if it breaks off, or holds anything else.
    """
    stream = _Stream(pieces)
    missing = dict(sizes)
    while (header := stream.read(tarfile.BLOCKSIZE)) != _END:
        member = tarfile.TarInfo.frombuf(header, "ascii", "strict")
        if member.type != tarfile.REGTYPE or missing.pop(member.name, None) != member.size:
            raise ValueError(f"a batch holds {member.name[:80]!r}, which was not asked for so")
        yield member.name, stream.read(member.size)
        stream.read(-member.size % tarfile.BLOCKSIZE)


class _Stream:
    """Pieces that are read in other sizes than they come in."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int) -> bytes:
        while len(self._rest) < size:
            piece = next(self._pieces, b"")
            if not piece:
                raise ValueError("a batch breaks off")
            self._rest += piece
        found, self._rest = self._rest[:size], self._rest[size:]
        return found
