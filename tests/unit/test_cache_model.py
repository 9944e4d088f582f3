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

"""Pruning, against a list of packages in the order of their use."""

import contextlib
import pathlib
import tempfile
from unittest import mock

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine
from hypothesis.stateful import invariant
from hypothesis.stateful import precondition
from hypothesis.stateful import rule

import loader
from loader import records
from loader import uses
from tests.unit.stored import Stored

PACKAGES = [Stored.named(f"org.model{number}", resources=number) for number in range(5)]
SIZES = {
    stored.digest: sum(-(-len(data) // 4096) * 4096 for data in stored.files.values())
    for stored in PACKAGES
}
USERS = range(3)
YEAR = 365 * 24 * 3600 * 10**9


class Pruning(RuleBasedStateMachine):
    """Some users of one cache, a clock that jumps, and what must lie on the disk."""

    def __init__(self) -> None:
        super().__init__()
        self._resources = contextlib.ExitStack()
        memory = pathlib.Path("/dev/shm")
        where = memory if memory.is_dir() else None
        self._folder = self._resources.enter_context(tempfile.TemporaryDirectory(dir=where))
        # Whoever counts on fsync here waits for a disk that is not there.
        self._resources.enter_context(mock.patch.object(records.os, "fsync"))
        self._now = 40 * YEAR
        self._resources.enter_context(
            mock.patch.object(uses.time, "time_ns", side_effect=lambda: self._now)
        )
        self._caches = {user: loader.Cache(self._folder) for user in USERS}
        self._using: dict[int, set[str]] = {user: set() for user in USERS}
        self._there: list[str] = []  # by their last use

    def teardown(self) -> None:
        for cache in self._caches.values():
            cache.close()
        self._resources.close()

    @rule(user=st.sampled_from(USERS), stored=st.sampled_from(PACKAGES))
    def use(self, user: int, stored: Stored) -> None:
        cache = self._caches[user]
        downloads = cache.counters.downloads
        stored.take(cache)

        assert cache.counters.downloads - downloads == (stored.digest not in self._there)
        if stored.digest not in self._using[user]:
            self._using[user].add(stored.digest)
            self._there = [digest for digest in self._there if digest != stored.digest]
            self._there.append(stored.digest)

    @rule(user=st.sampled_from(USERS))
    def start_anew(self, user: int) -> None:
        self._caches[user].close()
        self._caches[user] = loader.Cache(self._folder)
        self._using[user].clear()

    @rule(by=st.integers(-30 * YEAR, 30 * YEAR))
    def turn_the_clock(self, by: int) -> None:
        self._now = max(self._now + by, 0)

    @rule()
    def wait(self) -> None:
        self._now += 10**9

    @precondition(lambda self: self._there)
    @rule(user=st.sampled_from(USERS), share=st.floats(0, 1))
    def prune(self, user: int, share: float) -> None:
        in_use = set().union(*self._using.values())
        size = sum(SIZES[digest] for digest in self._there)
        limit = int(size * share)
        expected = []
        for digest in self._there:
            if size > limit and digest not in in_use:
                expected.append(digest)
                size -= SIZES[digest]

        pruned = self._caches[user].prune(limit)

        assert list(pruned.removed) == expected
        assert pruned.freed == sum(SIZES[digest] for digest in expected)
        self._there = [digest for digest in self._there if digest not in expected]

    @invariant()
    def all_is_there(self) -> None:
        packages = pathlib.Path(self._folder, "packages")
        assert {path.name for path in packages.iterdir()} == set(self._there)
        assert self._caches[0].size == sum(SIZES[digest] for digest in self._there)


TestPruning = Pruning.TestCase
TestPruning.settings = settings(deadline=None, max_examples=50, stateful_step_count=30)
