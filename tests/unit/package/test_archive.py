# SPDX-License-Identifier: Apache-2.0

"""Archives and directories: read alike, unpacked whole or not at all, and never trusted."""

import errno
import gc
import io
import os
import pathlib
import resource
import stat
import struct
import sys
import tempfile
import tracemalloc
import zipfile
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glare_murano.package import (
    Archive,
    InvalidArchive,
    InvalidManifest,
    InvalidPackage,
    Limits,
    read_contents,
    read_manifest,
)
from tests import effort

MANIFEST = b"FullName: org.app\nType: Application\nClasses: {org.App: App.yaml}\n"
FILES = {
    "manifest.yaml": MANIFEST,
    "Classes/App.yaml": b"Name: App\n",
    "Resources/scripts/run.sh": b"#!/bin/sh\n",
    "UI/ui.yaml": b"",
    "logo.png": bytes(range(256)) * 5,
}
PROGRAM = "Resources/scripts/run.sh"

# Where a field stands in an entry of a ZIP file's directory, and its format.
VERSION_NEEDED = (6, "<H")
FLAGS = (8, "<H")
METHOD = (10, "<H")
CHECKSUM = (16, "<I")
PACKED_SIZE = (20, "<I")
SIZE = (24, "<I")
HEADER = (42, "<I")


def entry(name, mode=0o644, kind=stat.S_IFREG, method=zipfile.ZIP_DEFLATED):
    info = zipfile.ZipInfo(name)
    info.external_attr = (kind | mode) << 16
    info.compress_type = method
    return info


def plain(name, method):
    if name.endswith("/"):
        return entry(name, mode=0o755, kind=stat.S_IFDIR, method=method)
    return entry(name, method=method)


def zipped(files, method=zipfile.ZIP_DEFLATED):
    """The bytes of a ZIP file.

    :param files: name or entry -> content, or pairs of them.
    """
    pairs = files.items() if isinstance(files, dict) else files
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in pairs:
            archive.writestr(plain(name, method) if isinstance(name, str) else name, content)
    return target.getvalue()


def patched(data, field, value):
    """A ZIP file with one field of its last entry replaced, in the directory and in its header."""
    offset, form = field
    result = bytearray(data)
    struct.pack_into(form, result, data.rindex(b"PK\x01\x02") + offset, value)
    if field != HEADER:
        # A header lacks the version that made it, but is the same up to the name.
        struct.pack_into(form, result, data.rindex(b"PK\x03\x04") + offset - 2, value)
    return bytes(result)


def handmade(name, header_name=None, flags=0):
    """A ZIP file of one entry whose names may be any bytes, and differ."""
    header_name = name if header_name is None else header_name
    content = b"x"
    sizes = (zlib.crc32(content), len(content), len(content))
    header = struct.pack(
        "<4s5H3I2H", b"PK\x03\x04", 20, flags, 0, 0, 0x21, *sizes, len(header_name), 0
    )
    body = header + header_name + content
    directory = (
        struct.pack(
            "<4s6H3I5H2I",
            *(b"PK\x01\x02", 20, 20, flags, 0, 0, 0x21, *sizes),
            *(len(name), 0, 0, 0, 0, 0, 0),
        )
        + name
    )
    return body + directory + end_record(1, len(directory), len(body))


def end_record(entries, size, offset):
    return struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, entries, entries, size, offset, 0)


def refusals(data):
    """What is wrong with a ZIP file, found when it is opened or when it is unpacked."""
    with (
        tempfile.TemporaryDirectory() as directory,
        pytest.raises(InvalidArchive) as caught,
        Archive.open(io.BytesIO(data), Limits()) as archive,
    ):
        archive.unpack(pathlib.Path(directory, "target"))
    return caught.value.problems


def rules(data):
    return [problem.rule for problem in refusals(data)]


def rules_on_opening(source, limits=None):
    with pytest.raises(InvalidArchive) as caught:
        Archive.open(
            io.BytesIO(source) if isinstance(source, bytes) else source, limits or Limits()
        )
    return [problem.rule for problem in caught.value.problems]


def write_directory(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def files_below(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


def programs_below(root):
    return {
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and path.stat().st_mode & 0o111
    }


@pytest.fixture
def data():
    return zipped(
        (entry(name, mode=0o755 if name == PROGRAM else 0o644), content)
        for name, content in FILES.items()
    )


@pytest.fixture(params=["directory", "path", "text", "file", "open file"])
def source(request, tmp_path, data):
    """One package, in every shape that a package can be given in."""
    home = tmp_path / "home"
    home.mkdir()
    if request.param == "directory":
        directory = write_directory(home / "package", FILES)
        (directory / PROGRAM).chmod(0o755)
        yield directory
        return
    path = home / "package.zip"
    path.write_bytes(data)
    if request.param == "path":
        yield path
    elif request.param == "text":
        yield str(path)
    elif request.param == "file":
        yield io.BytesIO(data)
    else:
        with open(path, "rb") as stream:
            stream.seek(7)
            yield stream


class TestEverySource:
    def test_has_the_same_paths(self, source):
        with Archive.open(source) as archive:
            assert sorted(archive.paths) == sorted(FILES)

    def test_reads_the_same_files(self, source):
        with Archive.open(source) as archive:
            assert {path: archive.read(path, 10_000) for path in archive.paths} == FILES

    def test_has_the_same_manifest(self, source):
        with Archive.open(source) as archive:
            assert read_manifest(archive).fqn == "org.app"

    def test_unpacks_to_the_same_files(self, source, tmp_path):
        with Archive.open(source) as archive:
            archive.unpack(tmp_path / "target")
        assert files_below(tmp_path / "target") == FILES

    def test_keeps_the_execute_bit_where_it_was_alone(self, source, tmp_path):
        with Archive.open(source) as archive:
            archive.unpack(tmp_path / "target")
        assert programs_below(tmp_path / "target") == {PROGRAM}

    def test_packs_to_the_same_bytes(self, source, data):
        target, expected = io.BytesIO(), io.BytesIO()
        with Archive.open(source) as archive:
            archive.pack(target)
        with Archive.open(io.BytesIO(data)) as archive:
            archive.pack(expected)
        assert target.getvalue() == expected.getvalue()


class TestOpen:
    def test_a_missing_file_is_an_error_of_the_system(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            Archive.open(tmp_path / "missing.zip")

    def test_a_given_file_stays_open(self, data):
        stream = io.BytesIO(data)
        with Archive.open(stream):
            pass
        assert not stream.closed

    def test_a_refused_file_stays_open(self):
        stream = io.BytesIO(zipped({"../x": b""}))
        assert rules_on_opening(stream) == ["path-escape"]
        assert not stream.closed

    def test_directories_are_no_files(self):
        with Archive.open(io.BytesIO(zipped({"a/": b"", "a/b": b"x"}))) as archive:
            assert archive.paths == ("a/b",)

    def test_an_empty_archive_holds_nothing(self, tmp_path):
        with Archive.open(io.BytesIO(zipped({}))) as archive:
            assert archive.paths == ()
            archive.unpack(tmp_path / "target")
        assert list((tmp_path / "target").iterdir()) == []


class TestRead:
    def test_an_unknown_path_is_a_key_error(self, source):
        with Archive.open(source) as archive, pytest.raises(KeyError, match="missing"):
            archive.read("missing", 10)

    def test_a_file_may_be_as_long_as_the_limit(self, source):
        with Archive.open(source) as archive:
            assert archive.read("Classes/App.yaml", 10) == b"Name: App\n"

    def test_a_longer_one_is_refused(self, source):
        with Archive.open(source) as archive, pytest.raises(InvalidArchive) as caught:
            archive.read("Classes/App.yaml", 9)
        (problem,) = caught.value.problems
        assert (problem.rule, problem.where) == ("entry-size", "Classes/App.yaml")
        assert problem.message == "10 bytes, at most 9 are allowed"


class TestManifest:
    @pytest.mark.parametrize("name", ["package/manifest.yaml", "Manifest.yaml", "manifest.yml"])
    def test_it_stands_at_the_top(self, name):
        data = io.BytesIO(zipped({name: MANIFEST}))
        with Archive.open(data) as archive, pytest.raises(InvalidManifest) as caught:
            read_manifest(archive)
        (problem,) = caught.value.problems
        assert (problem.rule, problem.where) == ("manifest-missing", "manifest.yaml")

    def test_the_files_of_all_classes_are_there(self):
        manifest = (
            b"FullName: a\nType: Library\nClasses: {a.B: B.yaml, a.C: C.yaml, a.D: d/D.yaml}\n"
        )
        files = {"manifest.yaml": manifest, "Classes/B.yaml": b"Name: a.B\n", "C.yaml": b""}
        data = io.BytesIO(zipped(files))
        with Archive.open(data) as archive, pytest.raises(InvalidPackage) as caught:
            read_contents(archive)
        assert [(p.rule, p.where, p.message) for p in caught.value.problems] == [
            ("class-file", "Classes.a.C", "there is no file Classes/C.yaml"),
            ("class-file", "Classes.a.D", "there is no file Classes/d/D.yaml"),
        ]

    def test_a_huge_one_is_refused(self):
        data = zipped({"manifest.yaml": b"#" * (1024**2 + 1)}, method=zipfile.ZIP_STORED)
        with Archive.open(io.BytesIO(data)) as archive, pytest.raises(InvalidPackage):
            read_manifest(archive)

    def test_a_damaged_one_is_refused(self):
        data = patched(zipped({"manifest.yaml": MANIFEST}), CHECKSUM, 1)
        with Archive.open(io.BytesIO(data)) as archive, pytest.raises(InvalidPackage):
            read_manifest(archive)


class Interrupted(io.BytesIO):
    """A file whose reader is interrupted at will."""

    armed = False

    def read(self, size=-1):
        if self.armed:
            raise KeyboardInterrupt
        return super().read(size)


class TestUnpack:
    @pytest.fixture
    def home(self, tmp_path):
        home = tmp_path / "unpacked"
        home.mkdir()
        mask = os.umask(0o022)
        yield home
        os.umask(mask)

    def test_leaves_the_target_alone(self, data, home):
        with Archive.open(io.BytesIO(data)) as archive:
            archive.unpack(home / "target")
        assert [path.name for path in home.iterdir()] == ["target"]

    def test_takes_the_target_as_text(self, data, home):
        with Archive.open(io.BytesIO(data)) as archive:
            archive.unpack(str(home / "target"))
        assert files_below(home / "target") == FILES

    def test_others_can_read_what_is_unpacked(self, data, home):
        with Archive.open(io.BytesIO(data)) as archive:
            archive.unpack(home / "target")
        assert stat.S_IMODE((home / "target").stat().st_mode) == 0o755
        assert stat.S_IMODE((home / "target/manifest.yaml").stat().st_mode) == 0o644
        assert stat.S_IMODE((home / "target" / PROGRAM).stat().st_mode) == 0o755

    @pytest.mark.parametrize("size", [1001, 100_000, 1_000_000])
    def test_a_file_of_which_only_a_part_can_be_written_is_an_error(self, size, home):
        data = zipped({"manifest.yaml": MANIFEST, "large": bytes(size)})
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        with Archive.open(io.BytesIO(data)) as archive:
            # What is over the limit the kernel leaves out, as on a full disk.
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
            try:
                with pytest.raises(OSError, match="File too large"):
                    archive.unpack(home / "target")
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert list(home.iterdir()) == []

    @pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o1777, 0o7777])
    def test_special_bits_are_dropped(self, mode, home):
        with Archive.open(io.BytesIO(zipped([(entry("a", mode), b"x")]))) as archive:
            archive.unpack(home / "target")
        assert stat.S_IMODE((home / "target/a").stat().st_mode) == 0o755

    @pytest.mark.parametrize("mode", [0o000, 0o200, 0o444, 0o666])
    def test_other_modes_are_those_of_a_plain_file(self, mode, home):
        with Archive.open(io.BytesIO(zipped([(entry("a", mode), b"x")]))) as archive:
            archive.unpack(home / "target")
        assert stat.S_IMODE((home / "target/a").stat().st_mode) == 0o644

    @pytest.mark.parametrize("existing", ["directory", "full directory", "file"])
    def test_refuses_a_target_that_exists(self, existing, data, home):
        target = home / "target"
        if existing == "file":
            target.write_bytes(b"mine")
        else:
            target.mkdir()
        if existing == "full directory":
            (target / "mine").write_bytes(b"mine")
        before = sorted(home.rglob("*"))
        with Archive.open(io.BytesIO(data)) as archive, pytest.raises(FileExistsError):
            archive.unpack(target)
        assert sorted(home.rglob("*")) == before

    def test_refuses_a_target_that_is_a_dangling_link(self, data, home):
        (home / "target").symlink_to(home / "elsewhere")
        with Archive.open(io.BytesIO(data)) as archive, pytest.raises(OSError, match="target"):
            archive.unpack(home / "target")
        assert [path.name for path in home.iterdir()] == ["target"]

    def test_a_missing_parent_is_an_error_of_the_system(self, data, home):
        with Archive.open(io.BytesIO(data)) as archive, pytest.raises(FileNotFoundError):
            archive.unpack(home / "missing" / "target")
        assert list(home.iterdir()) == []

    @pytest.mark.parametrize("position", [0, 1, 2])
    def test_leaves_nothing_where_an_entry_is_damaged(self, position, home):
        contents = [bytes([65 + number]) * 1000 for number in range(3)]
        data = bytearray(zipped(enumerate_names(contents), method=zipfile.ZIP_STORED))
        data[data.index(contents[position])] ^= 1
        with Archive.open(io.BytesIO(data)) as archive, pytest.raises(InvalidArchive) as caught:
            archive.unpack(home / "target")
        assert [problem.where for problem in caught.value.problems] == [f"file{position}"]
        assert list(home.iterdir()) == []

    def test_leaves_nothing_where_it_is_interrupted(self, data, home):
        stream = Interrupted(data)
        with Archive.open(stream) as archive:
            stream.armed = True
            with pytest.raises(KeyboardInterrupt):
                archive.unpack(home / "target")
            stream.armed = False
        assert list(home.iterdir()) == []

    def test_leaves_nothing_where_the_disk_is_full(self, data, home, monkeypatch):
        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "rename", full)
        with Archive.open(io.BytesIO(data)) as archive, pytest.raises(OSError, match="No space"):
            archive.unpack(home / "target")
        assert list(home.iterdir()) == []

    def test_memory_does_not_grow_with_a_file(self, home):
        data = io.BytesIO(zipped({"a": bytes(32 * 1024**2)}, method=zipfile.ZIP_STORED))
        tracemalloc.start()
        try:
            with Archive.open(data) as archive:
                archive.unpack(home / "target")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 4 * 1024**2


def enumerate_names(contents):
    return [(f"file{number}", content) for number, content in enumerate(contents)]


class TestPack:
    def test_the_order_and_the_times_of_the_files_do_not_count(self, tmp_path):
        packed = []
        for name, files in (("a", FILES), ("b", dict(reversed(FILES.items())))):
            directory = write_directory(tmp_path / name, files)
            os.utime(directory / "manifest.yaml", (len(packed) * 10**9, 0))
            target = io.BytesIO()
            with Archive.open(directory) as archive:
                archive.pack(target)
            packed.append(target.getvalue())
        assert packed[0] == packed[1]

    def test_packed_files_have_the_earliest_time(self, data):
        """Another time would give other digests to the same files."""
        target = io.BytesIO()
        with Archive.open(io.BytesIO(data)) as archive:
            archive.pack(target)
        with zipfile.ZipFile(target) as packed:
            assert {info.date_time for info in packed.infolist()} == {(1980, 1, 1, 0, 0, 0)}

    def test_what_is_packed_unpacks_to_the_same(self, data, tmp_path):
        target = io.BytesIO()
        with Archive.open(io.BytesIO(data)) as archive:
            archive.pack(target)
        with Archive.open(target) as archive:
            archive.unpack(tmp_path / "target")
        assert files_below(tmp_path / "target") == FILES
        assert programs_below(tmp_path / "target") == {PROGRAM}

    def test_what_is_packed_again_stays_the_same(self, data):
        first, second = io.BytesIO(), io.BytesIO()
        with Archive.open(io.BytesIO(data)) as archive:
            archive.pack(first)
        with Archive.open(first) as archive:
            archive.pack(second)
        assert first.getvalue() == second.getvalue()

    def test_ctrl_c_while_a_file_begins_is_no_other_error(self, data, monkeypatch):
        begin = zipfile.ZipFile.open

        def interrupted(*arguments):
            # Open until the exception is gone.
            stream = begin(*arguments)
            raise KeyboardInterrupt(stream)

        ignored = []
        monkeypatch.setattr(sys, "unraisablehook", ignored.append)
        target = io.BytesIO(b"before")
        target.seek(0, io.SEEK_END)
        with Archive.open(io.BytesIO(data)) as archive:
            monkeypatch.setattr(zipfile.ZipFile, "open", interrupted)
            with pytest.raises(KeyboardInterrupt):
                archive.pack(target)
        gc.collect()
        assert target.getvalue() == b"before"
        assert ignored == []

    def test_a_damaged_entry_is_refused(self):
        data = patched(zipped({"a": b"x"}), CHECKSUM, 1)
        with Archive.open(io.BytesIO(data)) as archive, pytest.raises(InvalidArchive) as caught:
            archive.pack(io.BytesIO())
        assert [problem.rule for problem in caught.value.problems] == ["entry-data"]


class TestPaths:
    @pytest.mark.parametrize(
        ("name", "rule"),
        [
            ("/a", "path-escape"),
            ("//a", "path-escape"),
            ("../a", "path-escape"),
            ("a/../../b", "path-escape"),
            ("a/..", "path-escape"),
            ("..", "path-escape"),
            ("a/./b", "path-escape"),
            (".", "path-escape"),
            ("a//b", "path-escape"),
            ("a\\b", "path-characters"),
            ("..\\a", "path-characters"),
            ("C:a", "path-characters"),
            ("C:/a", "path-characters"),
            ("a:stream", "path-characters"),
            ("a\nb", "path-characters"),
            ("a\x1b[2Jb", "path-characters"),
            ("a\x7f", "path-characters"),
            ("a\u202eb", "path-characters"),
            ("a\u0085b", "path-characters"),
        ],
    )
    def test_that_could_leave_the_directory_or_deceive_are_refused(self, name, rule):
        assert rules_on_opening(zipped({"manifest.yaml": MANIFEST, name: b"x"})) == [rule]

    @pytest.mark.parametrize("name", ["/a/", "../a/", "a/../", "./", "a\\b/", "C:/", "a\nb/"])
    def test_of_directories_keep_the_same_rules(self, name):
        assert rules_on_opening(zipped({name: b""})) != []

    @pytest.mark.parametrize(
        "name", ["a", ".hidden", "a b", "a..b", "...", "\u00e4/\u65e5\u672c", "-rf", "~", "a*?"]
    )
    def test_that_are_merely_unusual_are_accepted(self, name, tmp_path):
        with Archive.open(io.BytesIO(zipped({name: b"x"}))) as archive:
            assert archive.paths == (name,)
            archive.unpack(tmp_path / "target")
        assert files_below(tmp_path / "target") == {name: b"x"}

    @pytest.mark.parametrize(
        ("name", "rule"),
        [(b"", "path-escape"), (b"\0", "path-characters"), (b"\0a", "path-characters")],
    )
    def test_without_a_name_are_refused(self, name, rule):
        assert rules_on_opening(handmade(name)) == [rule]

    def test_with_a_nul_are_refused(self):
        assert rules_on_opening(handmade(b"a\0b")) == ["path-characters"]

    def test_that_are_no_utf_8_are_refused(self):
        assert rules_on_opening(handmade(b"\xff", flags=0x800)) == ["path-encoding"]

    def test_outside_ascii_that_are_not_marked_are_refused_with_the_remedy(self):
        (problem,) = refusals(handmade("\u00e4".encode()))
        assert (problem.rule, problem.where) == ("path-encoding", "\u00e4")
        assert "'openstack murano package build'" in problem.message

    @pytest.mark.parametrize(
        "name", ["e\u0301", "e\u0301/a", "a/e\u0301/b", "\u212b", "\u1112\u1161"]
    )
    def test_that_are_not_composed_are_refused(self, name):
        assert rules_on_opening(zipped({name: b"x"})) == ["path-encoding"]

    def test_that_are_not_composed_are_refused_with_the_name_to_use(self):
        (problem,) = refusals(zipped({"e\u0301": b"x"}))
        assert problem.message == "is not in the Unicode form NFC, as '\u00e9' is; rename it"

    @pytest.mark.parametrize("name", ["a;1", "a;", "a;b;23", "a/b;1"])
    def test_that_unzip_shortens_are_refused(self, name):
        assert rules_on_opening(zipped({name: b"x"})) == ["path-characters"]

    @pytest.mark.parametrize("name", ["a;b", "a;1b", "a;1/b", ";a"])
    def test_with_a_semicolon_that_unzip_keeps_are_accepted(self, name):
        with Archive.open(io.BytesIO(zipped({name: b"x"}))) as archive:
            assert archive.paths == (name,)

    @pytest.mark.parametrize(
        ("header_name", "flags"), [(b"other", 0), (b"\xff\xfe", 0x800), (b"A", 0)]
    )
    def test_that_the_entry_itself_contradicts_are_refused(self, header_name, flags):
        assert rules(handmade(b"a", header_name, flags)) == ["entry-header"]

    @pytest.mark.parametrize(
        "data",
        [
            pytest.param(handmade(b"a\nb\0c"), id="nul"),
            pytest.param(zipped([(entry("a\nb", kind=stat.S_IFLNK), b"c")]), id="link"),
            pytest.param(patched(zipped({"a\nb": b"c"}), FLAGS, 1), id="encrypted"),
            pytest.param(patched(zipped({"a\nb": b"c"}), METHOD, 14), id="compression"),
            pytest.param(zipped({"a\nb" * 100: b"c"}), id="length"),
            pytest.param(zipped({"a\nb/" * 40 + "c": b"c"}), id="depth"),
            pytest.param(zipped({"a\nb": b"c"}), id="characters"),
        ],
    )
    def test_bring_no_control_characters_into_a_message(self, data):
        (problem,) = refusals(data)
        assert str(problem).isprintable()


@pytest.mark.filterwarnings("ignore:Duplicate name")
class TestCollisions:
    @pytest.mark.parametrize(
        "names",
        [
            ("ab", "ab"),
            ("a", "a"),
            ("a", "A"),
            ("Classes/App.yaml", "classes/app.YAML"),
            ("stra\u00dfe", "STRASSE"),
            ("a", "a/b"),
            ("a/b", "a"),
            ("a/b", "a/b/c/d"),
            ("A", "a/b"),
            ("a/b", "A"),
            ("a", "a/"),
            ("a/", "A"),
            ("A/b", "a/c"),
            ("A/b/c", "a/B/d"),
            ("\u0390", "\u03aa\u0301"),
        ],
    )
    def test_are_refused(self, names):
        data = zipped([(name, b"" if name.endswith("/") else b"x") for name in names])
        assert rules_on_opening(data) == ["path-collision"]

    @pytest.mark.parametrize("names", [("a", "ab"), ("a/b", "a/c"), ("a/b", "b/a"), ("a.b", "a/b")])
    def test_are_none(self, names, tmp_path):
        with Archive.open(io.BytesIO(zipped([(name, b"x") for name in names]))) as archive:
            archive.unpack(tmp_path / "target")
        assert sorted(files_below(tmp_path / "target")) == sorted(names)

    def test_name_both_files(self):
        (problem,) = refusals(zipped([("README", b"x"), ("ReadMe", b"x")]))
        assert problem.where == "ReadMe"
        assert problem.message == "collides with README"


class TestEntries:
    @pytest.mark.parametrize(
        "kind",
        [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFDIR],
    )
    def test_that_are_no_files_are_refused(self, kind):
        assert rules_on_opening(zipped([(entry("a", kind=kind), b"/etc/passwd")])) == ["entry-type"]

    def test_with_the_name_of_a_directory_are_no_links(self):
        data = zipped([(entry("a/", kind=stat.S_IFLNK), b"/etc")])
        assert rules_on_opening(data) == ["entry-type"]

    def test_without_a_unix_mode_are_files(self, tmp_path):
        info = entry("a")
        info.create_system, info.external_attr = 0, 0
        with Archive.open(io.BytesIO(zipped([(info, b"x")]))) as archive:
            archive.unpack(tmp_path / "target")
        assert files_below(tmp_path / "target") == {"a": b"x"}

    def test_that_are_encrypted_are_refused(self):
        data = patched(zipped({"a": b"x"}), FLAGS, 0x1)
        assert rules_on_opening(data) == ["entry-encrypted"]

    @pytest.mark.parametrize("flag", [0x20, 0x40, 0x41, 0x2041])
    def test_that_need_a_feature_nobody_has_are_refused(self, flag):
        assert rules(patched(zipped({"a": b"x"}), FLAGS, flag)) != []

    @pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_of_a_rare_compression_are_refused(self, method):
        assert rules_on_opening(zipped({"a": b"x"}, method)) == ["entry-compression"]

    @pytest.mark.parametrize("method", [1, 9, 93, 99, 0xFFFF])
    def test_of_an_unknown_compression_are_refused(self, method):
        data = patched(zipped({"a": b"x"}), METHOD, method)
        assert rules_on_opening(data) == ["entry-compression"]

    def test_of_a_later_zip_version_are_refused(self):
        data = patched(zipped({"a": b"x"}), VERSION_NEEDED, 46)
        assert rules_on_opening(data) == ["entry-compression"]

    def test_of_the_zip_version_of_large_files_are_accepted(self):
        with Archive.open(io.BytesIO(patched(zipped({"a": b"x"}), VERSION_NEEDED, 45))) as archive:
            assert archive.read("a", 1) == b"x"


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
class TestData:
    """An entry is what its directory says, or it is refused."""

    CONTENT = bytes(range(256)) * 40

    def made(self, method):
        return zipped({"a": self.CONTENT}, method)

    def test_with_a_wrong_checksum_is_refused(self, method):
        assert rules(patched(self.made(method), CHECKSUM, 1)) == ["entry-data"]

    def test_shorter_than_declared_is_refused(self, method):
        assert rules(patched(self.made(method), SIZE, len(self.CONTENT) + 1)) == ["entry-size"]

    def test_longer_than_declared_is_refused(self, method):
        assert rules(patched(self.made(method), SIZE, 100)) == ["entry-size"]

    def test_longer_than_declared_is_refused_whatever_its_checksum(self, method):
        data = patched(self.made(method), SIZE, 100)
        data = patched(data, CHECKSUM, zlib.crc32(self.CONTENT[:100]))
        assert rules(data) == ["entry-size"]

    def test_declared_as_empty_is_refused(self, method):
        data = patched(patched(self.made(method), SIZE, 0), CHECKSUM, 0)
        assert rules(data) == ["entry-size"]

    def test_that_ends_early_is_refused(self, method):
        data = self.made(method)
        packed = struct.unpack_from("<I", data, data.rindex(b"PK\x01\x02") + PACKED_SIZE[0])[0]
        expected = {zipfile.ZIP_STORED: ["entry-size"], zipfile.ZIP_DEFLATED: ["archive-layout"]}
        assert rules(patched(data, PACKED_SIZE, packed - 9)) == expected[method]

    def test_that_runs_past_the_end_of_the_archive_is_refused(self, method):
        data = patched(patched(self.made(method), SIZE, 10**6), PACKED_SIZE, 10**6)
        assert rules(data) == ["entry-overlap"]

    def test_that_starts_elsewhere_is_refused(self, method):
        assert rules(patched(self.made(method), HEADER, 0xFFFFFF)) == ["archive-layout"]

    def test_that_starts_in_the_midst_of_another_is_refused(self, method):
        files = {"a": self.CONTENT, "b": self.CONTENT}
        assert rules(patched(zipped(files, method), HEADER, 0)) == ["entry-overlap"]
        assert rules(patched(zipped(files, method), HEADER, 9)) == ["entry-overlap"]

    def test_that_does_not_start_with_a_header_is_refused(self, method):
        data = zipped({"a": self.CONTENT}, method)
        gap = b"no header" + data
        (offset,) = struct.unpack_from("<I", gap, len(gap) - 6)
        shifted = gap[:-6] + struct.pack("<IH", offset + 9, 0)
        assert rules(shifted) == ["entry-header"]

    def test_that_is_no_deflate_stream_is_refused(self, method):
        data = patched(
            zipped({"a": b"\xff" * 100}, zipfile.ZIP_STORED), METHOD, zipfile.ZIP_DEFLATED
        )
        assert rules(data) == ["entry-data"]

    def test_is_only_read_on_request(self, method):
        data = patched(zipped({"a": b"fine", "b": b"x"}, method), CHECKSUM, 1)
        with Archive.open(io.BytesIO(data)) as archive:
            assert archive.read("a", 10) == b"fine"


class TestFormat:
    @pytest.mark.parametrize("data", [b"", b"PK", b"hello", b"\x1f\x8b" + bytes(100), bytes(1000)])
    def test_what_is_no_zip_file_is_refused(self, data, tmp_path):
        (tmp_path / "package.zip").write_bytes(data)
        assert rules_on_opening(data) == ["archive-format"]
        assert rules_on_opening(tmp_path / "package.zip") == ["archive-format"]

    def test_a_zip_file_that_is_cut_off_anywhere_is_refused(self, data):
        for size in range(0, len(data), 7):
            assert rules_on_opening(data[:size]) == ["archive-format"]

    @pytest.mark.parametrize("shift", [-1, 1, 100, 0x7FFFFFFF])
    @pytest.mark.parametrize("on_disk", [False, True])
    def test_a_directory_that_is_elsewhere_is_refused(self, shift, on_disk, tmp_path):
        """A shift of the directory is taken for bytes before the archive."""
        data = bytearray(zipped({"a": b"x"}))
        (offset,) = struct.unpack_from("<I", data, len(data) - 6)
        struct.pack_into("<I", data, len(data) - 6, offset + shift)
        path = tmp_path / "package.zip"
        path.write_bytes(data)
        source = path if on_disk else io.BytesIO(data)
        with pytest.raises(InvalidArchive), Archive.open(source) as archive:
            archive.unpack(tmp_path / "target")

    @pytest.mark.parametrize(("before", "after"), [(b"#!/bin/sh\n", b""), (b"", b"\n")])
    def test_bytes_before_and_after_the_archive_are_refused(self, data, before, after):
        assert rules_on_opening(before + data + after) == ["archive-layout"]

    def test_a_message_names_the_archive(self):
        (problem,) = refusals(b"hello")
        assert problem.where == "archive"
        assert problem.message.startswith("is not a ZIP file")


class TestLimits:
    def test_of_the_archive_itself(self, data):
        with Archive.open(io.BytesIO(data), Limits(archive_size=len(data))):
            pass
        assert rules_on_opening(data, Limits(archive_size=len(data) - 1)) == ["archive-size"]

    def test_of_a_directory_that_is_packed(self, tmp_path):
        directory = write_directory(tmp_path / "package", FILES)
        target = io.BytesIO()
        with Archive.open(directory) as archive:
            archive.pack(target)
        size = len(target.getvalue())
        with Archive.open(directory, Limits(archive_size=size)) as archive:
            archive.pack(io.BytesIO())
        with (
            Archive.open(directory, Limits(archive_size=size - 1)) as archive,
            pytest.raises(InvalidArchive, match="archive-size"),
        ):
            archive.pack(target)
        assert len(target.getvalue()) == size

    def test_of_all_files_together(self, data):
        total = sum(map(len, FILES.values()))
        with Archive.open(io.BytesIO(data), Limits(unpacked_size=total)):
            pass
        assert rules_on_opening(data, Limits(unpacked_size=total - 1)) == ["unpacked-size"]

    def test_of_a_declared_size(self):
        data = patched(zipped({"a": b"x"}), SIZE, 0xFFFFFFFE)
        assert rules_on_opening(data) == ["unpacked-size"]

    def test_of_entries(self):
        data = zipped({"a/": b"", "a/b": b"x", "c": b"x"})
        with Archive.open(io.BytesIO(data), Limits(entries=3)):
            pass
        assert rules_on_opening(data, Limits(entries=2)) == ["archive-entries"]

    def test_of_entries_that_are_directories(self):
        data = zipped({f"{number}/": b"" for number in range(4)})
        assert rules_on_opening(data, Limits(entries=3)) == ["archive-entries"]

    def test_of_entries_as_they_are_by_default(self):
        data = zipped({str(number): b"" for number in range(10_001)}, zipfile.ZIP_STORED)
        assert rules_on_opening(data) == ["archive-entries"]

    def test_of_entries_hold_before_all_are_read(self):
        """A directory of very many entries costs no more than one of the limit."""
        one = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 20, 20, *[0] * 14) + b"a"
        one = one[:28] + struct.pack("<H", 1) + one[30:]
        directory = one * 150_000
        data = directory + end_record(0xFFFF, len(directory), 0)
        tracemalloc.start()
        try:
            assert rules_on_opening(data) == ["archive-entries"]
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 24 * 1024**2

    def test_what_a_directory_says_beside_its_files_is_not_kept(self):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as target:
            for number in range(50):
                info = zipfile.ZipInfo(str(number))
                info.comment = bytes(60_000)
                target.writestr(info, b"")
        data = packed.getvalue()
        del packed, target, info
        tracemalloc.start()
        try:
            archive = Archive.open(io.BytesIO(data))
            size, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert size < 1024**2
        assert len(archive.paths) == 50

    @pytest.mark.parametrize("size", [1024**2, 1024**2 - 1])
    def test_of_the_ratio_begin_above_a_mebibyte(self, size):
        with Archive.open(io.BytesIO(zipped({"a": bytes(size)}))):
            pass

    def test_of_the_ratio(self):
        assert rules_on_opening(zipped({"a": bytes(1024**2 + 1)})) == ["archive-ratio"]

    def test_of_the_ratio_of_many_files_together(self):
        data = zipped({str(number): bytes(600_000) for number in range(2)})
        assert rules_on_opening(data) == ["archive-ratio"]

    def test_of_the_ratio_let_plain_data_through(self, tmp_path):
        data = zipped({"a": bytes(2 * 1024**2)}, zipfile.ZIP_STORED)
        with Archive.open(io.BytesIO(data)) as archive:
            archive.unpack(tmp_path / "target")

    def test_of_a_path_in_characters(self):
        with Archive.open(io.BytesIO(zipped({"ab/cd": b""})), Limits(path_length=5)):
            pass
        assert rules_on_opening(zipped({"ab/cde": b""}), Limits(path_length=5)) == ["path-length"]

    def test_of_a_path_in_directories(self):
        with Archive.open(io.BytesIO(zipped({"a/b/file": b""})), Limits(path_depth=2)):
            pass
        assert rules_on_opening(zipped({"a/b/c/file": b""}), Limits(path_depth=2)) == ["path-depth"]

    def test_of_a_path_let_nothing_through_that_no_disk_takes(self):
        """Most file systems bound a name by its bytes: 255."""
        assert rules_on_opening(zipped({"\u00e4" * 128: b"x"})) == ["path-length"]

    @pytest.mark.parametrize(
        ("limits", "rule"),
        [
            (Limits(entries=4), "archive-entries"),
            (Limits(unpacked_size=100), "unpacked-size"),
            (Limits(path_length=20), "path-length"),
            (Limits(path_depth=1), "path-depth"),
        ],
    )
    def test_hold_for_a_directory(self, limits, rule, tmp_path):
        directory = write_directory(tmp_path / "package", FILES)
        assert rules_on_opening(directory, limits) == [rule]


@pytest.mark.parametrize("read", ["verify", "unpack"])
def test_other_green_threads_run_while_a_large_file_is_read(tmp_path, monkeypatch, read):
    pauses = []
    monkeypatch.setattr("glare_murano.package.archive.time.sleep", pauses.append)
    data = zipped({**FILES, "large": bytes(4 * 1024**2)})
    with Archive.open(io.BytesIO(data), Limits(ratio=10_000)) as archive:
        {"verify": archive.verify, "unpack": lambda: archive.unpack(tmp_path / "target")}[read]()
    assert set(pauses) == {0}
    assert len(pauses) > 16


def test_a_path_that_is_not_a_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert rules_on_opening(tmp_path / "pipe") == ["archive-format"]
    assert rules_on_opening("/dev/zero") == ["archive-format"]


class TestFolder:
    @pytest.fixture
    def directory(self, tmp_path):
        return write_directory(tmp_path / "package", FILES)

    @pytest.mark.parametrize(
        "target", ["manifest.yaml", "Classes", "missing", "/etc/passwd", "/etc", "."]
    )
    @pytest.mark.parametrize("where", ["link", "Classes/link"])
    def test_with_a_link_is_refused(self, directory, where, target):
        (directory / where).symlink_to(target)
        with pytest.raises(InvalidArchive) as caught:
            Archive.open(directory)
        (problem,) = caught.value.problems
        assert (problem.rule, problem.where) == ("entry-type", where)

    def test_with_a_named_pipe_is_refused(self, directory):
        os.mkfifo(directory / "pipe")
        assert rules_on_opening(directory) == ["entry-type"]

    @pytest.mark.parametrize(
        ("name", "rule"),
        [
            ("a\\b", "path-characters"),
            ("a:b", "path-characters"),
            ("a\nb", "path-characters"),
            ("MANIFEST.yaml", "path-collision"),
        ],
    )
    def test_keeps_the_rules_of_paths(self, directory, name, rule):
        (directory / name).write_bytes(b"x")
        assert rules_on_opening(directory) == [rule]

    def test_with_a_name_that_is_no_text_is_refused(self, directory):
        pathlib.Path(os.fsdecode(bytes(directory) + b"/a\xff")).write_bytes(b"x")
        assert rules_on_opening(directory) == ["path-characters"]

    @pytest.mark.parametrize("content", [b"", b"shorter", MANIFEST + b"longer"])
    def test_that_changes_after_it_was_opened_is_refused(self, directory, content, tmp_path):
        with Archive.open(directory) as archive:
            (directory / "manifest.yaml").write_bytes(content)
            with pytest.raises(InvalidArchive) as caught:
                archive.unpack(tmp_path / "target")
        assert [problem.rule for problem in caught.value.problems] == ["entry-size"]
        assert [path.name for path in tmp_path.iterdir()] == ["package"]

    def test_a_file_that_is_replaced_by_a_link_after_it_was_opened_is_refused(self, directory):
        with Archive.open(directory) as archive:
            secret = directory.parent / "secret"
            secret.write_bytes(MANIFEST)
            (directory / "manifest.yaml").unlink()
            (directory / "manifest.yaml").symlink_to(secret)
            with pytest.raises(InvalidArchive) as caught:
                archive.verify()
        assert [problem.rule for problem in caught.value.problems] == ["entry-type"]

    def test_a_file_that_is_replaced_by_a_named_pipe_is_refused_at_once(self, directory):
        with Archive.open(directory) as archive:
            (directory / "manifest.yaml").unlink()
            os.mkfifo(directory / "manifest.yaml")
            with pytest.raises(InvalidArchive) as caught:
                archive.verify()
        assert [problem.rule for problem in caught.value.problems] == ["entry-type"]

    @pytest.mark.parametrize(
        "leftover",
        [
            ".git/config",
            "Classes/.svn/x",
            ".gitignore",
            "Classes/App.yaml~",
            "__MACOSX/._a",
            ".DS_Store",
        ],
    )
    def test_leftovers_of_tools_are_passed_over(self, directory, leftover):
        write_directory(directory, {leftover: b"x"})
        with Archive.open(directory) as archive:
            assert sorted(archive.paths) == sorted(FILES)
        with Archive.open(io.BytesIO(zipped({leftover: b"x"}))) as archive:
            assert archive.paths == (leftover,)

    def test_that_is_itself_reached_by_a_link_is_read(self, directory, tmp_path):
        (tmp_path / "link").symlink_to(directory)
        with Archive.open(tmp_path / "link") as archive:
            assert sorted(archive.paths) == sorted(FILES)

    def test_that_is_empty_has_no_manifest(self, tmp_path):
        with Archive.open(tmp_path) as archive, pytest.raises(InvalidManifest):
            read_manifest(archive)


@st.composite
def damaged(draw):
    """A ZIP file with a few bytes replaced, its directory most of all."""
    method = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    files = {"manifest.yaml": MANIFEST, "Classes/App.yaml": b"", "\u00e4/b": b"xyz"}
    data = bytearray(zipped(files, method))
    directory = data.index(b"PK\x01\x02")
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data) - 1) | st.integers(directory, len(data) - 1))
        piece = draw(st.binary(min_size=1, max_size=4))
        data[start : start + len(piece)] = piece
    return bytes(data[: draw(st.none() | st.integers(0, len(data)))])


class TestFuzz:
    @settings(max_examples=effort.FILES)
    @given(damaged() | st.binary(max_size=100))
    def test_a_damaged_archive_is_read_or_refused(self, data):
        problems = ()
        with tempfile.TemporaryDirectory() as home:
            try:
                with Archive.open(io.BytesIO(data)) as archive:
                    archive.unpack(pathlib.Path(home, "target"))
                    read_manifest(archive)
            except InvalidPackage as error:
                problems = error.problems
            assert {path.name for path in pathlib.Path(home).iterdir()} <= {"target"}
        assert all(str(problem).isprintable() for problem in problems)
