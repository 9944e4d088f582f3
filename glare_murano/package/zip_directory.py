# SPDX-License-Identifier: Apache-2.0

"""Read the directory and the end records of a ZIP file.

The directory lists the entries of the file. The end records are at the end of the file, and say
where the directory is. A file is refused if two programs could find different directories in the
file, or read the directory differently. ``zip_layout`` compares the directory with the rest of the
file.
"""

import dataclasses
import stat
import struct
from typing import IO, NamedTuple

from glare_murano.package.archive_rules import refusal
from glare_murano.package.errors import InvalidArchive
from glare_murano.package.rules import Rule

STORED = 0
DEFLATED = 8
HAS_DESCRIPTOR = 0x8
# The newest supported version of the ZIP format is 4.5, which has ZIP64.
NEWEST_VERSION = 45
ZIP64_FIELD = 0x0001
# This value means that the true value does not fit into four bytes. A ZIP64 record has it.
MAX_32 = 0xFFFFFFFF

_MAX_16 = 0xFFFF
_END = struct.Struct("<4s4H2IH")
_END_64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR = struct.Struct("<4sIQI")
_ENTRY = struct.Struct("<4s6H3I5H2I")
_FIELD = struct.Struct("<2H")
_END_SIGNATURE = b"PK\5\6"
_END_64_SIGNATURE = b"PK\6\6"
_LOCATOR_SIGNATURE = b"PK\6\7"
_ENTRY_SIGNATURE = b"PK\1\2"
# The signatures of headers, descriptors, digital signatures and extra data.
_OTHER_SIGNATURES = (b"PK\3\4", b"PK\7\x08", b"PK\5\5", b"PK\6\x08")
_SIGNATURES = (
    *(_END_SIGNATURE, _END_64_SIGNATURE, _LOCATOR_SIGNATURE, _ENTRY_SIGNATURE),
    *_OTHER_SIGNATURES,
)
# The expected value of the second field of the ZIP64 end record: the number of bytes after this
# field, without optional data.
_END_64_SIZE = _END_64.size - 12
# A generous limit for the name, extra fields and comment of one entry.
_ENTRY_TEXT_SIZE = 1024

# The flags of encryption, compressed patched data, strong encryption, and a masked header.
_UNSUPPORTED_FLAGS = 0x1 | 0x20 | 0x40 | 0x2000
_IS_UTF_8 = 0x800
_DOS_DIRECTORY = 0x10
# Extra fields from which some programs take a name, or a type and the target of a link -> why an
# entry with such a field is refused.
_REFUSED_FIELDS = {0x7075: "gives it a second name", 0x756E: "gives it a second type"}


@dataclasses.dataclass(slots=True)
class Member:
    """An entry of an archive's directory.

    :param path: the name of the entry; the name of a directory ends in a slash.
    :param flags: the general-purpose flags.
    :param method: the compression: ``STORED`` or ``DEFLATED``.
    :param crc: the CRC-32 of the unpacked content.
    :param packed_size: the size of the data in the archive, in bytes.
    :param size: the size of the unpacked content, in bytes.
    :param mode: the type and the permissions on Unix; 0 if unknown.
    :param header: the offset of the entry's header in the archive.
    :param data: the offset of the entry's data; 0 until ``zip_layout`` has found it.
    """

    path: str
    flags: int
    method: int
    crc: int
    packed_size: int
    size: int
    mode: int
    header: int
    data: int

    @property
    def is_directory(self) -> bool:
        """Whether the entry is a directory, not a file."""
        return self.path.endswith("/")


class _End(NamedTuple):
    """What an end record says about the directory.

    :ivar entries: the number of entries.
    :ivar size: the size of the directory in bytes.
    :ivar place: the offset of the directory in the archive.
    """

    entries: int
    size: int
    place: int


def read_directory(stream: IO[bytes], size: int, max_entries: int) -> tuple[list[Member], int]:
    """Read the directory of a ZIP file.

    :param stream: the file, which must be seekable.
    :param size: the size of the file in bytes.
    :param max_entries: the largest allowed number of entries.
    :returns: the entries in the order of the directory, and the offset of the directory.
    :raises InvalidArchive: if the file is not a ZIP file, if it has too many entries, or if its
        records contradict each other.
    """
    end, directory_end = _read_end(stream, size)
    if end.entries > max_entries or end.size > max_entries * (_ENTRY.size + _ENTRY_TEXT_SIZE):
        message = f"more than {max_entries} entries are not allowed"
        raise refusal(Rule.ARCHIVE_ENTRIES, "archive", message)
    if end.place + end.size != directory_end:
        raise misplaced(
            f"{end.size} bytes from byte {end.place} are declared as its directory, but its end "
            f"record begins at byte {directory_end}"
        )
    return _parse_directory(read_at(stream, end.place, end.size), end.entries), end.place


def _read_end(stream: IO[bytes], size: int) -> tuple[_End, int]:
    """Read the end records of a ZIP file.

    :param size: the size of the file in bytes.
    :returns: what the records say about the directory, and the offset of the first end record.
    :raises InvalidArchive: if the end record is missing, or the end records are not valid.
    """
    place, record = _find_end(stream, size)
    if len(record) < _END.size:
        raise _not_zip("it is cut off in its end record")
    _, disk, first_disk, here, *values, comment_size = _END.unpack_from(record)
    rest = len(record) - _END.size - comment_size
    if rest < 0:
        raise _not_zip("it is cut off in its comment")
    if rest > 0:
        raise misplaced(f"{rest} bytes follow its end record")
    if any(signature in record[_END.size :] for signature in _SIGNATURES):
        raise misplaced("its comment contains the signature of a ZIP record")
    end = _End(*values)
    if disk or first_disk or here != end.entries:
        raise misplaced("it is a part of a split archive")
    if place >= _LOCATOR.size:
        locator = read_at(stream, place - _LOCATOR.size, _LOCATOR.size)
        if locator.startswith(_LOCATOR_SIGNATURE):
            return _read_end_64(stream, place - _LOCATOR.size, locator, end)
    return end, place


def _find_end(stream: IO[bytes], size: int) -> tuple[int, bytes]:
    """Return the offset of the last end record, and all bytes from this offset on.

    :raises InvalidArchive: if the file has no end record.
    """
    for length in (_END.size, _END.size + _MAX_16):
        tail = read_at(stream, max(size - length, 0), length)
        start = tail.rfind(_END_SIGNATURE)
        if start >= 0:
            return size - len(tail) + start, tail[start:]
    raise _not_zip("no central directory was found")


def _read_end_64(
    stream: IO[bytes], locator_place: int, locator: bytes, end: _End
) -> tuple[_End, int]:
    """Read the ZIP64 end record, and check that it agrees with the plain end record.

    :param locator_place: the offset of the locator.
    :param locator: the bytes of the locator, a record that points to the ZIP64 end record.
    :param end: the plain end record.
    :returns: what the ZIP64 end record says about the directory, and the offset of that end record.
    :raises InvalidArchive: if the ZIP64 end record is not valid, or disagrees with the plain one.
    """
    place = locator_place - _END_64.size
    record = read_at(stream, place, _END_64.size) if place >= 0 else b""
    if (
        not record.startswith(_END_64_SIGNATURE)
        or _LOCATOR.unpack(locator)[1:] != (0, place, 1)
        or _END_64.unpack(record)[1] != _END_64_SIZE
    ):
        raise misplaced(
            "its ZIP64 end record is not where the locator points, directly in front of the locator"
        )
    _, _, _, _, disk, first_disk, here, *values = _END_64.unpack(record)
    found = _End(*values)
    if disk or first_disk or here != found.entries:
        raise misplaced("it is a part of a split archive")
    for plain, long, too_large in zip(end, found, (_MAX_16, MAX_32, MAX_32), strict=True):
        if plain not in (long, too_large):
            raise misplaced(f"its end records disagree: {plain} and, in ZIP64, {long}")
    return found, place


def _parse_directory(directory: bytes, entries: int) -> list[Member]:
    members = []
    place = 0
    last = len(directory) - _ENTRY.size
    for _ in range(entries):
        if place > last or not directory.startswith(_ENTRY_SIGNATURE, place):
            break
        member, place = _parse_entry(directory, place)
        members.append(member)
    if len(members) < entries or place != len(directory):
        raise misplaced(f"its directory does not have {entries} entries, as its end record says")
    return members


def _parse_entry(directory: bytes, place: int) -> tuple[Member, int]:
    """Return the entry at an offset in the directory, and the offset of the next entry."""
    (_, _, version, flags, method, _, _, crc, packed_size, size, *lengths, disk, _, attributes,
     header) = _ENTRY.unpack_from(directory, place)  # fmt: skip
    start = place + _ENTRY.size
    name_end = start + lengths[0]
    extra_end = name_end + lengths[1]
    path = _decoded(directory[start:name_end], flags)
    fields = extra_fields(directory[name_end:extra_end], path)
    if ZIP64_FIELD in fields or MAX_32 in (packed_size, size, header):
        values = _resolved(fields.get(ZIP64_FIELD, b""), (size, packed_size, header), path)
        size, packed_size, header = values
    member = Member(path, flags, method, crc, packed_size, size, attributes >> 16, header, 0)
    _check_features(member, version)
    _check_type(member, attributes)
    if disk:
        raise refusal(Rule.ARCHIVE_LAYOUT, path, "is in another part of a split archive")
    return member, extra_end + lengths[2]


def _decoded(name: bytes, flags: int) -> str:
    """Return the name of an entry as a string.

    :raises InvalidArchive: if the name is marked as UTF-8 but is not valid UTF-8, or if it is not
        marked but has characters outside ASCII.
    """
    if flags & _IS_UTF_8:
        try:
            return name.decode()
        except UnicodeDecodeError as error:
            raise refusal(
                Rule.PATH_ENCODING, _shown(name), "is marked as UTF-8, but is not"
            ) from error
    if not name.isascii():
        message = (
            "is not marked as UTF-8, so that programs read different names; pack with 'openstack "
            "murano package build', 7-Zip, jar or Python, since zip and macOS do not mark names"
        )
        raise refusal(Rule.PATH_ENCODING, _shown(name), message)
    return name.decode("ascii")


def extra_fields(extra: bytes, path: str) -> dict[int, bytes]:
    """Return the extra fields of an entry: id -> content.

    :param extra: the bytes of all extra fields.
    :param path: the name of the entry, for messages.
    :raises InvalidArchive: if a field is cut off, the ZIP64 field is repeated, or a field gives the
        entry a second name or type.
    """
    fields: dict[int, bytes] = {}
    place = 0
    while place < len(extra):
        data = place + _FIELD.size
        kind, size = _FIELD.unpack_from(extra, place) if data <= len(extra) else (0, _MAX_16)
        place = data + size
        if place > len(extra):
            raise refusal(Rule.ENTRY_EXTRA, path, "its extra field is cut off")
        if kind in _REFUSED_FIELDS:
            message = f"its extra field {kind:#06x} {_REFUSED_FIELDS[kind]}"
            raise refusal(Rule.ENTRY_EXTRA, path, message)
        if kind == ZIP64_FIELD and kind in fields:
            raise refusal(Rule.ENTRY_EXTRA, path, "it has several ZIP64 fields")
        fields[kind] = extra[data:place]
    return fields


def _resolved(field: bytes, values: tuple[int, ...], path: str) -> list[int]:
    """Return the sizes and the offset of an entry, with values from the ZIP64 field.

    The ZIP64 field has the values that are too large for four bytes. Each takes eight bytes.

    :param field: the bytes of the ZIP64 field.
    :param values: the sizes and the offset in four bytes. Each value that is ``MAX_32`` is replaced
        by the next value of the field.
    :param path: the name of the entry, for messages.
    :raises InvalidArchive: if the field has too few or too many values.
    """
    too_large = values.count(MAX_32)
    if len(field) != 8 * too_large:
        message = f"its ZIP64 field has {len(field)} bytes, but {8 * too_large} are expected"
        raise refusal(Rule.ENTRY_EXTRA, path, message)
    long = iter(struct.unpack(f"<{too_large}Q", field))
    return [next(long) if value == MAX_32 else value for value in values]


def _check_features(member: Member, version: int) -> None:
    if member.flags & _UNSUPPORTED_FLAGS:
        raise refusal(Rule.ENTRY_ENCRYPTED, member.path, "is encrypted")
    if member.method not in (STORED, DEFLATED):
        message = f"compression {member.method} is unsupported"
        raise refusal(Rule.ENTRY_COMPRESSION, member.path, message)
    if version > NEWEST_VERSION:
        message = f"needs version {version / 10} of the ZIP format, at most 4.5 is supported"
        raise refusal(Rule.ENTRY_COMPRESSION, member.path, message)
    if member.method == STORED and member.packed_size != member.size:
        message = f"is stored in {member.packed_size} bytes, but {member.size} are declared"
        raise refusal(Rule.ENTRY_SIZE, member.path, message)
    if member.method == STORED and member.flags & HAS_DESCRIPTOR and member.size:
        message = (
            "is stored without compression, and its size follows its data, so that other programs "
            "cannot find its end; compress it, or pack into a file instead of a pipe"
        )
        raise refusal(Rule.ENTRY_STREAMED, member.path, message)


def _check_type(member: Member, attributes: int) -> None:
    if not member.path:
        raise refusal(Rule.PATH_ESCAPE, "''", "an entry has no name")
    kind = stat.S_IFMT(member.mode)
    expected = stat.S_IFDIR if member.is_directory else stat.S_IFREG
    if kind not in (0, expected) or (attributes & _DOS_DIRECTORY and not member.is_directory):
        raise refusal(Rule.ENTRY_TYPE, member.path, "is neither a file nor a directory")
    if member.is_directory and (member.size or member.crc):
        raise refusal(Rule.ENTRY_TYPE, member.path, "is a directory, but has data")


def read_at(stream: IO[bytes], place: int, size: int) -> bytes:
    """Return bytes of the archive from an offset on.

    :param size: the number of bytes; fewer bytes are returned at the end of the archive.
    """
    stream.seek(place)
    return stream.read(size)


def _shown(name: bytes) -> str:
    return name.decode(errors="backslashreplace")


def _not_zip(reason: str) -> InvalidArchive:
    return refusal(Rule.ARCHIVE_FORMAT, "archive", f"is not a ZIP file ({reason})")


def misplaced(message: str) -> InvalidArchive:
    """Return the error for an archive with a wrong layout, such as a record at a wrong offset."""
    return refusal(Rule.ARCHIVE_LAYOUT, "archive", message)
