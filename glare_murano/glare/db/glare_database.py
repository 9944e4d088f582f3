# SPDX-License-Identifier: Apache-2.0

"""Glare's database, as the API needs it: see ``service.database.Database``.

Functions beside the class find what ``glare-murano-manage`` and the start of a server clean up.
"""

import collections
import contextlib
import datetime
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

from glare.db.sqlalchemy import api as database
from sqlalchemy.engine import Connection, Row

from glare_murano.glare.db import artifact_queries
from glare_murano.glare.db.artifact_queries import version_of
from glare_murano.inheritance import ExtendingRecord
from glare_murano.resolver import PackageVersion
from glare_murano.service.database import (
    DependentsRecord,
    PackageMetadata,
    PackageRecord,
    Viewer,
    look_up,
)


@contextlib.contextmanager
def snapshot() -> Iterator[Connection]:
    """Open a transaction on a snapshot of the database."""
    session = database.get_session()
    with session.begin():
        is_postgresql = session.get_bind().dialect.name == "postgresql"
        # The other databases give a snapshot by default.
        options = {"isolation_level": "REPEATABLE READ"} if is_postgresql else {}
        yield session.connection(execution_options=options)


class GlareDatabase(NamedTuple):
    """Glare's artifacts for one viewer, in the transaction of a connection."""

    connection: Connection
    viewer: Viewer

    def find_usable(
        self, column: Literal["id", "name"], values: Iterable[str], package: str | None = None
    ) -> Iterator[PackageRecord]:
        """See ``service.database.Database``, which describes most methods."""
        project = self.viewer.project_id
        statement = artifact_queries.usable(column, self.viewer.is_admin, project is not None)
        return map(_record, self._look_up(statement, values, package=package, project=project))

    def find_defining(self, class_names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Find the packages that define classes."""
        rows = self._look_up(artifact_queries.DEFINING, class_names)
        return ((row.string_value, row.artifact_id) for row in rows)

    def find_metadata(self, ids: Iterable[str]) -> dict[str, PackageMetadata]:
        """Return the metadata of packages."""
        archives: dict[str, tuple[str, int]] = {}
        requirements: dict[str, dict[str, str]] = collections.defaultdict(dict)
        classes: dict[str, list[str]] = collections.defaultdict(list)
        for id_, digest, size, field, key, text in self._look_up(artifact_queries.METADATA, ids):
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
        """Return the requirements of packages."""
        found: dict[str, dict[str, str]] = collections.defaultdict(dict)
        for id_, fqn, text in self._look_up(artifact_queries.RANGES, ids):
            found[id_][fqn] = text
        return found

    def find_yanked(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the reasons of yanked packages."""
        return dict(map(tuple, self._look_up(artifact_queries.YANKED, ids)))

    def find_extending(self, base_names: Iterable[str]) -> Iterator[ExtendingRecord]:
        """Find packages that define direct subclasses of classes."""
        project = self.viewer.project_id
        statement = artifact_queries.extending(self.viewer.is_admin, project is not None)
        for row in self._look_up(statement, base_names, project=project):
            package = PackageVersion(row.name, version_of(row))
            yield ExtendingRecord(row.key_name, row.id, package, row.string_value.split(","))

    def find_candidates(self, names: Iterable[str]) -> Iterator[PackageRecord]:
        """Find packages that may satisfy requirements."""
        return map(_record, self._look_up(artifact_queries.CANDIDATES, names))

    def find_dependents(self, name: str, owner: str | None) -> Iterator[DependentsRecord]:
        """Find the ranges in which other packages require a package."""
        for row in self.connection.execute(artifact_queries.dependents(name, owner)).all():
            # Some databases ignore case.
            if row.key_name == name:
                yield DependentsRecord(row.string_value, row.owner, row.visibility)

    def find_requiring(
        self, name: str, group: DependentsRecord, limit: int
    ) -> Iterator[PackageVersion]:
        """Find the packages of a group of dependents that ``find_dependents`` has returned."""
        statement = artifact_queries.dependents_in(name, group).limit(limit)
        for row in self.connection.execute(statement).all():
            yield PackageVersion(row.name, version_of(row))

    def find_public(self, names: Iterable[str]) -> Iterator[PackageVersion]:
        """Find public packages by name, including deactivated ones."""
        for row in self._look_up(artifact_queries.PUBLIC, names):
            yield PackageVersion(row.name, version_of(row))

    def find_archives(self, ids: Iterable[str]) -> Iterator[Row]:
        """Find the stored archives of packages.

        :returns: rows with ``artifact_id``, ``url`` and ``size``.
        """
        return self._look_up(artifact_queries.ARCHIVES, ids)

    def _look_up(
        self, statement: Any, values: Iterable[str], **parameters: str | None
    ) -> Iterator[Row]:
        return look_up(self.connection, statement, values, **parameters)


def _record(row: Row) -> PackageRecord:
    key = PackageVersion(row.name, version_of(row))
    cache_key = row.id if row.status == "active" else ""
    return PackageRecord(row.id, key, row.owner, row.visibility, row.status, cache_key=cache_key)


def find_blob_urls(connection: Connection) -> Iterator[str]:
    """Find the URLs of all blobs, of any artifact type."""
    yield from connection.execute(artifact_queries.BLOB_URLS).scalars()


def find_uploads(connection: Connection) -> list[Row]:
    """Find the artifacts, of any type, to which a blob is being uploaded.

    :returns: rows with ``id``, ``type_name`` and ``created_at``.
    """
    return list(connection.execute(artifact_queries.UPLOADS))


def find_old_drafts(connection: Connection, before: datetime.datetime) -> list[Row]:
    """Find the drafts that were not changed since a time, the oldest first.

    :returns: rows with ``id``, ``updated_at``, ``name``, ``owner`` and the version.
    """
    return list(connection.execute(artifact_queries.OLD_DRAFTS, {"before": before}))


def is_empty(connection: Connection) -> bool:
    """Return whether the database has no artifact of any type."""
    return connection.execute(artifact_queries.ANY_ARTIFACT).first() is None
