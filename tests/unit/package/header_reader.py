# SPDX-License-Identifier: Apache-2.0

"""A reader of ZIP files that reads from the first byte on, and never looks at the directory.

It is written by the description of the format alone, and shares no code with the package. It
knows where an entry ends from its header or from the end of its deflate stream, or gives up.
"""

import struct
import zlib

_SIGNATURE = b"PK\7\x08"
_FULL = 0xFFFFFFFF


class Unread(Exception):
    """The reader does not go on."""


def from_headers(data: bytes) -> dict[str, bytes]:
    """Return the content of each file.

    :raises Unread: if an entry has no certain end, or contradicts itself.
    """
    place, found = 0, {}
    while data[place : place + 4] == b"PK\3\4":
        _, _, flags, method, _, _, *sums, name_size, extra_size = struct.unpack_from(
            "<4s5H3I2H", data, place
        )
        start = place + 30 + name_size
        fields = _fields(data[start : start + extra_size])
        if 1 in fields and _FULL in sums[1:]:
            sums[2], sums[1] = struct.unpack("<2Q", fields[1])
        content, end = _content(data, start + extra_size, flags, method, sums[1:])
        used = end - start - extra_size
        if flags & 8:
            sums, end = _descriptor(data, end, "<I2Q" if 1 in fields else "<3I")
        if [zlib.crc32(content), used, len(content)] != sums:
            raise Unread("other sizes")
        name = data[place + 30 : start].decode("utf-8" if flags & 0x800 else "cp437")
        if name in found:
            raise Unread("a name twice")
        found[name] = content
        place = end
    if data[place : place + 4] not in (b"PK\1\2", b"PK\5\6", b"PK\6\6"):
        raise Unread("something else")
    return {name: content for name, content in found.items() if not name.endswith("/")}


def _fields(extra: bytes) -> dict[int, bytes]:
    fields: dict[int, bytes] = {}
    while extra:
        kind, length = struct.unpack_from("<2H", extra)
        fields.setdefault(kind, extra[4 : 4 + length])
        extra = extra[4 + length :]
    if 0x7075 in fields:
        raise Unread("a second name")
    return fields


def _content(
    data: bytes, place: int, flags: int, method: int, sizes: list[int]
) -> tuple[bytes, int]:
    """Return the content, and where its data end."""
    if method == 8:
        inflater = zlib.decompressobj(-15)
        content = inflater.decompress(data[place:])
        if not inflater.eof:
            raise Unread("no end")
        return content, len(data) - len(inflater.unused_data)
    if method or (flags & 8 and sizes[1]):
        raise Unread("no length")
    return data[place : place + sizes[0]], place + sizes[0]


def _descriptor(data: bytes, place: int, form: str) -> tuple[list[int], int]:
    """Return the checksum and the sizes behind the data, and where they end."""
    place += 4 * (data[place : place + 4] == _SIGNATURE)
    return list(struct.unpack_from(form, data, place)), place + struct.calcsize(form)
