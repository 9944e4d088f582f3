# SPDX-License-Identifier: Apache-2.0

"""Several archives are fetched at once, by a request for each or a batch."""

import dataclasses
import errno
import hashlib
import os
import pathlib
import random
import signal
import threading
import time
from collections.abc import Collection, Iterable, Iterator

import pytest

import loader
from glare_murano.package import Version, VersionSpec
from glare_murano.wire import Release
from loader.catalogs.base import Catalog
from loader.resolution import Choice
from tests import packages

WORKERS = 4


class _Meeting(Catalog):
    """A catalogue whose downloads continue when a number of them has begun."""

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


def test_archives_are_fetched_at_once(catalog: _Meeting, tmp_path: pathlib.Path) -> None:
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


def test_ctrl_c_does_not_wait_for_running_downloads(tmp_path: pathlib.Path) -> None:
    class Stalled(_Meeting):
        def fetch(self, release: Release) -> Iterator[bytes]:
            if release.fqn == "org.a":
                time.sleep(0.5)
                signal.pthread_kill(threading.get_ident(), signal.SIGINT)
            is_over.wait(10)
            ended.append(release.fqn)
            yield self._archives[release.fqn]

    is_over = threading.Event()
    ended: list[str] = []
    stalled = Stalled({name: packages.package(name) for name in ("org.a", "org.b")})
    choices = [Choice(stalled, r, ()) for name in stalled._archives for r in stalled.releases(name)]
    with loader.Cache(tmp_path) as cache:
        with pytest.raises(KeyboardInterrupt):
            loader.Fetcher(cache).prefetch(choices)
        assert ended == []
        is_over.set()


def test_a_failed_prefetch_is_reported_on_loading(
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
                fetcher.source(choice)


class _Batcher(Catalog):
    """A catalogue with batches, which break off after a number of archives."""

    gives_batches = True

    def __init__(self, archives: dict[str, bytes], whole: int = 1000) -> None:
        super().__init__("a batcher")
        self._archives = archives
        self._whole = whole
        self.batches: list[set[str]] = []
        self.fetched: list[str] = []

    def releases(self, fqn: str) -> Iterable[Release]:
        data = self._archives[fqn]
        digest = hashlib.sha256(data).hexdigest()
        return [Release(fqn, Version("1.0.0"), {}, frozenset(), fqn, digest, size=len(data))]

    def releases_defining(self, class_name: str) -> Iterable[Release]:
        return []

    def choices(self) -> list[Choice]:
        return [
            Choice(self, release, ()) for fqn in self._archives for release in self.releases(fqn)
        ]

    def batch(self, releases: Collection[Release]) -> Iterator[tuple[Release, bytes]]:
        self.batches.append({release.fqn for release in releases})
        for number, release in enumerate(releases):
            if number == self._whole:
                raise loader.CatalogError("the batch broke off")
            yield release, self._archives[release.fqn]

    def fetch(self, release: Release) -> Iterator[bytes]:
        self.fetched.append(release.fqn)
        yield self._archives[release.fqn]


def _archives(count: int) -> dict[str, bytes]:
    names = [f"org.package{number}" for number in range(count)]
    return {name: packages.package(name) for name in names}


def test_batches_have_a_limit(tmp_path: pathlib.Path) -> None:
    catalog = _Batcher(_archives(120))
    reported: list[loader.Progress] = []
    with loader.Cache(tmp_path) as cache:
        loader.Fetcher(cache, report=reported.append).prefetch(catalog.choices())

        assert cache.counters.downloads == 120
    assert sorted(map(len, catalog.batches)) == [20, 50, 50]
    assert catalog.fetched == []
    assert {progress.name.split()[0] for progress in reported} == catalog._archives.keys()


def test_a_catalogue_without_batches_gets_one_request_for_a_batch(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = _Batcher(_archives(120))

    def refuse(releases: Collection[Release]) -> list[tuple[Release, bytes]]:
        catalog.batches.append({release.fqn for release in releases})
        catalog.gives_batches = False
        return []

    monkeypatch.setattr(catalog, "batch", refuse)
    with loader.Cache(tmp_path) as cache:
        loader.Fetcher(cache).prefetch(catalog.choices())

    assert len(catalog.batches) == 1
    assert len(catalog.fetched) == 120


def test_archives_missing_in_a_batch_are_fetched_one_by_one(tmp_path: pathlib.Path) -> None:
    catalog = _Batcher(_archives(8), whole=5)
    with loader.Cache(tmp_path) as cache:
        loader.Fetcher(cache).prefetch(catalog.choices())

        assert all(cache.has(choice.release.digest) for choice in catalog.choices())
        assert cache.counters.downloads == 8
    assert len(catalog.fetched) == 3


def test_large_archives_are_in_no_batch(tmp_path: pathlib.Path) -> None:
    archives = _archives(3)
    content = packages.content("org.large")
    archives["org.large"] = packages.zipped({**content, "data": random.Random(1).randbytes(2**19)})
    catalog = _Batcher(archives)
    with loader.Cache(tmp_path) as cache:
        loader.Fetcher(cache).prefetch(catalog.choices())

        assert cache.counters.downloads == 4
    assert catalog.batches == [archives.keys() - {"org.large"}]
    assert catalog.fetched == ["org.large"]


def test_an_invalid_digest_is_reported_on_loading(tmp_path: pathlib.Path) -> None:
    catalog = _Batcher(_archives(3))
    first, *others = catalog.choices()
    odd = dataclasses.replace(first, release=dataclasses.replace(first.release, digest="odd"))
    with loader.Cache(tmp_path) as cache:
        fetcher = loader.Fetcher(cache)
        fetcher.prefetch([odd, *others])

        assert all(pathlib.Path(fetcher.source(choice)).is_dir() for choice in others)
        with pytest.raises(loader.DigestMismatch, match="'odd' is not a valid SHA-256"):
            fetcher.source(odd)


def test_a_full_disk_is_reported_on_loading(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: object, mode: int = 0) -> None:
        raise OSError(errno.ENOSPC, "full")

    catalog = _Batcher(_archives(3))
    with loader.Cache(tmp_path) as cache:
        fetcher = loader.Fetcher(cache)
        monkeypatch.setattr(os, "mkdir", fail)
        fetcher.prefetch(catalog.choices())
        monkeypatch.undo()

        for choice in catalog.choices():
            with pytest.raises(loader.CacheError, match=r"bytes and .* files are free"):
                fetcher.source(choice)
            assert pathlib.Path(fetcher.source(choice)).is_dir()


@pytest.mark.parametrize(("name", "version"), [("org.other", "1.0.0"), ("org.app", "1.1.0")])
def test_an_archive_of_another_package_is_refused(
    tmp_path: pathlib.Path, name: str, version: str
) -> None:
    catalog = _Batcher({"org.app": packages.package(name, version)})

    with loader.PackageLoader([catalog], loader.Cache(tmp_path)) as package_loader:
        with pytest.raises(loader.CatalogError) as refusal:
            package_loader.load("org.app", VersionSpec.of("1"))

        assert package_loader.pins.dump() == {}
    assert str(refusal.value) == (
        f"org.app 1.0.0 of a batcher cannot be loaded: its archive contains {name} {version}"
    )
