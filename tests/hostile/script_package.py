# SPDX-License-Identifier: Apache-2.0

"""The package of which the archives are made that programs read differently: a script in it."""

import struct

from tests.hostile.cases import CLASS_FILE, CLASS_TEXT, manifest
from tests.hostile.zips import STORED, Member, laid_out, zipped

SCRIPT = "Resources/run.sh"
FINE = b"echo fine\n"
HOSTILE = b"echo hostile\n"

START = (
    Member("manifest.yaml", manifest().encode()),
    Member(CLASS_FILE, CLASS_TEXT.encode()),
)
RIGHT = Member(SCRIPT, FINE)
RIGHT_STORED = Member(SCRIPT, FINE, method=STORED)
# The same file with another content.
WRONG = Member(SCRIPT, HOSTILE, is_listed=False)
# Another file.
HIDDEN = Member("Resources/hidden.sh", HOSTILE, is_listed=False)
HIDDEN_BYTES = HIDDEN.header + HIDDEN.data
# What a program does not find if it stops too soon.
LAST = Member("Resources/end.txt", b"end\n")

SIGNATURE = b"PK\7\x08"
# A size that stands elsewhere in eight bytes.
FULL = 0xFFFFFFFF


def package(*members: Member | bytes) -> bytes:
    """The package with these members instead of the script."""
    return zipped((*START, *members, LAST))


def parts() -> tuple[bytes, bytes, int]:
    """The package without its end: its data, its directory, and the number of entries."""
    return laid_out((*START, RIGHT, LAST))


def two_directories() -> tuple[bytes, bytes, bytes, int]:
    """The data of the package, its directory, another directory, and the entries of each."""
    body, fine, count = laid_out((*START, RIGHT, WRONG, LAST))
    place = len(laid_out((*START, RIGHT))[0])
    last = len(body) - len(LAST.header + LAST.data)
    listed = Member(SCRIPT, HOSTILE).directory_entry(place) + LAST.directory_entry(last)
    return body, fine, laid_out(START)[1] + listed, count


def field(kind: int, data: bytes) -> bytes:
    """An extra field."""
    return struct.pack("<2H", kind, len(data)) + data


def long_field(*values: int) -> bytes:
    """The extra field of ZIP64."""
    return field(1, struct.pack(f"<{len(values)}Q", *values))


def sums(member: Member) -> bytes:
    """The checksum and the sizes that stand behind the data of a member."""
    return SIGNATURE + struct.pack("<3I", *member.sums)
