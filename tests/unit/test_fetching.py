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

"""Several archives at once, from a catalogue that makes them wait for each other."""

import hashlib
import pathlib
import threading
from collections.abc import Iterable
from collections.abc import Iterator

import pytest

import loader
from glare_murano.package import Version
from loader.catalogs.base import Catalog
from loader.catalogs.base import Release
from loader.resolution import Choice
from tests import packages

WORKERS = 4


class _Meeting(Catalog):
    """A catalogue whose downloads go on when so many have begun."""

    def __init__(self, archives: dict[str, bytes]) -> None:
        super().__init__("a meeting")
        self._archives = archives
        self._barrier = threading.Barrier(WORKERS, timeout=20)
        self.most = 0
        self._running = 0
        self._guard = threading.Lock()

    def releases(self, fqn: str) -> Iterable[Release]:
        data = self._archives[fqn]
        digest = hashlib.sha256(data).hexdigest()
        return [Release(fqn, Version("1.0.0"), {}, frozenset(), fqn, digest)]

    def releases_defining(self, class_name: str) -> Iterable[Release]:
        return []

    def fetch(self, release: Release) -> Iterator[bytes]:
        with self._guard:
            self._running += 1
            self.most = max(self.most, self._running)
        self._barrier.wait()
        yield self._archives[release.fqn]
        with self._guard:
            self._running -= 1


@pytest.fixture
def catalog() -> _Meeting:
    names = [f"org.package{number}" for number in range(2 * WORKERS)]
    return _Meeting({name: packages.package(name) for name in names})


def test_archives_travel_together(catalog: _Meeting, tmp_path: pathlib.Path) -> None:
    with loader.Cache(tmp_path) as cache:
        fetcher = loader.Fetcher(cache, WORKERS)
        choices = [
            Choice(catalog, release, ())
            for name in catalog._archives
            for release in catalog.releases(name)
        ]

        fetcher.prefetch(choices)

        assert catalog.most == WORKERS
        assert cache.counters.downloads == 2 * WORKERS
        assert all(cache.has(choice.release.digest) for choice in choices)
        fetcher.prefetch(choices)
        assert cache.counters.downloads == 2 * WORKERS


def test_what_fails_ahead_is_told_when_it_is_loaded(
    catalog: _Meeting, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(release: Release) -> Iterator[bytes]:
        raise loader.CatalogError(f"{release} is lost")
        yield b""

    monkeypatch.setattr(catalog, "fetch", fail)
    with loader.Cache(tmp_path) as cache:
        fetcher = loader.Fetcher(cache, WORKERS)
        choices = [
            Choice(catalog, release, ())
            for name in list(catalog._archives)[:2]
            for release in catalog.releases(name)
        ]
        fetcher.prefetch(choices)

        for choice in choices:
            with pytest.raises(loader.CatalogError, match=f"{choice.release} is lost"):
                fetcher.folder(choice)
