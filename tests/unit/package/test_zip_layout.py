# SPDX-License-Identifier: Apache-2.0

"""ZIP files as common programs write them are accepted; what programs read differently is not.

``tests/hostile/views.py`` has the archives that are refused.
"""

import dataclasses
import io
import os
import pathlib
import random
import shutil
import struct
import threading
import tracemalloc
import zipfile
import zlib

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from glare_murano.package import Archive, InvalidArchive, Limits
from tests import effort
from tests.hostile.script_package import (
    FULL,
    RIGHT,
    RIGHT_STORED,
    START,
    long_field,
    package,
    sums,
)
from tests.hostile.zips import (
    FOLDER,
    STORED,
    Member,
    closed,
    closed_64,
    end_64,
    end_record,
    laid_out,
    locator,
    zipped,
)
from tests.unit.package.header_reader import Unread, from_headers

# As ``make.sh`` in it makes them.
ARCHIVES = pathlib.Path(__file__).parent / "archives"
MANIFEST = b"FullName: org.app\nType: Library\nClasses: {org.App: App.yaml}\n"
CLASS = b"Name: org.App\n# A comment that can be compressed, a comment that can be compressed.\n"
FILES = {
    "manifest.yaml": MANIFEST,
    "Classes/App.yaml": CLASS,
    "Resources/run.sh": b"#!/bin/sh\nexit\n",
    "Resources/nothing": b"",
    "Resources/\u00e4.txt": b"x\n",
}
ASCII = {path: content for path, content in FILES.items() if path.isascii()}
REFUSED = {
    "bsdtar-pipe": "archive-layout",
    "git-stored": "entry-streamed",
    "go-stored": "entry-streamed",
    "python-stored": "entry-streamed",
    "zip-pipe-stored": "entry-streamed",
    "zip-unmarked": "path-encoding",
}
SIGNATURE = b"PK\7\x08"


def contents(data):
    with Archive.open(io.BytesIO(data)) as archive:
        archive.verify()
        return {path: archive.read(path, archive.size(path)) for path in archive.paths}


def refusal(data):
    with pytest.raises(InvalidArchive) as caught:
        contents(data)
    (problem,) = caught.value.problems
    return problem


def archives():
    return {path.stem: path.read_bytes() for path in sorted(ARCHIVES.glob("*.zip"))}


class TestPrograms:
    @pytest.mark.parametrize("name", sorted(archives().keys() - REFUSED.keys()))
    def test_what_they_write_is_accepted(self, name):
        found = contents(archives()[name])
        found.pop("META-INF/MANIFEST.MF", None)
        # Info-ZIP does not mark a name as UTF-8.
        assert found == (ASCII if name.startswith("zip") else FILES)

    @pytest.mark.parametrize(("name", "rule"), REFUSED.items())
    def test_what_is_ambiguous_is_refused(self, name, rule):
        assert refusal(archives()[name]).rule == rule

    def test_all_archives_are_known(self):
        assert len(archives()) == 21

    def test_a_stored_file_from_a_pipe_is_refused_with_the_remedy(self):
        problem = refusal(archives()["zip-pipe-stored"])
        assert problem.where == "manifest.yaml"
        assert "compress it, or pack into a file instead of a pipe" in problem.message

    def test_a_name_that_is_not_marked_is_refused_with_the_remedy(self):
        problem = refusal(archives()["zip-unmarked"])
        assert problem.where == "Resources/\u00e4.txt"
        assert "pack with 'openstack murano package build', 7-Zip, jar or Python" in problem.message

    def test_this_python_writes_what_is_accepted(self, tmp_path):
        for path, content in FILES.items():
            file = tmp_path / "package" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        packed = shutil.make_archive(str(tmp_path / "a"), "zip", tmp_path / "package")
        assert contents(pathlib.Path(packed).read_bytes()) == FILES

    @pytest.mark.parametrize("name", ["Resources/a.sh", "Resources/\u00e4.sh", "a\u0308.sh"])
    def test_macos_by_hand(self, name):
        """It writes as libarchive does, does not mark names, and decomposes some of them."""
        times = struct.pack("<B3I", 7, 0, 0, 0)
        extra = struct.pack("<2H", 0x5455, 13) + times + struct.pack("<2H", 0x7875, 11) + bytes(11)
        written = [
            Member(b"Resources/", b"", FOLDER, method=STORED, extra=extra, header_extra=extra),
            # What a disk keeps beside a file.
            Member(b"__MACOSX/._a", b"\0" * 99, extra=extra, header_extra=extra).streamed(size=99),
            Member(name.encode(), b"x" * 99, extra=extra, header_extra=extra).streamed(size=99),
        ]
        data = zipped((*START, *written))
        if name.isascii():
            assert contents(data)[name] == b"x" * 99
        else:
            assert refusal(data).rule == "path-encoding"


class TestLayout:
    def test_entries_may_stand_in_any_order(self):
        first, second = Member("b", b"1"), Member("a", b"2")
        body, _, _ = laid_out([first, second])
        directory = second.directory_entry(len(first.header + first.data))
        directory += first.directory_entry(0)
        assert contents(closed(body, directory, 2)) == {"a": b"2", "b": b"1"}

    def test_an_empty_archive_has_an_end_only(self):
        assert contents(end_record(0, 0, 0)) == {}
        assert contents(closed_64(b"", b"", 0)) == {}
        assert refusal(b"x" + end_record(0, 0, 1)).rule == "archive-layout"

    @pytest.mark.parametrize("comment", [b"c", b"PK", b"0" * 40, b"\0" * 0xFFFF])
    def test_a_comment_is_accepted(self, comment):
        assert len(contents(closed(*laid_out(START), comment=comment))) == 2

    @pytest.mark.parametrize(
        "signature",
        [b"\1\2", b"\3\4", b"\5\5", b"\6\6", b"\6\7", b"\6\x08", b"\7\x08"],
    )
    def test_a_comment_with_a_signature_is_refused(self, signature):
        comment = b"comment PK" + signature + b" with more than an end record"
        assert refusal(closed(*laid_out(START), comment=comment)).rule == "archive-layout"

    def test_a_refusal_names_the_bytes_that_belong_to_no_file(self):
        before = len(laid_out(START)[0])
        problem = refusal(zipped((*START, b"gap", RIGHT)))
        assert problem.where == "archive"
        expected = f"bytes {before} to {before + 2} belong to no file of its directory"
        assert problem.message == expected

    def test_a_refusal_names_the_bytes_in_front(self):
        message = refusal(zipped((b"#!/bin/sh\n", *START))).message
        assert message == "bytes 0 to 9 belong to no file of its directory"

    def test_the_end_of_zip64_is_accepted_wherever_it_agrees(self):
        body, directory, count = laid_out(START)
        place = len(body) + len(directory)
        long = end_64(count, len(directory), len(body)) + locator(place)
        plain = (count, len(directory), len(body))
        for full in range(8):
            values = [
                most if full & 1 << bit else value
                for bit, (value, most) in enumerate(zip(plain, (0xFFFF, FULL, FULL), strict=True))
            ]
            data = body + directory + long + end_record(*values)
            assert len(contents(data)) == 2

    @pytest.mark.parametrize("wrong", range(3))
    def test_an_end_of_zip64_that_disagrees_is_refused(self, wrong):
        body, directory, count = laid_out(START)
        long = end_64(count, len(directory), len(body)) + locator(len(body) + len(directory))
        values = [count, len(directory), len(body)]
        values[wrong] += 1
        data = body + directory + long + end_record(*values)
        assert "its end records disagree" in refusal(data).message

    def test_an_end_of_zip64_that_counts_fewer_entries_in_this_part_is_refused(self):
        body, directory, count = laid_out(START)
        place = len(body) + len(directory)
        long = end_64(count, len(directory), len(body), here=count - 1) + locator(place)
        data = body + directory + long + end_record(0xFFFF, FULL, FULL)
        assert "a part of a split archive" in refusal(data).message

    def test_the_expected_length_of_a_zip64_field_is_named(self):
        size = len(RIGHT_STORED.content)
        full = {"size": FULL, "packed_size": FULL, "header_extra": long_field(size, size)}
        member = dataclasses.replace(RIGHT_STORED, extra=long_field(size), **full)
        assert refusal(package(member)).message == (
            "its ZIP64 field has 8 bytes, but 16 are expected"
        )

    @pytest.mark.parametrize(
        ("values", "plain"), [((0, 0, 0), (FULL, FULL)), ((0, 0), (-1, 0)), ((0, 0), (0, -1))]
    )
    def test_sizes_of_eight_bytes_in_front_that_disagree_are_refused(self, values, plain):
        """Numbers are added to the truth."""
        size = len(RIGHT_STORED.content)
        plain_sizes = [FULL if each == FULL else size + each for each in plain]
        member = RIGHT_STORED.headed(
            header_extra=long_field(*(size + value for value in values)),
            size=plain_sizes[0],
            packed_size=plain_sizes[1],
        )
        assert "contradict" in refusal(package(member)).message

    def test_as_many_entries_as_allowed_are_read_from_zip64(self):
        with Archive.open(io.BytesIO(closed_64(*laid_out(START))), Limits(entries=2)) as archive:
            assert len(archive.paths) == 2

    def test_memory_does_not_grow_with_entries_that_no_count_declares(self):
        """As many as fit into what the limit allows for names and extra fields."""
        directory = Member("a", b"").directory_entry(0) * 200_000
        data = io.BytesIO(closed(b"", directory, 10_000))
        tracemalloc.start()
        try:
            with pytest.raises(InvalidArchive, match="archive-layout"):
                Archive.open(data)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 16 * 1024**2

    def test_memory_does_not_grow_with_extra_fields_of_headers(self):
        extra = struct.pack("<2H", 0x5455, 65_000) + bytes(65_000)
        members = [
            Member(str(number), b"", method=STORED, header_extra=extra) for number in range(400)
        ]
        data = io.BytesIO(zipped(members))
        tracemalloc.start()
        try:
            with Archive.open(data) as archive:
                assert len(archive.paths) == 400
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 2 * 1024**2


class TestEntries:
    def test_without_a_name_are_refused(self):
        problem = refusal(package(Member(b"")))
        assert (problem.rule, problem.where) == ("path-escape", "''")

    def test_of_a_newer_version_are_refused_with_both_versions(self):
        message = refusal(package(dataclasses.replace(RIGHT, version=63))).message
        assert message == "needs version 6.3 of the ZIP format, at most 4.5 is supported"

    def test_extra_fields_may_differ(self):
        times = struct.pack("<2HBI", 0x5455, 5, 1, 0)
        member = dataclasses.replace(RIGHT, extra=times, header_extra=times + times)
        assert contents(package(member))[member.name] == member.content

    @pytest.mark.parametrize("known", [{}, {"size"}, {"packed_size", "size"}, {"checksum"}])
    @pytest.mark.parametrize("signature", [b"", SIGNATURE])
    def test_sizes_behind_the_data_may_be_known_in_front(self, known, signature):
        values = dict(zip(("checksum", "packed_size", "size"), RIGHT.sums, strict=True))
        descriptor = signature + sums(RIGHT)[4:]
        member = RIGHT.streamed(descriptor, **{name: values[name] for name in known})
        assert contents(package(member))[member.name] == member.content

    @pytest.mark.parametrize("signature", [b"", SIGNATURE])
    @pytest.mark.parametrize("is_known", [False, True])
    def test_sizes_of_eight_bytes_behind_the_data(self, signature, is_known):
        values = (RIGHT.sums[2], RIGHT.sums[1]) if is_known else (0, 0)
        descriptor = signature + struct.pack("<I2Q", *RIGHT.sums)
        member = RIGHT.streamed(
            descriptor, size=FULL, packed_size=FULL, header_extra=long_field(*values)
        )
        assert contents(package(member))[member.name] == member.content

    @pytest.mark.parametrize("attributes", [0x01, 0x20, 0x21, 0x80])
    def test_attributes_of_dos_do_not_matter(self, attributes):
        member = dataclasses.replace(RIGHT, mode=0, system=0, attributes=attributes)
        assert contents(package(member))[member.name] == member.content

    def test_sizes_of_eight_bytes_in_the_directory(self):
        size = len(RIGHT_STORED.content)
        full = {"size": FULL, "packed_size": FULL}
        right = long_field(size, size)
        member = dataclasses.replace(RIGHT_STORED, extra=right, header_extra=right, **full)
        assert contents(package(member))[member.name] == member.content

    def test_a_place_of_eight_bytes_in_the_directory(self):
        place = len(laid_out(START)[0])
        member = dataclasses.replace(RIGHT, extra=long_field(place), offset=FULL)
        assert contents(package(member))[member.name] == member.content

    def test_sizes_of_eight_bytes_in_front_beside_the_same_of_four(self):
        """As Bazel writes them."""
        member = RIGHT.headed(header_extra=long_field(RIGHT.sums[2], RIGHT.sums[1]))
        assert contents(package(member))[member.name] == member.content

    @pytest.mark.parametrize("data", [b"", b"\3\0", b"\1\0\0\xff\xff"])
    def test_a_directory_may_be_packed(self, data):
        method = 8 if data else STORED
        folder = Member("Resources/", b"", FOLDER, method=method, packed=data)
        assert len(contents(package(folder))) == 3


class TestData:
    @pytest.mark.parametrize("size", [0, 1, 131_071, 131_072, 131_073, 1_000_000])
    @pytest.mark.parametrize("level", [0, 1, 9])
    def test_of_any_size_are_read(self, size, level):
        content = (bytes(range(256)) * (size // 256 + 1))[:size]
        packed = zlib.compressobj(level, zlib.DEFLATED, -15)
        member = Member("a", content, packed=packed.compress(content) + packed.flush())
        assert contents(zipped([member])) == {"a": content}

    @pytest.mark.parametrize("extra", [1, 10, 131_072, 1_000_000])
    def test_that_go_on_behind_their_end_are_refused(self, extra):
        for content in (b"", b"x", bytes(range(256)) * 1024):
            plain = Member("a", content)
            member = dataclasses.replace(plain, packed=plain.data + b"\3\0" * extra)
            problem = refusal(zipped([member]))
            assert (problem.rule, problem.where) == ("entry-data", "a")
            assert problem.message == "bytes follow the end of its compressed data"

    @pytest.mark.parametrize("missing", [1, 2, 100])
    def test_that_have_no_end_are_refused(self, missing):
        plain = Member("a", bytes(range(256)) * 1024)
        member = dataclasses.replace(plain, packed=plain.data[:-missing])
        assert refusal(zipped([member])).rule == "entry-data"

    def test_that_begin_with_nothing_are_read(self):
        """With more empty blocks than are read at once."""
        content = bytes(range(256))
        plain = Member("a", content)
        member = dataclasses.replace(plain, packed=b"\0\0\0\xff\xff" * 60_000 + plain.data)
        assert contents(zipped([member])) == {"a": content}

    @pytest.mark.parametrize("method", [STORED, 8])
    def test_of_an_archive_that_was_cut_off_meanwhile_are_refused(self, method, tmp_path):
        path = tmp_path / "package.zip"
        path.write_bytes(zipped([Member("a", random.Random(0).randbytes(300_000), method=method)]))
        with Archive.open(path) as archive:
            os.truncate(path, 200_000)
            with pytest.raises(InvalidArchive, match=r"the archive ends within it \[entry-data\]"):
                archive.verify()

    def test_are_read_by_several_threads_at_once(self):
        files = {str(number): bytes([number]) * 300_000 for number in range(8)}
        wrong = []

        def read(path):
            for _ in range(5):
                if archive.read(path, 300_000) != files[path]:
                    wrong.append(path)

        data = zipped([Member(*file, method=STORED) for file in files.items()])
        with Archive.open(io.BytesIO(data)) as archive:
            threads = [threading.Thread(target=read, args=(path,)) for path in files]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert wrong == []


def from_directory(data):
    """Read a ZIP file by Python's own module, which trusts the directory."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {
            info.filename: archive.read(info)
            for info in archive.infolist()
            if not info.filename.endswith("/")
        }


@st.composite
def members(draw):
    """Some members, each in one of the ways in which programs write them."""
    made = []
    for number in range(draw(st.integers(1, 3))):
        content = draw(st.sampled_from([b"", b"x", b"abc" * 30, RIGHT.header + RIGHT.data]))
        method = draw(st.sampled_from([STORED, 8]))
        name = draw(st.sampled_from([f"{number}", f"{number}.txt".encode(), f"\u00e4{number}"]))
        member = Member(name, content, method=method)
        kind = draw(st.sampled_from(["plain", "long", "pipe", "pipe without signature"]))
        if kind == "long":
            long = long_field(member.sums[2], member.sums[1])
            member = member.headed(size=FULL, packed_size=FULL, header_extra=long)
        elif kind != "plain" and (method == 8 or not content):
            descriptor = sums(member)[0 if kind == "pipe" or method == STORED else 4 :]
            member = member.streamed(descriptor)
        made.append(member)
    return made


@st.composite
def changed(draw):
    """An archive in which bytes were replaced, left out, copied or moved."""
    make = draw(st.sampled_from([zipped, lambda each: closed_64(*laid_out(each))]))
    data = bytearray(make(draw(members())))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(data)))
        length = draw(st.integers(1, 12) | st.integers(1, len(data) + 1))
        piece = data[start : start + length]
        kind = draw(st.sampled_from(["bit", "number", "left out", "twice", "elsewhere", "more"]))
        if kind == "bit" and piece:
            data[start] ^= 1 << draw(st.integers(0, 7))
        elif kind == "number":
            value = draw(st.sampled_from([0, 1, 0xFF, 0xFFFF, FULL, len(data)]))
            form = draw(st.sampled_from(["<H", "<I"]))
            number = struct.pack(form, value & (0xFFFF if form == "<H" else FULL))
            data[start : start + len(number)] = number
        elif kind == "left out":
            del data[start : start + length]
        elif kind == "twice":
            data[start:start] = piece
        elif kind == "elsewhere":
            del data[start : start + length]
            place = draw(st.integers(0, len(data)))
            data[place:place] = piece
        else:
            more = draw(st.sampled_from([b"\0", b"PK\3\4", b"PK\5\6", RIGHT.header + RIGHT.data]))
            data[start:start] = more
    return bytes(data)


@st.composite
def contradictory(draw):
    """An archive whose members say different things in the directory and in front of the data."""
    numbers = st.sampled_from([0, 1, 3, 5, 93, FULL])
    fields = st.fixed_dictionaries(
        {},
        optional={
            "size": numbers,
            "packed_size": numbers,
            "checksum": numbers,
            "flags": st.sampled_from([0, 8, 0x800]),
            "method": st.sampled_from([STORED, 8]),
            "name": st.sampled_from([b"0", b"1", "0", "1", b"0/", b"\xc3\xa4"]),
            "version": st.sampled_from([10, 45, 63]),
            "extra": st.builds(long_field, numbers, numbers) | st.builds(long_field, numbers),
            "header_extra": st.builds(long_field, numbers, numbers),
            "offset": st.integers(0, 100),
            "is_listed": st.booleans(),
        },
    )
    tails = st.sampled_from([b"", b"\0", RIGHT.header + RIGHT.data, b"\3\0"])
    made = []
    for member in draw(members()):
        if draw(st.booleans()):
            member = dataclasses.replace(member, packed=member.data + draw(tails))
        if draw(st.booleans()):
            member = dataclasses.replace(member, descriptor=member.descriptor + draw(tails))
        if draw(st.booleans()):
            member = dataclasses.replace(member, **draw(fields))
        if draw(st.booleans()):
            front = {**draw(fields), "front": None}
            member = member.headed(**front)
        made.append(member)
    return zipped(made)


class TestFuzz:
    @settings(max_examples=effort.FILES * 2)
    @given(members())
    def test_what_programs_write_is_read_alike(self, written):
        data = zipped(written)
        assert contents(data) == from_headers(data) == from_directory(data)

    @settings(max_examples=effort.FILES * 4)
    @given(changed() | contradictory())
    @example(zipped([Member("a").streamed()]))
    @example(zipped([Member("a", b"", method=STORED).streamed()]))
    def test_what_is_accepted_is_the_same_from_the_headers_alone(self, data):
        try:
            found = contents(data)
        except InvalidArchive:
            event("refused")
            return
        event("accepted")
        assert found == from_headers(data)
        assert found == from_directory(data)


def test_the_reader_of_headers_notices_what_is_hidden():
    """So that the comparison with it can fail."""
    hidden = Member("hidden", is_listed=False)
    assert from_headers(zipped([Member("a"), hidden])).keys() == {"a", "hidden"}
    with pytest.raises(Unread):
        from_headers(zipped([Member("a", method=STORED).streamed()]))
