# SPDX-License-Identifier: Apache-2.0

"""The queries that the API makes in a service's database, and the records that they return."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, Protocol

from glare_murano.inheritance import ExtendingRecord
from glare_murano.package import Version
from glare_murano.resolver import PackageVersion

# SQLite allows 32,766 values in a statement, PostgreSQL 65,535.
_MAX_VALUES = 30_000


class Viewer(NamedTuple):
    """The caller of a request, for the visibility of packages.

    :ivar is_admin: whether the packages of all projects are visible.
    """

    project_id: str | None
    is_admin: bool


class PackageRecord(NamedTuple):
    """A package stored by a service.

    :ivar key: the FQN and the version.
    :ivar status: ``drafted`` before its activation, ``active``, or ``deactivated``.
    :ivar visibility: ``private``, ``public``, or another visibility of the service.
    :ivar members: other projects with access to the package.
    :ivar cache_key: the key of the metadata in ``METADATA_CACHE``; empty for a draft, whose
        metadata may change.
    """

    id: str
    key: PackageVersion
    owner: str
    visibility: str
    status: str
    members: frozenset[str] = frozenset()
    cache_key: str = ""

    @property
    def name(self) -> str:
        """The FQN."""
        return self.key.fqn

    @property
    def version(self) -> Version:
        """The version."""
        return self.key.version

    def is_available_to(self, project_id: str | None) -> bool:
        """Return whether a project can see the package once the package is active."""
        return self.visibility == "public" or self.owner == project_id or project_id in self.members

    def __str__(self) -> str:
        return str(self.key)


class DependentsRecord(NamedTuple):
    """A group of dependents: packages of one project that require a package in the same range.

    All packages of a group are active and have the same visibility.
    """

    range: str
    owner: str
    visibility: str


@dataclasses.dataclass(frozen=True)
class PackageMetadata:
    """The metadata of a package with an archive.

    :param requirements: FQN -> range, as a string: a parsed range takes fifty times the memory.
    :param classes: names of the defined classes, sorted.
    :param digest: the SHA-256 of the archive, in hexadecimal.
    :param size: the size of the archive, in bytes.
    """

    requirements: Mapping[str, str]
    classes: tuple[str, ...]
    digest: str
    size: int


def look_up(
    connection: Any, statement: Any, values: Iterable[str], **parameters: str | None
) -> Iterator[Any]:
    """Execute a statement of SQLAlchemy for values, at most ``_MAX_VALUES`` of them at once.

    :param statement: has the values as the parameter ``values``.
    :param parameters: its other parameters.
    :returns: its rows.
    """
    ordered = sorted(values)
    for start in range(0, len(ordered), _MAX_VALUES):
        share = ordered[start : start + _MAX_VALUES]
        yield from connection.execute(statement, {"values": share, **parameters}).all()


class Database(Protocol):
    """The packages of a service, in one transaction, for one viewer.

    Each method takes a bounded number of statements. The names and ids that it finds may differ
    in case from the requested values, since some databases ignore case.
    """

    @property
    def viewer(self) -> Viewer:
        """The caller of the request."""

    def find_usable(
        self, column: Literal["id", "name"], values: Iterable[str], package: str | None = None
    ) -> Iterable[PackageRecord]:
        """Find active packages among those visible to the viewer.

        :param package: the id of a package that is found even if it is a draft.
        """

    def find_defining(self, class_names: Iterable[str]) -> Iterable[tuple[str, str]]:
        """Find the packages that define classes: pairs of a class and the id of a package."""

    def find_metadata(self, ids: Iterable[str]) -> Mapping[str, PackageMetadata]:
        """Return the metadata of packages by id; leave out drafts that have no archive."""

    def find_requirements(self, ids: Iterable[str]) -> Mapping[str, dict[str, str]]:
        """Return the requirements of packages by id: FQN -> range."""

    def find_yanked(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the reasons of yanked packages by id; leave out packages that are not yanked."""

    def find_extending(self, base_names: Iterable[str]) -> Iterable[ExtendingRecord]:
        """Find active packages, visible to the viewer, that define direct subclasses of classes."""

    def find_candidates(self, names: Iterable[str]) -> Iterable[PackageRecord]:
        """Find active packages of any project by name, and drafts with an uploaded archive."""

    def find_dependents(self, name: str, owner: str | None) -> Iterable[DependentsRecord]:
        """Find the ranges in which other active packages require a package.

        :param owner: the project of the other packages; None for all.
        """

    def find_requiring(
        self, name: str, group: DependentsRecord, limit: int
    ) -> Iterable[PackageVersion]:
        """Find the packages of a group of dependents that ``find_dependents`` has returned.

        :param name: the required package.
        :param limit: the largest number of packages to find.
        """
