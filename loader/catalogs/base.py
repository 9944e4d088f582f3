# SPDX-License-Identifier: Apache-2.0

"""The interface of catalogues, in which the loader searches for releases of packages."""

import abc
import itertools
import pathlib
from collections.abc import Callable, Collection, Iterable
from typing import Protocol, TypeVar

from glare_murano.resolver import PackageVersion
from glare_murano.wire import Answer, Query, Release
from loader.counters import Counters


class Catalog(abc.ABC):
    """A source of releases that may be loaded: active, and visible to the project.

    Several projects may have released the same version. Then the project's own release comes
    first, then a public one, then others. The loader uses the first release that the rules of
    ``eligibility`` allow.

    :ivar name: its name in messages. Catalogues with different content have
        different names, since each name has its own offline index.
    :ivar gives_batches: whether ``batch`` may return archives.
    """

    gives_batches = False

    def __init__(self, name: str) -> None:
        self.name = name
        self._counters = Counters()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name}>"

    @property
    def counters(self) -> Counters:
        """The number of requests and downloads so far."""
        return self._counters

    @abc.abstractmethod
    def releases(self, fqn: str) -> Iterable[Release]:
        """Return all releases of a package, the newest first.

        :raises CatalogError: if the catalogue cannot be read.
        """

    @abc.abstractmethod
    def releases_defining(self, class_name: str) -> Iterable[Release]:
        """Return all releases that define a class, the newest first.

        :raises CatalogError: if the catalogue cannot be read.
        """

    def releases_extending(self, class_names: Collection[str]) -> Iterable[Release]:
        """Return all releases that have direct subclasses of classes, in any order.

        By default, return no releases: not every catalogue has the base classes of its packages.

        :raises CatalogError: if the catalogue cannot be read.
        """
        return ()

    def releases_of(self, fqns: Collection[str]) -> Iterable[Release]:
        """Return all releases of several packages; the best release of each version comes first.

        The resolver calls this once for each level of the dependency graph.

        :raises CatalogError: if the catalogue cannot be read.
        """
        return itertools.chain.from_iterable(map(self.releases, fqns))

    def resolve(self, query: Query) -> Answer | None:
        """Return the closure for a query, by the rules of ``glare_murano.resolver``.

        :returns: None if the catalogue cannot plan by itself; then the loader plans, and reads
            the releases of one level of the graph after the other.
        :raises CatalogError: if the catalogue does not answer.
        """
        return None

    def folder(self, release: Release) -> pathlib.Path | None:
        """Return the directory with the unpacked files of a release.

        :returns: None for an archive, which has to be fetched.
        """
        return None

    def remedy(self, missing: str) -> str:
        """Return how to add something missing to the catalogue, for messages.

        :param missing: what is missing, such as ``a version in the range``.
        """
        return f"publish {missing}"

    @abc.abstractmethod
    def fetch(self, release: Release) -> Iterable[bytes]:
        """Yield the archive of a release, piece by piece.

        :raises CatalogError: if the download fails, at any point.
        """

    def check(self, release: Release, read: Callable[[], Release]) -> None:  # noqa: B027
        """Check a loaded package; its archive has the digest of the release.

        By default, only the digest has to be right.

        :param read: a function that returns the release with the package's requirements and
            classes.
        :raises LoaderError: if the package differs from the release in the catalogue.
        """

    def batch(self, releases: Collection[Release]) -> Iterable[tuple[Release, bytes]]:
        """Yield the archives of several releases with one request; some may be missing.

        :raises CatalogError: if the download fails, at any point.
        """
        return ()


def newest_first(releases: Iterable[Release]) -> list[Release]:
    """Sort releases, the newest first; equal versions keep their order."""
    return sorted(releases, key=lambda r: r.version.precedence_key, reverse=True)


class Owned(Protocol):
    """An object that belongs to a project, such as a release."""

    @property
    def owner(self) -> str | None: ...


_Owned = TypeVar("_Owned", bound=Owned)


def own_first(found: Iterable[_Owned], project: str | None) -> list[_Owned]:
    """Put the objects that a project owns before the others; otherwise keep the order."""
    return sorted(found, key=lambda each: each.owner != project)


def one_of_each(releases: Iterable[Release]) -> Collection[Release]:
    """Return the first release of each version, in the same order."""
    found: dict[PackageVersion, Release] = {}
    for release in releases:
        found.setdefault(release.key, release)
    return found.values()
