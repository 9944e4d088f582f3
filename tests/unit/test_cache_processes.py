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

"""The package store among many processes, some of which are killed, and on bad disks."""

import contextlib
import json
import multiprocessing
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable
from collections.abc import Iterator
from typing import IO
from typing import Any

import pytest

import loader
from tests.unit.stored import Stored

ROOT = pathlib.Path(__file__).parents[2]
FORK = multiprocessing.get_context("fork")
KILLS = 500
NOBODY = 65534


@pytest.fixture
def memory(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A folder in memory, where there is one: it waits for no disk."""
    shared = pathlib.Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else tmp_path) as folder:
        yield pathlib.Path(folder)


@contextlib.contextmanager
def _forked(work: Callable[..., object], *arguments: object) -> Iterator[Any]:
    """Run a function in another process, which is killed in the end."""
    process = FORK.Process(target=work, args=arguments)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def _in_another_process(work: Callable[..., object], *arguments: object) -> None:
    """Run a function in another process; what it asserts must hold."""
    process = FORK.Process(target=work, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == 0


def _partial(folder: pathlib.Path) -> list[pathlib.Path]:
    return list((folder / "partial").iterdir())


# Killed


def test_killed_at_any_moment_it_leaves_nothing_that_is_used(
    memory: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept, stored = Stored.named("org.kept"), Stored.named("org.killed", resources=30)
    with loader.Cache(memory) as cache:
        kept.take(cache)
    moments = random.Random(2016)
    fetched = unfinished = 0

    for _ in range(KILLS):
        with _forked(_store_and_remove, memory, kept, stored):
            time.sleep(moments.uniform(0, 0.025))
        unfinished += bool(_partial(memory))
        with loader.Cache(memory) as cache:
            assert stored.is_in(stored.take(cache))
            assert kept.is_in(cache.package(kept.digest, kept.nothing))
            fetched += cache.counters.downloads
            assert not (cache.counters.downloads and _partial(memory))

    assert "damaged" not in caplog.text
    # They were killed before, in and after the work.
    assert unfinished > KILLS / 50
    assert KILLS / 50 < fetched < KILLS


def _store_and_remove(folder: pathlib.Path, kept: Stored, stored: Stored) -> None:
    with loader.Cache(folder) as user:
        kept.take(user)
        while True:
            with loader.Cache(folder) as cache:
                stored.take(cache)
            user.prune(0)


def test_killed_while_it_stores_several_it_leaves_nothing_that_is_used(
    memory: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    some = [Stored.named(f"org.several{number}", resources=8) for number in range(4)]
    moments = random.Random(2017)
    counts = set()
    unfinished = 0

    for _ in range(KILLS // 5):
        with _forked(_store_and_remove_all, memory, some):
            time.sleep(moments.uniform(0, 0.05))
        unfinished += bool(_partial(memory))
        with loader.Cache(memory) as cache:
            for stored in some:
                assert stored.is_in(stored.take(cache))
            counts.add(cache.counters.downloads)
            assert not (cache.counters.downloads and _partial(memory))

    assert "damaged" not in caplog.text
    assert unfinished > KILLS / 250
    assert {0, len(some)} <= counts


def _store_and_remove_all(folder: pathlib.Path, some: list[Stored]) -> None:
    with loader.Cache(folder) as user:
        while True:
            with loader.Cache(folder) as cache:
                Stored.store(cache, *some)
            user.prune(0)


def test_what_a_killed_process_used_can_be_removed(tmp_path: pathlib.Path) -> None:
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


def test_who_waits_takes_over_from_who_is_killed(tmp_path: pathlib.Path) -> None:
    stored = Stored.named("org.taken")
    ready = FORK.Event()

    def stall() -> Iterator[bytes]:
        yield stored.data[:100]
        ready.set()
        signal.pause()

    found: list[pathlib.Path] = []
    with loader.Cache(tmp_path) as cache:
        with _forked(lambda: loader.Cache(tmp_path).package(stored.digest, stall)):
            assert ready.wait(30)
            thread = threading.Thread(target=lambda: found.append(stored.take(cache)))
            thread.start()
            thread.join(0.2)
            assert found == []
        thread.join()

        assert stored.is_in(found[0])
        assert _partial(tmp_path) == []


def test_a_forked_process_keeps_what_its_parent_had(tmp_path: pathlib.Path) -> None:
    stored = Stored.named("org.inherited")
    parent, other = loader.Cache(tmp_path), loader.Cache(tmp_path)
    stored.take(parent)

    with other:
        with _forked(signal.pause):
            parent.close()
            assert other.prune(0).removed == ()
        assert other.prune(0).removed == (stored.digest,)


def test_the_workspace_of_a_killed_process_is_removed(tmp_path: pathlib.Path) -> None:
    ready = FORK.Event()
    with loader.Cache(tmp_path) as cache:
        with _forked(_work, tmp_path, ready):
            assert ready.wait(30)
            with cache.workspace():
                assert len(_partial(tmp_path)) == 2
        with cache.workspace():
            assert len(_partial(tmp_path)) == 1


def _work(folder: pathlib.Path, ready: Any) -> None:
    with loader.Cache(folder).workspace() as workspace:
        (workspace / "something").touch()
        ready.set()
        signal.pause()


# Many at once


def test_processes_and_their_threads_fetch_each_package_once(tmp_path: pathlib.Path) -> None:
    some = [Stored.named(f"org.many{number}", resources=3) for number in range(6)]
    barrier = FORK.Barrier(16)

    processes = [
        FORK.Process(target=_load_all, args=(tmp_path, some, barrier, seed)) for seed in range(16)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()

    assert [process.exitcode for process in processes] == [0] * 16
    for stored in some:
        assert (tmp_path / f"fetched-{stored.digest}").read_bytes() == b"."


def _load_all(folder: pathlib.Path, some: list[Stored], barrier: Any, seed: int) -> None:
    results = []

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


def test_pruning_never_takes_what_engines_use(memory: pathlib.Path) -> None:
    some = [Stored.named(f"org.busy{number}", resources=3) for number in range(5)]
    removed = FORK.Value("i", 0)
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(_forked(_prune_always, memory, removed))
        engines = [
            stack.enter_context(_forked(_load_and_look, memory, some, seed)) for seed in range(6)
        ]
        for engine in engines:
            engine.join()

    assert [engine.exitcode for engine in engines] == [0] * len(engines)
    assert removed.value > len(some)


def _prune_always(folder: pathlib.Path, removed: Any) -> None:
    with loader.Cache(folder) as cache:
        while True:
            removed.value += len(cache.prune(0).removed)


def _load_and_look(folder: pathlib.Path, some: list[Stored], seed: int) -> None:
    choice = random.Random(seed)
    for _ in range(25):
        with loader.Cache(folder, max_size=choice.choice([0, 10**5, 10**6])) as cache:
            chosen = choice.sample(some, 2)
            found = [stored.take(cache) for stored in chosen]
            time.sleep(choice.uniform(0, 0.01))
            for stored, path in zip(chosen, found, strict=True):
                assert stored.is_in(path)


def _python(code: str, *arguments: object, before: tuple[str, ...] = ()) -> Any:
    """Run a program in an interpreter of its own, and read what it prints."""
    command = [*before, sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)]
    done = subprocess.run(
        [*command, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_green_threads_that_ask_at_once_fetch_once_and_let_others_run(
    tmp_path: pathlib.Path,
) -> None:
    """As in the engine, where waiting for another process must not stop the worker."""
    ready, go_on = FORK.Event(), FORK.Event()
    other = Stored.named("org.other")

    def stall() -> Iterator[bytes]:
        ready.set()
        go_on.wait()
        yield other.data

    with _forked(lambda: loader.Cache(tmp_path / "cache").package(other.digest, stall)):
        assert ready.wait(30)
        timer = threading.Timer(2, go_on.set)
        timer.start()
        result = _python(
            """
            import eventlet
            eventlet.monkey_patch()
            import json, sys
            from loader import Cache
            from tests.unit.stored import Stored

            ticks, fetched = [], []

            def tick():
                while True:
                    ticks.append(1)
                    eventlet.sleep(0.01)

            def fetch(stored):
                fetched.append(stored.digest)
                for piece in stored.fetch():
                    eventlet.sleep(0.01)
                    yield piece

            def ask(stored):
                with Cache(sys.argv[1]) as cache:
                    path = cache.package(stored.digest, lambda: fetch(stored))
                    return stored.is_in(path)

            eventlet.spawn(tick)
            some = [Stored.named("org.other"), Stored.named("org.green")]
            found = list(eventlet.GreenPool(40).imap(ask, some * 20))
            print(json.dumps([found, fetched, len(ticks)]))
            """,
            tmp_path / "cache",
        )
        timer.join()

    found, fetched, ticks = result
    assert found == [True] * 40
    assert fetched == [Stored.named("org.green").digest]
    assert ticks > 50


# Bad disks


def _on_a_full_disk(buffering: int, dir: object) -> IO[bytes]:
    return open("/dev/full", "r+b", buffering=buffering)


def test_a_full_disk_is_told_with_what_is_free_and_where(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = Stored.named("org.full")
    with loader.Cache(tmp_path) as cache:
        with monkeypatch.context() as patch:
            patch.setattr(tempfile, "TemporaryFile", _on_a_full_disk)
            with pytest.raises(loader.CacheError) as told:
                stored.take(cache)

        for word in (stored.digest, str(tmp_path), "No space left on device", "bytes and"):
            assert word in str(told.value)
        assert list((tmp_path / "packages").iterdir()) == []
        assert _partial(tmp_path) == []
        assert stored.is_in(stored.take(cache))


def test_what_cannot_be_unpacked_leaves_nothing(tmp_path: pathlib.Path) -> None:
    """A limit of the kernel for single files, which every user can set."""
    _in_another_process(_store_below_a_limit, tmp_path)


def _store_below_a_limit(folder: pathlib.Path) -> None:
    large = Stored({**Stored.named("org.large").files, "Resources/large": b"\0" * 10**5})
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
    with loader.Cache(folder) as cache:
        with pytest.raises(loader.CacheError, match=f"{large.digest}.*File too large"):
            large.take(cache)
        assert list((folder / "packages").iterdir()) == []
        assert _partial(folder) == []
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        assert large.is_in(large.take(cache))


def _can_mount() -> bool:
    """Whether this machine lets us have mounts of our own."""
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
        told = {}

        def attempt(name, work):
            try:
                work()
            except loader.CacheError as error:
                left = len(list((folder / "partial").iterdir()))
                told[name] = [str(error), left, len(list((folder / "packages").iterdir()))]

        with loader.Cache(folder) as cache:
            small.take(cache)
            for name, files in others.items():
                large = Stored({**small.files, **files})
                attempt(name, lambda: large.take(cache))
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        with loader.Cache(folder) as cache:
            assert small.is_in(cache.package(small.digest, small.nothing))
            attempt("missing", lambda: large.take(cache))
            attempt("prune", lambda: cache.prune(0))
            attempt("verify", cache.verify)
        print(json.dumps(told))
        """,
        tmp_path,
        before=("unshare", "-rm"),
    )

    assert sorted(result) == ["download", "late", "missing", "prune", "unpack", "verify"]
    for name in ("download", "unpack", "late"):
        text, left, packages = result[name]
        assert "No space left on device" in text
        assert f"; on {tmp_path}, " in text
        assert (left, packages) == (0, 1)
    for name in ("missing", "prune", "verify"):
        assert "Read-only file system" in result[name][0]


def test_a_folder_that_cannot_be_written_can_be_read() -> None:
    # Not in a folder of pytest's, which only its own user can enter.
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        _in_another_process(_read_only, folder / "cache")
        _in_another_process(_writable, folder / "cache")


def _read_only(folder: pathlib.Path) -> None:
    kept, missing = Stored.named("org.there"), Stored.named("org.missing")
    with loader.Cache(folder) as cache:
        kept.take(cache)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
    if os.geteuid() == 0:
        # No rule holds for root.
        os.setresuid(NOBODY, NOBODY, NOBODY)
    with loader.Cache(folder) as cache:
        assert kept.is_in(cache.package(kept.digest, kept.nothing))
        assert cache.size > 0
        with pytest.raises(loader.CacheError, match=f"{missing.digest}.*Permission denied"):
            missing.take(cache)
        with pytest.raises(loader.CacheError, match=r"Permission denied"):
            cache.prune(0)


def _writable(folder: pathlib.Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
