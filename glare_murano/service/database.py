# SPDX-License-Identifier: Apache-2.0

"""Define the queries that the API sends to a service's database, and the records in the results."""

import contextlib
import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, Protocol

from glare_murano.budget import Budget
from glare_murano.inheritance import ExtendingRecord
from glare_murano.package import Version
from glare_murano.resolver import PackageVersion
from glare_murano.selection import Selection
from glare_murano.service.list_statements import NameRange

# The largest number of values in a statement, and of rows that are read at once. The time of the
# request is checked after each of them. A query has at most a thousand names.
_MAX_VALUES = 1000
_MAX_ROWS = 1000


class Viewer(NamedTuple):
    """The user who sends a request. The visible packages depend on this user.

    :ivar project_id: the project of the user; None without a project.
    :ivar is_admin: whether the packages of all projects are visible.
    """

    project_id: str | None
    is_admin: bool


class PackageRecord(NamedTuple):
    """A package stored by a service.

    :ivar id: the id of the artifact in Glare, or of the image in Glance.
    :ivar key: the FQN and the version.
    :ivar status: ``drafted`` before its activation, ``active``, or ``deactivated``.
    :ivar visibility: ``private``, ``public``, or another visibility of the service.
    :ivar members: other projects that have access to the package.
    :ivar cache_key: the key of the metadata in ``METADATA_CACHE``; empty if the metadata must not
        be cached. It is always empty for a draft, whose metadata may change.
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
        """Return whether a project can see the package while the package is active."""
        return self.visibility == "public" or self.owner == project_id or project_id in self.members

    def __str__(self) -> str:
        return str(self.key)


class DependentsRecord(NamedTuple):
    """A group of dependents: packages of one project that require one package in the same range.

    All dependents in a group are active, and have the same visibility.

    :ivar range: the required range, as written.
    :ivar owner: the project that owns the dependents.
    :ivar visibility: the visibility of the dependents.
    """

    range: str
    owner: str
    visibility: str


@dataclasses.dataclass(frozen=True)
class PackageMetadata:
    """The metadata of a package that has an archive.

    :param requirements: FQN -> range, as a string: a parsed range takes fifty times the memory.
    :param classes: the sorted names of the classes that the package defines.
    :param digest: the SHA-256 of the archive, in hexadecimal.
    :param size: the size of the archive, in bytes.
    """

    requirements: Mapping[str, str]
    classes: tuple[str, ...]
    digest: str
    size: int


class Reader(NamedTuple):
    """A SQLAlchemy connection that reads rows within the time limit of a request."""

    connection: Any
    budget: Budget

    def look_up(
        self, step: str, statement: Any, values: Iterable[str], **parameters: Any
    ) -> Iterator[Any]:
        """Execute a statement for any number of values, and yield the rows that it finds.

        :param step: what the request does, for the message if its time is over.
        :param statement: a statement with a parameter ``values``. It is executed several times if
            there are many values, each time with some of the values.
        :param values: the values to look up.
        :param parameters: the other parameters of the statement.
        :raises Unplannable: if the time of the request is over.
        """
        ordered = sorted(values)
        for start in range(0, len(ordered), _MAX_VALUES):
            share = ordered[start : start + _MAX_VALUES]
            yield from self.read(step, statement, values=share, **parameters)

    def read(self, step: str, statement: Any, **parameters: Any) -> list[Any]:
        """Execute a statement, and return the rows that it finds.

        All rows are read at once, since the caller may stop at any row. An open cursor of SQLite
        would then lock the database until Python's garbage collector closes it.

        :param step: what the request does, for the message if its time is over.
        :param statement: the statement.
        :param parameters: the parameters of the statement.
        :raises Unplannable: if the time of the request is over.
        """
        self.budget.check(step)
        rows: list[Any] = []
        with contextlib.closing(self.connection.execute(statement, parameters)) as result:
            for part in result.partitions(_MAX_ROWS):
                self.budget.check(step)
                rows += part
        return rows


class Database(Protocol):
    """The packages of a service, in one transaction, for one viewer.

    Each method executes a few statements for each thousand values. The found names and ids may
    differ in case from the requested values, since some databases ignore case.
    """

    @property
    def viewer(self) -> Viewer:
        """The user who sends the request."""

    @property
    def budget(self) -> Budget:
        """The time limit of the request. Each method raises ``Unplannable`` if the time is over."""

    def find_usable(
        self, column: Literal["id", "name"], values: Iterable[str], package: str | None = None
    ) -> Iterable[PackageRecord]:
        """Find the active packages that are visible to the viewer, by id or by name.

        :param column: whether the values are ids or names.
        :param values: the ids or names.
        :param package: the id of a package that is also found if it is not active.
        """

    def find_defining(self, class_names: Iterable[str]) -> Iterable[tuple[str, str]]:
        """Find the packages that define any of the given classes.

        The result may contain packages that are not active, or not visible to the viewer.

        :returns: pairs of the name of a class and the id of a package.
        """

    def find_metadata(self, ids: Iterable[str]) -> Mapping[str, PackageMetadata]:
        """Return the metadata of packages by id. Drafts that have no archive are left out."""

    def find_requirements(self, ids: Iterable[str]) -> Mapping[str, dict[str, str]]:
        """Return the requirements of packages: id of the package -> FQN -> range."""

    def find_yanked(self, ids: Iterable[str]) -> dict[str, str]:
        """Return why packages are yanked: id -> reason.

        Packages that are not yanked are left out.
        """

    def find_listed(
        self, selection: Selection, names: Iterable[str] | None = None
    ) -> Iterable[PackageRecord]:
        """Find the packages that the viewer sees in lists, and that may meet conditions.

        The caller checks the conditions again, since a database may ignore case, or may not check
        all conditions.

        :param selection: the conditions.
        :param names: the names of the packages to search; None to search all packages.
        """

    def find_names(self, selection: Selection, names: NameRange, limit: int) -> list[str]:
        """Find the names of the packages that ``find_listed`` finds, sorted by the database.

        The result can also contain names for which ``find_listed`` finds no package. Of several
        names that differ only in case, a database that ignores case finds only one.

        :param selection: the conditions for the packages.
        :param names: the order of the names, and where the result begins.
        :param limit: the largest number of names.
        """

    def find_fields(
        self, ids: Iterable[str], names: Collection[str]
    ) -> Mapping[str, Mapping[str, Any]]:
        """Return fields of packages: id of the package -> name of the field -> value.

        Packages that cannot be read, and fields without a value, are left out.

        :param ids: the ids of the packages.
        :param names: the names of the fields to return. Possible names are those of
            ``fields.FIELDS`` and ``fields.COMMON``, and ``fields.ARCHIVE``, ``created_at`` and
            ``updated_at``.
        """

    def find_extending(self, base_names: Iterable[str]) -> Iterable[ExtendingRecord]:
        """Find visible, active packages that define direct subclasses of the given classes.

        :param base_names: the names of the given classes.
        """

    def find_candidates(self, names: Iterable[str]) -> Iterable[PackageRecord]:
        """Find active packages, and drafts with an archive, by name. They may be of any project."""

    def find_namesakes(self, keys: Iterable[PackageVersion]) -> Iterable[PackageRecord]:
        """Find the packages of all projects with given names and versions.

        Deleted packages, and drafts that have no archive, are left out.
        """

    def find_dependents(self, name: str, owner: str | None) -> Iterable[DependentsRecord]:
        """Find the active packages that require a package, and return them in groups.

        A package's requirement on itself does not count.

        :param name: the FQN of the required package.
        :param owner: the project whose packages are searched; None to search all projects.
        """

    def find_requiring(
        self, name: str, group: DependentsRecord, limit: int
    ) -> Iterable[PackageVersion]:
        """Find the packages in a group of dependents.

        :param name: the FQN of the required package.
        :param group: a group that ``find_dependents`` has returned for the required package.
        :param limit: the largest number of packages to find.
        """
