# SPDX-License-Identifier: Apache-2.0

"""Download the archives of chosen releases into the cache."""

import collections
import functools
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping

from glare_murano.package import GlareMuranoError
from glare_murano.wire import Release
from loader import concurrency, errors, progress
from loader.cache.store import Cache
from loader.catalogs.base import Catalog
from loader.formats.source import ArchiveSource, DirectorySource, PackageSource
from loader.progress import Progress, Report
from loader.resolution import Choice

LOG = logging.getLogger(__name__)

DEFAULT_WORKERS = concurrency.WORKERS

# For an archive up to this size, in bytes, a request takes longer than the download. So such
# archives are fetched in batches.
_SMALL = 256 * 1024
# The largest number of archives in a batch. All of them are locked until the batch is stored.
_BATCH_SIZE = 50


class Fetcher:
    """Fetches archives into a cache, several at once.

    >>> cache = Cache("cache")
    >>> fetcher = Fetcher(cache, report=lambda p: print(p.name))
    >>> with PackageLoader(DirectoryCatalog("packages"), cache, fetcher=fetcher) as packages:
    ...     _ = packages.load("io.murano")
    io.murano 0.1.0
    """

    def __init__(
        self,
        cache: Cache,
        workers: int = DEFAULT_WORKERS,
        report: Report = progress.ignore,
    ) -> None:
        """Make a fetcher.

        :param cache: the cache of the loader.
        :param workers: how many archives are fetched at the same time.
        :param report: a function that is called with the progress after each received piece, from
            any thread.
        """
        self._cache = cache
        self._workers = workers
        self._report = report
        self._failures: dict[tuple[Catalog, str], GlareMuranoError] = {}

    def prefetch(self, choices: Iterable[Choice]) -> None:
        """Fetch the archives of several releases that the cache lacks.

        If only one archive is missing, nothing is fetched: the archive is fetched when it is first
        read. An error other than ``CacheBusy`` is kept, and ``source`` raises it later.

        :raises CacheBusy: if another process locks an archive for too long. Then the other archives
            are not fetched, since each of them could take as long.
        """
        missing = [choice for choice in choices if self._is_missing(choice)]
        if len(missing) < 2:
            return
        for catalog, releases in _batches(missing):
            self._fetch_batch(catalog, releases)
        list(concurrency.results(self._fetch, filter(self._is_missing, missing), self._workers))

    def source(self, choice: Choice) -> PackageSource:
        """Return the files of a release; a missing archive is fetched when a file is first read.

        If an earlier ``prefetch`` has failed for the archive, its error is raised once. The next
        call returns the files, and the archive is fetched again.

        :raises LoaderError: if ``prefetch`` could not fetch the archive.
        :raises InvalidArchive: if the archive that ``prefetch`` has fetched breaks a rule.
        """
        failure = self._failures.pop(_key(choice), None)
        if failure is not None:
            # All attempts have failed, so this call reports the failure. The next call tries again.
            raise failure
        return self._source(choice)

    def _source(self, choice: Choice) -> PackageSource:
        release = choice.release
        directory = choice.catalog.directory(release)
        if directory is not None:
            return DirectorySource(directory, self._cache.limits)
        arguments = (release.digest, functools.partial(self._receive, choice), str(release))
        return ArchiveSource(
            functools.partial(self._cache.archive, *arguments),
            functools.partial(self._cache.package, *arguments),
            self._cache.limits,
        )

    def _is_missing(self, choice: Choice) -> bool:
        # A release in a directory has no digest.
        return bool(choice.release.digest) and not self._cache.has(choice.release.digest)

    def _fetch_batch(self, catalog: Catalog, releases: Mapping[str, Release]) -> None:
        """Fetch several archives with one request; the catalogue may leave some of them out.

        :param releases: a mapping of digests to releases.
        """

        def receive(digests: Collection[str]) -> Iterator[tuple[str, bytes]]:
            try:
                for release, archive in catalog.batch([releases[digest] for digest in digests]):
                    self._report(_progress(release, len(archive)))
                    yield release.digest, archive
            except errors.CatalogError as error:
                LOG.info("%s; the other archives are fetched one by one", error)

        try:
            self._cache.store(releases, receive)
        except errors.CacheBusy:
            raise
        except GlareMuranoError as error:
            # A catalogue may give an invalid digest, or the disk may be full.
            LOG.info("%s; these archives are fetched one by one", error)

    def _fetch(self, choice: Choice) -> None:
        try:
            self._source(choice).fetch()
        except errors.CacheBusy:
            raise
        except GlareMuranoError as error:
            self._failures[_key(choice)] = error

    def _receive(self, choice: Choice) -> Iterator[bytes]:
        received = 0
        for piece in choice.catalog.fetch(choice.release):
            received += len(piece)
            self._report(_progress(choice.release, received))
            yield piece


def _progress(release: Release, received: int) -> Progress:
    return Progress(str(release), received, release.size)


def _batches(choices: Iterable[Choice]) -> Iterator[tuple[Catalog, dict[str, Release]]]:
    """Yield groups of small archives that one catalogue can send together.

    :returns: pairs of the catalogue, and a mapping of digests to releases.
    """
    small: dict[Catalog, dict[str, Release]] = collections.defaultdict(dict)
    for choice in choices:
        release = choice.release
        if release.size and release.size <= _SMALL:
            small[choice.catalog][release.digest] = release
    for catalog, releases in small.items():
        items = list(releases.items())
        for start in range(0, len(items), _BATCH_SIZE):
            # Check again, since the first batch may have shown that the catalogue sends no batches.
            if catalog.gives_batches:
                yield catalog, dict(items[start : start + _BATCH_SIZE])


def _key(choice: Choice) -> tuple[Catalog, str]:
    return choice.catalog, choice.release.id
