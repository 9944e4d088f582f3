# SPDX-License-Identifier: Apache-2.0

"""Glare's database, as the API needs it: see ``service.database.Database``."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from sqlalchemy.engine import Connection

from glare_murano.glare.db import queries
from glare_murano.inheritance import ExtendingRecord
from glare_murano.resolver import PackageVersion
from glare_murano.service.database import DependentsRecord, PackageMetadata, PackageRecord, Viewer


class GlareDatabase(NamedTuple):
    """Glare's artifacts for one viewer, in the transaction of a connection."""

    connection: Connection
    viewer: Viewer

    def find_usable(
        self, column: Literal["id", "name"], values: Iterable[str], package: str | None = None
    ) -> Iterator[PackageRecord]:
        """See ``service.database.Database``, which describes all methods."""
        return queries.find_usable(self.connection, self.viewer, column, values, package)

    def find_defining(self, class_names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Find the packages that define classes."""
        return queries.find_defining(self.connection, class_names)

    def find_metadata(self, ids: Iterable[str]) -> Mapping[str, PackageMetadata]:
        """Return the metadata of packages."""
        return queries.find_metadata(self.connection, ids)

    def find_requirements(self, ids: Iterable[str]) -> Mapping[str, dict[str, str]]:
        """Return the requirements of packages."""
        return queries.find_requirements(self.connection, ids)

    def find_yanked(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the reasons of yanked packages."""
        return queries.find_yanked(self.connection, ids)

    def find_extending(self, base_names: Iterable[str]) -> Iterator[ExtendingRecord]:
        """Find packages that define direct subclasses of classes."""
        return queries.find_extending(self.connection, self.viewer, base_names)

    def find_candidates(self, names: Iterable[str]) -> Iterator[PackageRecord]:
        """Find packages that may satisfy requirements."""
        return queries.find_candidates(self.connection, names)

    def find_dependents(self, name: str, owner: str | None) -> Iterator[DependentsRecord]:
        """Find the ranges in which other packages require a package."""
        return queries.find_dependents(self.connection, name, owner)

    def find_requiring(
        self, name: str, group: DependentsRecord, limit: int
    ) -> Iterator[PackageVersion]:
        """Find the packages in a group that ``find_dependents`` has returned."""
        return queries.find_requiring(self.connection, name, group, limit)
