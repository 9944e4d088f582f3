# SPDX-License-Identifier: Apache-2.0

"""Archives whose entries say two things: in the directory, in front of the data and behind them."""

import dataclasses
import struct
import zlib
from collections.abc import Iterable
from typing import Any

from tests.hostile.cases import manifest
from tests.hostile.script_package import (
    FINE,
    FULL,
    HIDDEN,
    HIDDEN_BYTES,
    HOSTILE,
    RIGHT,
    RIGHT_STORED,
    SCRIPT,
    SIGNATURE,
    WRONG,
    field,
    long_field,
    package,
    sums,
)
from tests.hostile.zips import (
    DEFLATED,
    DOS,
    FOLDER,
    LINK,
    STORED,
    UTF_8,
    Member,
    closed,
    deflated,
)

# What it is -> the rule, and what stands in the place of the script.
Views = dict[str, tuple[str, Iterable[Member | bytes]]]

# Content whose checksum is the signature of a descriptor.
_FORGED = b"echo hostile =\xba\x07\x05"


def _second_name(name: str, of: bytes, version: int = 1, checksum: int | None = None) -> bytes:
    """The field of Info-ZIP that replaces a name by one in UTF-8."""
    checksum = zlib.crc32(of) if checksum is None else checksum
    return field(0x7075, struct.pack("<BI", version, checksum) + name.encode())


def second_names() -> Views:
    """Names in an extra field."""
    plain = SCRIPT.encode()
    other = _second_name("Resources/other.sh", plain)
    cp437 = b"Resources/\x84.sh"
    fields = {
        "in the directory": {"extra": other},
        "in front": {"header_extra": other},
        "in both": {"extra": other, "header_extra": other},
        "twice": {"extra": other + _second_name("Resources/third.sh", plain)},
        "behind another field": {"extra": field(0x5455, b"\1\0\0\0\0") + other},
        "that climbs": {"extra": _second_name("../../hostile.sh", plain)},
        "of a folder": {"extra": _second_name("Resources/run.sh/", plain)},
        "of a file that there is": {"extra": _second_name("Resources/end.txt", plain)},
        "of the manifest": {"extra": _second_name("manifest.yaml", plain)},
        "that is the same": {"extra": _second_name(SCRIPT, plain)},
        "of a wrong checksum": {"extra": _second_name("other.sh", plain, checksum=1)},
        "of an unknown version": {"extra": _second_name("other.sh", plain, version=2)},
        "with a NUL": {"extra": _second_name("Resources/other.sh\0.txt", plain)},
    }
    views: Views = {
        f"second name {name}": (
            "entry-extra", [dataclasses.replace(Member(plain, FINE), **extra)]
        )
        for name, extra in fields.items()
    }  # fmt: skip
    views["second name, with a script of that name"] = (
        "entry-extra",
        [Member(plain, FINE), Member(b"other", HOSTILE, extra=_second_name(SCRIPT, b"other"))],
    )
    views["second name for bytes that are no UTF-8"] = (
        "path-encoding", [Member(cp437, FINE, extra=_second_name("Resources/\u00e4.sh", cp437))]
    )  # fmt: skip
    return views


def names() -> Views:
    """Names whose letters depend on the program, or that stand there twice."""
    plain = SCRIPT.encode()
    umlaut = "Resources/\u00e4.sh"
    return {
        "UTF-8 that is not marked": ("path-encoding", [Member(umlaut.encode(), FINE)]),
        "UTF-8 that is not marked, of a folder": (
            "path-encoding", [Member("R\u00e4/".encode(), b"", FOLDER, method=STORED),
                              Member("R\u00e4/a".encode())]
        ),
        "UTF-8 that is not marked, decomposed, as macOS writes it": (
            "path-encoding", [Member("Resources/a\u0308.sh".encode(), FINE).streamed()]
        ),
        "UTF-8 that is not marked, and the same that is": (
            "path-encoding", [Member(umlaut, FINE), Member(umlaut.encode(), HOSTILE)]
        ),
        "code page 437": ("path-encoding", [Member(b"Resources/\x84.sh", FINE)]),
        "code page 866": ("path-encoding", [Member(b"\x8f\xe0\xa8\xa2\xa5\xe2", FINE)]),
        "Shift JIS, whose second byte is a backslash": (
            "path-encoding", [Member(b"\x83\x5c.sh", FINE)]
        ),
        "marked as UTF-8, and cut off": ("path-encoding", [Member(b"a\xc3", FINE, flags=UTF_8)]),
        "marked as UTF-8, and too long": (
            "path-encoding", [Member(b"..\xc0\xafhostile.sh", FINE, flags=UTF_8)]
        ),
        "marked as UTF-8, of half characters": (
            "path-encoding", [Member(b"a\xed\xa0\x80\xed\xb0\x80", FINE, flags=UTF_8)]
        ),
        "UTF-8 marked in the directory alone": (
            "entry-header", [Member(umlaut, FINE).headed(name=umlaut.encode())]
        ),
        "UTF-8 marked in front alone": (
            "path-encoding", [Member(umlaut.encode(), FINE).headed(flags=UTF_8)]
        ),
        "ASCII marked as UTF-8 in front alone": (
            "entry-header", [Member(plain, FINE).headed(flags=UTF_8)]
        ),
        "decomposed letters": ("path-encoding", [Member("Resources/a\u0308.sh", FINE)]),
        "decomposed letters of a folder": (
            "path-encoding", [Member("Ra\u0308/", b"", FOLDER, method=STORED)]
        ),
        "decomposed syllables": (
            "path-encoding", [Member("Resources/\u1112\u1161\u11ab.sh", FINE)]
        ),
        "accents in another order": ("path-encoding", [Member("a\u0301\u0323.sh", FINE)]),
        "a character that stands for another": ("path-encoding", [Member("\u212b.sh", FINE)]),
        "another name of the same length in front": (
            "entry-header", [RIGHT.headed(name="Resources/run.py")]
        ),
        "a longer name in front": ("entry-header", [RIGHT.headed(name=SCRIPT + ".txt")]),
        "a shorter name in front": ("entry-header", [RIGHT.headed(name="Resources/run")]),
        "no name in front": ("entry-header", [RIGHT.headed(name=b"", flags=UTF_8)]),
        "capitals in front": ("entry-header", [RIGHT.headed(name="Resources/RUN.sh")]),
        "a folder's name in front": ("entry-header", [RIGHT.headed(name="Resources/run.d/")]),
        "a path that climbs in front": ("entry-header", [RIGHT.headed(name="../../etc/run.sh")]),
        "a backslash in front": ("entry-header", [RIGHT.headed(name="Resources\\run.sh")]),
        "a NUL in front": ("entry-header", [RIGHT.headed(name="Resources/run\0sh")]),
        "a NUL in the name": ("path-characters", [Member("Resources/run.sh\0.txt", FINE)]),
        "a NUL in the directory alone": (
            "entry-header", [Member("Resources/run\0sh", FINE).headed(name=SCRIPT)]
        ),
        "each the other's name in front": (
            "entry-header",
            [RIGHT.headed(name="Resources/run.py"),
             Member("Resources/run.py", HOSTILE).headed(name=SCRIPT)],
        ),
        "the manifest's name in front": (
            "entry-header",
            [Member("manifest.back", manifest(Type="Application").encode()).headed(
                name="manifest.yaml")],
        ),
        "a file twice": ("path-collision", [RIGHT, Member(SCRIPT, HOSTILE)]),
        "a file twice in other letters": (
            "path-collision", [RIGHT, Member("Resources/RUN.sh", HOSTILE)]
        ),
        "the manifest twice": (
            "path-collision",
            [Member("manifest.yaml", manifest(Type="Application").encode())],
        ),
        "a file twice through a dot": (
            "path-escape", [RIGHT, Member("./Resources/run.sh", HOSTILE)]
        ),
        "a file twice through two slashes": (
            "path-escape", [RIGHT, Member("Resources//run.sh", HOSTILE)]
        ),
        "a file twice through a folder": (
            "path-escape", [RIGHT, Member("Resources/a/../run.sh", HOSTILE)]
        ),
        "a file twice through a backslash": (
            "path-characters", [RIGHT, Member("Resources\\run.sh", HOSTILE)]
        ),
        "a version of a file": ("path-characters", [Member(f"{SCRIPT};1", FINE)]),
        "a file and a version of it": ("path-characters", [RIGHT, Member(f"{SCRIPT};1", HOSTILE)]),
        "a name that ends in a semicolon": ("path-characters", [Member(f"{SCRIPT};", FINE)]),
        "a file and a folder": ("path-collision", [RIGHT, Member(f"{SCRIPT}/a", HOSTILE)]),
    }  # fmt: skip


def headers() -> Views:
    """Other methods, flags and checksums in front of the data."""
    packed = deflated(FINE)
    # Both are a deflated stream, and a stored file of the same length.
    twofold = Member(SCRIPT, packed, method=STORED)
    streamed = Member(SCRIPT, FINE, packed=packed + sums(RIGHT) + HIDDEN_BYTES)
    return {
        "stored in the directory, deflated in front": (
            "entry-header",
            [twofold.headed(method=DEFLATED, size=len(FINE), checksum=zlib.crc32(FINE))],
        ),
        "deflated in the directory, stored in front": (
            "entry-header",
            [RIGHT.headed(method=STORED, size=len(packed), checksum=zlib.crc32(packed))],
        ),
        "another checksum in front": ("entry-header", [RIGHT.headed(checksum=1)]),
        "no checksum in front": ("entry-header", [RIGHT.headed(checksum=0)]),
        "encrypted in front alone": ("entry-header", [RIGHT.headed(flags=0x1)]),
        "encrypted in the directory alone": (
            "entry-encrypted", [dataclasses.replace(RIGHT, flags=0x1).headed(flags=0)]
        ),
        "strongly encrypted in front alone": ("entry-header", [RIGHT.headed(flags=0x41)]),
        "patch data in front alone": ("entry-header", [RIGHT.headed(flags=0x20)]),
        "masked in front alone": ("entry-header", [RIGHT.headed(flags=0x2000)]),
        "masked in the directory alone": (
            "entry-encrypted", [dataclasses.replace(RIGHT, flags=0x2000).headed(flags=0)]
        ),
        "another level of compression in front": ("entry-header", [RIGHT.headed(flags=0x2)]),
        "sizes behind the data in front alone": (
            "entry-header", [streamed.headed(flags=0x8, size=0, packed_size=0, checksum=0)]
        ),
        "sizes behind the data in the directory alone": (
            "entry-header",
            [dataclasses.replace(RIGHT, flags=0x8, descriptor=sums(RIGHT)).headed(flags=0)],
        ),
        "a newer version in the directory": (
            "entry-compression", [dataclasses.replace(RIGHT, version=63).headed(version=20)]
        ),
        "a newer version in front": ("entry-header", [RIGHT.headed(version=63)]),
        "a much newer version": ("entry-compression", [dataclasses.replace(RIGHT, version=99)]),
        "the signature of the directory in front": (
            "entry-header", [dataclasses.replace(RIGHT, front=_Directory(SCRIPT, FINE))]
        ),
        "a field in front that hides data": ("entry-overlap", [RIGHT.headed(gap=4)]),
        "a field in front that is cut off": (
            "entry-extra", [dataclasses.replace(RIGHT, header_extra=b"\x55\x54\xff\0")]
        ),
        "a field of the directory that is cut off": (
            "entry-extra", [dataclasses.replace(RIGHT, extra=b"\x55\x54\xff\0")]
        ),
        "half a field": ("entry-extra", [dataclasses.replace(RIGHT, extra=b"\1\0\x10")]),
    }  # fmt: skip


class _Directory(Member):
    """A member whose header begins as an entry of the directory."""

    @property
    def header(self) -> bytes:
        return b"PK\1\2" + super().header[4:]


def sizes() -> Views:
    """Other sizes in front of the data, in four bytes or in eight."""
    size = len(FINE)
    right = long_field(size, size)
    full = {"size": FULL, "packed_size": FULL}
    wrong = long_field(500, 500)
    # A script of which the rest is another file.
    short = Member(SCRIPT, FINE + HIDDEN_BYTES, method=STORED)
    whole = long_field(len(short.content), len(short.content))
    as_short = {"size": size, "packed_size": size, "checksum": zlib.crc32(FINE)}
    # A script that goes on with the next file.
    following = Member("Resources/next.txt", b"next\n")
    rest = following.header + following.data
    as_long = {"size": size + len(rest), "packed_size": size + len(rest)}
    as_long["checksum"] = zlib.crc32(FINE + rest)
    all_hidden = Member(SCRIPT, HIDDEN_BYTES, method=STORED)
    return {
        "a larger size in front": ("entry-header", [RIGHT.headed(size=size + 1)]),
        "a smaller size in front": ("entry-header", [RIGHT.headed(size=size - 1)]),
        "no sizes in front": ("entry-header", [RIGHT.headed(size=0, packed_size=0, checksum=0)]),
        "a larger packed size in front": ("entry-header", [RIGHT.headed(packed_size=500)]),
        "fewer data in front": ("entry-header", [short.headed(**as_short)]),
        "fewer data in front, in eight bytes": (
            "entry-header",
            [short.headed(**{**as_short, **full}, header_extra=right)],
        ),
        "fewer data in front, in four and in eight bytes": (
            "entry-header", [short.headed(**as_short, header_extra=whole)]
        ),
        "fewer data in front, in four and not in eight bytes": (
            "entry-header", [short.headed(size=size, packed_size=size, header_extra=whole)]
        ),
        "fewer data in front than in eight bytes": (
            "entry-header",
            [dataclasses.replace(short, extra=whole, **full).headed(**as_short, extra=b"")],
        ),
        "fewer data in eight bytes in front than in the directory": (
            "entry-header",
            [dataclasses.replace(short, extra=whole, **full).headed(
                checksum=zlib.crc32(FINE), header_extra=right)],
        ),
        "no data in front": (
            "entry-header", [all_hidden.headed(size=0, packed_size=0, checksum=0)]
        ),
        "no data in front, in eight bytes": (
            "entry-header",
            [all_hidden.headed(**full, checksum=0, header_extra=long_field(0, 0))],
        ),
        "more data in front": ("entry-header", [RIGHT_STORED.headed(**as_long), following]),
        "more data in front, in eight bytes": (
            "entry-header",
            [RIGHT_STORED.headed(
                **{**as_long, **full},
                header_extra=long_field(as_long["size"], as_long["packed_size"])), following],
        ),
        "sizes in eight bytes beside four in the directory": (
            "entry-extra", [dataclasses.replace(RIGHT, extra=wrong)]
        ),
        "sizes in eight bytes beside four in front": (
            "entry-header", [dataclasses.replace(RIGHT, header_extra=wrong)]
        ),
        "the right sizes in eight bytes beside four": (
            "entry-extra", [dataclasses.replace(RIGHT_STORED, extra=right)]
        ),
        "no sizes in eight bytes": ("entry-extra", [dataclasses.replace(RIGHT_STORED, **full)]),
        "no sizes in eight bytes in front": (
            "entry-header", [dataclasses.replace(RIGHT_STORED, extra=right, **full)]
        ),
        "other sizes in eight bytes in front": (
            "entry-header",
            [dataclasses.replace(RIGHT_STORED, extra=right, header_extra=wrong, **full)],
        ),
        "one size in eight bytes in front": (
            "entry-header", [RIGHT_STORED.headed(header_extra=long_field(size), size=FULL)]
        ),
        "three values in eight bytes in front": (
            "entry-header", [RIGHT_STORED.headed(header_extra=long_field(size, size, 0), **full)]
        ),
        "smaller sizes in four bytes beside eight in front": (
            "entry-header",
            [RIGHT_STORED.headed(
                header_extra=right, size=size - 1, packed_size=size - 1)],
        ),
        "two fields of sizes in eight bytes": (
            "entry-extra",
            [dataclasses.replace(RIGHT_STORED, extra=right + wrong, header_extra=right, **full)],
        ),
        "sizes in eight bytes and one more": (
            "entry-extra",
            [dataclasses.replace(
                RIGHT_STORED, extra=long_field(size, size, 0), header_extra=right, **full)],
        ),
        "a size in eight bytes too few": (
            "entry-extra",
            [dataclasses.replace(
                RIGHT_STORED, extra=long_field(size), header_extra=right, **full)],
        ),
        "a place in eight bytes beside four": (
            "entry-extra", [dataclasses.replace(RIGHT, extra=long_field(0))]
        ),
        "a place in eight bytes that is another file's": (
            "entry-overlap", [dataclasses.replace(RIGHT, extra=long_field(0), offset=FULL)]
        ),
    }  # fmt: skip


def descriptors() -> Views:
    """Checksums and sizes behind the data."""
    plain = sums(RIGHT)[4:]
    long = struct.pack("<I2Q", *RIGHT.sums)
    full = {"size": FULL, "packed_size": FULL, "header_extra": long_field(0, 0)}
    forged = Member(SCRIPT, _FORGED)
    stored = RIGHT_STORED.sums
    echo = SIGNATURE + struct.pack("<3I", zlib.crc32(b"echo"), 4, 4)
    nothing = SIGNATURE + bytes(12)
    empty = Member("Resources/empty", b"", method=STORED)

    def ended(content: bytes) -> Member:
        return Member(SCRIPT, content, method=STORED).streamed()

    return {
        "stored, sizes behind": ("entry-streamed", [RIGHT_STORED.streamed()]),
        "stored, sizes behind and in front, as zip writes into a pipe": (
            "entry-streamed", [RIGHT_STORED.streamed(size=stored[2], packed_size=stored[1])]
        ),
        "stored, with sizes in its content": ("entry-streamed", [ended(b"echo" + echo + FINE)]),
        "stored, with sizes and a file in its content": (
            "entry-streamed", [ended(b"echo" + echo + HIDDEN_BYTES)]
        ),
        "stored, with sizes, and a manifest in its content": (
            "entry-streamed",
            [ended(b"echo" + echo + Member("manifest.yaml", b"Type: Library\n").header)],
        ),
        "stored, sizes of nothing and a file in its content": (
            "entry-streamed", [ended(nothing + HIDDEN_BYTES)]
        ),
        "stored, a package, sizes behind": (
            "entry-streamed",
            [Member("Resources/a.zip", package(WRONG), method=STORED).streamed()],
        ),
        "stored, sizes behind without a signature": (
            "entry-streamed", [RIGHT_STORED.streamed(struct.pack("<3I", *stored))]
        ),
        "stored, empty, sizes behind without a signature": (
            "entry-header", [empty.streamed(bytes(12)), RIGHT]
        ),
        "no sizes behind": ("entry-header", [RIGHT.streamed(b"")]),
        "half of the sizes behind": ("entry-header", [RIGHT.streamed(plain[:8])]),
        "another checksum behind": (
            "entry-header", [RIGHT.streamed(SIGNATURE + b"\1\0\0\0" + plain[4:])]
        ),
        "another packed size behind": (
            "entry-header", [RIGHT.streamed(SIGNATURE + plain[:4] + b"\1\0\0\0" + plain[8:])]
        ),
        "another size behind": (
            "entry-header", [RIGHT.streamed(SIGNATURE + plain[:8] + b"\1\0\0\0")]
        ),
        "another signature behind": ("entry-header", [RIGHT.streamed(b"PK\7\7" + plain)]),
        "sizes in eight bytes behind, in four in front": (
            "entry-header", [RIGHT.streamed(SIGNATURE + long)]
        ),
        "sizes in eight bytes behind, without a signature": (
            "entry-header", [RIGHT.streamed(long)]
        ),
        "sizes in eight bytes behind, in four and in eight in front": (
            "entry-header",
            [RIGHT.streamed(
                SIGNATURE + long, size=RIGHT.sums[2], packed_size=RIGHT.sums[1],
                header_extra=long_field(RIGHT.sums[2], RIGHT.sums[1]))],
        ),
        "sizes in four bytes behind, in eight in front": (
            "entry-header", [RIGHT.streamed(sums(RIGHT), **full)]
        ),
        "a checksum behind that looks like a signature": (
            "entry-header", [forged.streamed(struct.pack("<3I", *forged.sums))]
        ),
        "a byte after the sizes behind": ("archive-layout", [RIGHT.streamed(sums(RIGHT) + b"\0")]),
        "sizes behind twice": ("archive-layout", [RIGHT.streamed(sums(RIGHT) * 2)]),
        "sizes behind that nothing announces": (
            "archive-layout", [dataclasses.replace(RIGHT, descriptor=sums(RIGHT))]
        ),
        "a file after the sizes behind": (
            "archive-layout", [RIGHT.streamed(sums(RIGHT) + HIDDEN_BYTES)]
        ),
        "another script after the sizes behind": (
            "archive-layout", [RIGHT.streamed(sums(RIGHT) + WRONG.header + WRONG.data)]
        ),
        "another size in front and sizes behind": ("entry-header", [RIGHT.streamed(size=5)]),
        "another packed size in front and sizes behind": (
            "entry-header", [RIGHT.streamed(packed_size=5)]
        ),
        "another checksum in front and sizes behind": (
            "entry-header", [RIGHT.streamed(checksum=1)]
        ),
    }  # fmt: skip


def data() -> Views:
    """Data that go on behind the end of the deflate stream, or that a folder has."""
    packed = deflated(FINE)
    other = WRONG.header + WRONG.data
    ends = closed(b"", Member("Resources/run.sh").directory_entry(0), 1)

    def followed(tail: bytes) -> list[Member | bytes]:
        return [Member(SCRIPT, FINE, packed=packed + tail)]

    def streamed(tail: bytes, signature: bytes = SIGNATURE) -> list[Member | bytes]:
        """The same, where the sizes stand behind, and so behind the end of the stream."""
        behind = signature + sums(RIGHT)[4:]
        return [Member(SCRIPT, FINE, packed=packed + behind + tail).streamed()]

    def folder(content: bytes, packed: bytes | None = None, **fields: Any) -> list[Member | bytes]:
        return [Member("Resources/a/", content, FOLDER, packed=packed, **fields)]

    return {
        "a byte behind the deflated data": ("entry-data", followed(b"\0")),
        "many bytes behind the deflated data": ("entry-data", followed(bytes(300_000))),
        "a package behind the deflated data": ("entry-data", followed(package(WRONG))),
        "other data behind the deflated data": ("entry-data", followed(deflated(HOSTILE))),
        "a file behind the deflated data": ("entry-data", followed(HIDDEN_BYTES)),
        "a file and all ends behind the deflated data": (
            "entry-data", followed(HIDDEN_BYTES + ends)
        ),
        "sizes behind the deflated data": ("entry-data", streamed(b"")),
        "sizes and a file behind the deflated data": ("entry-data", streamed(HIDDEN_BYTES)),
        "sizes without a signature and a file behind the deflated data": (
            "entry-data", streamed(HIDDEN_BYTES, b"")
        ),
        "sizes and another script behind the deflated data": ("entry-data", streamed(other)),
        "sizes and a package behind the deflated data": ("entry-data", streamed(package(WRONG))),
        "sizes and all ends behind the deflated data": ("entry-data", streamed(ends)),
        "sizes and a byte behind the deflated data": ("entry-data", streamed(b"\0")),
        "deflated data without an end": (
            "entry-data", [Member(SCRIPT, FINE, packed=_unended(FINE))]
        ),
        "deflated data that are empty": ("entry-data", [Member(SCRIPT, b"", packed=b"")]),
        "more content than declared": (
            "entry-size", [Member(SCRIPT, FINE + HOSTILE, size=len(FINE),
                                  checksum=zlib.crc32(FINE))]
        ),
        "content of a file that is declared empty": (
            "entry-size", [Member(SCRIPT, HOSTILE, size=0, checksum=0)]
        ),
        "less content than declared": (
            "entry-size", [Member(SCRIPT, FINE, size=len(FINE) + 1)]
        ),
        "stored, with more data than content": (
            "entry-size", [Member(SCRIPT, FINE + HOSTILE, method=STORED, size=len(FINE),
                                  checksum=zlib.crc32(FINE))]
        ),
        "stored, with more data than content, of another checksum": (
            "entry-size", [Member(SCRIPT, FINE + HOSTILE, method=STORED, size=len(FINE))]
        ),
        "stored, with less data than content": (
            "entry-size", [Member(SCRIPT, FINE, method=STORED, size=len(FINE) + 5)]
        ),
        "a folder with stored data": ("entry-type", folder(HOSTILE, method=STORED)),
        "a folder with a file in its data": ("entry-type", folder(HIDDEN_BYTES, method=STORED)),
        "a folder with deflated data": ("entry-type", folder(HOSTILE)),
        "a folder that hides deflated data": ("entry-type", folder(HOSTILE, size=0, checksum=0)),
        "a folder with a byte behind no data": ("entry-type", folder(b"", packed=b"\3\0\0")),
        "a folder with a file behind no data": (
            "entry-type", folder(b"", packed=b"\3\0" + HIDDEN_BYTES)
        ),
        "a folder with sizes and a file behind no data": (
            "entry-type",
            [Member("Resources/a/", b"", FOLDER,
                    packed=b"\3\0" + SIGNATURE + struct.pack("<3I", 0, 2, 0) + HIDDEN_BYTES,
                    ).streamed()],
        ),
        "a folder with a checksum": ("entry-type", folder(b"", method=STORED, checksum=1)),
    }  # fmt: skip


def types() -> Views:
    """What some programs take for a folder or a link."""
    link = struct.pack("<HIHH", LINK, 4, 0, 0) + b"/etc"
    asi = field(0x756E, struct.pack("<I", zlib.crc32(link)) + link)
    return {
        "a file with the attribute of a folder": (
            "entry-type", [Member(SCRIPT, FINE, 0, DOS, attributes=0x10)]
        ),
        "a file of Unix with the attribute of a folder": (
            "entry-type", [dataclasses.replace(RIGHT, attributes=0x10)]
        ),
        "a file with the mode of a folder": (
            "entry-type", [Member(SCRIPT, FINE, FOLDER)]
        ),
        "a file with the mode of a folder, made on DOS": (
            "entry-type", [Member(SCRIPT, FINE, FOLDER, DOS)]
        ),
        "a link made on DOS": ("entry-type", [Member(SCRIPT, b"/etc", LINK, DOS, STORED)]),
        "a link by a field of the directory": (
            "entry-extra", [Member(SCRIPT, b"/etc", 0, extra=asi)]
        ),
        "a link by a field in front": (
            "entry-extra", [Member(SCRIPT, b"/etc", 0, header_extra=asi)]
        ),
        "a link by both fields": (
            "entry-extra", [Member(SCRIPT, b"/etc", 0, extra=asi, header_extra=asi)]
        ),
        "a hidden link in front": (
            "archive-layout",
            [dataclasses.replace(HIDDEN, content=b"/etc", mode=LINK), RIGHT],
        ),
    }  # fmt: skip


def _unended(content: bytes) -> bytes:
    """Deflated data of which the last block is missing."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush(zlib.Z_SYNC_FLUSH)
