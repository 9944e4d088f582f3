# SPDX-License-Identifier: Apache-2.0

"""Send a batch: several archives in one response, which is a TAR stream.

A batch saves time: an application has dozens of packages, and a service takes longer to begin a
download than to send a small archive. A batch leaves out the archives that the client cannot
download. To learn the reason, the client can download such an archive alone.
"""

import dataclasses
import itertools
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence

import webob
from oslo_log import log as logging

from glare_murano.service import request_reading, schemas

LOG = logging.getLogger(__name__)

# The largest number of bytes of all archives in a batch, so that no response occupies a worker for
# long.
MAX_SIZE = 64 * 1024**2
_CHUNK_SIZE = 64 * 1024
# The number of packages that are looked up at once.
_LOOK_UP = 16


@dataclasses.dataclass(frozen=True)
class StoredArchive:
    """An archive in a service's store.

    :param id: the id of the package.
    :param size: the size of the archive in bytes, from the metadata.
    :param read: a function that opens the archive, and returns its bytes in pieces.
    """

    id: str
    size: int
    read: Callable[[], Iterable[bytes]]


def read_ids(req: webob.Request) -> list[str]:
    """Return the ids of packages in the body of a request for a batch, each of them once.

    :raises RefusedRequest: if the body is not valid.
    """
    return list(dict.fromkeys(request_reading.read_body(req, schemas.BATCH)["artifacts"]))


def divide(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Divide the ids of packages into groups, which are looked up one after the other.

    The groups are small, since packages may be deleted while the archives of earlier groups are
    sent.
    """
    for start in range(0, len(ids), _LOOK_UP):
        yield ids[start : start + _LOOK_UP]


def respond(archives: Iterable[StoredArchive]) -> webob.Response:
    """Return a response with a batch of archives.

    The first chunk of the batch is read before the response begins. If the chunk cannot be read,
    the client gets an error response.
    """
    chunks = stream(archives)
    first = next(chunks)
    return webob.Response(
        content_type="application/x-tar", app_iter=itertools.chain([first], chunks)
    )


def stream(archives: Iterable[StoredArchive]) -> Iterator[bytes]:
    """Yield a batch of archives as the bytes of a TAR stream.

    The batch leaves out each archive that would make it larger than ``MAX_SIZE``, and each archive
    that the store cannot begin to read.

    :raises EOFError: in the middle of the batch, if the size of a stored archive differs from its
        metadata.
    """
    # Small pieces are joined, since the server sends each piece separately.
    joined = bytearray()
    try:
        for piece in _members(archives):
            joined += piece
            if len(joined) >= _CHUNK_SIZE:
                yield bytes(joined)
                joined.clear()
    except Exception:
        if joined:
            yield bytes(joined)
        raise
    if joined:
        yield bytes(joined)


def _members(archives: Iterable[StoredArchive]) -> Iterator[bytes]:
    room = MAX_SIZE
    for archive in archives:
        if archive.size <= room:
            room -= archive.size
            yield from _member(archive)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _member(archive: StoredArchive) -> Iterator[bytes]:
    try:
        pieces = iter(archive.read())
        piece = next(pieces, b"")
    except Exception as error:  # stores raise errors of their own
        LOG.warning("The archive of package %s cannot be read: %s", archive.id, error)
        return
    header = tarfile.TarInfo(archive.id)
    header.size = left = archive.size
    yield header.tobuf(tarfile.USTAR_FORMAT)
    while piece and left >= 0:
        left -= len(piece)
        yield piece
        piece = next(pieces, b"")
    if left:
        raise EOFError(f"the archive of package {archive.id} does not have {archive.size} bytes")
    yield bytes(-header.size % tarfile.BLOCKSIZE)
