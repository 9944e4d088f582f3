# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The package store on disk: what it keeps, mends, removes and refuses."""

import errno
import fcntl
import gc
import itertools
import logging
import os
import pathlib
import shutil
import stat
import threading
import time
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import pytest

import loader
from glare_murano.package import InvalidArchive
from glare_murano.package import Limits
from loader import cache as cache_module
from loader import locks
from loader import records
from loader.workspaces import Workspaces
from tests.unit.stored import Stored


@pytest.fixture
def cache(tmp_path: pathlib.Path) -> Iterator[loader.Cache]:
    with loader.Cache(tmp_path / "cache") as cache:
        yield cache


@pytest.fixture
def stored() -> Stored:
    return Stored.named("org.stored", resources=5)


def _folder(cache: loader.Cache, stored: Stored) -> pathlib.Path:
    return cache.folder / "packages" / stored.digest


def _use(cache: loader.Cache, *some: Stored) -> None:
    """Use packages for a while, one after the other."""
    for stored in some:
        with loader.Cache(cache.folder) as other:
            stored.take(other)


def _there(cache: loader.Cache) -> set[str]:
    return {path.name for path in (cache.folder / "packages").iterdir()}


def _leftovers(cache: loader.Cache) -> list[pathlib.Path]:
    return list((cache.folder / "partial").iterdir())


# What is kept


def test_a_package_is_fetched_once_and_found_later(cache: loader.Cache, stored: Stored) -> None:
    folder = stored.take(cache)
    assert stored.take(cache) == folder
    with loader.Cache(cache.folder) as another:
        assert another.package(stored.digest, stored.nothing) == folder

    assert stored.is_in(folder)
    assert (cache.counters.downloads, cache.counters.hits) == (1, 1)
    assert (another.counters.downloads, another.counters.hits) == (0, 1)
    assert _leftovers(cache) == []


def test_nobody_else_can_read_or_change_what_is_kept(cache: loader.Cache, stored: Stored) -> None:
    stored.take(cache)

    folders = [path for path in cache.folder.iterdir() if path.is_dir()]
    assert len(folders) == 2
    for folder in (cache.folder, _folder(cache, stored), *folders):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in cache.folder.rglob("*"):
        assert not path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def test_a_folder_that_everybody_can_write_to_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)

    with pytest.raises(loader.CacheError, match="others can write to it"):
        loader.Cache(tmp_path / "cache")


@pytest.mark.parametrize("digest", ["", "0" * 63, "A" * 64, "../" + "0" * 61, "0" * 64 + "\n"])
def test_what_is_no_digest_is_refused(cache: loader.Cache, stored: Stored, digest: str) -> None:
    with pytest.raises(loader.DigestMismatch, match="no SHA-256"):
        cache.package(digest, stored.nothing)
    with pytest.raises(loader.DigestMismatch, match="no SHA-256"):
        cache.verify(digest)


def test_a_closed_cache_gives_nothing(cache: loader.Cache, stored: Stored) -> None:
    stored.take(cache)
    cache.close()
    cache.close()

    with pytest.raises(loader.CacheError, match="closed"):
        stored.take(cache)


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
def test_a_failed_download_keeps_its_own_words(
    cache: loader.Cache, stored: Stored, failure: Exception
) -> None:
    def fetch() -> Iterator[bytes]:
        yield stored.data[:100]
        raise failure

    with pytest.raises(type(failure)) as told:
        cache.package(stored.digest, fetch)

    assert told.value is failure
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

    assert all(stored.is_in(cache.package(stored.digest, stored.nothing)) for stored in some)
    assert cache.counters.downloads == len(some)
    assert _leftovers(cache) == []
    with loader.Cache(cache.folder) as other:
        assert Stored.store(other, *some) == set()
        assert other.prune(0).removed == ()


def test_what_is_wrong_among_them_is_left_out(cache: loader.Cache, some: list[Stored]) -> None:
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
    cache.store(digests, lambda _: arriving)

    assert _there(cache) == {first.digest, third.digest}
    assert _leftovers(cache) == []
    assert second.is_in(second.take(cache))
    assert fourth.is_in(fourth.take(cache))
    with pytest.raises(InvalidArchive, match="path-escape"):
        hostile.take(cache)


def test_what_others_fetch_is_left_to_them(cache: loader.Cache, some: list[Stored]) -> None:
    first, *others = some

    def fetch() -> Iterator[bytes]:
        with loader.Cache(cache.folder) as other:
            assert Stored.store(other, *some) == {stored.digest for stored in others}
        yield first.data

    assert first.is_in(cache.package(first.digest, fetch))
    assert _there(cache) == {stored.digest for stored in some}


def test_what_breaks_off_leaves_nothing(cache: loader.Cache, some: list[Stored]) -> None:
    def fetch(digests: object) -> Iterator[tuple[str, bytes]]:
        yield some[0].digest, some[0].data
        raise ConnectionResetError("reset")

    with pytest.raises(ConnectionResetError):
        cache.store([stored.digest for stored in some], fetch)

    assert _there(cache) == set()
    assert _leftovers(cache) == []
    assert Stored.store(cache, *some) == {stored.digest for stored in some}


def test_what_others_have_stored_meanwhile_is_not_fetched(
    cache: loader.Cache, some: list[Stored], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = Workspaces.lock_those_free

    def lock_late(workspaces: Workspaces, names: list[str]) -> Any:
        monkeypatch.undo()
        _use(cache, *some[:2])
        return lock(workspaces, names)

    monkeypatch.setattr(Workspaces, "lock_those_free", lock_late)

    assert Stored.store(cache, *some) == {stored.digest for stored in some[2:]}


def _open_files() -> int:
    return len(list(pathlib.Path("/proc/self/fd").iterdir()))


def test_one_open_file_locks_all(cache: loader.Cache, some: list[Stored]) -> None:
    before = _open_files()
    most = 0

    def fetch(digests: object) -> Iterator[tuple[str, bytes]]:
        nonlocal most
        for stored in some:
            most = max(most, _open_files() - before)
            yield stored.digest, stored.data

    cache.store([stored.digest for stored in some], fetch)

    assert most == 1


def test_to_be_stored_together_is_a_use(cache: loader.Cache, some: list[Stored]) -> None:
    first, second, third, _ = some
    _use(cache, first)
    with loader.Cache(cache.folder) as other:
        Stored.store(other, second, third)
    _use(cache, second)

    assert cache.prune(cache.size * 2 // 3).removed == (first.digest,)


def test_packages_that_were_stored_together_make_room(
    tmp_path: pathlib.Path, some: list[Stored]
) -> None:
    with loader.Cache(tmp_path, max_size=1) as cache:
        Stored.store(cache, *some[:2])
        assert cache.prune(0).removed == ()
    with loader.Cache(tmp_path, max_size=1) as cache:
        Stored.store(cache, *some[2:])
        assert _there(cache) == {stored.digest for stored in some[2:]}


# What the disk is told, and when


def test_all_of_several_is_on_the_disk_before_the_first_appears(
    cache: loader.Cache, some: list[Stored], monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[pathlib.Path] = set()
    appeared: list[str] = []
    sync, rename = os.fsync, os.rename

    def record_sync(file: int) -> None:
        sync(file)
        synced.add(pathlib.Path(f"/proc/self/fd/{file}").readlink())

    def record_rename(source: pathlib.Path, target: pathlib.Path) -> None:
        if pathlib.Path(target).parent == cache.folder / "packages":
            if not appeared:
                made = cache.folder / "partial"
                needed = {
                    path for path in made.rglob("*") if path.parent != made or any(path.iterdir())
                }
                assert needed <= synced
                assert len(needed) > len(some) * 10
                synced.clear()
            appeared.append(pathlib.Path(target).name)
        rename(source, target)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "rename", record_rename)
    Stored.store(cache, *some)

    assert sorted(appeared) == sorted(stored.digest for stored in some)
    assert synced == {cache.folder / "packages"}


def test_all_is_on_the_disk_before_it_appears(
    cache: loader.Cache, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut between any two of these calls leaves a whole package, or none."""
    events: list[tuple[str, pathlib.Path]] = []
    sync, rename = os.fsync, os.rename

    def record_sync(file: int) -> None:
        sync(file)
        events.append(("sync", pathlib.Path(f"/proc/self/fd/{file}").readlink()))

    def record_rename(source: pathlib.Path, target: pathlib.Path) -> None:
        if pathlib.Path(target).parent == cache.folder / "packages":
            made = pathlib.Path(source)
            needed = {made, *made.rglob("*")}
            events.append(("rename", made))
            assert needed <= {path for _, path in events}
            assert {made / "record", made / "files" / "Resources" / "4"} <= needed
        rename(source, target)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "rename", record_rename)
    stored.take(cache)

    assert [kind for kind, _ in events[-2:]] == ["rename", "sync"]
    assert events[-1][1] == cache.folder / "packages"


def test_what_cannot_be_written_out_is_no_package(
    cache: loader.Cache, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync
    count = itertools.count()

    def fail(number: int) -> Callable[[int], None]:
        def fail_once(file: int) -> None:
            if next(count) == number:
                raise OSError(errno.EIO, "the disk is broken")
            sync(file)

        return fail_once

    for number in range(8):
        for take, told in (
            (stored.take, stored.digest),
            (lambda cache: Stored.store(cache, stored), "store packages"),
        ):
            count = itertools.count()
            monkeypatch.setattr(os, "fsync", fail(number))
            with pytest.raises(loader.CacheError, match=f"{told}.*the disk is broken"):
                take(cache)
            assert _there(cache) == set()
            assert _leftovers(cache) == []


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


def _misspell(path: pathlib.Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"Resources", b"Resourced"))


def _record(text: str) -> Callable[[pathlib.Path], object]:
    return lambda path: (path.parent.parent.parent / "record").write_text(text)


DAMAGES: dict[str, tuple[Callable[[pathlib.Path], object], str]] = {
    "flipped": (_flip, "Resources/2 is not what was unpacked"),
    "hidden": (_flip_and_hide, "Resources/2 is not what was unpacked"),
    "truncated": (lambda path: os.truncate(path, 1), "Resources/2 is not what was unpacked"),
    "removed": (lambda path: path.unlink(), "Resources/2 is missing"),
    "added": (lambda path: path.with_name("new").touch(), "Resources/new was added"),
    "linked": (_link, "Resources/2 cannot be read"),
    "emptied": (lambda path: shutil.rmtree(path.parent), "Resources/4 is missing"),
    "gone": (lambda path: shutil.rmtree(path.parent.parent), "No such file"),
    "record": (lambda path: _misspell(path.parent.parent.parent / "record"), "is missing"),
    "record of words": (
        _record('{"files": {"Resources/2": ["a", "b", "c"]}, "folders": {}}'),
        "is no record",
    ),
    "record of nothing": (_record('{"files": {}, "folders": {}}'), "is no record"),
    "record of an earlier version": (_record('{"Resources/2": [1, 2, "c"]}'), "is no record"),
    "record of lists": (_record("[" * 100_000), "is no record"),
    "no record": (lambda path: os.truncate(path.parent.parent.parent / "record", 0), ""),
}


def _break(folder: pathlib.Path, damage: str) -> str:
    """Damage a package, and give the words that tell it."""
    # The kernel's times of change are as coarse as its ticks, of which there are 100 a second.
    time.sleep(0.02)
    break_it, told = DAMAGES[damage]
    break_it(folder / "files" / "Resources" / "2")
    return told


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_package_is_fetched_again(
    cache: loader.Cache, stored: Stored, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    _use(cache, stored)
    told = _break(_folder(cache, stored), damage)

    with caplog.at_level(logging.WARNING):
        assert cache.size >= 0
        assert stored.is_in(stored.take(cache))

    assert cache.counters.downloads == 1
    assert stored.digest in caplog.text
    assert told in caplog.text
    assert cache.verify() == {}


@pytest.mark.parametrize("damage", DAMAGES)
def test_verifying_finds_and_removes_what_is_damaged(
    cache: loader.Cache, stored: Stored, damage: str
) -> None:
    sound = Stored.named("org.sound")
    _use(cache, stored, sound)
    assert cache.verify() == {}
    told = _break(_folder(cache, stored), damage)

    assert cache.verify(sound.digest) == {}
    damaged = cache.verify()

    assert list(damaged) == [stored.digest]
    assert told in "; ".join(damaged[stored.digest])
    assert _there(cache) == {sound.digest}
    assert cache.verify() == {}


def test_verifying_finds_what_the_disk_has_changed(cache: loader.Cache, stored: Stored) -> None:
    """Nobody has written to the file, as far as the kernel knows."""
    _use(cache, stored)
    folder = _folder(cache, stored)
    _flip(folder / "files" / "Resources" / "3")
    record = records.Record.load(folder / "record").restamped(folder / "files")
    (folder / "record").unlink()
    record.save(folder / "record")

    assert cache.verify() == {stored.digest: ["Resources/3 is not what was unpacked"]}
    assert stored.is_in(stored.take(cache))


def test_a_damaged_package_stays_with_who_uses_it_until_it_is_mended(
    cache: loader.Cache, stored: Stored
) -> None:
    folder = stored.take(cache)
    _flip(folder / "Resources" / "2")
    with loader.Cache(cache.folder) as other:
        assert list(other.verify()) == [stored.digest]
        assert (folder / "Resources" / "1").is_file()

        assert stored.take(other) == folder
        assert other.counters.downloads == 1

    assert stored.is_in(folder)
    assert cache.verify() == {}


def test_a_copy_of_a_cache_is_as_good(
    cache: loader.Cache, stored: Stored, tmp_path: pathlib.Path
) -> None:
    _use(cache, stored)
    shutil.copytree(cache.folder, tmp_path / "copy")

    with loader.Cache(tmp_path / "copy") as copy:
        copied = copy.package(stored.digest, stored.nothing)
        assert stored.is_in(copied)
        record = records.Record.load(copied.parent / "record")
        assert record.untouched(copied), "the files are read each time"
        _flip(copied / "Resources" / "1")
        assert list(copy.verify()) == [stored.digest]


def test_a_folder_without_a_record_is_no_package(cache: loader.Cache, stored: Stored) -> None:
    stored.write(_folder(cache, stored) / "files")

    assert stored.is_in(stored.take(cache))
    assert cache.counters.downloads == 1


# Pruning


def test_what_was_not_used_for_longest_is_removed_first(cache: loader.Cache) -> None:
    a, b, c, d = (Stored.named(f"org.{name}") for name in "abcd")
    _use(cache, a, b, c, d, b, a)
    whole = cache.size

    pruned = cache.prune(whole - 1)
    assert pruned == cache_module.Pruned((c.digest,), whole // 4)
    assert cache.size == whole - pruned.freed
    assert cache.prune(cache.size).removed == ()
    assert cache.prune(0).removed == (d.digest, b.digest, a.digest)
    assert cache.size == 0


def test_the_size_is_what_the_files_take_up_on_the_disk(cache: loader.Cache) -> None:
    stored = Stored.named("org.sized", resources=3)
    stored.take(cache)

    files = [path.stat() for path in cache.folder.rglob("files/**/*") if path.is_file()]
    assert cache.size == sum(-(-file.st_size // 4096) * 4096 for file in files)


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


def test_what_is_in_use_is_not_removed(cache: loader.Cache, stored: Stored) -> None:
    user = loader.Cache(cache.folder)
    stored.take(user)
    again = loader.Cache(cache.folder)
    stored.take(again)
    again.close()

    assert cache.prune(0).removed == ()
    assert user.prune(0).removed == ()
    user.close()
    assert cache.prune(0).removed == (stored.digest,)


def test_a_removal_that_is_cut_short_leaves_no_package(
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
    assert cache.size == 0
    assert stored.is_in(stored.take(cache))
    assert caplog.text == ""


def test_what_was_used_while_pruning_had_begun_stays(
    cache: loader.Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = Stored.named("org.a"), Stored.named("org.b")
    _use(cache, a, b)
    monkeypatch.setattr(cache._clock, "catch_up", lambda _: _use(cache, a))

    assert cache.prune(0).removed == (b.digest,)


def test_those_who_prune_at_once_remove_no_more_than_one_would(
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


def test_what_is_in_use_stays_when_the_cache_is_forgotten(
    cache: loader.Cache, stored: Stored
) -> None:
    stored.take(loader.Cache(cache.folder))
    gc.collect()

    assert cache.prune(0).removed == ()


def test_pruning_removes_what_is_no_package_any_more(cache: loader.Cache, stored: Stored) -> None:
    stored.write(_folder(cache, stored) / "files")
    (cache.folder / "partial" / stored.digest).mkdir()

    cache.prune(10**9)

    assert _there(cache) == set()
    assert _leftovers(cache) == []


def test_order_is_kept_whatever_the_clock_does(
    cache: loader.Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = [Stored.named(f"org.{name}") for name in "abcdefg"]
    year = 365 * 24 * 3600 * 10**9
    now = time.time_ns()
    for stored, then in zip(
        some, (now, now + 70 * year, now, now - 40 * year, 0, now + 1, now), strict=True
    ):
        monkeypatch.setattr(time, "time_ns", lambda then=then: then)
        _use(cache, stored)

    assert cache.prune(0).removed == tuple(stored.digest for stored in some)


def test_a_time_in_the_future_is_soon_an_old_one(cache: loader.Cache) -> None:
    """As where a cache was copied, or its clock put right by hand."""
    a, b, c = (Stored.named(f"org.{name}") for name in "abc")
    _use(cache, a, b, c)
    future = time.time_ns() + 10**18
    os.utime(_folder(cache, a) / "record", ns=(future, future))

    cache.prune(10**9)
    _use(cache, b, c)

    assert cache.prune(0).removed == (a.digest, b.digest, c.digest)


def test_storing_removes_what_killed_processes_have_left(
    cache: loader.Cache, stored: Stored
) -> None:
    stored.write(cache.folder / "partial" / Stored.named("org.killed").digest)

    stored.take(cache)

    assert _leftovers(cache) == []


# A folder for one task


def test_a_workspace_is_gone_afterwards(cache: loader.Cache, stored: Stored) -> None:
    with cache.workspace() as folder, loader.Cache(folder) as own:
        assert stored.is_in(stored.take(own))
        with cache.workspace():
            cache.prune(0)
        assert stored.is_in(stored.take(own)), "swept although it is used"

    assert _leftovers(cache) == []
    assert _there(cache) == set()


# File systems that do not do


@pytest.fixture
def mounts(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., None]]:
    """Lets the folder for temporary files be on another file system."""

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
def test_nfs_whose_locks_reach_no_other_host_is_refused(
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
    with pytest.raises(loader.CacheError, match=r"has no locks: .*No locks available"):
        stored.take(cache)


def test_a_file_is_no_folder(tmp_path: pathlib.Path) -> None:
    (tmp_path / "cache").touch()

    with pytest.raises(loader.CacheError, match=f"{tmp_path}/cache"):
        loader.Cache(tmp_path / "cache")


# Threads


def test_threads_that_ask_at_once_fetch_once(tmp_path: pathlib.Path, stored: Stored) -> None:
    shared = loader.Cache(tmp_path / "cache")
    fetched, found = [], []
    barrier = threading.Barrier(16)

    def fetch() -> Iterator[bytes]:
        fetched.append(1)
        yield stored.data

    def ask(number: int) -> None:
        own = loader.Cache(tmp_path / "cache") if number % 2 else shared
        barrier.wait()
        found.append(stored.is_in(own.package(stored.digest, fetch)))
        if own is not shared:
            own.close()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert fetched == [1]
    assert found == [True] * 16
    assert shared.prune(0).removed == ()
    shared.close()
