# SPDX-License-Identifier: Apache-2.0

"""Define the interface of catalogues, in which the loader searches for releases of packages."""

import abc
import itertools
import pathlib
from collections.abc import Callable, Collection, Iterable
from typing import Protocol, TypeVar

from glare_murano.resolver import PackageVersion
from glare_murano.wire import Answer, Query, Release
from loader.counters import Counters


class Catalog(abc.ABC):
    """A source of releases for a project; it returns the active releases that the project can see.

    If several projects have released the same version, the project's own release comes first, then
    a public one, then the others. The loader uses the first release that the rules in
    ``glare_murano.eligibility`` allow.

    :ivar name: the catalogue's name in messages. Each name has its own offline index, so catalogues
        with different content must have different names.
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
        """The number of requests and downloads that the catalogue has made."""
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
        """Return all releases that define direct subclasses of the given classes, in any order.

        By default, none are returned: not every catalogue knows the base classes in its packages.

        :raises CatalogError: if the catalogue cannot be read.
        """
        return ()

    def releases_of(self, fqns: Collection[str]) -> Iterable[Release]:
        """Return all releases of several packages.

        If several releases have the same version, the preferred release comes first.

        A resolver calls this first for the packages that a query requires, then for the packages
        that these require, and so on.

        :raises CatalogError: if the catalogue cannot be read.
        """
        return itertools.chain.from_iterable(map(self.releases, fqns))

    def resolve(self, query: Query) -> Answer | None:
        """Choose all releases that a query requires, by the rules of ``glare_murano.resolver``.

        :returns: None if the catalogue cannot choose releases itself. Then the loader chooses them,
            and reads the releases with several calls of ``releases_of``.
        :raises CatalogError: if the catalogue does not answer.
        """
        return None

    def directory(self, release: Release) -> pathlib.Path | None:
        """Return the directory of a release whose files are unpacked on this host.

        :returns: None if the release is an archive, which has to be fetched.
        """
        return None

    def remedy(self, missing: str) -> str:
        """Return, for a message, what a user can do if something is missing in the catalogue.

        :param missing: what is missing, such as ``a version in the range``.
        """
        return f"publish {missing}"

    @abc.abstractmethod
    def fetch(self, release: Release) -> Iterable[bytes]:
        """Yield the archive of a release, piece by piece.

        :raises CatalogError: if the download fails, at any point.
        """

    def check(self, release: Release, read: Callable[[], Release]) -> None:  # noqa: B027
        """Compare a loaded package with its release in the catalogue.

        The caller has already checked the digest of the archive. By default, nothing is compared.

        :param release: the release in the catalogue.
        :param read: a function that reads the loaded package, and returns a release with the
            requirements and classes of this package.
        :raises LoaderError: if the package differs from the release.
        """

    def close(self) -> None:  # noqa: B027
        """Close the connections that only this catalogue uses; by default, there are none."""

    def batch(self, releases: Collection[Release]) -> Iterable[tuple[Release, bytes]]:
        """Send one request for several archives, and yield each arriving archive with its release.

        Archives may be left out; the caller fetches them one by one. By default, nothing is
        yielded.

        :raises CatalogError: if the download fails, at any point.
        """
        return ()


def newest_first(releases: Iterable[Release]) -> list[Release]:
    """Sort releases, the newest first; equal versions stay in the same order."""
    return sorted(releases, key=lambda r: r.version.precedence_key, reverse=True)


class Owned(Protocol):
    """An object that belongs to a project, such as a release."""

    @property
    def owner(self) -> str | None: ...


_Owned = TypeVar("_Owned", bound=Owned)


def own_first(found: Iterable[_Owned], project: str | None) -> list[_Owned]:
    """Return the objects that a project owns, and then the others, each in the given order."""
    return sorted(found, key=lambda each: each.owner != project)


def one_of_each(releases: Iterable[Release]) -> Collection[Release]:
    """Return the first release for each package name and version; the order stays the same."""
    found: dict[PackageVersion, Release] = {}
    for release in releases:
        found.setdefault(release.key, release)
    return found.values()
