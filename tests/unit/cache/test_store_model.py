# SPDX-License-Identifier: Apache-2.0

"""Pruning and unpacking, against a list of packages in the order of their use."""

import contextlib
import pathlib
import random
import tempfile
from unittest import mock

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import loader
from loader import fs
from loader.cache import last_used
from tests import effort
from tests.unit.stored import Stored


def _on_disk(*contents: bytes) -> int:
    return sum(-(-len(content) // 4096) * 4096 for content in contents)


PACKAGES = [
    Stored(
        {
            **Stored.named(f"org.model{number}", resources=number).files,
            "Resources/random": random.Random(number).randbytes(number * 3000),
        }
    )
    for number in range(5)
]
ARCHIVE_SIZES = {stored.digest: _on_disk(stored.data) for stored in PACKAGES}
FILE_SIZES = {stored.digest: _on_disk(*stored.files.values()) for stored in PACKAGES}
USERS = range(3)
YEAR = 365 * 24 * 3600 * 10**9


class Pruning(RuleBasedStateMachine):
    """Some users of a cache, a clock that jumps, and the expected packages on the disk."""

    def __init__(self) -> None:
        super().__init__()
        self._resources = contextlib.ExitStack()
        memory = pathlib.Path("/dev/shm")
        where = memory if memory.is_dir() else None
        self._folder = self._resources.enter_context(tempfile.TemporaryDirectory(dir=where))
        # The files are in memory, where fsync only takes time.
        self._resources.enter_context(mock.patch.object(fs.os, "fsync"))
        self._now = 40 * YEAR
        self._resources.enter_context(
            mock.patch.object(last_used.time, "time_ns", side_effect=lambda: self._now)
        )
        self._caches = {user: loader.Cache(self._folder) for user in USERS}
        self._using: dict[int, set[str]] = {user: set() for user in USERS}
        self._kept: dict[int, set[str]] = {user: set() for user in USERS}
        self._there: list[str] = []  # by their last use
        self._unpacked: set[str] = set()

    def teardown(self) -> None:
        for cache in self._caches.values():
            cache.close()
        self._resources.close()

    @rule(user=st.sampled_from(USERS), stored=st.sampled_from(PACKAGES))
    def use(self, user: int, stored: Stored) -> None:
        cache = self._caches[user]
        downloads = cache.counters.downloads
        assert stored.take_archive(cache).read_bytes() == stored.data

        assert cache.counters.downloads - downloads == (stored.digest not in self._there)
        self._is_used(user, stored)

    @rule(user=st.sampled_from(USERS), stored=st.sampled_from(PACKAGES))
    def unpack(self, user: int, stored: Stored) -> None:
        cache = self._caches[user]
        downloads = cache.counters.downloads
        assert stored.is_in(stored.take(cache))

        assert cache.counters.downloads - downloads == (stored.digest not in self._there)
        self._is_used(user, stored)
        self._unpacked.add(stored.digest)

    @rule(user=st.sampled_from(USERS), some=st.sets(st.sampled_from(PACKAGES), min_size=1))
    def store(self, user: int, some: set[Stored]) -> None:
        in_order = sorted(some, key=lambda stored: stored.digest)
        missing = [stored for stored in in_order if stored.digest not in self._there]

        assert Stored.store(self._caches[user], *in_order) == {one.digest for one in missing}

        # Existing packages are kept from now on, but only archive() uses them.
        self._kept[user].update(stored.digest for stored in some)
        for stored in missing:
            self._is_used(user, stored)

    def _size(self, digest: str) -> int:
        return ARCHIVE_SIZES[digest] + FILE_SIZES[digest] * (digest in self._unpacked)

    def _is_used(self, user: int, stored: Stored) -> None:
        self._kept[user].add(stored.digest)
        if stored.digest not in self._using[user]:
            self._using[user].add(stored.digest)
            self._there = [digest for digest in self._there if digest != stored.digest]
            self._there.append(stored.digest)

    @rule(user=st.sampled_from(USERS))
    def start_anew(self, user: int) -> None:
        self._caches[user].close()
        self._caches[user] = loader.Cache(self._folder)
        self._using[user].clear()
        self._kept[user].clear()

    @rule(by=st.integers(-30 * YEAR, 30 * YEAR))
    def turn_the_clock(self, by: int) -> None:
        self._now = max(self._now + by, 0)

    @rule()
    def wait(self) -> None:
        self._now += 10**9

    @precondition(lambda self: self._there)
    @rule(user=st.sampled_from(USERS), share=st.floats(0, 1))
    def prune(self, user: int, share: float) -> None:
        in_use = set().union(*self._kept.values())
        size = sum(map(self._size, self._there))
        limit = int(size * share)
        expected = []
        for digest in self._there:
            if size > limit and digest not in in_use:
                expected.append(digest)
                size -= self._size(digest)

        pruned = self._caches[user].prune(limit)

        assert list(pruned.removed) == expected
        assert pruned.freed == sum(map(self._size, expected))
        self._there = [digest for digest in self._there if digest not in expected]
        self._unpacked.difference_update(expected)

    @invariant()
    def all_is_there(self) -> None:
        folder = pathlib.Path(self._folder)
        assert {path.name for path in (folder / "archives").iterdir()} == set(self._there)
        assert {path.name for path in (folder / "records").iterdir()} == set(self._there)
        assert {path.name for path in (folder / "packages").iterdir()} == self._unpacked
        size = sum(map(self._size, self._there))
        assert self._caches[0].size == size
        running_total = folder / "size"
        # The first pruning measures the cache.
        assert not running_total.exists() or int(running_total.read_text()) == size


TestPruning = Pruning.TestCase
TestPruning.settings = settings(max_examples=effort.RUNS, stateful_step_count=30)
