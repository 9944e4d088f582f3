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
import pathlib
from collections.abc import Iterable
from collections.abc import Mapping

from glare_murano.package import Version
from glare_murano.package import VersionSpec
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
    :param folder: where it lies unpacked already; None if it is to be
        fetched.
    """

    fqn: str
    version: Version
    requirements: Mapping[str, VersionSpec]
    classes: frozenset[str]
    reference: str
    digest: str = ""
    folder: pathlib.Path | None = None

    def __str__(self) -> str:
        return f"{self.fqn} {self.version}"


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

    @abc.abstractmethod
    def fetch(self, release: Release) -> Iterable[bytes]:
        """The archive of a release whose ``folder`` is None, piece by piece.

        :raises CatalogError: if it cannot be fetched, also in the middle.
        """
