# SPDX-License-Identifier: Apache-2.0

"""Packages read from the archives of a cache."""

import builtins
import concurrent.futures
import contextlib
import gc
import io
import os
import pathlib
import random
import re
import resource
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import loader
from glare_murano.package import Archive, InvalidArchive, InvalidPackage, Limits
from glare_murano.package.archive_rules import DEFAULT_LIMITS
from loader import archive_indexes
from loader.archive_indexes import ArchiveIndex, Identity
from loader.cache.checksums import Record
from loader.formats.hot import HOTPackage
from loader.formats.registry import PackageTypes
from loader.formats.source import ArchiveSource, DirectorySource, PackageSource
from tests import packages
from tests.descriptors import open_files
from tests.unit.stored import Stored

CLASS = "Classes/Thing.yaml"
HOT = {
    "manifest.yaml": b"Format: Heat.HOT/1.0\nType: Application\nFullName: org.hot\nName: Hot\n"
    b"Description: ''\nAuthor: Somebody\nTags: []\n",
    "template.yaml": b"heat_template_version: 2013-05-23\nresources: {}\n",
    "Resources/Heat/script.sh": b"true",
}


@pytest.fixture
def stored() -> Stored:
    """A package whose class is in none of the blocks that other reads bring into memory."""
    dice = random.Random(1)
    before, after = ({f"Resources/{where}": dice.randbytes(30_000)} for where in ("0", "1"))
    files = packages.content("org.stored")
    simple = {"UI/ui.yaml": b"Version: 2\n", "logo.png": b"\x89PNG", "Resources/2": b"2"}
    return Stored({**simple, **before, **files, **after})


def _source(cache: loader.Cache, stored: Stored) -> ArchiveSource:
    """The source that a loader makes."""
    return ArchiveSource(
        lambda: cache.archive(stored.digest, stored.fetch),
        lambda: cache.package(stored.digest, stored.fetch),
        cache.limits,
    )


def _load(cache: loader.Cache, stored: Stored) -> Any:
    return PackageTypes().load(_source(cache, stored))


def _unpacked(cache: loader.Cache) -> set[str]:
    return {path.name for path in (cache.folder / "packages").iterdir()}


def _flip(path: pathlib.Path, position: int) -> None:
    with path.open("r+b") as stream:
        stream.seek(position)
        (byte,) = stream.read(1)
        stream.seek(position)
        stream.write(bytes([byte ^ 0x55]))


def _data_of(stored: Stored, path: str) -> int:
    """Return the offset of a file's packed data in the archive."""
    archive = stored.data
    (start,) = (
        match.end()
        for match in re.finditer(re.escape(path.encode()), archive)
        if archive[match.start() - 30 : match.start() - 26] == b"PK\3\4"
    )
    return start


def _entry_of(stored: Stored, path: str) -> int:
    """Return the offset of a file's entry in the archive's directory, which its name ends."""
    start = stored.data.rindex(path.encode()) - 46
    assert stored.data[start : start + 4] == b"PK\1\2"
    return start


def _wait_for_a_tick() -> None:
    """So that a change shows in a file's times."""
    time.sleep(0.02)


@contextlib.contextmanager
def _no_file_to_open(folder: pathlib.Path) -> Iterator[None]:
    """The process has as many files open as it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def _no_permission(folder: pathlib.Path) -> Iterator[None]:
    """The process may not read a directory, not even as root."""
    user = os.geteuid()
    folder.chmod(0)
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)
        folder.chmod(0o700)


# Without unpacking


def test_an_engine_needs_no_unpacked_files(cache: loader.Cache, stored: Stored) -> None:
    package = _load(cache, stored)

    assert (package.full_name, str(package.version)) == ("org.stored", "1.0.0")
    assert list(package.classes) == ["org.stored.Thing"]
    assert package.get_class("org.stored.Thing")[0] == stored.files[CLASS]
    assert package.ui == b"Version: 2\n"
    assert package.logo == b"\x89PNG"
    assert package.supplier_logo is None
    assert _unpacked(cache) == set()


def test_the_name_of_a_source_needs_no_files(cache: loader.Cache, stored: Stored) -> None:
    archive = cache.folder / "archives" / stored.digest

    assert str(_source(cache, stored)) == str(archive)
    _, path = _load(cache, stored).get_class("org.stored.Thing")
    assert path == CLASS
    assert _unpacked(cache) == set()


def test_a_class_whose_file_is_missing_is_reported(cache: loader.Cache) -> None:
    files = Stored.named("org.empty").files
    without = Stored({path: data for path, data in files.items() if path != CLASS})

    with pytest.raises(FileNotFoundError, match=CLASS):
        _load(cache, without).get_class("org.empty.Thing")
    with pytest.raises(KeyError):
        _load(cache, without).get_class("org.empty.Other")


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "..", "a/../../b", "../Resources/a"]
)
def test_nothing_beside_the_package_is_read(cache: loader.Cache, stored: Stored, name: str) -> None:
    package = _load(cache, stored)

    with pytest.raises(ValueError, match="leaves the directory"):
        package.get_resource(name)
    assert _unpacked(cache) == set()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"no archive at all", id="no archive"),
        pytest.param(packages.zipped({"../evil": b""}), id="a path that leaves the directory"),
    ],
)
def test_an_archive_that_breaks_a_rule_is_refused_on_opening(
    tmp_path: pathlib.Path, data: bytes
) -> None:
    path = tmp_path / "archive"
    path.write_bytes(data)
    source = ArchiveSource(lambda: path, lambda: tmp_path / "unpacked")

    for _ in range(2):
        for use in (source.manifest, lambda: source.read("manifest.yaml")):
            with pytest.raises(InvalidArchive):
                use()
    assert open_files(tmp_path) == []
    path.write_bytes(packages.package("org.good"))
    assert source.manifest().fqn == "org.good"


def test_an_archive_above_the_limits_of_its_source_is_refused_on_opening(
    cache: loader.Cache, stored: Stored
) -> None:
    path = cache.archive(stored.digest, stored.fetch)

    def source(limits: Limits) -> ArchiveSource:
        return ArchiveSource(lambda: path, lambda: path, limits)

    assert source(Limits()).manifest().fqn == "org.stored"
    with pytest.raises(InvalidArchive, match="entries"):
        source(Limits(entries=len(stored.files) - 1)).manifest()
    assert source(Limits(entries=len(stored.files))).manifest().fqn == "org.stored"


def test_hundreds_of_packages_hold_no_file_open(cache: loader.Cache) -> None:
    some = [Stored.named(f"org.many{number}") for number in range(400)]
    Stored.store(cache, *some)
    before = open_files(cache.folder)

    loaded = [_load(cache, stored) for stored in some]
    for stored, package in zip(some, loaded, strict=True):
        content, _ = package.get_class(f"{package.full_name}.Thing")
        assert content == stored.files[CLASS]

    assert open_files(cache.folder) == before
    assert _unpacked(cache) == set()


def test_threads_read_from_one_source_at_once(cache: loader.Cache) -> None:
    dice = random.Random(1)
    files = {f"Resources/{number}": dice.randbytes(50_000) for number in range(16)}
    source = _source(cache, Stored({**Stored.named("org.large").files, **files}))
    barrier = threading.Barrier(len(files), timeout=60)
    wrong = []

    def read(path: str) -> None:
        barrier.wait()
        for _ in range(5):
            if source.read(path) != files[path]:
                wrong.append(path)

    threads = [threading.Thread(target=read, args=(path,)) for path in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []


def test_threads_read_while_another_unpacks(cache: loader.Cache, tmp_path: pathlib.Path) -> None:
    dice = random.Random(1)
    files = {f"Resources/{number}": dice.randbytes(20_000) for number in range(8)}
    stored = Stored({**Stored.named("org.large").files, **files})
    index = archive_indexes.find(Identity.of(stored.take_archive(cache), cache.limits))
    is_done = threading.Event()

    def read(path: str) -> int:
        count = 0
        while not is_done.is_set():
            assert index.archive.read(path, 20_000) == files[path]
            count += 1
        return count

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        reading = [pool.submit(read, path) for path in list(files)[:4]]
        try:
            for number in range(40):
                with index.kept_open():
                    index.archive.unpack(tmp_path / str(number))
        finally:
            is_done.set()

    assert all(each.result() for each in reading)


def _with_files(name: str, count: int) -> Stored:
    """A package with two classes and so many files beside them."""
    classes = {f"{name}.{part}": f"{part}.yaml" for part in "ab"}
    files = packages.content(name, Classes=classes)
    files.update({f"Classes/{part}.yaml": part.encode() for part in "ab"})
    return Stored({**files, **{f"Resources/{number}": b"" for number in range(count)}})


def _read_classes(cache: loader.Cache, stored: Stored) -> None:
    """Load a package, and read its classes, as one deployment does."""
    package = _load(cache, stored)
    for name in package.classes:
        content, path = package.get_class(name)
        assert content == stored.files[f"Classes/{pathlib.Path(path).name}"]


def _count_opens(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are opened from now on."""
    names: list[str] = []
    open_it = open

    def count(file: Any, *arguments: Any, **options: Any) -> Any:
        names.append(pathlib.Path(file).name)
        return open_it(file, *arguments, **options)

    for module in (builtins, io):
        monkeypatch.setattr(module, "open", count)
    return names


def test_an_archive_is_opened_as_often_however_many_files_it_has(
    cache: loader.Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = [_with_files(f"org.with{count}", count) for count in (1, 20, 400)]
    for stored in some:
        stored.take_archive(cache)
    # As in another process than the one that has stored them.
    archive_indexes._indexes.clear()
    opened = _count_opens(monkeypatch)

    for stored in some:
        _read_classes(cache, stored)

    # A small archive is in a buffer once its directory has been read.
    assert [opened.count(stored.digest) for stored in some] == [1, 1, 2], opened


@pytest.mark.parametrize("store", [Stored.take_archive, lambda one, cache: one.store(cache, one)])
def test_an_archive_is_opened_once_to_be_stored_read_and_unpacked(
    cache: loader.Cache,
    stored: Stored,
    monkeypatch: pytest.MonkeyPatch,
    store: Callable[[Stored, loader.Cache], object],
) -> None:
    opened = []
    open_it = Archive.open

    def count(*arguments: Any) -> Archive:
        opened.append(arguments)
        return open_it(*arguments)

    monkeypatch.setattr(Archive, "open", count)

    store(stored, cache)
    package = _load(cache, stored)
    assert package.get_class("org.stored.Thing")[0] == stored.files[CLASS]
    assert stored.is_in(pathlib.Path(package.source_directory))
    assert len(opened) == 1


def test_the_directory_of_an_archive_is_read_once(
    cache: loader.Cache, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    _read_classes(cache, stored)
    monkeypatch.setattr(Archive, "open", None)

    _read_classes(cache, stored)


def test_the_directories_of_many_archives_are_read_once(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> set[str]:
        names = set()
        for path in tmp_path.iterdir():
            found = ArchiveSource(lambda path=path: path, lambda: tmp_path)
            names.add(found.manifest().fqn)
        return names

    for number in range(300):
        (tmp_path / str(number)).write_bytes(packages.package(f"org.many{number}"))
    names = read()
    monkeypatch.setattr(Archive, "open", None)

    assert read() == names
    assert len(names) == 300


@pytest.mark.parametrize(
    ("meta", "files"),
    [("", 1), ("", 900), ("{a: b}," * 2_000, 1)],
)
def test_the_memory_for_a_directory_and_its_manifest_is_bounded(
    tmp_path: pathlib.Path, meta: str, files: int
) -> None:
    content = packages.content("org.large")
    content["manifest.yaml"] += f"Meta: [{meta}]\n".encode()
    path = tmp_path / "archive"
    path.write_bytes(packages.zipped({**content, **{f"Resources/{n}": b"" for n in range(files)}}))
    identity = Identity.of(path, DEFAULT_LIMITS)
    # What the process keeps once is not counted.
    assert ArchiveIndex(identity).manifest
    gc.collect()
    tracemalloc.start()
    try:
        index = ArchiveIndex(identity)
        assert index.manifest
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] <= index.memory
    finally:
        tracemalloc.stop()


def test_a_directory_is_kept_while_its_package_is_used(
    cache: loader.Cache, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = _source(cache, stored)
    assert source.read(CLASS)
    # As when other packages need the memory.
    archive_indexes._indexes.clear()
    monkeypatch.setattr(Archive, "open", None)

    assert source.manifest().fqn == "org.stored"
    with pytest.raises(TypeError):
        _read_classes(cache, stored)


@pytest.fixture(params=["directory", "archive"])
def source(
    request: pytest.FixtureRequest, cache: loader.Cache, stored: Stored, tmp_path: pathlib.Path
) -> PackageSource:
    """The same files, wherever they are."""
    if request.param == "directory":
        return DirectorySource(stored.write(tmp_path / "package"))
    return _source(cache, stored)


@pytest.mark.parametrize("path", ["./{}", "UI//../{}", "UI/../{}", "Classes/./../{}", "none/../{}"])
def test_a_path_has_many_forms(source: PackageSource, stored: Stored, path: str) -> None:
    assert source.read(path.format(CLASS)) == stored.files[CLASS]
    assert source.read(path.format("Classes//Thing.yaml")) == stored.files[CLASS]
    assert source.read(path.format("none")) is None


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", f"/package/{CLASS}", "..", "UI/../../x"])
def test_a_path_that_leaves_the_package_is_refused(source: PackageSource, path: str) -> None:
    with pytest.raises(ValueError, match="leaves the directory of the package"):
        source.read(path)


# With files


def test_a_resource_is_a_file_of_all_that_is_unpacked(cache: loader.Cache, stored: Stored) -> None:
    path = pathlib.Path(_load(cache, stored).get_resource("2"))

    assert path.read_bytes() == stored.files["Resources/2"]
    assert stored.is_in(path.parent.parent)
    assert path == pathlib.Path(_load(cache, stored).source_directory) / "Resources" / "2"


def test_threads_that_need_resources_at_once_unpack_once(
    cache: loader.Cache, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = _load(cache, stored)
    unpack = Archive.unpack
    barrier = threading.Barrier(12, timeout=60)
    unpacked, found = [], []

    def unpack_and_count(archive: Archive, target: pathlib.Path) -> None:
        unpacked.append(target)
        unpack(archive, target)

    def read(number: int) -> None:
        barrier.wait()
        path = pathlib.Path(package.get_resource(str(number % 3)))
        found.append(path.read_bytes() == stored.files[f"Resources/{number % 3}"])

    monkeypatch.setattr(Archive, "unpack", unpack_and_count)
    threads = [threading.Thread(target=read, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(unpacked) == 1
    assert found == [True] * 12


def test_a_package_of_another_format_gets_a_directory(cache: loader.Cache) -> None:
    stored = Stored(HOT)

    package = _load(cache, stored)

    assert type(package) is HOTPackage
    assert stored.is_in(pathlib.Path(package.source_directory))
    assert _unpacked(cache) == {stored.digest}


# While it is used


def test_an_archive_that_was_found_to_be_damaged_is_fetched_again(
    cache: loader.Cache, stored: Stored
) -> None:
    package = _load(cache, stored)
    package.get_class("org.stored.Thing")
    _flip(cache.folder / "archives" / stored.digest, _data_of(stored, CLASS))
    with loader.Cache(cache.folder) as other:
        assert list(other.verify()) == [stored.digest]

    assert package.get_class("org.stored.Thing")[0] == stored.files[CLASS]
    assert package.logo == b"\x89PNG"
    assert cache.counters.downloads == 2
    assert cache.verify() == {}


def test_a_copy_is_read_by_the_index_of_the_original(
    cache: loader.Cache, stored: Stored, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = stored.take_archive(cache)
    index = archive_indexes.find(Identity.of(original, cache.limits))
    copy = tmp_path / "copy.zip"
    copy.write_bytes(original.read_bytes())
    original.unlink()
    index.use(copy)

    def refuse(*_: object) -> None:
        raise AssertionError("another index is made")

    monkeypatch.setattr(archive_indexes, "ArchiveIndex", refuse)
    source = ArchiveSource(lambda: copy, lambda: tmp_path, cache.limits)
    assert source.read(CLASS) == packages.content("org.stored")[CLASS]


def test_an_archive_that_was_removed_is_fetched_again(cache: loader.Cache, stored: Stored) -> None:
    package = _load(cache, stored)
    (cache.folder / "archives" / stored.digest).unlink()

    assert package.get_class("org.stored.Thing")[0] == stored.files[CLASS]
    assert cache.counters.downloads == 2


@pytest.mark.parametrize("read_before", [False, True])
def test_an_archive_that_is_removed_before_it_is_opened_is_fetched_again(
    cache: loader.Cache, stored: Stored, read_before: bool
) -> None:
    """As if somebody verified it in the very moment after it was found."""
    found: list[pathlib.Path] = []

    def find() -> pathlib.Path:
        found.append(cache.archive(stored.digest, stored.fetch))
        if len(found) == 1:
            found[0].unlink()
        return found[0]

    if read_before:
        assert _source(cache, stored).read(CLASS) == stored.files[CLASS]
    source = ArchiveSource(find, lambda: cache.package(stored.digest, stored.fetch))

    assert source.read(CLASS) == stored.files[CLASS]
    assert len(found) == 2
    assert cache.counters.downloads == 2


def test_an_archive_that_was_mended_is_read_anew(cache: loader.Cache, stored: Stored) -> None:
    """By a package that has read nothing but its manifest before."""
    package = _load(cache, stored)
    _wait_for_a_tick()
    # Its checksum, as the archive's directory has it.
    _flip(cache.folder / "archives" / stored.digest, _entry_of(stored, CLASS) + 16)
    with pytest.raises(InvalidArchive, match=f"{CLASS}.*entry-header"):
        package.get_class("org.stored.Thing")
    assert list(cache.verify()) == [stored.digest]
    _wait_for_a_tick()

    assert package.get_class("org.stored.Thing")[0] == stored.files[CLASS]
    assert cache.counters.downloads == 2


def test_reading_does_not_wait_for_another_package(cache: loader.Cache, stored: Stored) -> None:
    other = Stored.named("org.other")
    other.take_archive(cache)
    stored.take_archive(cache).unlink()
    fetching, may_go_on = threading.Event(), threading.Event()

    def fetch() -> Iterator[bytes]:
        fetching.set()
        assert may_go_on.wait(30)
        yield stored.data

    slow = ArchiveSource(
        lambda: cache.archive(stored.digest, fetch), lambda: cache.package(stored.digest, fetch)
    )
    first = threading.Thread(target=slow.read, args=(CLASS,))
    second = threading.Thread(target=_source(cache, other).read, args=(CLASS,))
    first.start()
    assert fetching.wait(30)
    second.start()
    second.join(5)
    waits = second.is_alive()
    may_go_on.set()
    first.join()
    second.join()

    assert not waits


@pytest.mark.parametrize("fault", [_no_file_to_open, _no_permission])
def test_an_archive_that_cannot_be_read_is_reported(
    cache: loader.Cache,
    stored: Stored,
    fault: Callable[[pathlib.Path], contextlib.AbstractContextManager[None]],
) -> None:
    source = _source(cache, stored)
    assert source.read(CLASS) == stored.files[CLASS]
    another = _source(cache, stored)

    with fault(cache.folder / "archives"):
        for each in (source, another):
            with pytest.raises(loader.CacheError, match=stored.digest):
                each.read("Resources/0")
        with pytest.raises(loader.CacheError, match=stored.digest):
            _source(cache, stored).manifest()

    for each in (source, another):
        assert each.read("Resources/0") == stored.files["Resources/0"]
    assert cache.counters.downloads == 1


def test_an_archive_that_cannot_be_fetched_again_is_reported(
    cache: loader.Cache, stored: Stored
) -> None:
    stored.take_archive(cache)

    def fail() -> Iterator[bytes]:
        raise loader.CatalogError("the catalogue is gone")
        yield b""

    source = ArchiveSource(
        lambda: cache.archive(stored.digest, fail), lambda: cache.package(stored.digest, fail)
    )
    assert source.read(CLASS) == stored.files[CLASS]
    (cache.folder / "archives" / stored.digest).unlink()

    with pytest.raises(loader.CatalogError, match="the catalogue is gone"):
        source.read("logo.png")
    with pytest.raises(loader.CatalogError, match="the catalogue is gone"):
        source.manifest()


@pytest.mark.parametrize("error", [FileNotFoundError("gone"), PermissionError("no")])
def test_an_error_of_the_download_is_raised_unchanged(
    cache: loader.Cache, stored: Stored, error: OSError
) -> None:
    fetched = []

    def fail() -> Iterator[bytes]:
        fetched.append(stored.digest)
        raise error

    source = ArchiveSource(lambda: cache.archive(stored.digest, fail), lambda: cache.folder)

    with pytest.raises(type(error)) as caught:
        source.manifest()
    assert caught.value is error
    assert len(fetched) == 1


def test_an_archive_that_is_removed_each_time_is_reported(
    cache: loader.Cache, stored: Stored
) -> None:
    found: list[pathlib.Path] = []

    def find() -> pathlib.Path:
        found.append(cache.archive(stored.digest, stored.fetch))
        found[-1].unlink()
        return found[-1]

    with pytest.raises(loader.CacheError, match=f"cannot read the archive .*{stored.digest}"):
        ArchiveSource(find, lambda: cache.folder).manifest()
    assert len(found) == 2


def test_a_class_that_the_disk_has_damaged_is_reported(cache: loader.Cache, stored: Stored) -> None:
    """After the archive was found to be whole."""
    package = _load(cache, stored)
    other = _load(cache, stored)
    assert other.logo == b"\x89PNG"
    _flip(cache.folder / "archives" / stored.digest, _data_of(stored, CLASS))

    for damaged in (package, other):
        with pytest.raises(InvalidArchive, match=f"{CLASS}.*entry-data"):
            damaged.get_class("org.stored.Thing")
    assert package.ui == b"Version: 2\n"


@pytest.mark.parametrize("path", ["UI/ui.yaml", "logo.png", CLASS])
def test_a_name_that_the_disk_has_damaged_is_reported(
    cache: loader.Cache, stored: Stored, path: str
) -> None:
    """In the archive's directory, and before anybody has read it."""
    archive = stored.take_archive(cache)
    cache.close()
    _flip(archive, _entry_of(stored, path) + 46 + 1)
    # The cache's record of its size and times says that it has not changed.
    record = Record.stamp(archive.parent, {stored.digest: stored.digest})
    record.save(cache.folder / "records" / stored.digest)

    with loader.Cache(cache.folder) as other:
        for name in (path, "manifest.yaml"):
            with pytest.raises(InvalidArchive, match="entry-header"):
                _source(other, stored).read(name)
        assert other.counters.downloads == 0
        assert list(other.verify()) == [stored.digest]


def test_a_truncated_archive_is_reported(cache: loader.Cache, stored: Stored) -> None:
    archive = cache.folder / "archives" / stored.digest
    package = _load(cache, stored)
    assert package.logo
    os.truncate(archive, _data_of(stored, CLASS) + 3)

    with pytest.raises(InvalidArchive, match="archive-format"):
        package.get_class("org.stored.Thing")
    with pytest.raises(InvalidArchive, match="archive-format"):
        _load(cache, stored)


def test_no_damage_of_an_archive_gives_another_content(cache: loader.Cache) -> None:
    stored = Stored.named("org.small", resources=2)
    archive = stored.take_archive(cache)
    refused = 0
    for position in range(len(stored.data)):
        source = _source(cache, stored)
        _flip(archive, position)
        for path in stored.files:
            try:
                assert source.read(path) in (stored.files[path], None)
            except InvalidPackage:
                refused += 1
        _flip(archive, position)

    assert refused > len(stored.data)
    assert archive.read_bytes() == stored.data


def test_a_closed_cache_gives_nothing(cache: loader.Cache, stored: Stored) -> None:
    package = _load(cache, stored)
    cache.close()

    with pytest.raises(loader.CacheError, match="closed"):
        package.get_class("org.stored.Thing")
    with pytest.raises(loader.CacheError, match="closed"):
        package.get_resource("1")
