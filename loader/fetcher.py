# SPDX-License-Identifier: Apache-2.0

"""Bringing what was chosen into the cache: several archives at once.

It knows neither ranges nor versions. How one archive travels is the
catalogue's affair, how it is kept the cache's.
"""

import collections
import concurrent.futures
import dataclasses
import functools
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from glare_murano.package import GlareMuranoError
from glare_murano.wire import Release
from loader import errors
from loader.cache.store import Cache
from loader.catalogs.base import Catalog
from loader.formats.source import ArchiveSource, DirectorySource, PackageSource
from loader.resolution import Choice

LOG = logging.getLogger(__name__)

DEFAULT_WORKERS = 4

# An archive of no more bytes takes less time than the request for it.
_SMALL = 256 * 1024
# How many of them travel together, all locked until all are stored.
_TOGETHER = 50


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a download is.

    :param received: bytes so far.
    :param total: bytes in all; None if the catalogue does not say.
    """

    release: Release
    received: int
    total: int | None


class Fetcher:
    """Fetches archives, several at once."""

    def __init__(
        self,
        cache: Cache,
        workers: int = DEFAULT_WORKERS,
        progress: Callable[[Progress], object] | None = None,
    ) -> None:
        """Make a fetcher.

        :param workers: how many archives travel at once.
        :param progress: called for each piece that arrives, from any thread.
        """
        self._cache = cache
        self._workers = workers
        self._progress = progress
        self._failures: dict[tuple[Catalog, str], GlareMuranoError] = {}

    def prefetch(self, choices: Iterable[Choice]) -> None:
        """Fetch what is not in the cache yet; what fails is told when it is loaded."""
        missing = [choice for choice in choices if not self._is_here(choice)]
        if len(missing) < 2:
            # One that is to be loaded at once.
            return
        for catalog, releases in _batches(missing):
            self._fetch_together(catalog, releases)
        missing = [choice for choice in missing if not self._is_here(choice)]
        if not missing:
            return
        with concurrent.futures.ThreadPoolExecutor(
            min(self._workers, len(missing)), thread_name_prefix="fetch"
        ) as pool:
            list(pool.map(self._try, missing))

    def source(self, choice: Choice) -> PackageSource:
        """The files of a release, whose archive is fetched when one is read, if it must be.

        :raises LoaderError: if it was to be fetched before, and could not; or
            if the catalogue cannot tell which archive it is.
        :raises InvalidArchive: if it was fetched before, and breaks a rule of safety.
        """
        failure = self._failures.pop(_place(choice), None)
        if failure is not None:
            # It was tried often enough; another call tries again.
            raise failure
        return self._source(choice)

    def _fetch_together(self, catalog: Catalog, releases: Mapping[str, Release]) -> None:
        """Fetch releases by one request; what does not come so is left out."""

        def receive(digests: Collection[str]) -> Iterator[tuple[str, bytes]]:
            try:
                for release, archive in catalog.batch([releases[digest] for digest in digests]):
                    self._tell(release, len(archive))
                    yield release.digest, archive
            except errors.CatalogError as error:
                LOG.info("%s; what is missing is fetched one by one", error)

        try:
            self._cache.store(releases, receive)
        except GlareMuranoError as error:
            # What a catalogue calls a digest may be none, and a disk full.
            LOG.info("%s; each is tried by itself", error)

    def _is_here(self, choice: Choice) -> bool:
        return not choice.release.digest or self._cache.has(choice.release.digest)

    def _try(self, choice: Choice) -> None:
        try:
            self._source(choice).fetch()
        except GlareMuranoError as error:
            self._failures[_place(choice)] = error

    def _source(self, choice: Choice) -> PackageSource:
        release = choice.release
        folder = choice.catalog.folder(release)
        if folder is not None:
            return DirectorySource(folder)
        receive = functools.partial(self._receive, choice.catalog, release)
        archive = functools.partial(self._cache.archive, release.digest, receive)
        unpacked = functools.partial(self._cache.package, release.digest, receive)
        return ArchiveSource(archive, unpacked, self._cache.limits)

    def _receive(self, catalog: Catalog, release: Release) -> Iterator[bytes]:
        received = 0
        for chunk in catalog.fetch(release):
            received += len(chunk)
            self._tell(release, received)
            yield chunk

    def _tell(self, release: Release, received: int) -> None:
        if self._progress is not None:
            self._progress(Progress(release, received, release.size))


def _batches(choices: Iterable[Choice]) -> Iterator[tuple[Catalog, dict[str, Release]]]:
    """What is to travel together: small archives of one catalogue, by their digests."""
    batches: dict[Catalog, dict[str, Release]] = collections.defaultdict(dict)
    for choice in choices:
        release = choice.release
        if release.size and release.size <= _SMALL:
            batches[choice.catalog][release.digest] = release
    for catalog, releases in batches.items():
        items = list(releases.items())
        for start in range(0, len(items), _TOGETHER):
            # Asked each time: a catalogue may find out at the first.
            if catalog.gives_batches:
                yield catalog, dict(items[start : start + _TOGETHER])


def _place(choice: Choice) -> tuple[Catalog, str]:
    return choice.catalog, choice.release.id
