# SPDX-License-Identifier: Apache-2.0

"""ZIP files byte by byte, so that they can say what is not so."""

import dataclasses
import stat
import struct
import zlib
from collections.abc import Iterable

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
    :param size: as declared, like ``packed_size`` and ``checksum``; None for
        the truth.
    :param offset: where the directory says that it starts; None for the truth.
    :param header_name: its name in front of its content, if it is another one
        than in the directory.
    :param extra: the extra field of its entry in the directory.
    :param gap: how long the field between that name and the content is said
        to be; it is not written.
    """

    name: str | bytes
    content: bytes = b"x"
    mode: int = stat.S_IFREG | 0o644
    system: int = UNIX
    method: int = DEFLATED
    flags: int = 0
    packed: bytes | None = None
    size: int | None = None
    packed_size: int | None = None
    checksum: int | None = None
    offset: int | None = None
    header_name: bytes | None = None
    extra: bytes = b""
    gap: int = 0

    @property
    def data(self) -> bytes:
        if self.packed is not None:
            return self.packed
        return deflated(self.content) if self.method == DEFLATED else self.content

    @property
    def header(self) -> bytes:
        name = self._name if self.header_name is None else self.header_name
        fields = (self._flags, self.method, 0, _DATE, *self._measures, len(name), self.gap)
        return _HEADER.pack(b"PK\3\4", _VERSION, *fields) + name

    def directory_entry(self, offset: int) -> bytes:
        return (
            _DIRECTORY_ENTRY.pack(
                *(b"PK\1\2", _VERSION, self.system, _VERSION, self._flags, self.method, 0, _DATE),
                *(*self._measures, len(self._name), len(self.extra), 0, 0, 0, self.mode << 16),
                offset if self.offset is None else self.offset,
            )
            + self._name
            + self.extra
        )

    @property
    def _name(self) -> bytes:
        return self.name.encode() if isinstance(self.name, str) else self.name

    @property
    def _flags(self) -> int:
        return self.flags | (UTF_8 if isinstance(self.name, str) else 0)

    @property
    def _measures(self) -> tuple[int, int, int]:
        return (
            zlib.crc32(self.content) if self.checksum is None else self.checksum,
            len(self.data) if self.packed_size is None else self.packed_size,
            len(self.content) if self.size is None else self.size,
        )


def zipped(members: Iterable[Member]) -> bytes:
    """A ZIP file of these members."""
    body = bytearray()
    directory = bytearray()
    count = 0
    for member in members:
        directory += member.directory_entry(len(body))
        body += member.header + member.data
        count += 1
    return closed(bytes(body), bytes(directory), count)


def closed(
    body: bytes, directory: bytes, count: int, size: int | None = None, offset: int | None = None
) -> bytes:
    """A ZIP file of these parts.

    :param size: of the directory, as declared; None for the truth.
    :param offset: where the directory starts, likewise.
    """
    shown = min(count, 0xFFFF)
    size = len(directory) if size is None else size
    offset = len(body) if offset is None else offset
    return body + directory + _END.pack(b"PK\5\6", 0, 0, shown, shown, size, offset, 0)


def closed_64(size: int) -> bytes:
    """A ZIP file of the large kind, whose directory is empty but said to be of this size."""
    end = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, _VERSION, _VERSION, 0, 0, 1, 1, size, 0)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, 0, 1)
    return closed(b"", end + locator, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)


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
