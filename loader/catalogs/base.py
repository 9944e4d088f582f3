# SPDX-License-Identifier: Apache-2.0

"""What a catalogue is: the interface that the loader asks, and its answers."""

import abc
import dataclasses
import itertools
import pathlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Self

from glare_murano import resolver
from glare_murano.package import Manifest, Version, VersionSpec
from glare_murano.package.contents import class_names
from loader.counters import Counters


@dataclasses.dataclass(frozen=True)
class Release:
    """One version of a package, as a catalogue knows it.

    :param fqn: the package's fully qualified name.
    :param requirements: FQN -> range, the implicit ones included.
    :param classes: names of the classes that it defines.
    :param reference: what the catalogue itself finds it by.
    :param digest: the SHA-256 of its archive, in hexadecimal; empty where
        ``folder`` is set, and where only ``Catalog.identified`` tells it.
    :param folder: where it lies unpacked already; None if it is to be
        fetched.
    :param size: of its archive, in bytes; None if that is not known.
    :param owner: the project that it belongs to; None where the catalogue
        knows no projects.
    :param private: whether its owner alone may use it.
    """

    fqn: str
    version: Version
    requirements: Mapping[str, VersionSpec]
    classes: frozenset[str]
    reference: str
    digest: str = ""
    folder: pathlib.Path | None = None
    size: int | None = None
    owner: str | None = None
    private: bool = False

    @classmethod
    def of(cls, manifest: Manifest, reference: str, **others: Any) -> Self:
        """The release whose manifest has been read.

        :param others: as the class has them.
        """
        return cls(
            fqn=manifest.full_name,
            version=manifest.version,
            requirements=dict(manifest.requirements),
            classes=frozenset(class_names(manifest)),
            reference=reference,
            **others,
        )

    def __str__(self) -> str:
        return f"{self.fqn} {self.version}"


@dataclasses.dataclass(frozen=True)
class Query:
    """What a deployment asks for at once.

    :param requirements: FQNs and ranges.
    :param classes: names of classes, and the ranges of their objects' headers.
    :param pins: FQN -> versions that are taken wherever they are in a range.
    """

    requirements: tuple[tuple[str, VersionSpec], ...] = ()
    classes: tuple[tuple[str, VersionSpec], ...] = ()
    pins: Mapping[str, Collection[Version]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Undefined:
    """A class that no package in a range defines.

    :param available: packages that define it, as ``FQN version``.
    """

    class_name: str
    spec: VersionSpec
    available: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Answer:
    """The closure that a query comes to.

    :param releases: each release with the demands that it answers, the first of
        them that by which it was reached.
    :param unsatisfied: ranges that no version is in.
    :param undefined: classes that no package defines.
    """

    releases: tuple[tuple[Release, tuple[resolver.Demand, ...]], ...]
    unsatisfied: tuple[resolver.Unsatisfied, ...] = ()
    undefined: tuple[Undefined, ...] = ()


class Catalog(abc.ABC):
    """Where releases are found. Only what can be used at once is found.

    Of one version of a package there is one release; where a project has one
    of its own beside a public one, it is the project's.

    :ivar name: what messages call it. No other catalogue that a project may
        have is called so, since what is remembered of it goes by its name.
    :ivar counters: what asking it has cost.
    :ivar gives_batches: whether ``batch`` is worth a try.
    """

    name: str
    gives_batches = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.counters = Counters()

    @abc.abstractmethod
    def releases(self, fqn: str) -> Iterable[Release]:
        """All releases of a package, the newest first.

        :raises CatalogError: if the catalogue cannot tell.
        """

    @abc.abstractmethod
    def releases_defining(self, class_name: str) -> Iterable[Release]:
        """All releases that define a class, the newest first.

        :raises CatalogError: if the catalogue cannot tell.
        """

    def known(self, fqns: Collection[str]) -> Iterable[Release]:
        """All releases of several packages, in any order, each version once.

        It is what planning a closure asks, a level at a time.

        :raises CatalogError: if the catalogue cannot tell.
        """
        return itertools.chain.from_iterable(map(self.releases, fqns))

    def resolve(self, query: Query) -> Answer | None:
        """The whole closure of a query, by the rule of ``glare_murano.resolver``.

        :returns: None if the catalogue cannot tell it by itself, and is to be
            asked a level at a time.
        :raises CatalogError: if the catalogue does not answer.
        """
        return None

    def identified(self, release: Release) -> Release:
        """The release with its digest, or its folder, which it may lack so far.

        A catalogue that is told no digests has to read the whole archive for
        it, and so does it for what is to be loaded only.

        :raises CatalogError: if the catalogue cannot tell.
        """
        return release

    @abc.abstractmethod
    def fetch(self, release: Release) -> Iterable[bytes]:
        """The archive of a release whose ``folder`` is None, piece by piece.

        :raises CatalogError: if it cannot be fetched, also in the middle.
        """

    def batch(self, releases: Collection[Release]) -> Iterable[tuple[Release, bytes]]:
        """The archives of releases, by one request; those that do not come are to be fetched.

        :raises CatalogError: if they cannot be fetched so, also in the middle.
        """
        return ()


def newest_first(releases: Iterable[Release]) -> list[Release]:
    """Releases in the order of ``Catalog.releases``; of one version, as they came."""
    return sorted(releases, key=lambda r: r.version.precedence_key, reverse=True)


def one_of_each(releases: Iterable[Release]) -> Iterator[Release]:
    """The first of the releases of each version."""
    seen: set[tuple[str, Version]] = set()
    for release in releases:
        key = (release.fqn, release.version)
        if key not in seen:
            seen.add(key)
            yield release
