# SPDX-License-Identifier: Apache-2.0

"""Archives with bytes that the directory does not list, with two directories, or two ends."""

import dataclasses
import struct
from collections.abc import Callable
from typing import Any

from tests.hostile.script_package import (
    FULL,
    HIDDEN,
    HIDDEN_BYTES,
    HOSTILE,
    LAST,
    RIGHT,
    SCRIPT,
    START,
    WRONG,
    package,
    parts,
    two_directories,
)
from tests.hostile.zips import (
    FOLDER,
    STORED,
    Member,
    closed,
    end_64,
    end_record,
    laid_out,
    locator,
    zipped,
)

# What it is -> the rule, and what makes the archive.
Views = dict[str, tuple[str, Callable[[], bytes]]]

_SHELL = b"#!/bin/sh\nexit\n"
_FULL_END = end_record(0xFFFF, FULL, FULL)


def _members(*listed: Member | bytes) -> Callable[[], bytes]:
    return lambda: zipped(listed)


def unlisted() -> Views:
    """Bytes in front of the files, between and behind them."""
    whole = package(Member(SCRIPT, HOSTILE))
    hostile = Member("manifest.yaml", b"FullName: org.other\n", is_listed=False)
    twice = [dataclasses.replace(member, is_listed=False) for member in (*START, RIGHT)]
    named: dict[str, Callable[[], bytes]] = {
        "a file in front": _members(HIDDEN, *START, RIGHT),
        "a file between": _members(*START, HIDDEN, RIGHT),
        "a file at the end": _members(*START, RIGHT, HIDDEN),
        "a file alone": _members(*START, HIDDEN),
        "another script at the end": _members(*START, RIGHT, WRONG),
        "another script in front": _members(WRONG, *START, RIGHT),
        "a manifest in front": _members(hostile, *START, RIGHT),
        "a manifest at the end": _members(*START, RIGHT, hostile),
        "a manifest at the end of the kind of a pipe": _members(*START, hostile.streamed()),
        "a folder": _members(
            *START, Member("Resources/a/", b"", FOLDER, method=STORED, is_listed=False), RIGHT
        ),
        "a path that climbs": _members(
            *START, dataclasses.replace(HIDDEN, name="../../hostile.sh"), RIGHT
        ),
        "a file of the kind of a pipe": _members(*START, HIDDEN.streamed(), RIGHT),
        "all files in front once more": _members(*twice, *START, RIGHT),
        "a script in front": _members(_SHELL, *START, RIGHT),
        "a script in front that offsets do not count": lambda: _SHELL + package(RIGHT),
        "a package in front": _members(whole, *START, RIGHT),
        "a package in front that offsets do not count": lambda: whole + package(RIGHT),
        "a byte in front": _members(b"\0", *START, RIGHT),
        "the mark of a split archive in front": _members(b"PK00", *START, RIGHT),
        "the signature of a split archive in front": _members(b"PK\7\x08", *START, RIGHT),
        "a byte between": _members(*START, b"\0", RIGHT),
        "zeros between": _members(*START, bytes(4096), RIGHT),
        "a package between": _members(*START, whole, RIGHT, LAST),
        "an end between": _members(*START, end_record(0, 0, 0), RIGHT, LAST),
        "a directory between": _members(*START, laid_out(START)[1], RIGHT, LAST),
        "a byte before the directory": _before_directory(b"\0"),
        "a record of other data before the directory": _before_directory(
            b"PK\6\x08" + struct.pack("<I", 4) + b"data"
        ),
        "a package before the directory": _before_directory(whole),
        "a file before the directory": _before_directory(HIDDEN_BYTES),
        "a byte before the end": _before_end(b"\0"),
        "a signature before the end": _before_end(b"PK\5\5" + struct.pack("<H", 4) + b"sign"),
        "an end before the end": _before_end(end_record(2, len(laid_out(START)[1]), 0)),
        "a byte behind": _behind(b"\0"),
        "a line break behind": _behind(b"\n"),
        "zeros behind, as bsdtar writes into a pipe": _behind(bytes(9000)),
        "a package behind": _behind(whole),
        "a package behind, with offsets": _package_behind,
        "a file behind": _behind(HIDDEN_BYTES),
        "a file in a comment": _commented(HIDDEN_BYTES),
        "a comment longer than declared": lambda: package(RIGHT)[:-2] + b"\1\0ab",
    }
    views = {f"unlisted: {name}": ("archive-layout", build) for name, build in named.items()}
    views["unlisted: so much behind that no end is found"] = (
        "archive-format", _behind(bytes(70_000))
    )  # fmt: skip
    views["unlisted: a comment shorter than declared"] = (
        "archive-format", lambda: package(RIGHT)[:-2] + b"\3\0ab"
    )  # fmt: skip
    return views


def ends() -> Views:
    """Ends that contradict the directory, and directories that are not the only one."""
    whole = package(Member(SCRIPT, HOSTILE))
    nested = Member("a", HIDDEN_BYTES, method=STORED)
    inside = len(laid_out(START)[0]) + len(nested.header)
    named: dict[str, Callable[[], bytes]] = {
        "fewer entries than the directory": _ended(count=-1),
        "more entries than the directory": _ended(count=1),
        "an entry of the directory that is cut off": _cut_off,
        "a smaller directory": _ended(size=-46),
        "a larger directory": _ended(size=10),
        "a directory further on": _ended(offset=1),
        "a directory before": _ended(offset=-1),
        "a larger directory before": _ended(offset=-10, size=10),
        "fewer entries in this part": _ended(here=2),
        "the second part of an archive": _ended(disks=(1, 0)),
        "a directory in another part": _ended(disks=(0, 1)),
        "a file in another part": _members(*START, dataclasses.replace(RIGHT, disk=1)),
        "another directory directly in front": _directory_in_front,
        "another directory where the end says": _directory_elsewhere,
        "two directories as one": _directories_as_one,
        "another directory and another end behind": _second_end,
        "a package in a comment": _commented(whole),
        "a package in a comment, with offsets": _package_in_comment,
        "an end in a comment": _commented(end_record(0, 0, 0)),
        "a directory in a comment": _directory_in_comment,
        "an entry of the directory in a comment": _commented(LAST.directory_entry(0)),
        "the signature of sizes in a comment": _commented(b"PK\7\x08"),
        "a locator in a comment": _commented(locator(0)),
        "an end of ZIP64 in a comment": _commented(end_64(0, 0, 0) + locator(0)),
    }
    views = {f"end: {name}": ("archive-layout", build) for name, build in named.items()}
    views |= {
        "end: half of one in a comment": ("archive-format", _commented(b"PK\5\6")),
        "end: a file whose place is that of another": (
            "entry-overlap", _members(*START, RIGHT, Member("a", HOSTILE, offset=0))
        ),
        "end: a file within a stored file": (
            "entry-overlap",
            _members(*START, nested, dataclasses.replace(HIDDEN, is_listed=True, offset=inside)),
        ),
    }  # fmt: skip
    return views


def zip64_ends() -> Views:
    """Ends of ZIP64 that the locator does not find, or that contradict the plain end."""
    named: dict[str, Callable[[], bytes]] = {
        "a locator of another directory": _located_elsewhere,
        "a locator of another directory, beside a plain end": _located_beside_plain,
        "another directory in the comment of an entry": _long_end_in_entry_comment,
        "a locator of the byte before": _located(-1),
        "a locator of a file": _located(-100),
        "a locator of another part": _located(disk=1),
        "a locator of two parts": _located(disks=2),
        "a locator of no part": _located(disks=0),
        "a locator without an end": _only(locator(0)),
        "an end without a locator": _only(end_64(3, 0, 0)),
        "two ends": _two_long_ends,
        "a gap before the locator": _located(gap=bytes(8)),
        "an end with more data": _located(gap=bytes(8), length=52),
        "an end that says it is longer": _located(length=52),
        "an end that says it is shorter": _located(length=36),
        "other entries": _long_ended(count=-1, plain=None),
        "another size": _long_ended(size=-46, plain=None),
        "another place": _long_ended(offset=-46, plain=None),
        "fewer entries alone": _long_ended(count=-1),
        "a smaller directory alone": _long_ended(size=-46),
        "a directory before alone": _long_ended(offset=-46),
        "fewer entries in this part": _long_ended(here=2),
        "the second part": _long_ended(disks=(1, 0)),
    }
    views = {f"ZIP64: {name}": ("archive-layout", build) for name, build in named.items()}
    views["ZIP64: full fields, and no end"] = ("archive-entries", _without_long_end)
    return views


def _before_directory(gap: bytes) -> Callable[[], bytes]:
    def build() -> bytes:
        body, entries, count = parts()
        return closed(body + gap, entries, count)

    return build


def _before_end(gap: bytes) -> Callable[[], bytes]:
    def build() -> bytes:
        body, entries, count = parts()
        return body + entries + gap + end_record(count, len(entries), len(body))

    return build


def _behind(tail: bytes) -> Callable[[], bytes]:
    return lambda: package(RIGHT) + tail


def _commented(comment: bytes) -> Callable[[], bytes]:
    return lambda: closed(*parts(), comment=comment)


def _shifted(by: int) -> bytes:
    """Another package, whose offsets count from so many bytes before it."""
    body, directory, count = laid_out((*START, Member(SCRIPT, HOSTILE), LAST), by)
    return closed(body, directory, count, offset=by + len(body))


def _package_behind() -> bytes:
    first = package(RIGHT)
    return first + _shifted(len(first))


def _package_in_comment() -> bytes:
    start = len(package(RIGHT))
    return closed(*parts(), comment=_shifted(start))


def _ended(count: int = 0, size: int = 0, offset: int = 0, **fields: Any) -> Callable[[], bytes]:
    """Another end record; numbers are added to the truth."""

    def build() -> bytes:
        body, entries, right = parts()
        record = end_record(right + count, len(entries) + size, len(body) + offset, **fields)
        return body + entries + record

    return build


def _cut_off() -> bytes:
    body, entries, count = parts()
    return closed(body, entries + LAST.directory_entry(0)[:30], count + 1)


def _directory_in_front() -> bytes:
    """The end says where one directory is, and another one stands directly in front of it.

    The offsets of the other one count from the start of what a program takes for the archive.
    """
    first, fine, count = parts()
    body, other, _ = laid_out((*START, Member(SCRIPT, HOSTILE), LAST))
    # All data of the other package, so that its offsets can be smaller by a directory.
    fine_place = len(first) + len(body)
    shifted = laid_out((*START, Member(SCRIPT, HOSTILE), LAST), len(first) - len(fine))[1]
    assert len(first) > len(fine) == len(other)
    return first + body + fine + shifted + end_record(count, len(fine), fine_place)


def _directory_elsewhere() -> bytes:
    """The directory that stands directly in front of the end is the one without offsets."""
    body, fine, other, count = two_directories()
    return body + other + fine + end_record(count, len(fine), len(body))


def _directories_as_one() -> bytes:
    body, fine, other, count = two_directories()
    return body + fine + other + end_record(count, len(fine + other), len(body))


def _second_end() -> bytes:
    body, fine, other, count = two_directories()
    first = body + fine + end_record(count, len(fine), len(body))
    return first + other + end_record(count, len(other), len(first))


def _directory_in_comment() -> bytes:
    body, fine, other, count = two_directories()
    start = len(body) + len(fine) + 22
    comment = other + end_record(count, len(other), start)
    return closed(body, fine, count, comment=comment)


def _long_ended(
    count: int = 0,
    size: int = 0,
    offset: int = 0,
    plain: bytes | None = _FULL_END,
    **fields: Any,
) -> Callable[[], bytes]:
    """Another end of ZIP64; numbers are added to the truth.

    :param plain: the plain end record; None for the truth.
    """

    def build() -> bytes:
        body, entries, right = parts()
        start = len(body) + len(entries)
        long = end_64(right + count, len(entries) + size, len(body) + offset, **fields)
        end = end_record(right, len(entries), len(body)) if plain is None else plain
        return body + entries + long + locator(start) + end

    return build


def _located(
    place: int = 0, gap: bytes = b"", length: int = 44, **fields: Any
) -> Callable[[], bytes]:
    """Another locator; the place is added to the truth."""

    def build() -> bytes:
        body, entries, count = parts()
        start = len(body) + len(entries)
        long = end_64(count, len(entries), len(body), length=length)
        return body + entries + long + gap + locator(start + place, **fields) + _FULL_END

    return build


def _only(record: bytes) -> Callable[[], bytes]:
    """One record of ZIP64 without the other."""
    return _before_end(record)


def _without_long_end() -> bytes:
    body, entries, _ = parts()
    return body + entries + _FULL_END


def _two_long_ends() -> bytes:
    body, entries, count = parts()
    record = end_64(count, len(entries), len(body))
    return body + entries + record * 2 + locator(len(body) + len(entries)) + _FULL_END


def _located_elsewhere(plain: bytes = _FULL_END) -> bytes:
    """The locator points to the end of another directory (CVE-2025-8291)."""
    body, fine, other, count = two_directories()
    first = body + other + end_64(count, len(other), len(body))
    second = fine + end_64(count, len(fine), len(first))
    return first + second + locator(len(body + other)) + plain


def _located_beside_plain() -> bytes:
    """The same, where the plain end has no full fields."""
    body, fine, other, count = two_directories()
    first = len(body) + len(other) + 56
    return _located_elsewhere(end_record(count, len(fine), first))


def _long_end_in_entry_comment() -> bytes:
    """The comment of the last entry holds another directory with its end of ZIP64.

    Programs that look for ZIP64 whenever there is a locator find that one.
    """
    body, fine, other, count = two_directories()
    place = len(body) + len(fine) - len(LAST.directory_entry(0))
    # The comment stands behind the last entry of the directory.
    start = len(body) + len(fine)
    comment = other + end_64(count, len(other), start) + locator(start + len(other))
    listed = dataclasses.replace(LAST, comment=comment)
    last = len(body) - len(LAST.header + LAST.data)
    directory = fine[: place - len(body)] + listed.directory_entry(last)
    return closed(body, directory, count)
