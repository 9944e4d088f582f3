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

"""What a catalogue is: the interface that the loader asks, and its answers."""

import abc
import dataclasses
import itertools
import pathlib
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

from glare_murano.package import Version
from glare_murano.package import VersionSpec
from glare_murano.package import closure
from loader.counters import Counters


@dataclasses.dataclass(frozen=True)
class Release:
    """One version of a package, as a catalogue knows it.

    :param fqn: the package's fully qualified name.
    :param requirements: FQN -> range, the implicit ones included.
    :param classes: names of the classes that it defines.
    :param reference: what the catalogue itself finds it by.
    :param digest: the SHA-256 of its archive, in hexadecimal; empty where
        ``folder`` is set.
    :param size: of its archive, in bytes; None where it is not known.
    :param folder: where it lies unpacked already; None if it is to be
        fetched.
    """

    fqn: str
    version: Version
    requirements: Mapping[str, VersionSpec]
    classes: frozenset[str]
    reference: str
    digest: str = ""
    size: int | None = None
    folder: pathlib.Path | None = None

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

    :param releases: each release with the demands that it answers.
    :param unsatisfied: ranges that no version is in.
    :param undefined: classes that no package defines.
    """

    releases: tuple[tuple[Release, tuple[closure.Demand, ...]], ...]
    unsatisfied: tuple[closure.Unsatisfied, ...] = ()
    undefined: tuple[Undefined, ...] = ()


class Catalog(abc.ABC):
    """Where releases are found. Only what can be used at once is found.

    :ivar name: what messages call it.
    :ivar counters: what asking it has cost.
    """

    name: str

    def __init__(self, name: str) -> None:
        self.name = name
        self.counters = Counters()

    @abc.abstractmethod
    def newest(self, fqn: str, spec: VersionSpec) -> Release | None:
        """The newest release of a package in a range, or None.

        :raises CatalogError: if the catalogue cannot tell.
        """

    @abc.abstractmethod
    def newest_defining(self, class_name: str, spec: VersionSpec) -> Release | None:
        """The newest release in a range of a package that defines a class, or None.

        :raises CatalogError: if the catalogue cannot tell.
        """

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

        :raises CatalogError: if the catalogue cannot tell.
        """
        return itertools.chain.from_iterable(map(self.releases, fqns))

    def resolve(self, query: Query) -> Answer | None:
        """The whole closure of a query, by the rule of ``glare_murano.package.closure``.

        :returns: None if the catalogue cannot tell it by itself, and is to be
            asked a level at a time.
        :raises CatalogError: if the catalogue does not answer.
        """
        return None

    @abc.abstractmethod
    def fetch(self, release: Release) -> Iterable[bytes]:
        """The archive of a release whose ``folder`` is None, piece by piece.

        :raises CatalogError: if it cannot be fetched, also in the middle.
        """
