# SPDX-License-Identifier: Apache-2.0

"""The time for each package of small and large closures.

A figure compares closures of 100 and 500 packages with one of 10. Packages are small:
what grows with the closure is not hidden by reading files.
"""

import functools
import logging
import pathlib
from collections.abc import Callable, Collection, Iterable, Iterator

from benchmarks.measure import Figure, scratch, seconds
from glare_murano.wire import Release
from loader import Cache, CatalogUnavailable, DirectoryCatalog, OfflineIndex, PackageLoader
from loader.catalogs.base import Catalog
from tests import packages

_SMALL = 10
_LARGE = (100, 500)
_BRANCHES = 4
_ROUNDS = 3
_GOALS = {"warm": 1, "offline": 1}
_GOAL = 1.4

_Load = Callable[[], object]


def warm() -> Iterator[Figure]:
    """Load from a full cache."""

    def prepare(catalog: Catalog, count: int) -> _Load:
        cache = scratch()
        _load(catalog, Cache(cache), count)
        return lambda: _load(catalog, Cache(cache), count)

    yield from _figures("warm", prepare)


def limited() -> Iterator[Figure]:
    """Unpack into caches with a limit: one with room, and one full of packages in use."""
    for name, size in (("a limit", 2**40), ("a limit that is exceeded", 1)):

        def prepare(catalog: Catalog, count: int, size: int = size) -> _Load:
            return lambda: _load(catalog, Cache(scratch(), max_size=size), count, unpack=True)

        yield from _figures(f"unpacked, cache with {name}", prepare)


def offline() -> Iterator[Figure]:
    """Load from the offline index."""

    def prepare(catalog: Catalog, count: int) -> _Load:
        catalogs = [_Switched(catalog)]
        cache = scratch()

        def load() -> None:
            shared = Cache(cache)
            _load(catalogs, shared, count, OfflineIndex(catalogs, shared, project_id=None))

        load()
        catalogs[0].is_down = True
        return load

    logging.getLogger("loader.offline").addFilter(lambda record: False)
    yield from _figures("offline", prepare)


def _figures(name: str, prepare: Callable[[Catalog, int], _Load]) -> Iterator[Figure]:
    """Compare the least times a package."""
    loads = {count: prepare(_catalog(count), count) for count in (_SMALL, *_LARGE)}
    times = {count: min(seconds(load) for _ in range(_ROUNDS)) for count, load in loads.items()}
    goal = _GOALS.get(name, _GOAL)
    for count in _LARGE:
        value = times[count] / count / (times[_SMALL] / _SMALL)
        yield Figure(f"a package of {count} / of {_SMALL}, {name}", value, "times", goal)


class _Switched(Catalog):
    """A catalogue that can be made unreachable, which no directory is."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__("the directory")
        self._catalog = catalog
        self.is_down = False

    def releases(self, fqn: str) -> Iterable[Release]:
        return self._reached().releases(fqn)

    def releases_defining(self, class_name: str) -> Iterable[Release]:
        return self._reached().releases_defining(class_name)

    def releases_of(self, fqns: Collection[str]) -> Iterable[Release]:
        return self._reached().releases_of(fqns)

    def fetch(self, release: Release) -> Iterable[bytes]:
        return self._reached().fetch(release)

    def _reached(self) -> Catalog:
        if self.is_down:
            raise CatalogUnavailable(f"{self.name} is down")
        return self._catalog


@functools.cache
def _catalog(count: int) -> Catalog:
    """Return a catalogue of packages, each of which requires some of the next."""
    directory = scratch()
    for number in range(count):
        first = _BRANCHES * number + 1
        required = range(first, min(first + _BRANCHES, count))
        archive = packages.package(_name(number), Require=dict.fromkeys(map(_name, required), "1"))
        (directory / f"{number}.zip").write_bytes(archive)
    (directory / "core.zip").write_bytes(packages.package("io.murano", "0.1.0"))
    return DirectoryCatalog(directory)


def _name(number: int) -> str:
    return f"org.bench.Small{number}"


def _load(
    catalogs: Catalog | Collection[Catalog],
    cache: Cache,
    count: int,
    offline_index: OfflineIndex | None = None,
    unpack: bool = False,
) -> None:
    with PackageLoader(catalogs, cache, offline_index=offline_index) as package_loader:
        found = package_loader.load_all(_name(0))
        # Beside the core library.
        assert len(found) == count + 1
        if unpack:
            for package in found:
                assert pathlib.Path(package.source_directory).is_dir()


BENCHMARKS = (warm, limited, offline)
