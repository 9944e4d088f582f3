# SPDX-License-Identifier: Apache-2.0

"""Check that the directory of a ZIP file agrees with the rest of the file.

Some programs find the files of an archive in the directory at its end, other programs in the
headers in front of the data. All programs must find the same files, so an archive must follow these
rules:

* The archive consists of the entries in the directory, in any order, then the directory, then the
  end records. There are no other bytes between them, before them or after them.
* The header of an entry has the same name, flags, method, CRC and sizes as the directory. The
  header is followed by the data. A descriptor may follow the data, with the same CRC and sizes.
* No extra field changes the name or the type of an entry.

This module does not unpack the data of the entries; see ``zip_data``.
"""

import operator
import struct
from typing import IO

from glare_murano.package.archive_rules import refusal
from glare_murano.package.errors import InvalidArchive
from glare_murano.package.rules import Rule
from glare_murano.package.zip_directory import (
    DEFLATED,
    HAS_DESCRIPTOR,
    MAX_32,
    NEWEST_VERSION,
    ZIP64_FIELD,
    Member,
    extra_fields,
    misplaced,
    read_at,
    read_directory,
)

_HEADER = struct.Struct("<4s5H3I2H")
_LONG_SIZES = struct.Struct("<2Q")
_HEADER_SIGNATURE = b"PK\3\4"
_DESCRIPTOR_SIGNATURE = b"PK\7\x08"
# The data that a directory may have: no data, or the two usual results of compressing no data.
_NO_DATA = (b"", b"\3\0", b"\1\0\0\xff\xff")


def read_members(stream: IO[bytes], size: int, max_entries: int) -> list[Member]:
    """Read the entries of a ZIP file's directory, and check the layout of the file.

    :param stream: the file, which must be seekable.
    :param size: the size of the file in bytes.
    :param max_entries: the largest allowed number of entries.
    :returns: the entries in the order of the directory.
    :raises InvalidArchive: if the file is not a ZIP file, has too many entries, or could be
        understood differently by other programs.
    """
    members, directory = read_directory(stream, size, max_entries)
    ordered = sorted(members, key=operator.attrgetter("header"))
    starts = [*(member.header for member in ordered), directory]
    if starts[0]:
        raise _unlisted(0, starts[0])
    for member, following in zip(ordered, starts[1:], strict=True):
        _check_member(stream, member, following)
    return members


def _check_member(stream: IO[bytes], member: Member, following: int) -> None:
    """Check the header and the descriptor of an entry, and set the offset ``member.data``.

    :param stream: the archive.
    :param member: the entry, from the directory.
    :param following: the offset of the next header, or of the directory. The entry must end there.
    :raises InvalidArchive: if the entry contradicts the ZIP directory, ends at another offset, or
        has data although it is a directory.
    """
    has_long_sizes = _check_header(stream, member, following)
    end = member.data + member.packed_size
    if member.flags & HAS_DESCRIPTOR:
        end += _check_descriptor(stream, member, following - end, has_long_sizes)
    if end < following:
        raise _unlisted(end, following)
    if member.is_directory and member.packed_size:
        # One more byte than the longest allowed data is read, to detect data that is too long.
        data = read_at(stream, member.data, min(member.packed_size, len(_NO_DATA[-1]) + 1))
        if data not in _NO_DATA:
            raise refusal(Rule.ENTRY_TYPE, member.path, "is a directory, but has data")


def _check_header(stream: IO[bytes], member: Member, following: int) -> bool:
    """Check the header of an entry, and store the offset of the entry's data in ``member``.

    :param stream: the archive.
    :param member: the entry, from the directory.
    :param following: the offset of the next header, or of the directory.
    :returns: whether the header has ZIP64 sizes, which have eight bytes.
    :raises InvalidArchive: if the header contradicts the directory.
    """
    name = member.path.encode()
    member.data = member.header + _HEADER.size
    _check_end(member, following)
    record = read_at(stream, member.header, _HEADER.size + len(name))
    if not record.startswith(_HEADER_SIGNATURE):
        raise refusal(Rule.ENTRY_HEADER, member.path, f"has no header at byte {member.header}")
    _, version, flags, method, _, _, *sums, name_size, extra_size = _HEADER.unpack_from(record)
    if name_size != len(name) or not record.endswith(name):
        raise refusal(Rule.ENTRY_HEADER, member.path, "has another name in its header")
    if flags != member.flags or method != member.method or version > NEWEST_VERSION:
        raise _contradiction(member, "flags, compression or version")
    member.data += name_size + extra_size
    _check_end(member, following)
    fields = extra_fields(stream.read(extra_size), member.path)
    if ZIP64_FIELD in fields:
        sums[1:] = _long_sizes(member, fields[ZIP64_FIELD], sums[1:])
    _check_sums(member, sums)
    return ZIP64_FIELD in fields


def _long_sizes(member: Member, field: bytes, plain: list[int]) -> tuple[int, int]:
    """Read the packed size and the unpacked size from the ZIP64 field of a header.

    :param field: the bytes of the ZIP64 field.
    :param plain: the values that the header has in four bytes.
    :raises InvalidArchive: if the values contradict the ZIP64 field.
    """
    size, packed_size = _LONG_SIZES.unpack(field) if len(field) == _LONG_SIZES.size else (-1, -1)
    long = (packed_size, size)
    # If a descriptor follows the data, the header must not also have sizes in four bytes: programs
    # would then expect four bytes in the descriptor, which has eight.
    repeated = plain == [*long] and not member.flags & HAS_DESCRIPTOR
    if plain != [MAX_32, MAX_32] and not repeated:
        raise _contradiction(member, "ZIP64 sizes")
    return long


def _check_sums(member: Member, found: list[int]) -> None:
    """Check that the CRC and the sizes in a header agree with the directory.

    If a descriptor follows the data, each of these values may be zero in the header.

    :param member: the entry, from the directory.
    :param found: the CRC, the packed size and the unpacked size in the header.
    :raises InvalidArchive: if a value differs.
    """
    expected = [member.crc, member.packed_size, member.size]
    if found != expected and not (
        member.flags & HAS_DESCRIPTOR
        and all(value in (0, right) for value, right in zip(found, expected, strict=True))
    ):
        raise _contradiction(member, "CRC or sizes")


def _check_end(member: Member, following: int) -> None:
    if member.data + member.packed_size > following:
        message = "shares its bytes with another entry, or with the directory"
        raise refusal(Rule.ENTRY_OVERLAP, member.path, message)


def _check_descriptor(stream: IO[bytes], member: Member, room: int, is_long: bool) -> int:
    """Check the descriptor of an entry: the CRC and the sizes that follow the entry's data.

    :param room: the number of bytes between the data and the next header or the directory.
    :param is_long: whether the sizes have eight bytes, not four.
    :returns: the number of bytes in the descriptor.
    :raises InvalidArchive: if the descriptor is missing, or contradicts the directory.
    """
    sums = struct.pack("<I2Q" if is_long else "<3I", member.crc, member.packed_size, member.size)
    found = read_at(stream, member.data + member.packed_size, min(room, 24))
    if found.startswith(_DESCRIPTOR_SIGNATURE + sums):
        return len(_DESCRIPTOR_SIGNATURE + sums)
    # A descriptor may lack the signature. Then its CRC must not look like the signature. And the
    # data must be compressed, since other programs could find the end of a stored file elsewhere.
    if (
        found.startswith(sums)
        and not found.startswith(_DESCRIPTOR_SIGNATURE)
        and member.method == DEFLATED
    ):
        return len(sums)
    raise refusal(
        Rule.ENTRY_HEADER,
        member.path,
        "the CRC and the sizes behind its data are missing, or contradict the archive's directory",
    )


def _unlisted(start: int, end: int) -> InvalidArchive:
    return misplaced(f"bytes {start} to {end - 1} belong to no file of its directory")


def _contradiction(member: Member, what: str) -> InvalidArchive:
    message = f"{what} in its header contradict the archive's directory"
    return refusal(Rule.ENTRY_HEADER, member.path, message)
