# SPDX-License-Identifier: Apache-2.0

"""The package cache on disk: storing, damage, pruning and refusals."""

import contextlib
import errno
import fcntl
import gc
import hashlib
import itertools
import logging
import os
import pathlib
import random
import re
import resource
import shutil
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterator
from typing import IO, Any

import pytest

import loader
from glare_murano.package import Archive, InvalidArchive, Limits
from loader import fs
from loader.cache import checksums, last_used, locks
from loader.cache import store as cache_module
from loader.cache.archives import ArchiveFiles
from loader.cache.pruning import Pruner
from tests.descriptors import highest_descriptor, open_files
from tests.unit.stored import Stored

DIRECTORIES = ("archives", "catalogs", "packages", "records", "resolved", "staging")


@pytest.fixture
def stored() -> Stored:
    return Stored.named("org.stored", resources=5)


def _archive(cache: loader.Cache, stored: Stored) -> pathlib.Path:
    return cache.folder / "archives" / stored.digest


def _record(cache: loader.Cache, stored: Stored) -> pathlib.Path:
    """Return the path of the record of an archive."""
    return cache.folder / "records" / stored.digest


def _folder(cache: loader.Cache, stored: Stored) -> pathlib.Path:
    return cache.folder / "packages" / stored.digest


def _use(cache: loader.Cache, *some: Stored) -> None:
    """Unpack packages one after the other, and release each."""
    for stored in some:
        with loader.Cache(cache.folder) as other:
            stored.take(other)


def _names(folder: pathlib.Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _unpacked(cache: loader.Cache) -> set[str]:
    return _names(cache.folder / "packages")


def _there(cache: loader.Cache) -> set[str]:
    """Return the digests of all archives, records and unpacked files."""
    return _names(cache.folder / "archives") | _names(cache.folder / "records") | _unpacked(cache)


def _leftovers(cache: loader.Cache) -> list[pathlib.Path]:
    return list((cache.folder / "staging").iterdir())


# Packages in the cache


def test_a_package_is_fetched_once_and_found_later(cache: loader.Cache, stored: Stored) -> None:
    archive = stored.take_archive(cache)
    folder = cache.package(stored.digest, stored.nothing)
    with loader.Cache(cache.folder) as another:
        assert another.archive(stored.digest, stored.nothing) == archive
        assert another.package(stored.digest, stored.nothing) == folder

    assert archive.read_bytes() == stored.data
    assert stored.is_in(folder)
    # A cache counts a package once, however often it is used.
    assert (cache.counters.downloads, cache.counters.hits) == (1, 0)
    assert (another.counters.downloads, another.counters.hits) == (0, 1)
    assert _leftovers(cache) == []


def test_a_package_is_unpacked_only_if_files_are_requested(
    cache: loader.Cache, stored: Stored
) -> None:
    other = Stored.named("org.other")
    stored.take_archive(cache)
    Stored.store(cache, other)
    assert cache.has(stored.digest)
    assert cache.verify() == {}
    assert cache.prune(0).removed == ()

    assert _unpacked(cache) == set()
    assert stored.is_in(stored.take(cache))
    assert _unpacked(cache) == {stored.digest}


def test_a_package_is_unpacked_once(
    cache: loader.Cache, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = stored.take(cache)
    made = folder.stat()
    monkeypatch.setattr(Archive, "unpack", None)

    assert stored.take(cache) == folder
    with loader.Cache(cache.folder) as another:
        assert stored.take(another) == folder
    assert folder.stat() == made


@pytest.fixture(params=[0o022, 0o002, 0o077, 0])
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_umask")
def test_other_users_can_neither_read_nor_change_packages(tmp_path: pathlib.Path) -> None:
    cache = loader.Cache(tmp_path / "cache")
    stored = Stored({**Stored.named("org.deep").files, "Resources/a/b/c/d": b"d"})
    stored.take(cache)

    folders = [path for path in cache.folder.iterdir() if path.is_dir()]
    assert {folder.name for folder in folders} == {*DIRECTORIES}
    for folder in (cache.folder, _folder(cache, stored), *folders):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in cache.folder.rglob("*"):
        assert not path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    for path in (_archive(cache, stored), _record(cache, stored)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", [".", *DIRECTORIES])
def test_a_directory_that_others_can_write_to_is_refused(tmp_path: pathlib.Path, name: str) -> None:
    (tmp_path / "cache" / name).mkdir(parents=True)
    (tmp_path / "cache" / name).chmod(0o777)

    with pytest.raises(loader.CacheError, match="other users can write to it"):
        loader.Cache(tmp_path / "cache")


@pytest.mark.parametrize("name", [".", *DIRECTORIES])
def test_a_directory_of_another_user_is_refused(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    loader.Cache(tmp_path / "cache").close()
    if os.geteuid() == 0:
        os.chown(tmp_path / "cache" / name, 54321, 54321)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)

    with pytest.raises(loader.CacheError, match=r"belongs to the user id \d+, not \d+; run as"):
        loader.Cache(tmp_path / "cache")


@pytest.mark.parametrize("digest", ["", "0" * 63, "A" * 64, "../" + "0" * 61, "0" * 64 + "\n"])
def test_an_invalid_digest_is_refused(cache: loader.Cache, stored: Stored, digest: str) -> None:
    with pytest.raises(loader.DigestMismatch, match="not a valid SHA-256"):
        cache.package(digest, stored.nothing)
    with pytest.raises(loader.DigestMismatch, match="not a valid SHA-256"):
        cache.archive(digest, stored.nothing)
    with pytest.raises(loader.DigestMismatch, match="not a valid SHA-256"):
        cache.store({digest: "a package"}, lambda digests: [])
    with pytest.raises(loader.DigestMismatch, match="not a valid SHA-256"):
        cache.verify(digest)


@pytest.mark.parametrize(
    "use",
    [
        Stored.take,
        Stored.take_archive,
        lambda stored, cache: Stored.store(cache, stored),
        lambda stored, cache: cache.has(stored.digest),
        lambda stored, cache: cache.verify(),
        lambda stored, cache: cache.prune(0),
        lambda stored, cache: cache.size,
        lambda stored, cache: cache.staging_directory().__enter__(),
        lambda stored, cache: cache.__enter__(),
    ],
)
def test_after_close_every_method_is_refused(
    cache: loader.Cache, stored: Stored, use: Callable[[Stored, loader.Cache], object]
) -> None:
    stored.take(cache)
    cache.close()
    cache.close()

    with pytest.raises(loader.CacheError, match=f"the cache {cache.folder} is closed"):
        use(stored, cache)


@pytest.mark.parametrize("folder", [["a"], None, b"a", 1])
def test_a_directory_of_another_type_is_refused(folder: Any) -> None:
    with pytest.raises(TypeError, match=re.escape(f"must be a path, not {folder!r}")):
        loader.Cache(folder)


def test_a_cache_is_shown_with_its_directory(tmp_path: pathlib.Path) -> None:
    with loader.Cache(tmp_path) as cache, loader.Cache(tmp_path, max_size=10) as limited:
        assert repr(cache) == f"Cache('{tmp_path}')"
        assert repr(limited) == f"Cache('{tmp_path}', max_size=10)"


# Downloads


def test_a_flipped_byte_in_a_download_is_refused(cache: loader.Cache, stored: Stored) -> None:
    for position in range(0, len(stored.data), 97):
        broken = bytearray(stored.data)
        broken[position] ^= 1
        with pytest.raises(loader.DigestMismatch, match=stored.digest):
            cache.package(stored.digest, lambda data=bytes(broken): [data])

    assert _there(cache) == set()
    assert _leftovers(cache) == []
    assert stored.is_in(stored.take(cache))


@pytest.mark.parametrize(
    "failure",
    [ConnectionResetError("reset"), TimeoutError("slow"), loader.CatalogError("500")],
)
def test_an_error_of_the_download_is_raised_unchanged(
    cache: loader.Cache, stored: Stored, failure: Exception
) -> None:
    def fetch() -> Iterator[bytes]:
        yield stored.data[:100]
        raise failure

    with pytest.raises(type(failure)) as raised:
        cache.package(stored.digest, fetch)

    assert raised.value is failure
    assert _leftovers(cache) == []
    assert stored.is_in(stored.take(cache))


def test_an_archive_without_end_is_not_written_to_the_disk(tmp_path: pathlib.Path) -> None:
    written = 0

    def fetch() -> Iterator[bytes]:
        nonlocal written
        while True:
            written += 100
            yield b"\0" * 100

    with loader.Cache(tmp_path, Limits(archive_size=1000)) as cache:
        with pytest.raises(InvalidArchive, match="archive-size"):
            cache.package("0" * 64, fetch)
        assert written <= 1100
        assert _there(cache) == set()
        assert _leftovers(cache) == []


def test_an_archive_that_breaks_a_rule_leaves_nothing(cache: loader.Cache) -> None:
    hostile = Stored({"manifest.yaml": b"", "../escaped": b"x"})

    with pytest.raises(InvalidArchive, match="path-escape"):
        hostile.take(cache)
    assert _there(cache) == set()
    assert _leftovers(cache) == []


# Packages that arrive together


@pytest.fixture
def some() -> list[Stored]:
    return [Stored.named(f"org.some{number}", resources=5) for number in range(4)]


def test_packages_are_stored_together(cache: loader.Cache, some: list[Stored]) -> None:
    assert Stored.store(cache, *some) == {stored.digest for stored in some}

    assert _unpacked(cache) == set()
    for stored in some:
        archive = cache.archive(stored.digest, stored.nothing)
        assert archive.read_bytes() == stored.data
        assert stored.is_in(cache.package(stored.digest, stored.nothing))
    assert (cache.counters.downloads, cache.counters.hits) == (len(some), 0)
    assert _leftovers(cache) == []
    with loader.Cache(cache.folder) as other:
        assert Stored.store(other, *some) == set()
        assert other.prune(0).removed == ()


def test_invalid_archives_among_several_are_skipped(
    cache: loader.Cache, some: list[Stored]
) -> None:
    first, second, third, fourth = some
    hostile = Stored({"manifest.yaml": b"", "../escaped": b"x"})
    arriving = [
        (first.digest, first.data),
        (second.digest, third.data),
        (hostile.digest, hostile.data),
        (first.digest, first.data),
        ("0" * 64, first.data),
        (third.digest, third.data),
    ]

    digests = [stored.digest for stored in (*some, hostile)]
    cache.store(dict.fromkeys(digests), lambda _: arriving)

    assert _there(cache) == {first.digest, third.digest}
    assert _leftovers(cache) == []
    assert second.is_in(second.take(cache))
    assert fourth.is_in(fourth.take(cache))
    with pytest.raises(InvalidArchive, match="path-escape"):
        hostile.take(cache)


class _Second:
    """Another user of the cache, who stores packages in a thread."""

    def __init__(self, cache: loader.Cache, some: list[Stored]) -> None:
        self.requested: list[set[str]] = []
        self._by_digest = {stored.digest: stored.data for stored in some}
        self._cache = cache
        self._thread = threading.Thread(target=self._store)

    def start(self) -> None:
        """Start, and return when it waits for the archive that the other user fetches."""
        self._thread.start()
        deadline = time.monotonic() + 30
        while not self.requested and time.monotonic() < deadline:
            time.sleep(0.01)
        self._thread.join(0.1)
        assert self._thread.is_alive(), "it does not wait"

    def finish(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive()

    def _store(self) -> None:
        with loader.Cache(self._cache.folder) as own:
            own.store(self._by_digest, self._fetch)
            for digest in self._by_digest:
                assert own.has(digest)
            assert own.prune(0).removed == ()

    def _fetch(self, digests: Collection[str]) -> Iterator[tuple[str, bytes]]:
        self.requested.append(set(digests))
        yield from ((digest, self._by_digest[digest]) for digest in digests)


def test_an_archive_that_another_process_fetches_is_waited_for(
    cache: loader.Cache, some: list[Stored], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *others = some
    second = _Second(cache, some)
    looks = []
    lock = loader.Cache._lock_free

    def look(cache: loader.Cache, digests: list[str]) -> Any:
        looks.append(len(digests))
        return lock(cache, digests)

    monkeypatch.setattr(loader.Cache, "_lock_free", look)

    def fetch() -> Iterator[bytes]:
        second.start()
        assert not cache.has(first.digest)
        yield first.data

    assert first.is_in(cache.package(first.digest, fetch))
    second.finish()

    assert second.requested == [{stored.digest for stored in others}]
    # Once for all archives, and once more when the other user has finished.
    assert looks == [len(some), 1]
    assert _there(cache) == {stored.digest for stored in some}


def test_an_archive_that_another_process_fails_to_fetch_is_requested(
    cache: loader.Cache, some: list[Stored]
) -> None:
    *others, last = some
    second = _Second(cache, some)

    def fetch(digests: Collection[str]) -> Iterator[tuple[str, bytes]]:
        yield some[0].digest, some[0].data
        second.start()
        raise ConnectionResetError("reset")

    with pytest.raises(ConnectionResetError):
        cache.store({stored.digest: stored for stored in others}, fetch)
    second.finish()

    assert second.requested == [{last.digest}, {stored.digest for stored in others}]
    assert _there(cache) == {stored.digest for stored in some}
    assert _leftovers(cache) == []


def test_an_interrupted_answer_leaves_nothing(cache: loader.Cache, some: list[Stored]) -> None:
    def fetch(digests: object) -> Iterator[tuple[str, bytes]]:
        yield some[0].digest, some[0].data
        raise ConnectionResetError("reset")

    with pytest.raises(ConnectionResetError):
        cache.store({stored.digest: stored for stored in some}, fetch)

    assert _there(cache) == set()
    assert _leftovers(cache) == []
    assert Stored.store(cache, *some) == {stored.digest for stored in some}


def test_an_archive_stored_meanwhile_is_not_fetched(
    cache: loader.Cache, some: list[Stored], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = loader.Cache._lock_free

    def lock_late(cache: loader.Cache, digests: list[str]) -> Any:
        monkeypatch.undo()
        _use(cache, *some[:2])
        return lock(cache, digests)

    monkeypatch.setattr(loader.Cache, "_lock_free", lock_late)

    assert Stored.store(cache, *some) == {stored.digest for stored in some[2:]}


def test_one_open_file_locks_all(cache: loader.Cache, some: list[Stored]) -> None:
    before = len(open_files(cache.folder))
    most = 0

    def fetch(digests: object) -> Iterator[tuple[str, bytes]]:
        nonlocal most
        for stored in some:
            most = max(most, len(open_files(cache.folder)) - before)
            yield stored.digest, stored.data

    cache.store({stored.digest: stored for stored in some}, fetch)

    # The second file locks the staging directory.
    assert most == 2


def test_storing_several_packages_uses_them(
    cache: loader.Cache, some: list[Stored], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third, _ = some
    # All last-used times are later than the times of new files.
    future = time.time_ns() + 10**17
    monkeypatch.setattr(time, "time_ns", lambda: future)
    _use(cache, first)
    with loader.Cache(cache.folder) as other:
        Stored.store(other, second, third)
    with loader.Cache(cache.folder) as other:
        second.take_archive(other)

    assert cache.prune(cache.size - 1).removed == (first.digest,)
    assert cache.prune(0).removed == (third.digest, second.digest)


def test_packages_that_were_stored_together_make_room(
    tmp_path: pathlib.Path, some: list[Stored]
) -> None:
    with loader.Cache(tmp_path, max_size=1) as cache:
        Stored.store(cache, *some[:2])
        assert cache.prune(0).removed == ()
    with loader.Cache(tmp_path, max_size=1) as cache:
        Stored.store(cache, *some[2:])
        assert _there(cache) == {stored.digest for stored in some[2:]}


# Writing to the disk


class _Disk:
    """Records calls to sync files, and to rename files into a directory."""

    def __init__(self, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: set[pathlib.Path] = set()
        self.appeared: list[pathlib.Path] = []
        self.needed: list[set[pathlib.Path]] = []
        self._folder = folder
        self._sync, self._rename = os.fsync, os.rename
        monkeypatch.setattr(os, "fsync", self._record_sync)
        monkeypatch.setattr(os, "rename", self._record_rename)

    def _record_sync(self, file: int) -> None:
        self._sync(file)
        self.synced.add(pathlib.Path(f"/proc/self/fd/{file}").readlink())

    def _record_rename(self, source: pathlib.Path, target: pathlib.Path) -> None:
        if pathlib.Path(target).parent == self._folder:
            if not self.appeared:
                # The parent is the staging directory of all archives.
                made = set(pathlib.Path(source).parent.rglob("*"))
                assert made <= self.synced
                self.needed.append(made)
                self.synced.clear()
            self.appeared.append(pathlib.Path(target))
        self._rename(source, target)


def test_all_of_several_is_on_the_disk_before_the_first_appears(
    cache: loader.Cache, some: list[Stored], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut between any two of these calls leaves whole archives, or none."""
    archives = cache.folder / "archives"
    disk = _Disk(archives, monkeypatch)
    Stored.store(cache, *some)

    assert [len(needed) for needed in disk.needed] == [len(some)]
    assert set(disk.appeared) == {archives / stored.digest for stored in some}
    assert disk.synced == {archives}


def test_an_archive_is_on_the_disk_before_it_appears(
    cache: loader.Cache, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    archives = cache.folder / "archives"
    disk = _Disk(archives, monkeypatch)
    stored.take_archive(cache)

    assert disk.needed == [{cache.folder / "staging" / stored.digest / stored.digest}]
    assert disk.appeared == [archives / stored.digest]
    assert disk.synced == {archives}


def test_unpacked_files_do_not_wait_for_the_disk(
    cache: loader.Cache, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored.take_archive(cache)
    disk = _Disk(cache.folder / "archives", monkeypatch)
    stored.take(cache)

    assert disk.synced == set()


def test_unpacked_files_are_read_once_in_each_boot_of_each_host(
    cache: loader.Cache, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use(cache, stored)
    read = _count_reads(monkeypatch)
    for boot in ("second", "of another host", "second"):
        monkeypatch.setattr(checksums, "boot_id", lambda boot=boot: boot)
        _use(cache, stored)
        _use(cache, stored)

    # Before the lock, and under it: in two boots.
    assert sorted(read) == sorted(2 * [pathlib.Path(path).name for path in stored.files])
    boots = checksums.Record.load(_folder(cache, stored) / "record").boots
    assert boots[1:] == ("second", "of another host")


def test_files_that_a_power_cut_has_damaged_are_unpacked_again(
    cache: loader.Cache,
    stored: Stored,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A file may have its recorded size and time, and not its content."""
    _use(cache, stored)
    folder = _folder(cache, stored)
    record = checksums.Record.load(folder / "record")
    _flip(folder / "files" / "Resources" / "3")
    record.restamped(folder / "files").save(folder / "record")
    monkeypatch.setattr(checksums, "boot_id", lambda: "another")

    assert stored.is_in(stored.take(cache))

    assert "Resources/3 has changed since it was stored" in caplog.text
    assert checksums.Record.load(folder / "record").boots == ("another",)


def _break_the_disk(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let a sync fail, after a number of successful ones."""
    sync = os.fsync
    count = itertools.count()

    def fail_once(file: int) -> None:
        if next(count) == number:
            raise OSError(errno.EIO, "the disk is broken")
        sync(file)

    monkeypatch.setattr(os, "fsync", fail_once)


@pytest.mark.parametrize("take", [Stored.take_archive, lambda one, cache: one.store(cache, one)])
def test_an_archive_that_cannot_be_written_to_the_disk_leaves_nothing(
    cache: loader.Cache,
    stored: Stored,
    monkeypatch: pytest.MonkeyPatch,
    take: Callable[[Stored, loader.Cache], object],
) -> None:
    with monkeypatch.context() as patch:
        _break_the_disk(patch, 0)
        with pytest.raises(loader.CacheError, match=r"store package.*the disk is broken"):
            take(stored, cache)

    assert _there(cache) == set()
    assert _leftovers(cache) == []
    assert stored.is_in(stored.take(cache))
    assert cache.counters.downloads == 1


# Damage


def _flip(path: pathlib.Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _flip_and_hide(path: pathlib.Path) -> None:
    before = path.stat()
    _flip(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _link(path: pathlib.Path) -> None:
    copy = path.parent.parent.parent / "elsewhere"
    path.rename(copy)
    path.symlink_to(copy)


def _replace_by_folder(path: pathlib.Path) -> None:
    path.unlink()
    (path / "something").mkdir(parents=True)


def _wait_for_a_tick() -> None:
    # The kernel may set times of change by its ticks, at least 100 a second.
    time.sleep(0.02)


# Damages of an archive, and how each is reported.
ARCHIVE_DAMAGES: dict[str, tuple[Callable[[pathlib.Path], object], str]] = {
    "flipped": (_flip, "its archive has changed since it was stored"),
    "hidden": (_flip_and_hide, "its archive has changed since it was stored"),
    "truncated": (lambda path: os.truncate(path, 1), "its archive has changed since it was stored"),
    "emptied": (lambda path: os.truncate(path, 0), "its archive has changed since it was stored"),
    "linked": (_link, "its archive is not a regular file"),
    "a folder": (_replace_by_folder, "its archive is not a regular file"),
}

# Damages of a record, whether its archive is damaged or not.
RECORD_DAMAGES: dict[str, Callable[[pathlib.Path], object]] = {
    "kept": lambda path: path,
    "missing": lambda path: path.unlink(),
    "empty": lambda path: os.truncate(path, 0),
    "of another": lambda path: path.write_text("1 2 3"),
    "binary": lambda path: path.write_bytes(bytes(range(256))),
    "long": lambda path: path.write_bytes(path.read_bytes() * 1000),
    "a folder": _replace_by_folder,
}


@pytest.mark.parametrize("record", RECORD_DAMAGES)
@pytest.mark.parametrize("damage", ARCHIVE_DAMAGES)
def test_a_damaged_archive_is_fetched_again(
    cache: loader.Cache, stored: Stored, damage: str, record: str, caplog: pytest.LogCaptureFixture
) -> None:
    _use(cache, stored)
    _wait_for_a_tick()
    break_it, reported = ARCHIVE_DAMAGES[damage]
    break_it(_archive(cache, stored))
    RECORD_DAMAGES[record](_record(cache, stored))

    assert cache.size >= 0
    archive = stored.take_archive(cache)

    assert not archive.is_symlink()
    assert archive.read_bytes() == stored.data
    assert stored.digest in caplog.text
    assert reported in caplog.text
    assert (cache.counters.downloads, cache.counters.hits) == (1, 0)
    # The files are intact, and stay.
    assert stored.is_in(cache.package(stored.digest, stored.nothing))
    assert cache.verify() == {}
    assert _leftovers(cache) == []


@pytest.mark.parametrize("damage", ARCHIVE_DAMAGES)
def test_verifying_finds_and_removes_a_damaged_archive(
    cache: loader.Cache, stored: Stored, damage: str
) -> None:
    sound = Stored.named("org.sound")
    _use(cache, stored, sound)
    _wait_for_a_tick()
    break_it, reported = ARCHIVE_DAMAGES[damage]
    break_it(_archive(cache, stored))

    assert cache.verify(sound.digest) == {}
    assert cache.verify() == {stored.digest: [reported]}
    assert not cache.has(stored.digest)
    assert not os.path.lexists(_archive(cache, stored))
    assert cache.verify() == {}
    assert stored.is_in(stored.take(cache))
    assert cache.counters.downloads == 1


def test_an_archive_that_is_removed_is_fetched_again(
    cache: loader.Cache, stored: Stored, caplog: pytest.LogCaptureFixture
) -> None:
    _use(cache, stored)
    _archive(cache, stored).unlink()

    assert not cache.has(stored.digest)
    assert cache.size == 0, "without its archive, what was unpacked is no package"
    assert stored.take_archive(cache).read_bytes() == stored.data
    assert cache.counters.downloads == 1
    assert caplog.text == ""


def test_damaged_archives_do_not_keep_others_from_being_stored_together(
    cache: loader.Cache, some: list[Stored]
) -> None:
    _use(cache, *some)
    _wait_for_a_tick()
    for stored, (break_it, _) in zip(some, ARCHIVE_DAMAGES.values(), strict=False):
        break_it(_archive(cache, stored))
    _replace_by_folder(_archive(cache, some[3]))
    Stored.store(cache, *some)

    assert all(stored.is_in(stored.take(cache)) for stored in some)
    assert cache.counters.downloads == len(some)
    assert cache.verify() == {}


def _count_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the name of every file read from now on is added."""
    read: list[str] = []
    digest = hashlib.file_digest

    def count(stream: Any, name: str) -> Any:
        read.append(pathlib.Path(stream.name).name)
        return digest(stream, name)

    monkeypatch.setattr(hashlib, "file_digest", count)
    return read


@pytest.mark.parametrize("record", [*RECORD_DAMAGES][1:-1])
def test_an_archive_without_a_record_is_read_once(
    cache: loader.Cache, stored: Stored, record: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored.take_archive(cache)
    cache.close()
    RECORD_DAMAGES[record](_record(cache, stored))
    read = _count_reads(monkeypatch)

    for _ in range(3):
        with loader.Cache(cache.folder) as other:
            assert other.archive(stored.digest, stored.nothing).read_bytes() == stored.data
            assert other.counters.hits == 1

    assert read == [stored.digest]


def test_an_archive_whose_record_cannot_be_written_is_read_each_time(
    cache: loader.Cache, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored.take_archive(cache)
    cache.close()
    _replace_by_folder(_record(cache, stored))
    read = _count_reads(monkeypatch)

    for _ in range(3):
        with loader.Cache(cache.folder) as other:
            assert other.archive(stored.digest, stored.nothing).read_bytes() == stored.data

    assert read == [stored.digest] * 3
    with loader.Cache(cache.folder) as other:
        assert other.prune(0).removed == (stored.digest,)
    assert _there(cache) == set()


@pytest.mark.parametrize("place", ["", "record"])
def test_a_file_in_place_of_a_directory_is_damage_and_vice_versa(
    cache: loader.Cache, stored: Stored, place: str
) -> None:
    def damage() -> None:
        folder = _folder(cache, stored)
        if place:
            _replace_by_folder(folder / place)
        else:
            shutil.rmtree(folder)
            folder.write_bytes(b"no folder")

    stored.take(cache)
    cache.close()
    damage()
    with loader.Cache(cache.folder) as other:
        assert stored.is_in(stored.take(other))
        assert other.verify() == {}
    damage()

    with loader.Cache(cache.folder) as other:
        assert other.prune(0).removed == (stored.digest,)
    assert _there(cache) == set()
    assert not os.path.lexists(_folder(cache, stored))


def test_a_damaged_archive_in_use_is_fetched_again(cache: loader.Cache, stored: Stored) -> None:
    archive = stored.take_archive(cache)
    _flip(archive)
    with loader.Cache(cache.folder) as other:
        assert list(other.verify()) == [stored.digest]
        assert not archive.exists()

    assert stored.take_archive(cache).read_bytes() == stored.data
    assert cache.counters.downloads == 2
    assert cache.prune(0).removed == ()


def test_verifying_reads_untouched_archives(cache: loader.Cache, stored: Stored) -> None:
    """The disk itself can change an archive without the kernel's knowledge."""
    archive = stored.take_archive(cache)
    cache.close()
    _flip(archive)
    _forge_record(cache, stored)

    with loader.Cache(cache.folder) as other:
        assert other.archive(stored.digest, stored.nothing) == archive, "it looks as before"
        with pytest.raises(InvalidArchive):
            other.package(stored.digest, stored.nothing)
        assert _leftovers(other) == []
        assert _unpacked(other) == set()
        assert other.verify() == {stored.digest: ["its archive has changed since it was stored"]}
        assert stored.is_in(stored.take(other))


def _forge_record(cache: loader.Cache, stored: Stored) -> None:
    """Record that an archive is intact as it is now."""
    archive = _archive(cache, stored)
    record = checksums.Record.stamp(archive.parent, {stored.digest: stored.digest})
    record.save(_record(cache, stored))


def test_a_power_cut_does_not_bring_damage_back(
    cache: loader.Cache, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = stored.take(cache)
    archive, record = _archive(cache, stored), folder.parent / "record"
    _wait_for_a_tick()
    _flip(archive)
    _flip(folder / "manifest.yaml")
    synced: list[tuple[pathlib.Path, bool, bool]] = []
    sync = os.fsync

    def note_sync(file: int) -> None:
        sync(file)
        left = archive.exists(), record.exists()
        synced.append((pathlib.Path(f"/proc/self/fd/{file}").readlink(), *left))

    monkeypatch.setattr(os, "fsync", note_sync)

    assert list(cache.verify()) == [stored.digest]
    assert (cache.folder / "archives", False, True) in synced
    assert (folder.parent, False, False) in synced


def test_a_damaged_archive_is_read_once_more_before_it_is_fetched_again(
    cache: loader.Cache, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use(cache, stored)
    _wait_for_a_tick()
    _flip(_archive(cache, stored))
    read = _count_reads(monkeypatch)

    assert stored.take_archive(cache).read_bytes() == stored.data

    # Once to find the damage, and once more under the lock.
    assert read == [stored.digest] * 2


@contextlib.contextmanager
def _files_left(count: int) -> Iterator[None]:
    """Limit how many more files the process can open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Leaves numbers enough for the files to open, even if no lower number is free.
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest_descriptor() + 1 + count, hard))
    opened: list[int] = []
    try:
        with contextlib.suppress(OSError):
            while True:
                opened.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(count):
            os.close(opened.pop())
        yield
    finally:
        for file in opened:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _error_with_few_files(cache: loader.Cache, stored: Stored, count: int) -> str:
    """Return the error of verifying an intact package while few more files can be opened."""
    with _files_left(count):
        try:
            assert cache.verify(stored.digest) == {}
        except loader.CacheError as error:
            return str(error)
    return ""


def test_too_many_open_files_are_no_damage_of_an_archive(
    cache: loader.Cache, stored: Stored
) -> None:
    archive = stored.take_archive(cache)
    reported = []
    for count in range(6):
        reported += filter(None, [_error_with_few_files(cache, stored, count)])
        assert archive.read_bytes() == stored.data

    assert 0 < len(reported) < 6
    assert all("Too many open files" in each for each in reported)
    # Verifying got past the lock, to the archive.
    assert str(archive) in reported[-1]


def test_too_many_open_files_are_no_damage_of_unpacked_files(
    cache: loader.Cache, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = stored.take(cache)
    record = folder.parent / "record"
    # Otherwise the archive is the first file that cannot be opened.
    monkeypatch.setattr(ArchiveFiles, "damage", lambda *_: [])
    reported = []
    for count in range(12):
        reported += filter(None, [_error_with_few_files(cache, stored, count)])
        assert record.is_file()
        assert stored.is_in(folder)

    assert 0 < len(reported) < 12
    assert any(str(record) in each for each in reported)


@pytest.mark.parametrize("path", ["manifest.yaml", "Resources/2"])
def test_an_unpacked_file_that_cannot_be_opened_now_is_not_damaged(
    cache: loader.Cache, stored: Stored, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    folder = stored.take(cache)

    def open_others(name: Any, *args: Any, **options: Any) -> IO[Any]:
        if os.fspath(name) == f"{folder}/{path}":
            raise OSError(errno.EMFILE, "Too many open files", name)
        return open(name, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(fs, "open", open_others, raising=False)
        with pytest.raises(loader.CacheError, match=f"Too many open files: '{folder}/{path}'"):
            cache.verify()

    assert (folder.parent / "record").is_file()
    assert cache.verify() == {}


# Damage of unpacked files


def _misspell(path: pathlib.Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"Resources", b"Resourced"))


def _write_record(text: str) -> Callable[[pathlib.Path], object]:
    return lambda path: (path.parent.parent.parent / "record").write_text(text)


DAMAGES: dict[str, tuple[Callable[[pathlib.Path], object], str]] = {
    "flipped": (_flip, "Resources/2 has changed since it was stored"),
    "hidden": (_flip_and_hide, "Resources/2 has changed since it was stored"),
    "truncated": (lambda path: os.truncate(path, 1), "Resources/2 has changed since it was stored"),
    "removed": (lambda path: path.unlink(), "Resources/2 is missing"),
    "added": (lambda path: path.with_name("new").touch(), "Resources/new was added"),
    "linked": (_link, "Resources/2 is not a regular file"),
    "emptied": (lambda path: shutil.rmtree(path.parent), "Resources/4 is missing"),
    "gone": (lambda path: shutil.rmtree(path.parent.parent), "Resources/2 is missing"),
    "record": (lambda path: _misspell(path.parent.parent.parent / "record"), "is missing"),
    "record of words": (
        _write_record('{"files": {"Resources/2": ["a", "b", "c"]}, "directories": {}}'),
        "the record is not valid",
    ),
    "record of nothing": (
        _write_record('{"files": {}, "directories": {}}'),
        "the record is not valid",
    ),
    "record of an earlier version": (
        _write_record('{"Resources/2": [1, 2, "c"]}'),
        "the record is not valid",
    ),
    "record of lists": (_write_record("[" * 100_000), "the record is not valid"),
    "no record": (lambda path: os.truncate(path.parent.parent.parent / "record", 0), ""),
}


def _break(folder: pathlib.Path, damage: str) -> str:
    """Damage a package, and return how the damage is reported."""
    _wait_for_a_tick()
    break_it, reported = DAMAGES[damage]
    break_it(folder / "files" / "Resources" / "2")
    return reported


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_unpacked_again(
    cache: loader.Cache, stored: Stored, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    _use(cache, stored)
    reported = _break(_folder(cache, stored), damage)

    with caplog.at_level(logging.WARNING):
        assert cache.size >= 0
        assert stored.is_in(cache.package(stored.digest, stored.nothing))

    assert (cache.counters.downloads, cache.counters.hits) == (0, 1)
    assert "fetched" not in caplog.text
    assert stored.digest in caplog.text
    assert reported in caplog.text
    assert cache.verify() == {}


def test_damaged_files_are_read_once_more_before_they_are_unpacked_again(
    cache: loader.Cache, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use(cache, stored)
    _break(_folder(cache, stored), "flipped")
    read = _count_reads(monkeypatch)

    assert stored.is_in(cache.package(stored.digest, stored.nothing))

    # To find the damage, once more under the lock, and for the new record.
    names = [pathlib.Path(path).name for path in stored.files]
    assert sorted(read) == sorted(names * 3)


@pytest.mark.parametrize("damage", DAMAGES)
def test_verifying_finds_and_removes_damaged_files(
    cache: loader.Cache, stored: Stored, damage: str
) -> None:
    sound = Stored.named("org.sound")
    _use(cache, stored, sound)
    assert cache.verify() == {}
    reported = _break(_folder(cache, stored), damage)

    assert cache.verify(sound.digest) == {}
    damaged = cache.verify()

    assert list(damaged) == [stored.digest]
    assert reported in "; ".join(damaged[stored.digest])
    assert _unpacked(cache) == {sound.digest}
    assert cache.has(stored.digest)
    assert cache.verify() == {}
    assert stored.is_in(cache.package(stored.digest, stored.nothing))


def test_verifying_finds_changes_by_the_disk(cache: loader.Cache, stored: Stored) -> None:
    """The disk itself can change a file without the kernel's knowledge."""
    _use(cache, stored)
    folder = _folder(cache, stored)
    _flip(folder / "files" / "Resources" / "3")
    record = checksums.Record.load(folder / "record").restamped(folder / "files")
    (folder / "record").unlink()
    record.save(folder / "record")

    assert cache.verify() == {stored.digest: ["Resources/3 has changed since it was stored"]}
    assert stored.is_in(cache.package(stored.digest, stored.nothing))


def test_verifying_reports_all_damage(cache: loader.Cache, stored: Stored) -> None:
    _use(cache, stored)
    _flip(_archive(cache, stored))
    reported = _break(_folder(cache, stored), "truncated")

    assert cache.verify() == {
        stored.digest: ["its archive has changed since it was stored", reported]
    }
    assert _there(cache) == set()
    assert stored.is_in(stored.take(cache))


def test_damaged_files_in_use_stay_until_they_are_restored(
    cache: loader.Cache, stored: Stored
) -> None:
    folder = stored.take(cache)
    _flip(folder / "Resources" / "2")
    with loader.Cache(cache.folder) as other:
        assert list(other.verify()) == [stored.digest]
        assert (folder / "Resources" / "1").is_file()

        assert other.package(stored.digest, stored.nothing) == folder

    assert stored.is_in(folder)
    assert cache.verify() == {}


def test_after_verifying_a_cache_returns_intact_files(cache: loader.Cache, stored: Stored) -> None:
    folder = stored.take(cache)
    _flip(folder / "Resources" / "2")

    assert list(cache.verify()) == [stored.digest]
    assert stored.is_in(cache.package(stored.digest, stored.nothing))


def test_verifying_keeps_the_order_of_use(cache: loader.Cache) -> None:
    some = sorted((Stored.named(f"org.{name}") for name in "abc"), key=lambda one: one.digest)
    _use(cache, *some[::-1])

    assert cache.verify() == {}

    assert cache.prune(0).removed == tuple(stored.digest for stored in some[::-1])


@pytest.mark.parametrize("own", ["path", "sum"])
def test_the_record_of_another_archive_is_not_used(
    cache: loader.Cache, stored: Stored, own: str
) -> None:
    """Even if it lists the present size and time of the archive that has its name."""
    _use(cache, stored)
    _flip(_archive(cache, stored))
    other = Stored.named("org.other").digest
    record = checksums.Record.stamp(cache.folder / "archives", {stored.digest: stored.digest})
    (state,) = record.files.values()
    files = {stored.digest: state._replace(sha256=other)} if own == "path" else {other: state}
    checksums.Record(files, {}).save(_record(cache, stored))

    assert stored.take_archive(cache).read_bytes() == stored.data


@pytest.mark.parametrize("path", ["Resources", "new"])
def test_a_link_and_a_new_directory_are_damage(
    cache: loader.Cache, stored: Stored, tmp_path: pathlib.Path, path: str
) -> None:
    """A link to a directory with the same content; a directory in which files could be added."""
    folder = stored.take(cache)
    if path == "new":
        (folder / path).mkdir()
        problem = "new was added"
    else:
        (folder / path).rename(tmp_path / path)
        (folder / path).symlink_to(tmp_path / path)
        problem = "Resources is not a directory"

    assert cache.verify() == {stored.digest: [problem]}
    assert stored.is_in(stored.take(cache))


def test_a_copy_of_a_cache_is_as_good(
    cache: loader.Cache, stored: Stored, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use(cache, stored)
    shutil.copytree(cache.folder, tmp_path / "copy")
    read = _count_reads(monkeypatch)

    for _ in range(2):
        with loader.Cache(tmp_path / "copy") as copy:
            copied = copy.package(stored.digest, stored.nothing)
            assert stored.is_in(copied)
    assert len(read) == len(set(read)) == 1 + len(stored.files), "read each time"
    with loader.Cache(tmp_path / "copy") as copy:
        _flip(copied / "Resources" / "1")
        assert list(copy.verify()) == [stored.digest]


def test_a_directory_without_a_record_is_not_used(cache: loader.Cache, stored: Stored) -> None:
    stored.write(_folder(cache, stored) / "files")
    (_folder(cache, stored) / "files" / "more").touch()

    assert not cache.has(stored.digest)
    assert stored.is_in(stored.take(cache))
    assert cache.counters.downloads == 1


# Pruning


def test_the_least_recently_used_package_is_removed_first(cache: loader.Cache) -> None:
    a, b, c, d = (Stored.named(f"org.{name}") for name in "abcd")
    _use(cache, a, b, c, d, b, a)
    whole = cache.size

    pruned = cache.prune(whole - 1)
    assert pruned == cache_module.Pruned((c.digest,), whole // 4)
    assert cache.size == whole - pruned.freed
    assert cache.prune(cache.size).removed == ()
    assert cache.prune(0).removed == (d.digest, b.digest, a.digest)
    assert cache.size == 0


def test_pruning_lists_directories_once_for_all_packages(
    cache: loader.Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []

    def count(list_it: Callable[..., Any]) -> Callable[..., Any]:
        def counted(path: Any) -> Any:
            listed.append(pathlib.Path(path).name)
            return list_it(path)

        return counted

    monkeypatch.setattr(os, "listdir", count(os.listdir))
    # From Python 3.13 on, it does not call os.listdir.
    monkeypatch.setattr(pathlib.Path, "iterdir", count(pathlib.Path.iterdir))
    counts = []
    for number in (1, 10):
        some = [Stored.named(f"org.{number}.some{each}") for each in range(number)]
        _use(cache, *some)
        listed.clear()
        assert len(cache.prune(0).removed) == number
        counts.append(sorted(listed))

    assert counts[0] == counts[1]
    assert "packages" in counts[0]


def _on_disk(*files: pathlib.Path) -> int:
    return sum(-(-file.stat().st_size // 4096) * 4096 for file in files)


def test_the_size_is_what_archives_and_files_take_up_on_the_disk(cache: loader.Cache) -> None:
    stored = Stored.named("org.sized", resources=3)
    large = Stored({**stored.files, "Resources/large": random.Random(1).randbytes(10_000)})
    stored.take_archive(cache)
    large.take_archive(cache)
    archives = _on_disk(_archive(cache, stored), _archive(cache, large))
    assert cache.size == archives > 2 * 4096

    stored.take(cache)

    files = [path for path in _folder(cache, stored).rglob("files/**/*") if path.is_file()]
    assert len(files) == len(stored.files)
    assert cache.size == archives + _on_disk(*files)
    cache.close()
    with loader.Cache(cache.folder) as other:
        assert other.prune(0) == cache_module.Pruned(
            (stored.digest, large.digest), archives + len(files) * 4096
        )
    assert _there(cache) == set()


def test_unpacking_makes_room(cache: loader.Cache) -> None:
    a, b = Stored.named("org.a"), Stored.named("org.b")
    for stored in (a, b):
        with loader.Cache(cache.folder) as other:
            stored.take_archive(other)

    with loader.Cache(cache.folder, max_size=cache.size) as limited:
        assert b.is_in(limited.package(b.digest, b.nothing))
        assert _there(cache) == {b.digest}


def test_storing_makes_room(cache: loader.Cache) -> None:
    a, b, c = (Stored.named(f"org.{name}") for name in "abc")
    _use(cache, a, b)

    with loader.Cache(cache.folder, max_size=cache.size) as limited:
        a.take(limited)
        c.take(limited)
        assert _there(cache) == {a.digest, c.digest}

    with loader.Cache(cache.folder, max_size=0) as limited:
        assert b.is_in(b.take(limited))
        assert _there(cache) == {b.digest}, "the new one does not fit either, but is in use"


@pytest.mark.parametrize("max_size", [10**9, 0], ids=["roomy", "full"])
def test_storing_looks_through_the_cache_rarely(
    cache: loader.Cache, monkeypatch: pytest.MonkeyPatch, max_size: int
) -> None:
    looked: list[Pruner] = []
    packages = Pruner.packages
    monkeypatch.setattr(Pruner, "packages", lambda p: looked.append(p) or packages(p))
    counts = []
    with loader.Cache(cache.folder, max_size=max_size) as limited:
        for number in range(60):
            Stored.named(f"org.some{number}").take(limited)
            counts.append(len(looked))

    # Packages in use fill the cache: it is looked through when an eighth more is there.
    assert counts[-1] == 1 if max_size else counts[-1] - counts[29] <= 7


def test_packages_that_others_store_count(cache: loader.Cache) -> None:
    limit = 8 * 4096
    with loader.Cache(cache.folder, max_size=limit) as limited:
        Stored.named("org.first").take_archive(limited)
        for number in range(20):
            with loader.Cache(cache.folder) as other:
                Stored.named(f"org.other{number}").take_archive(other)
        Stored.named("org.last").take_archive(limited)
        assert limited.size <= limit


def test_a_wrong_total_holds_until_a_cache_is_opened(cache: loader.Cache) -> None:
    """A process may be killed before it counts what it has stored."""
    _use(cache, *(Stored.named(f"org.{name}") for name in "abc"))
    size = cache.size
    for total in ("0", "", "none", "-99999999"):
        (cache.folder / "size").write_text(total)
        with loader.Cache(cache.folder, max_size=size) as limited:
            Stored.named(f"org.after{total}").take(limited)

        assert cache.size <= size


def test_pruning_forgets_the_releases_of_removed_packages(cache: loader.Cache) -> None:
    a, b = Stored.named("org.a"), Stored.named("org.b")
    _use(cache, a, b)
    first, second = (cache.folder / "resolved" / project for project in ("first", "second"))
    for project, stored in ((first, a), (first, b), (second, a)):
        project.mkdir(exist_ok=True)
        (project / f"{stored.digest}.json").touch()

    cache.prune(cache.size - 1)

    assert [path.name for path in first.iterdir()] == [f"{b.digest}.json"]
    assert not second.exists()


def test_packages_in_use_are_not_removed(cache: loader.Cache, stored: Stored) -> None:
    user = loader.Cache(cache.folder)
    stored.take(user)
    again = loader.Cache(cache.folder)
    stored.take(again)
    again.close()

    assert cache.prune(0).removed == ()
    assert user.prune(0).removed == ()
    user.close()
    assert cache.prune(0).removed == (stored.digest,)


def test_an_interrupted_removal_leaves_no_package(
    cache: loader.Cache,
    stored: Stored,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object, **__: object) -> None:
        raise Killed

    _use(cache, stored)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(Killed):
            cache.prune(0)

    assert _there(cache) == {stored.digest}
    assert not cache.has(stored.digest)
    assert cache.size == 0
    assert stored.is_in(stored.take(cache))
    assert cache.counters.downloads == 1
    assert caplog.text == ""


def test_a_package_used_while_pruning_stays(
    cache: loader.Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = Stored.named("org.a"), Stored.named("org.b")
    _use(cache, a, b)
    monkeypatch.setattr(last_used, "advance", lambda *_: _use(cache, a))

    assert cache.prune(0).removed == (b.digest,)


def test_several_prunings_at_once_remove_no_more_than_one(
    cache: loader.Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use(cache, *(Stored.named(f"org.{name}") for name in "abcdef"))
    limit = cache.size // 2
    remove = shutil.rmtree

    def remove_slowly(path: pathlib.Path, **options: Any) -> None:
        time.sleep(0.02)
        remove(path, **options)

    monkeypatch.setattr(shutil, "rmtree", remove_slowly)
    threads = [threading.Thread(target=cache.prune, args=(limit,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert cache.size == limit


def test_packages_of_a_collected_cache_stay_in_use(cache: loader.Cache, stored: Stored) -> None:
    stored.take(loader.Cache(cache.folder))
    gc.collect()

    assert cache.prune(0).removed == ()


def test_pruning_removes_incomplete_packages(cache: loader.Cache, stored: Stored) -> None:
    stored.write(_folder(cache, stored) / "files")
    (cache.folder / "staging" / stored.digest).mkdir()
    without_archive, with_record = Stored.named("org.archiveless"), Stored.named("org.recorded")
    _use(cache, without_archive)
    _archive(cache, without_archive).unlink()
    _record(cache, with_record).touch()

    assert cache.prune(10**9) == cache_module.Pruned((), 0)

    assert _there(cache) == set()
    assert _leftovers(cache) == []


def test_pruning_keeps_incomplete_packages_in_use(cache: loader.Cache, stored: Stored) -> None:
    folder = stored.take(cache)
    _archive(cache, stored).unlink()

    with loader.Cache(cache.folder) as other:
        other.prune(0)
        assert stored.is_in(folder)


def test_the_order_of_use_does_not_depend_on_the_clock(
    cache: loader.Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = [Stored.named(f"org.{name}") for name in "abcdefg"]
    year = 365 * 24 * 3600 * 10**9
    now = time.time_ns()
    for stored, then in zip(
        # Not every file system knows times after 2038.
        some,
        (now, now + 10 * year, now, now - 40 * year, 0, now + 1, now),
        strict=True,
    ):
        monkeypatch.setattr(time, "time_ns", lambda then=then: then)
        _use(cache, stored)

    assert cache.prune(0).removed == tuple(stored.digest for stored in some)


def test_a_time_in_the_future_is_overtaken(cache: loader.Cache) -> None:
    """A cache may be copied from a host whose clock is ahead."""
    a, b, c = (Stored.named(f"org.{name}") for name in "abc")
    _use(cache, a, b, c)
    future = time.time_ns() + 10**17
    os.utime(_record(cache, a), ns=(future, future))

    cache.prune(10**9)
    _use(cache, b, c)

    assert cache.prune(0).removed == (a.digest, b.digest, c.digest)


def test_storing_removes_the_files_of_killed_processes(cache: loader.Cache, stored: Stored) -> None:
    stored.write(cache.folder / "staging" / Stored.named("org.killed").digest)

    stored.take(cache)

    assert _leftovers(cache) == []


def test_pruning_removes_incomplete_packages_below_the_limit(
    cache: loader.Cache, stored: Stored
) -> None:
    stored.take(cache)
    lost = Stored.named("org.lost")
    stored.write(cache.folder / "staging" / Stored.named("org.killed").digest)
    lost.write(_folder(cache, lost) / "files")

    assert cache.prune(1024**3).removed == ()

    assert _leftovers(cache) == []
    assert _there(cache) == _unpacked(cache) == {stored.digest}


# Staging directories


def test_a_staging_directory_is_removed_at_exit(cache: loader.Cache, stored: Stored) -> None:
    with cache.staging_directory() as folder, loader.Cache(folder) as own:
        assert stored.is_in(stored.take(own))
        with cache.staging_directory():
            cache.prune(0)
        assert stored.is_in(stored.take(own)), "swept although it is used"

    assert _leftovers(cache) == []
    assert _there(cache) == set()


# Unsuitable file systems


@pytest.fixture
def mounts(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., None]]:
    """Return a function that fakes the file system of the temporary directory."""

    def mount(description: str) -> None:
        device = tmp_path.stat().st_dev
        number = f"{os.major(device)}:{os.minor(device)}"
        text = (
            f"1 1 0:1 / / rw - ext4 /dev/sda rw\n2 1 {number} / /srv rw shared:5 - {description}\n"
        )
        (tmp_path / "mountinfo").write_text(text)
        monkeypatch.setattr(locks, "_MOUNTS", tmp_path / "mountinfo")
        locks._file_system.cache_clear()

    yield mount
    locks._file_system.cache_clear()


@pytest.mark.parametrize(
    "options",
    [
        "nfs server:/srv rw,vers=3,nolock,addr=10.0.0.1,local_lock=all",
        "nfs4 server:/srv rw,vers=4.2,local_lock=posix,addr=10.0.0.1",
    ],
)
def test_nfs_with_local_locks_is_refused(
    mounts: Callable[[str], None], tmp_path: pathlib.Path, options: str
) -> None:
    mounts(options)

    with pytest.raises(loader.CacheError, match=r"do not reach other hosts.*local_lock"):
        loader.Cache(tmp_path / "cache")


def test_nfs_with_locks_is_used(
    mounts: Callable[[str], None], tmp_path: pathlib.Path, stored: Stored
) -> None:
    mounts("nfs4 server:/srv rw,vers=4.2,local_lock=none,addr=10.0.0.1")

    with loader.Cache(tmp_path / "cache") as cache:
        assert stored.is_in(stored.take(cache))


def test_a_file_system_without_locks_is_refused(
    cache: loader.Cache, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "fcntl", no_locks)
    with pytest.raises(loader.CacheError, match=r"does not support locks .*No locks available"):
        stored.take(cache)


def test_a_file_in_place_of_the_directory_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "cache").touch()

    with pytest.raises(loader.CacheError, match=f"{tmp_path}/cache"):
        loader.Cache(tmp_path / "cache")


# Threads


@pytest.mark.parametrize("stored_before", [False, True])
def test_threads_fetch_and_unpack_a_package_once(
    tmp_path: pathlib.Path, stored: Stored, monkeypatch: pytest.MonkeyPatch, stored_before: bool
) -> None:
    shared = loader.Cache(tmp_path / "cache")
    if stored_before:
        _use(shared, stored)
        shutil.rmtree(_folder(shared, stored))
    fetched, unpacked, found = [], [], []
    barrier = threading.Barrier(16, timeout=60)
    unpack = Archive.unpack

    def fetch() -> Iterator[bytes]:
        fetched.append(1)
        yield stored.data

    def unpack_and_count(archive: Archive, target: pathlib.Path) -> None:
        unpacked.append(1)
        unpack(archive, target)

    monkeypatch.setattr(Archive, "unpack", unpack_and_count)

    def load(number: int) -> None:
        own = loader.Cache(tmp_path / "cache") if number % 2 else shared
        barrier.wait()
        found.append(stored.is_in(own.package(stored.digest, fetch)))
        if own is not shared:
            own.close()

    threads = [threading.Thread(target=load, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert fetched == ([] if stored_before else [1])
    assert unpacked == [1]
    assert found == [True] * 16
    assert shared.prune(0).removed == ()
    shared.close()
