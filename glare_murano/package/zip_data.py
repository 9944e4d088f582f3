# SPDX-License-Identifier: Apache-2.0

"""Unpack the entries of a ZIP file, and check that their data is complete and not damaged."""

import zlib
from collections.abc import Callable, Iterator

from glare_murano.package.archive_rules import refusal
from glare_murano.package.errors import InvalidArchive
from glare_murano.package.rules import Rule
from glare_murano.package.zip_directory import DEFLATED, Member

_CHUNK = 128 * 1024

# A function that takes an offset and a number of bytes, and returns these bytes of the archive. It
# returns fewer bytes at the end of the archive.
Read = Callable[[int, int], bytes]


def read_content(read: Read, member: Member) -> Iterator[bytes]:
    """Yield the unpacked content of an entry in pieces of limited size.

    The content may be longer than declared. So the caller must count the bytes, and stop in time.

    :param read: a function that takes an offset and a number of bytes, and returns these bytes of
        the archive.
    :param member: the entry.
    :raises InvalidArchive: if the data are damaged, or bytes follow the end of the compressed data.
    """
    crc = 0
    for piece in _inflated(read, member) if member.method == DEFLATED else _packed(read, member):
        crc = zlib.crc32(piece, crc)
        yield piece
    if crc != member.crc:
        raise _damaged(member, f"its CRC is {crc:08x}, but {member.crc:08x} is declared")


def _packed(read: Read, member: Member) -> Iterator[bytes]:
    place, end = member.data, member.data + member.packed_size
    while place < end:
        piece = read(place, min(_CHUNK, end - place))
        if not piece:
            raise _damaged(member, "the archive ends within it")
        place += len(piece)
        yield piece


def _inflated(read: Read, member: Member) -> Iterator[bytes]:
    packed = _packed(read, member)
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    while not inflater.eof:
        data = inflater.unconsumed_tail or next(packed, b"")
        try:
            piece = inflater.decompress(data, _CHUNK)
        except zlib.error as error:
            raise _damaged(member, f"cannot be unpacked: {error}") from error
        if piece:
            yield piece
        elif not data and not inflater.eof:
            raise _damaged(member, "its compressed data have no end")
    if inflater.unused_data or next(packed, b""):
        raise _damaged(member, "bytes follow the end of its compressed data")


def _damaged(member: Member, message: str) -> InvalidArchive:
    return refusal(Rule.ENTRY_DATA, member.path, message)
