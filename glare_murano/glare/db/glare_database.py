# SPDX-License-Identifier: Apache-2.0

"""Look up packages in Glare's database; see ``service.database.Database``.

The functions outside the class find the blobs, uploads and drafts that ``glare-murano-manage`` and
the development server clean up.
"""

import collections
import contextlib
import datetime
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Literal, NamedTuple

from glare.db.sqlalchemy import api as database
from sqlalchemy import orm
from sqlalchemy.engine import Connection, Row

from glare_murano import fields
from glare_murano.budget import Budget
from glare_murano.glare.db import artifact_lists, artifact_queries
from glare_murano.glare.db.artifact_queries import version_of
from glare_murano.inheritance import ExtendingRecord
from glare_murano.resolver import PackageVersion
from glare_murano.selection import Selection
from glare_murano.service.database import (
    DependentsRecord,
    PackageMetadata,
    PackageRecord,
    Reader,
    Viewer,
)
from glare_murano.service.list_statements import NameRange

_DEPENDENTS = "looking up dependents"
_LISTING = "listing packages"
_FIELDS = "reading the fields of packages"
_TAGS = "tags"
# Field -> whether it is a list, a mapping or a string.
_KINDS = {field.name: field.kind for field in fields.FIELDS} | {_TAGS: "list"}


@contextlib.contextmanager
def snapshot() -> Iterator[Connection]:
    """Open a transaction on a snapshot of the database, and yield its connection."""
    with snapshot_session() as session:
        yield session.connection()


@contextlib.contextmanager
def snapshot_session() -> Iterator[orm.Session]:
    """Open a transaction on a snapshot of the database, and yield its session."""
    session = database.get_session()
    with session.begin():
        is_postgresql = session.get_bind().dialect.name == "postgresql"
        # Transactions of the other databases use a snapshot by default.
        options = {"isolation_level": "REPEATABLE READ"} if is_postgresql else {}
        session.connection(execution_options=options)
        yield session


class GlareDatabase(NamedTuple):
    """Glare's artifacts for one viewer, in the transaction of a connection."""

    connection: Connection
    viewer: Viewer
    budget: Budget

    def find_usable(
        self, column: Literal["id", "name"], values: Iterable[str], package: str | None = None
    ) -> Iterator[PackageRecord]:
        """Find the active packages that are visible to the viewer, by id or by name.

        :param package: the id of a package that is also found if it is not active.
        """
        project = self.viewer.project_id
        statement = artifact_queries.usable(column, self.viewer.is_admin, project is not None)
        step = f"looking up packages by {column}"
        rows = self._look_up(step, statement, values, package=package, project=project)
        return map(_record, rows)

    def find_defining(self, class_names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Find the packages that define classes: pairs of class name and package id.

        The result may contain packages that are not active, or not visible to the viewer.
        """
        rows = self._look_up("looking up classes", artifact_queries.DEFINING, class_names)
        return ((row.string_value, row.artifact_id) for row in rows)

    def find_metadata(self, ids: Iterable[str]) -> dict[str, PackageMetadata]:
        """Return the metadata of packages, by id. Packages without an archive are left out."""
        archives: dict[str, tuple[str, int]] = {}
        requirements: dict[str, dict[str, str]] = collections.defaultdict(dict)
        classes: dict[str, list[str]] = collections.defaultdict(list)
        rows = self._look_up("reading metadata", artifact_queries.METADATA, ids)
        for id_, digest, size, field, key, text in rows:
            archives[id_] = digest, size
            if field == artifact_queries.REQUIREMENTS:
                requirements[id_][key] = text
            elif field == artifact_queries.CLASSES:
                classes[id_].append(text)
        return {
            id_: PackageMetadata(requirements[id_], tuple(sorted(classes[id_])), digest, size)
            for id_, (digest, size) in archives.items()
        }

    def find_requirements(self, ids: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return the requirements of packages: id of the package -> FQN -> range."""
        found: dict[str, dict[str, str]] = collections.defaultdict(dict)
        rows = self._look_up("reading requirements", artifact_queries.RANGES, ids)
        for id_, fqn, text in rows:
            found[id_][fqn] = text
        return found

    def find_yanked(self, ids: Iterable[str]) -> dict[str, str]:
        """Return a mapping of the ids of yanked packages to the reasons why they were yanked."""
        rows = self._look_up("looking up yanked packages", artifact_queries.YANKED, ids)
        return dict(map(tuple, rows))

    def find_extending(self, base_names: Iterable[str]) -> Iterator[ExtendingRecord]:
        """Find visible, active packages that define direct subclasses of given classes."""
        project = self.viewer.project_id
        statement = artifact_queries.extending(self.viewer.is_admin, project is not None)
        rows = self._look_up("looking up subclasses", statement, base_names, project=project)
        for row in rows:
            package = PackageVersion(row.name, version_of(row))
            yield ExtendingRecord(row.key_name, row.id, package, row.string_value.split(","))

    def find_candidates(self, names: Iterable[str]) -> Iterator[PackageRecord]:
        """Find active packages, and drafts with an archive, by name. They may be of any project."""
        rows = self._look_up("looking up packages by name", artifact_queries.CANDIDATES, names)
        return map(_record, rows)

    def find_dependents(self, name: str, owner: str | None) -> Iterator[DependentsRecord]:
        """Find the active packages that require a package, and return them in groups.

        A package's requirement on itself does not count.
        """
        statement = artifact_queries.dependents(name, owner)
        rows = Reader(self.connection, self.budget).read(_DEPENDENTS, statement)
        for row in self.budget.watch(rows, _DEPENDENTS):
            # Some databases ignore case, and so return dependents of other packages.
            if row.key_name == name:
                yield DependentsRecord(row.string_value, row.owner, row.visibility)

    def find_requiring(
        self, name: str, group: DependentsRecord, limit: int
    ) -> Iterator[PackageVersion]:
        """Find the packages in a group of dependents that ``find_dependents`` has returned."""
        statement = artifact_queries.dependents_in(name, group).limit(limit)
        for row in Reader(self.connection, self.budget).read(_DEPENDENTS, statement):
            yield PackageVersion(row.name, version_of(row))

    def find_namesakes(self, keys: Iterable[PackageVersion]) -> Iterator[PackageRecord]:
        """Find the packages of all projects with given names and versions.

        Deleted packages, and drafts that have no archive, are left out.
        """
        wanted = set(keys)
        prefixes = {artifact_queries.prefix_of(key.version) for key in wanted}
        names = {key.fqn for key in wanted}
        step, statement = "looking up packages by name and version", artifact_queries.NAMESAKES
        rows = self._look_up(step, statement, names, prefixes=sorted(prefixes))
        return (record for record in map(_record, rows) if record.key in wanted)

    def find_listed(
        self, selection: Selection, names: Iterable[str] | None = None
    ) -> Iterator[PackageRecord]:
        """Find the packages that the viewer sees in lists and that meet the conditions.

        Other packages may be found as well, so the caller has to check the conditions again.
        """
        return map(_record, self._list(artifact_lists.listed(selection, self.viewer, names)))

    def find_names(self, selection: Selection, names: NameRange, limit: int) -> list[str]:
        """Find the names of the packages that ``find_listed`` finds, sorted by the database.

        Other names may be found as well.
        """
        statement = artifact_lists.sorted_names(selection, self.viewer, names)
        return [row.name for row in self._list(statement.limit(limit))]

    def find_fields(self, ids: Iterable[str], names: Collection[str]) -> dict[str, dict[str, Any]]:
        """Return fields of packages: id of the package -> name of the field -> value."""
        found: dict[str, dict[str, Any]] = {id_: {} for id_ in ids}
        values = self._read_fields(list(found), names)
        for id_, field, key, value in self.budget.watch(values, _FIELDS):
            kind = _KINDS.get(field)
            if kind == "list":
                found[id_].setdefault(field, []).append(value)
            elif kind == "dict":
                found[id_].setdefault(field, {})[key] = value
            elif value is not None:
                found[id_][field] = value
        return found

    def _read_fields(
        self, ids: list[str], names: Collection[str]
    ) -> Iterator[tuple[str, str, str | None, Any]]:
        """Yield each value of the given fields, for the given packages.

        :returns: tuples: the id of the package, the name of the field, the key (None if the field
            is not a mapping), and the value.
        """
        if stored := [field.name for field in fields.FIELDS if field.name in names]:
            yield from self._look_up(_FIELDS, artifact_lists.PROPERTIES, ids, names=stored)
        if _TAGS in names:
            for id_, tag in self._look_up(_FIELDS, artifact_lists.TAGS, ids):
                yield id_, _TAGS, None, tag
        if columns := artifact_lists.COLUMNS.keys() & names:
            for row in self._look_up(_FIELDS, artifact_lists.ATTRIBUTES, ids):
                yield from ((row.id, name, None, row._mapping[name]) for name in columns)
        if fields.ARCHIVE in names:
            for id_, digest, size in self._look_up(_FIELDS, artifact_lists.DIGESTS, ids):
                yield id_, fields.ARCHIVE, None, {"sha256": digest, "size": size}

    def find_archives(self, ids: Iterable[str]) -> Iterator[Row]:
        """Find the stored archives of packages.

        :returns: rows with ``artifact_id``, ``url`` and ``size``.
        """
        return self._look_up("looking up archives", artifact_queries.ARCHIVES, ids)

    def _list(self, statement: Any) -> list[Row]:
        """Execute a statement for a list of packages, and return its rows."""
        reader = Reader(self.connection, self.budget)
        return reader.read(_LISTING, statement, project=self.viewer.project_id)

    def _look_up(
        self, step: str, statement: Any, values: Iterable[str], **parameters: Any
    ) -> Iterator[Row]:
        reader = Reader(self.connection, self.budget)
        return reader.look_up(step, statement, values, **parameters)


def _record(row: Row) -> PackageRecord:
    key = PackageVersion(row.name, version_of(row))
    cache_key = row.id if row.status == "active" else ""
    return PackageRecord(row.id, key, row.owner, row.visibility, row.status, cache_key=cache_key)


def find_blob_urls(connection: Connection) -> Iterator[str]:
    """Return the URLs of all blobs, of any artifact type."""
    yield from connection.execute(artifact_queries.BLOB_URLS).scalars()


def find_uploads(connection: Connection) -> list[Row]:
    """Find the artifacts, of any type, to which a blob is being uploaded.

    :returns: rows with ``id``, ``type_name`` and ``created_at``.
    """
    return list(connection.execute(artifact_queries.UPLOADS))


def find_old_drafts(connection: Connection, before: datetime.datetime) -> list[Row]:
    """Find the drafts that were last changed before a given time, the oldest first.

    :returns: rows with ``id``, ``updated_at``, ``name``, ``owner`` and the version.
    """
    return list(connection.execute(artifact_queries.OLD_DRAFTS, {"before": before}))


def is_empty(connection: Connection) -> bool:
    """Return whether the database has no artifact of any type."""
    return connection.execute(artifact_queries.ANY_ARTIFACT).first() is None
