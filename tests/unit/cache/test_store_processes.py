# SPDX-License-Identifier: Apache-2.0

"""The package cache shared by processes, some of which are killed, and on bad disks."""

import collections
import contextlib
import json
import multiprocessing
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Collection, Iterator
from typing import IO, Any, TypeVar

import pytest

import loader
from glare_murano.package import Archive
from loader.cache import store as cache_module
from loader.cache.locks import LockFile
from loader.resolution import Choice
from tests import effort
from tests.unit.stored import Stored

pytestmark = pytest.mark.programs

ROOT = pathlib.Path(__file__).parents[3]
FORK = multiprocessing.get_context("fork")
NOBODY = 65534

_T = TypeVar("_T")


@pytest.fixture
def memory(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Return a temporary directory, in memory if possible, where syncs take no time."""
    shared = pathlib.Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else tmp_path) as folder:
        yield pathlib.Path(folder)


@contextlib.contextmanager
def _forked(work: Callable[..., object], *arguments: object) -> Iterator[Any]:
    """Run a function in another process, and kill the process at exit."""
    process = FORK.Process(target=work, args=arguments)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


@contextlib.contextmanager
def _working(work: Callable[..., object], *arguments: object) -> Iterator[None]:
    """Do the same, and enter only once the process has started."""
    ready = FORK.Event()

    def begin() -> None:
        ready.set()
        work(*arguments)

    with _forked(begin):
        assert ready.wait(30)
        yield


def _moments(count: int, longest: float, is_enough: Callable[[], bool]) -> Iterator[float]:
    """Yield a number of random moments, in seconds, and more until enough was seen."""
    moments = random.Random(2016)
    for number in range(10 * count):
        if number >= count and is_enough():
            return
        yield moments.uniform(0, longest)


def _seconds(action: Callable[[], object]) -> float:
    """Measure how long an action takes on this machine now."""
    start = time.monotonic()
    for _ in range(5):
        action()
    return (time.monotonic() - start) / 5


def _in_another_process(work: Callable[..., object], *arguments: object) -> None:
    """Run a function in another process; its assertions must hold."""
    process = FORK.Process(target=work, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == 0


def _at_once(
    count: int, work: Callable[..., object], folder: pathlib.Path, some: list[Stored]
) -> None:
    """Run a function in several processes, each with a number; their assertions must hold."""
    barrier = FORK.Barrier(count, timeout=60)
    processes = [
        FORK.Process(target=work, args=(folder, some, barrier, seed)) for seed in range(count)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)

    assert [process.exitcode for process in processes] == [0] * count


def _staged(folder: pathlib.Path) -> list[pathlib.Path]:
    return list((folder / "staging").iterdir())


# Killed


@pytest.mark.kills
def test_a_kill_at_any_moment_leaves_no_incomplete_package(
    memory: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept, stored = Stored.named("org.kept"), Stored.named("org.killed", resources=30)
    with loader.Cache(memory) as cache:
        kept.take(cache)
        cycle = _seconds(lambda: _store_and_remove_once(cache, memory, stored))
    killed_in: collections.Counter[str] = collections.Counter()
    kills = fetched = 0

    def is_enough() -> bool:
        """Return whether processes were killed before, in and after both kinds of work."""
        return min(killed_in["storing"], killed_in["unpacking"], fetched) > effort.KILLS / 50

    for moment in _moments(effort.KILLS, 2 * cycle, is_enough):
        with _working(_store_and_remove, memory, kept, stored):
            time.sleep(moment)
        killed_in.update(_begun(memory, stored))
        with loader.Cache(memory) as cache:
            assert stored.take_archive(cache).read_bytes() == stored.data
            assert stored.is_in(cache.package(stored.digest, stored.nothing))
            assert kept.is_in(cache.package(kept.digest, kept.nothing))
            kills += 1
            fetched += cache.counters.downloads
            assert not (cache.counters.downloads and _staged(memory))

    assert "damaged" not in caplog.text
    assert is_enough()
    assert fetched < kills


def _begun(folder: pathlib.Path, stored: Stored) -> set[str]:
    """Return the unfinished work of a killed process."""
    work = folder / "staging" / stored.digest
    return {"storing" if path.name == stored.digest else "unpacking" for path in work.glob("*")}


def _store_and_remove(folder: pathlib.Path, kept: Stored, stored: Stored) -> None:
    with loader.Cache(folder) as user:
        kept.take(user)
        while True:
            _store_and_remove_once(user, folder, stored)


def _store_and_remove_once(user: loader.Cache, folder: pathlib.Path, stored: Stored) -> None:
    def slowly() -> Iterator[bytes]:
        for piece in stored.fetch():
            time.sleep(0.0005)
            yield piece

    with loader.Cache(folder) as cache:
        cache.package(stored.digest, slowly)
    user.prune(0)


@pytest.mark.kills
def test_a_kill_while_storing_several_leaves_no_incomplete_package(
    memory: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    some = [Stored.named(f"org.several{number}", resources=8) for number in range(4)]
    with loader.Cache(memory) as cache:
        cycle = _seconds(lambda: _store_and_remove_all_once(cache, memory, some))
    counts = set()
    unfinished = 0

    def is_enough() -> bool:
        """Return whether processes were killed before, in and after storing."""
        return unfinished > effort.KILLS / 250 and {0, len(some)} <= counts

    for moment in _moments(effort.KILLS // 4, 2 * cycle, is_enough):
        with _working(_store_and_remove_all, memory, some):
            time.sleep(moment)
        unfinished += bool(_staged(memory))
        with loader.Cache(memory) as cache:
            for stored in some:
                assert stored.is_in(stored.take(cache))
            counts.add(cache.counters.downloads)
            assert not (cache.counters.downloads and _staged(memory))

    assert "damaged" not in caplog.text
    assert is_enough()


def _store_and_remove_all(folder: pathlib.Path, some: list[Stored]) -> None:
    with loader.Cache(folder) as user:
        while True:
            _store_and_remove_all_once(user, folder, some)


def _store_and_remove_all_once(
    user: loader.Cache, folder: pathlib.Path, some: list[Stored]
) -> None:
    with loader.Cache(folder) as cache:
        Stored.store(cache, *some)
    user.prune(0)


@pytest.mark.kills
def test_packages_of_a_killed_process_can_be_removed(tmp_path: pathlib.Path) -> None:
    stored = Stored.named("org.used")
    ready = FORK.Event()
    with loader.Cache(tmp_path) as cache:
        with _forked(_use, tmp_path, stored, ready):
            assert ready.wait(30)
            assert cache.prune(0).removed == ()
        assert cache.prune(0).removed == (stored.digest,)


def _use(folder: pathlib.Path, stored: Stored, ready: Any) -> None:
    stored.take(loader.Cache(folder))
    ready.set()
    signal.pause()


def _after_the_kill(work: Callable[[], object], ready: Any, take: Callable[[], _T]) -> _T:
    """Return the package of a thread that waits for a process until the process is killed."""
    got: list[_T] = []
    with _forked(work):
        assert ready.wait(30)
        thread = threading.Thread(target=lambda: got.append(take()))
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        assert got == []
    thread.join()
    (found,) = got
    return found


@pytest.mark.kills
def test_a_waiting_process_fetches_instead_of_a_killed_one(tmp_path: pathlib.Path) -> None:
    stored = Stored.named("org.taken")
    ready = FORK.Event()

    def stall() -> Iterator[bytes]:
        yield stored.data[:100]
        ready.set()
        signal.pause()

    def work() -> None:
        loader.Cache(tmp_path).package(stored.digest, stall)

    with loader.Cache(tmp_path) as cache:
        assert stored.is_in(_after_the_kill(work, ready, lambda: stored.take(cache)))
        assert _staged(tmp_path) == []


@pytest.mark.kills
def test_a_waiting_process_fetches_several_instead_of_a_killed_one(tmp_path: pathlib.Path) -> None:
    some = [Stored.named(f"org.taken{number}") for number in range(3)]
    ready = FORK.Event()

    def stall(digests: Collection[str]) -> Iterator[tuple[str, bytes]]:
        yield some[0].digest, some[0].data
        ready.set()
        signal.pause()

    def work() -> None:
        loader.Cache(tmp_path).store(dict.fromkeys(digests), stall)

    digests = [stored.digest for stored in some]
    with loader.Cache(tmp_path) as cache:
        requested = _after_the_kill(work, ready, lambda: Stored.store(cache, *some))
        assert requested == set(digests)
        assert all(cache.has(digest) for digest in digests)
        assert cache.prune(0).removed == ()
        assert _staged(tmp_path) == []


@pytest.mark.kills
def test_a_waiting_process_unpacks_instead_of_a_killed_one(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = Stored.named("org.taken")
    ready = FORK.Event()

    def stall() -> None:
        monkeypatch.setattr(Archive, "unpack", lambda *_: (ready.set(), signal.pause()))
        loader.Cache(tmp_path).package(stored.digest, stored.nothing)

    with loader.Cache(tmp_path) as cache:
        stored.take_archive(cache)
        assert stored.is_in(_after_the_kill(stall, ready, lambda: stored.take(cache)))
        assert cache.counters.downloads == 1
        assert _staged(tmp_path) == []


@contextlib.contextmanager
def _stopped_while_storing(folder: pathlib.Path, *some: Stored) -> Iterator[int]:
    """Stop a process that has locked packages to store them; yields its id."""
    ready = FORK.Event()

    def stall(digests: Collection[str]) -> Iterator[tuple[str, bytes]]:
        yield from ((stored.digest, stored.data) for stored in some)
        ready.set()
        signal.pause()

    def work() -> None:
        loader.Cache(folder).store({stored.digest: stored for stored in some}, stall)

    with _forked(work) as process:
        assert ready.wait(30)
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        yield process.pid


def test_a_stopped_process_is_named_and_waited_for_no_longer_than_allowed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("loader.cache.locks._LOG_AFTER", 0.1)
    stored = Stored.named("org.taken")
    with loader.Cache(tmp_path, lock_timeout=0.3) as cache:
        with (
            _stopped_while_storing(tmp_path, stored) as process,
            pytest.raises(loader.CacheBusy) as failure,
        ):
            cache.archive(stored.digest, stored.nothing, "org.taken 1.0.0")

        subject = "package org.taken 1.0.0"
        place = rf"locked in {tmp_path}/lock by process {process} \(.*, stopped\)"
        message = rf"^{subject} is {place} for more than 0\.3 seconds; continue or end that process"
        assert re.match(message, str(failure.value))
        (logged,) = [record.message for record in caplog.records]
        assert re.match(rf"Waiting for {subject}, which is {place}, for 0\.1 seconds", logged)
        assert stored.take_archive(cache).read_bytes() == stored.data


def test_a_stopped_process_is_named_though_the_lock_file_was_deleted(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = Stored.named("org.taken")
    cache = loader.Cache(tmp_path, lock_timeout=0.1)
    with _stopped_while_storing(tmp_path, stored) as process:
        # The first pause of the waiting process.
        monkeypatch.setattr("time.sleep", lambda _: (cache.folder / "lock").unlink(missing_ok=True))
        with pytest.raises(loader.CacheBusy, match=f"by process {process} "):
            stored.take_archive(cache)


def test_many_archives_of_a_stopped_process_are_waited_for_once(tmp_path: pathlib.Path) -> None:
    some = [Stored.named(f"org.taken{number}") for number in range(40)]
    folder = tmp_path / "packages"
    folder.mkdir()
    for number, stored in enumerate(some):
        (folder / f"{number}.zip").write_bytes(stored.data)
    catalog = loader.DirectoryCatalog(folder)
    releases = [r for n in range(40) for r in catalog.releases(f"org.taken{n}")]
    choices = [Choice(catalog, release, ()) for release in releases]
    with (
        loader.Cache(tmp_path / "cache", lock_timeout=1) as cache,
        _stopped_while_storing(tmp_path / "cache", *some),
    ):
        start = time.monotonic()
        with pytest.raises(loader.CacheBusy):
            loader.Fetcher(cache, workers=2).prefetch(choices)
        # Two workers would wait 20 seconds for all of them.
        assert time.monotonic() - start < 10


def test_pruning_waits_for_a_busy_process_once(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    some = [Stored.named(f"org.taken{number}") for number in range(5)]
    with (
        loader.Cache(tmp_path, max_size=1, lock_timeout=0.2) as cache,
        LockFile(tmp_path / "lock").exclusive("prune", "pruning"),
    ):
        for stored in some:
            stored.take_archive(cache)

    (logged,) = [record.message for record in caplog.records]
    assert f"pruning is locked in {tmp_path}/lock by process {os.getpid()} (" in logged


def test_a_forked_process_does_not_keep_the_packages_of_its_parent(tmp_path: pathlib.Path) -> None:
    stored = Stored.named("org.inherited")
    parent, other = loader.Cache(tmp_path), loader.Cache(tmp_path)
    stored.take(parent)

    with other, _working(signal.pause):
        # The end of the other process would release nothing of this one.
        assert other.prune(0).removed == ()
        parent.close()
        assert other.prune(0).removed == (stored.digest,)


def test_a_forked_process_keeps_the_packages_that_it_uses(tmp_path: pathlib.Path) -> None:
    stored = Stored.named("org.inherited")
    parent, other = loader.Cache(tmp_path), loader.Cache(tmp_path)
    stored.take(parent)
    ready = FORK.Event()

    def use() -> None:
        stored.take(parent)
        ready.set()
        signal.pause()

    with other:
        with _forked(use):
            assert ready.wait(30)
            parent.close()
            assert other.prune(0).removed == ()
        assert other.prune(0).removed == (stored.digest,)


def test_a_forked_process_has_no_open_lock_file_of_its_parent(tmp_path: pathlib.Path) -> None:
    locks = LockFile(tmp_path / "lock", timeout=0.1)
    locks.share("a", "a")

    def check() -> None:
        opened = {path.resolve() for path in pathlib.Path("/proc/self/fd").iterdir()}
        assert locks.path.resolve() not in opened
        # Those of the parent are locks of another process.
        with pytest.raises(loader.CacheBusy), locks.exclusive("a", "a"):
            pass
        with pytest.raises(loader.CacheBusy):
            locks.share("b", "b")
        assert not locks.is_shared("a")

    with locks.exclusive("b", "b"):
        _in_another_process(check)
        assert locks.is_taken("b")
    assert locks.is_shared("a")
    locks.close()
    _in_another_process(_check_closed, locks)


def _check_closed(locks: LockFile) -> None:
    with pytest.raises(loader.CacheError, match="is closed"):
        locks.share("a", "a")


@pytest.mark.kills
def test_the_staging_directory_of_a_killed_process_is_removed(tmp_path: pathlib.Path) -> None:
    ready = FORK.Event()
    with loader.Cache(tmp_path) as cache:
        with _forked(_work, tmp_path, ready):
            assert ready.wait(30)
            with cache.staging_directory():
                assert len(_staged(tmp_path)) == 2
        with cache.staging_directory():
            assert len(_staged(tmp_path)) == 1


def _work(folder: pathlib.Path, ready: Any) -> None:
    with loader.Cache(folder).staging_directory() as directory:
        (directory / "something").touch()
        ready.set()
        signal.pause()


# Many at once


def test_processes_and_their_threads_fetch_and_unpack_each_package_once(
    tmp_path: pathlib.Path,
) -> None:
    some = [Stored.named(f"org.many{number}", resources=3) for number in range(6)]

    _at_once(16, _load_all, tmp_path, some)

    for stored in some:
        assert (tmp_path / f"fetched-{stored.digest}").read_bytes() == b"."
        assert (tmp_path / f"unpacked-{stored.digest}").read_bytes() == b"."


def _load_all(folder: pathlib.Path, some: list[Stored], barrier: Any, seed: int) -> None:
    results = []
    unpack = Archive.unpack

    def unpack_and_count(archive: Archive, target: pathlib.Path) -> None:
        with open(folder / f"unpacked-{target.parent.name}", "ab") as unpacked:
            unpacked.write(b".")
        unpack(archive, target)

    # Each test process has its own class.
    Archive.unpack = unpack_and_count  # type: ignore[assignment, method-assign]

    def load(number: int) -> None:
        order = random.Random(f"{seed} {number}").sample(some, len(some))
        with loader.Cache(folder / "cache") as cache:
            together = {stored.digest: stored for stored in order[:3]}
            cache.store(
                together,
                lambda digests: ((d, b"".join(counted(together[d]))) for d in digests),
            )
            for stored in order:
                found = cache.package(stored.digest, lambda stored=stored: counted(stored))
                results.append(stored.is_in(found))

    def counted(stored: Stored) -> Iterator[bytes]:
        with open(folder / f"fetched-{stored.digest}", "ab") as fetched:
            fetched.write(b".")
        yield from stored.fetch()

    threads = [threading.Thread(target=load, args=(number,)) for number in range(2)]
    barrier.wait()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 2 * len(some)


def test_processes_that_store_the_same_packages_fetch_each_once(tmp_path: pathlib.Path) -> None:
    """Each process stores some packages of each other process, so all wait for each other."""
    some = [Stored.named(f"org.together{number}", resources=3) for number in range(12)]

    _at_once(8, _store_some, tmp_path, some)

    for stored in some:
        assert (tmp_path / f"fetched-{stored.digest}").read_bytes() == b"."


def _store_some(folder: pathlib.Path, some: list[Stored], barrier: Any, seed: int) -> None:
    start = seed * len(some) // 8
    chosen = {stored.digest: stored for stored in (some[start:] + some[:start])[:9]}

    def fetch(digests: Collection[str]) -> Iterator[tuple[str, bytes]]:
        for digest in digests:
            with open(folder / f"fetched-{digest}", "ab") as fetched:
                fetched.write(b".")
            time.sleep(0.005)
            yield digest, chosen[digest].data

    with loader.Cache(folder / "cache") as cache:
        barrier.wait()
        cache.store(chosen, fetch)
        for stored in chosen.values():
            archive = cache.archive(stored.digest, stored.nothing)
            assert archive.read_bytes() == stored.data


def test_pruning_never_removes_packages_in_use(memory: pathlib.Path) -> None:
    some = [Stored.named(f"org.busy{number}", resources=3) for number in range(5)]
    # A killed process would never release the lock of a value.
    removed = [FORK.Value("i", 0, lock=False) for _ in range(2)]
    with contextlib.ExitStack() as stack:
        for count in removed:
            stack.enter_context(_forked(_prune_always, memory, count))
        engines = [
            stack.enter_context(_forked(_load_and_look, memory, some, seed)) for seed in range(6)
        ]
        for engine in engines:
            engine.join()

    assert [engine.exitcode for engine in engines] == [0] * len(engines)
    assert sum(count.value for count in removed) > len(some)


def _prune_always(folder: pathlib.Path, count: Any) -> None:
    with loader.Cache(folder) as cache:
        while True:
            count.value += len(cache.prune(0).removed)
            # Otherwise engines that prune as well hardly get the lock.
            time.sleep(0.001)


def _load_and_look(folder: pathlib.Path, some: list[Stored], seed: int) -> None:
    choice = random.Random(seed)
    for _ in range(25):
        with loader.Cache(folder, max_size=choice.choice([0, 10**5, 10**6])) as cache:
            chosen = choice.sample(some, 2)
            archives = [stored.take_archive(cache) for stored in chosen]
            time.sleep(choice.uniform(0, 0.01))
            found = [cache.package(stored.digest, stored.nothing) for stored in chosen]
            time.sleep(choice.uniform(0, 0.01))
            for stored, path, archive in zip(chosen, found, archives, strict=True):
                assert stored.is_in(path)
                assert archive.read_bytes() == stored.data


def _python(code: str, *arguments: object, before: tuple[str, ...] = ()) -> Any:
    """Run a program in an interpreter of its own, and parse its output as JSON."""
    command = [*before, sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)]
    done = subprocess.run(
        [*command, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_green_threads_fetch_a_package_once_and_let_others_run(
    tmp_path: pathlib.Path,
) -> None:
    """In an engine, waiting for another process must not stop the worker."""
    ready, go_on = FORK.Event(), tmp_path / "go-on"
    other = Stored.named("org.other")

    def stall() -> Iterator[bytes]:
        ready.set()
        deadline = time.monotonic() + 60
        while not go_on.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        yield other.data

    with _forked(lambda: loader.Cache(tmp_path / "cache").package(other.digest, stall)):
        assert ready.wait(30)
        found, fetched, ticks = _python(
            """
            import eventlet
            eventlet.monkey_patch()
            import json, pathlib, sys
            from loader import Cache
            from tests.unit.stored import Stored

            started, ticks, fetched = [], [], []

            def tick():
                while True:
                    eventlet.sleep(0.01)
                    if len(started) == 40:
                        ticks.append(1)
                    if len(ticks) > 50:
                        # Let the other process finish only now.
                        pathlib.Path(sys.argv[2]).touch()

            def fetch(stored):
                fetched.append(stored.digest)
                for piece in stored.fetch():
                    eventlet.sleep(0.01)
                    yield piece

            def load(stored):
                started.append(stored.digest)
                with Cache(sys.argv[1]) as cache:
                    path = cache.package(stored.digest, lambda: fetch(stored))
                    return stored.is_in(path)

            eventlet.spawn(tick)
            some = [Stored.named("org.other"), Stored.named("org.green")]
            found = list(eventlet.GreenPool(40).imap(load, some * 20))
            print(json.dumps([found, fetched, len(ticks)]))
            """,
            tmp_path / "cache",
            go_on,
        )

    assert found == [True] * 40
    assert fetched == [Stored.named("org.green").digest]
    assert ticks > 50


def test_green_threads_read_from_an_archive_that_is_fetched_again(tmp_path: pathlib.Path) -> None:
    """Of a shared source, whose first reader waits for the download."""
    found, fetched = _python(
        """
        import eventlet
        eventlet.monkey_patch()
        import json, sys
        from loader import Cache
        from loader.formats.source import ArchiveSource
        from tests.unit.stored import Stored

        stored = Stored.named("org.green", resources=12)
        fetched = []

        def fetch():
            fetched.append(stored.digest)
            for piece in stored.fetch():
                eventlet.sleep(0.01)
                yield piece

        with Cache(sys.argv[1]) as cache:
            def source():
                return ArchiveSource(
                    lambda: cache.archive(stored.digest, fetch),
                    lambda: cache.package(stored.digest, fetch),
                )

            def read(path):
                return used.read(path) == other.read(path) == stored.files[path]

            used, other = source(), source()
            used.read("manifest.yaml")
            archive = cache.archive(stored.digest, fetch)
            with archive.open("r+b") as stream:
                stream.write(b"damaged")
            cache.verify()
            found = list(eventlet.GreenPool(40).imap(read, [*stored.files] * 3))
        print(json.dumps([found, fetched]))
        """,
        tmp_path,
    )

    assert found == [True] * 42
    assert len(fetched) == 2


# Bad disks


def _on_a_full_disk(*_: object, **options: object) -> IO[bytes]:
    return open("/dev/full", "r+b", buffering=0)


def test_a_full_disk_is_reported_with_its_free_space(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = Stored.named("org.full")
    with loader.Cache(tmp_path) as cache:
        with monkeypatch.context() as patch:
            patch.setattr(cache_module, "open", _on_a_full_disk, raising=False)
            for take in (stored.take, lambda cache: Stored.store(cache, stored)):
                with pytest.raises(loader.CacheError) as raised:
                    take(cache)

                for word in (stored.digest, str(tmp_path), "No space left on device", "bytes and"):
                    assert word in str(raised.value)
                assert list((tmp_path / "archives").iterdir()) == []
                assert _staged(tmp_path) == []
        assert stored.is_in(stored.take(cache))


def test_a_package_that_cannot_be_unpacked_leaves_nothing(tmp_path: pathlib.Path) -> None:
    """The kernel has a limit for the size of a file, which every user can set."""
    _in_another_process(_store_below_a_limit, tmp_path)


def _store_below_a_limit(folder: pathlib.Path) -> None:
    large = Stored({**Stored.named("org.large").files, "Resources/large": b"\0" * 10**5})
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
    with loader.Cache(folder) as cache:
        with pytest.raises(loader.CacheError, match=f"{large.digest}.*File too large"):
            large.take(cache)
        assert list((folder / "packages").iterdir()) == []
        assert _staged(folder) == []
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        assert large.is_in(cache.package(large.digest, large.nothing))


def _can_mount() -> bool:
    """Return whether this machine permits private mounts."""
    unshare = shutil.which("unshare")
    mount = [str(unshare), "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
    return bool(unshare) and not subprocess.run(mount, capture_output=True, check=False).returncode


@pytest.mark.skipif(
    not _can_mount(), reason="no mounts of one's own here; the tests above are what can be had"
)
def test_a_small_and_then_a_read_only_disk(tmp_path: pathlib.Path) -> None:
    result = _python(
        """
        import json, os, pathlib, subprocess, sys
        import loader
        from tests.unit.stored import Stored

        folder = pathlib.Path(sys.argv[1])
        mount = ["mount", "-t", "tmpfs", "-o", "size=400k,mode=700", "none", str(folder)]
        subprocess.run(mount, check=True)
        small = Stored.named("org.small", resources=2)
        others = {
            "download": {"Resources/large": os.urandom(10**6)},
            "unpack": {"Resources/large": bytes(10**6)},
            "late": {f"Resources/{n}": b"x" for n in range(200)},
        }
        reported = {}

        def attempt(name, work):
            try:
                work()
            except loader.CacheError as error:
                names = ("staging", "archives", "packages")
                reported[name] = [str(error), *(len(os.listdir(folder / name)) for name in names)]

        with loader.Cache(folder) as cache:
            small.take(cache)
            for name, files in others.items():
                large = Stored({**small.files, **files})
                attempt(name, lambda: large.take(cache))
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
        with loader.Cache(folder) as cache:
            assert small.is_in(cache.package(small.digest, small.nothing))
            archive = cache.archive(large.digest, large.nothing)
            assert archive.read_bytes() == large.data
            attempt("packed", lambda: large.take(cache))
            attempt("missing", lambda: Stored.named("org.missing").take(cache))
            attempt("prune", lambda: cache.prune(0))
            attempt("verify", cache.verify)
        print(json.dumps(reported))
        """,
        tmp_path,
        before=("unshare", "-rm"),
    )

    full, read_only = ("download", "unpack", "late"), ("packed", "missing", "prune", "verify")
    assert list(result) == [*full, *read_only]
    # An archive is kept even if its files do not fit.
    for name, archives in zip(full, (1, 2, 3), strict=True):
        text, *counts = result[name]
        assert "No space left on device" in text
        assert f"; on {tmp_path}, " in text
        assert counts == [0, archives, 1]
    for name in read_only:
        assert "Read-only file system" in result[name][0]


def test_a_read_only_directory_can_be_used() -> None:
    # Other users cannot enter the temporary directories of pytest.
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        _in_another_process(_read_only, folder / "cache")
        _in_another_process(_writable, folder / "cache")


def _read_only(folder: pathlib.Path) -> None:
    kept, missing = Stored.named("org.there"), Stored.named("org.missing")
    packed = Stored.named("org.packed")
    with loader.Cache(folder) as cache:
        kept.take(cache)
        packed.take_archive(cache)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
    if os.geteuid() == 0:
        # Permissions do not restrict root.
        os.setresuid(NOBODY, NOBODY, NOBODY)
    with loader.Cache(folder) as cache:
        assert kept.is_in(cache.package(kept.digest, kept.nothing))
        assert cache.archive(packed.digest, packed.nothing).read_bytes() == packed.data
        assert cache.size > 0
        with pytest.raises(loader.CacheError, match=f"{packed.digest}.*Permission denied"):
            packed.take(cache)
        with pytest.raises(loader.CacheError, match=f"{missing.digest}.*Permission denied"):
            missing.take(cache)
        with pytest.raises(loader.CacheError, match=r"Permission denied"):
            cache.prune(0)


def _writable(folder: pathlib.Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
