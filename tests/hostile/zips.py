# SPDX-License-Identifier: Apache-2.0

"""ZIP files byte by byte, so that they can say what is not so."""

import dataclasses
import stat
import struct
import zlib
from collections.abc import Iterable
from typing import Any

STORED = 0
DEFLATED = 8
UTF_8 = 0x800
LINK = stat.S_IFLNK | 0o777
FOLDER = stat.S_IFDIR | 0o755
DOS = 0
UNIX = 3

_HEADER = struct.Struct("<4s5H3I2H")
_DIRECTORY_ENTRY = struct.Struct("<4s2B5H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_VERSION = 20
_DATE = 0x21
_LONGEST_BLOCK = 0xFFFF


@dataclasses.dataclass(frozen=True)
class Member:
    """One file of a ZIP file.

    :param content: what it holds; ``packed`` overrides how it is stored.
    :param version: of the ZIP format, which it needs.
    :param attributes: those of DOS.
    :param size: as declared, like ``packed_size`` and ``checksum``; None for
        the truth.
    :param offset: where the directory says that it starts; None for the truth.
    :param front: whose header stands in front of the data; None for its own.
    :param extra: the extra field of its entry in the directory.
    :param header_extra: that of its header.
    :param gap: how much longer the latter is said to be than it is.
    :param descriptor: what stands behind the data.
    :param comment: that of its entry in the directory.
    :param disk: the number of the part of the archive that has it.
    :param is_listed: whether the directory has it.
    """

    name: str | bytes
    content: bytes = b"x"
    mode: int = stat.S_IFREG | 0o644
    system: int = UNIX
    method: int = DEFLATED
    flags: int = 0
    version: int = 20
    attributes: int = 0
    packed: bytes | None = None
    size: int | None = None
    packed_size: int | None = None
    checksum: int | None = None
    offset: int | None = None
    front: "Member | None" = None
    extra: bytes = b""
    header_extra: bytes = b""
    gap: int = 0
    descriptor: bytes = b""
    comment: bytes = b""
    disk: int = 0
    is_listed: bool = True

    @property
    def data(self) -> bytes:
        if self.packed is not None:
            return self.packed
        return deflated(self.content) if self.method == DEFLATED else self.content

    @property
    def header(self) -> bytes:
        if self.front is not None:
            return self.front.header
        name, extra = self._name, self.header_extra
        lengths = (len(name), len(extra) + self.gap)
        fields = (self.version, self._flags, self.method, 0, _DATE, *self.sums, *lengths)
        return _HEADER.pack(b"PK\3\4", *fields) + name + extra

    def directory_entry(self, offset: int) -> bytes:
        name = self._name
        return (
            _DIRECTORY_ENTRY.pack(
                *(b"PK\1\2", _VERSION, self.system, self.version, self._flags, self.method, 0),
                *(_DATE, *self.sums, len(name), len(self.extra), len(self.comment), self.disk, 0),
                self.mode << 16 | self.attributes,
                offset if self.offset is None else self.offset,
            )
            + name
            + self.extra
            + self.comment
        )

    def headed(self, **changes: Any) -> "Member":
        """The same with another header, of the same data."""
        sums = dict(zip(("checksum", "packed_size", "size"), self.sums, strict=True))
        front = dataclasses.replace(self, **{**sums, **changes})
        return dataclasses.replace(self, front=front)

    def streamed(self, descriptor: bytes | None = None, **changes: Any) -> "Member":
        """The same as it is packed into a pipe: its sizes stand behind its data."""
        if descriptor is None:
            descriptor = b"PK\7\x08" + struct.pack("<3I", *self.sums)
        member = dataclasses.replace(self, flags=self.flags | 0x8, descriptor=descriptor)
        return member.headed(**{"checksum": 0, "packed_size": 0, "size": 0, **changes})

    @property
    def sums(self) -> tuple[int, int, int]:
        """Its checksum and its sizes, packed and not, as declared."""
        return (
            zlib.crc32(self.content) if self.checksum is None else self.checksum,
            len(self.data) if self.packed_size is None else self.packed_size,
            len(self.content) if self.size is None else self.size,
        )

    @property
    def _name(self) -> bytes:
        return self.name.encode() if isinstance(self.name, str) else self.name

    @property
    def _flags(self) -> int:
        return self.flags | (UTF_8 if isinstance(self.name, str) else 0)


def zipped(members: Iterable[Member | bytes], comment: bytes = b"") -> bytes:
    """A ZIP file of these members, with bytes between them that belong to none."""
    return closed(*laid_out(members), comment=comment)


def laid_out(members: Iterable[Member | bytes], start: int = 0) -> tuple[bytes, bytes, int]:
    """The members, their directory, and the number of its entries.

    :param start: how many bytes stand before.
    """
    body = bytearray()
    directory = bytearray()
    count = 0
    for member in members:
        if isinstance(member, bytes):
            body += member
            continue
        if member.is_listed:
            directory += member.directory_entry(start + len(body))
            count += 1
        body += member.header + member.data + member.descriptor
    return bytes(body), bytes(directory), count


def closed(
    body: bytes,
    directory: bytes,
    count: int,
    size: int | None = None,
    offset: int | None = None,
    comment: bytes = b"",
) -> bytes:
    """A ZIP file of these parts.

    :param size: of the directory, as declared; None for the truth.
    :param offset: where the directory starts, likewise.
    """
    size = len(directory) if size is None else size
    offset = len(body) if offset is None else offset
    return body + directory + end_record(count, size, offset, comment)


def end_record(
    count: int,
    size: int,
    offset: int,
    comment: bytes = b"",
    *,
    here: int | None = None,
    disks: tuple[int, int] = (0, 0),
    comment_size: int | None = None,
) -> bytes:
    """The record at the end.

    :param here: the number of entries in this part of the archive; None for all.
    :param disks: the numbers of this part, and of the one with the directory.
    """
    counts = (min(count if here is None else here, 0xFFFF), min(count, 0xFFFF))
    length = len(comment) if comment_size is None else comment_size
    return _END.pack(b"PK\5\6", *disks, *counts, size, offset, length) + comment


def end_64(
    count: int,
    size: int,
    offset: int,
    *,
    here: int | None = None,
    disks: tuple[int, int] = (0, 0),
    length: int = 44,
) -> bytes:
    """The record of ZIP64 at the end.

    :param length: of what follows its second field, as declared.
    """
    counts = (count if here is None else here, count)
    fields = (length, 45, 45, *disks, *counts, size, offset)
    return struct.pack("<4sQ2H2I4Q", b"PK\6\6", *fields)


def locator(place: int, disk: int = 0, disks: int = 1) -> bytes:
    """What says where the record of ZIP64 is."""
    return struct.pack("<4sIQI", b"PK\6\7", disk, place, disks)


def closed_64(body: bytes, directory: bytes, count: int, size: int | None = None) -> bytes:
    """A ZIP file of the large kind.

    :param size: of the directory, as declared; None for the truth.
    """
    place = len(body) + len(directory)
    end = end_64(count, len(directory) if size is None else size, len(body)) + locator(place)
    return body + directory + end + end_record(0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)


def deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush()


def quoted_overlap(names: Iterable[str], content: bytes) -> bytes:
    """Files whose data are each the rest of the archive: one kernel, unpacked by all.

    Each file quotes the header of the next in a block that is not compressed,
    and goes on with the next one's data (David Fifield, "A better zip bomb").
    """
    members: list[Member] = []
    following = b""
    packed = deflated(content)
    for name in reversed(tuple(names)):
        if following:
            packed = struct.pack("<BHH", 0, len(following), len(following) ^ 0xFFFF) + (
                following + packed
            )
            content = following + content
        member = Member(name, content, packed=packed)
        members.insert(0, member)
        following = member.header
    assert len(following) <= _LONGEST_BLOCK
    directory = bytearray()
    offset = 0
    for member in members:
        directory += member.directory_entry(offset)
        offset += len(member.header) + 5
    # No block quotes the first header.
    return closed(following + packed, bytes(directory), len(members))


def gap_overlap(names: Iterable[str], content: bytes) -> bytes:
    """Files that share one kernel, with the headers in between declared to be a gap."""
    packed = deflated(content)
    members = [Member(name, content, packed=packed) for name in names]
    body = bytearray()
    directory = bytearray()
    end = sum(len(member.header) for member in members)
    for member in members:
        directory += member.directory_entry(len(body))
        gap = end - len(body) - len(member.header)
        body += dataclasses.replace(member, gap=gap).header
    return closed(bytes(body) + packed, bytes(directory), len(members))
