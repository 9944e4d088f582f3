# SPDX-License-Identifier: Apache-2.0

"""The SQL statements on Glare's tables.

Values for look-ups are parameters, so that SQLAlchemy compiles each statement once:
compiling takes longer than running. Statements select from tables, since rows of
mapped classes take longer as well.
"""

import collections
import contextlib
import datetime
import functools
from collections.abc import Iterable, Iterator
from typing import Any

import sqlalchemy as sa
from glare.common import semver_db
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models
from sqlalchemy.engine import Connection, Row

from glare_murano import fields
from glare_murano.inheritance import ExtendingRecord
from glare_murano.package import Version
from glare_murano.resolver import PackageVersion
from glare_murano.service.database import DependentsRecord, PackageMetadata, PackageRecord, Viewer

# SQLite allows 32,766 values in a statement, PostgreSQL 65,535.
_MAX_VALUES = 30_000

_REQUIREMENTS = "requirements"
_CLASSES = "class_definitions"

_artifacts = models.Artifact.__table__.c
_blobs = models.ArtifactBlob.__table__.c
_properties = models.ArtifactProperty.__table__.c

_VERSION = (_artifacts.version_prefix, _artifacts.version_suffix, _artifacts.version_meta)
_ELEMENT = (_properties.key_name, _properties.string_value)


@contextlib.contextmanager
def snapshot() -> Iterator[Connection]:
    """Open a transaction on a snapshot of the database."""
    session = database.get_session()
    with session.begin():
        is_postgresql = session.get_bind().dialect.name == "postgresql"
        # The other databases give a snapshot by default.
        options = {"isolation_level": "REPEATABLE READ"} if is_postgresql else {}
        yield session.connection(execution_options=options)


def version_of(row: Row) -> Version:
    """Return the version in a row of artifacts."""
    return _version(row.version_prefix, row.version_suffix, row.version_meta)


# Most packages share a few versions, so that each is read once.
@functools.lru_cache(maxsize=4096)
def _version(prefix: int, suffix: str | None, meta: str | None) -> Version:
    version: Version = semver_db.DBVersion(prefix, suffix, meta).version
    return version


def _record(row: Row) -> PackageRecord:
    key = PackageVersion(row.name, version_of(row))
    cache_key = row.id if row.status == "active" else ""
    return PackageRecord(row.id, key, row.owner, row.visibility, row.status, cache_key=cache_key)


def find_usable(
    connection: Connection,
    viewer: Viewer,
    column: str,
    values: Iterable[str],
    package: str | None = None,
) -> Iterator[PackageRecord]:
    """Find active artifacts among those visible to a viewer.

    :param column: the column of the values: ``id`` or ``name``.
    :param package: the id of an artifact that is found even if it is a draft.
    """
    statement = _usable(column, viewer.is_admin, viewer.project_id is not None)
    rows = _look_up(connection, statement, values, package=package, project=viewer.project_id)
    return map(_record, rows)


def find_defining(connection: Connection, class_names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Find the artifacts that define classes.

    :returns: pairs of a class and the id of an artifact.
    """
    rows = _look_up(connection, _DEFINING, class_names)
    return ((row.string_value, row.artifact_id) for row in rows)


def find_extending(
    connection: Connection, viewer: Viewer, base_names: Iterable[str]
) -> Iterator[ExtendingRecord]:
    """Find active packages, visible to a viewer, that define direct subclasses of classes."""
    statement = _extending(viewer.is_admin, viewer.project_id is not None)
    for row in _look_up(connection, statement, base_names, project=viewer.project_id):
        package = PackageVersion(row.name, version_of(row))
        yield ExtendingRecord(row.key_name, row.id, package, row.string_value.split(","))


def find_archives(connection: Connection, ids: Iterable[str]) -> Iterator[Row]:
    """Find the stored archives of artifacts.

    :returns: rows with ``artifact_id``, ``url`` and ``size``.
    """
    return _look_up(connection, _ARCHIVES, ids)


def find_metadata(connection: Connection, ids: Iterable[str]) -> dict[str, PackageMetadata]:
    """Return the metadata of artifacts by id; leave out drafts that have no archive."""
    archives: dict[str, tuple[str, int]] = {}
    requirements: dict[str, dict[str, str]] = collections.defaultdict(dict)
    classes: dict[str, list[str]] = collections.defaultdict(list)
    for id_, digest, size, field, key, text in _look_up(connection, _METADATA, ids):
        archives[id_] = digest, size
        if field == _REQUIREMENTS:
            requirements[id_][key] = text
        elif field == _CLASSES:
            classes[id_].append(text)
    return {
        id_: PackageMetadata(requirements[id_], tuple(sorted(classes[id_])), digest, size)
        for id_, (digest, size) in archives.items()
    }


def find_requirements(connection: Connection, ids: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the requirements of artifacts by id: FQN -> range."""
    found: dict[str, dict[str, str]] = collections.defaultdict(dict)
    for id_, fqn, text in _look_up(connection, _RANGES, ids):
        found[id_][fqn] = text
    return found


def find_yanked(connection: Connection, ids: Iterable[str]) -> dict[str, str]:
    """Return the reasons of the yanked artifacts, by id."""
    return dict(map(tuple, _look_up(connection, _YANKED, ids)))


def find_candidates(connection: Connection, names: Iterable[str]) -> Iterator[PackageRecord]:
    """Find active artifacts by name, and drafts with an uploaded archive."""
    return map(_record, _look_up(connection, _CANDIDATES, names))


def find_public(connection: Connection, names: Iterable[str]) -> Iterator[Row]:
    """Find public artifacts by name, including deactivated ones.

    :returns: rows with ``name`` and the version.
    """
    return _look_up(connection, _PUBLIC, names)


def find_dependents(
    connection: Connection, name: str, owner: str | None
) -> Iterator[DependentsRecord]:
    """Find the ranges in which active artifacts require a package.

    :param owner: the project of the artifacts; None for all.
    """
    statement = _requiring(name, owner, *_ELEMENT, _artifacts.owner, _artifacts.visibility)
    for row in connection.execute(statement.distinct()).all():
        # Some databases ignore case.
        if row.key_name == name:
            yield DependentsRecord(row.string_value, row.owner, row.visibility)


def find_requiring(
    connection: Connection, name: str, group: DependentsRecord, limit: int
) -> Iterator[PackageVersion]:
    """Find the active artifacts of a project that require a package in a range."""
    statement = _requiring(name, group.owner, _artifacts.name, *_VERSION).where(
        _properties.string_value == group.range, _artifacts.visibility == group.visibility
    )
    for row in connection.execute(statement.limit(limit)).all():
        yield PackageVersion(row.name, version_of(row))


def requiring(names: Iterable[str]) -> Any:
    """Return a statement for the ids of artifacts that require any of several packages.

    A package's requirement on itself does not count.
    """
    # This statement becomes a part of Glare's statements, so it needs tables of its own.
    properties, artifacts = (
        model.__table__.alias().c for model in (models.ArtifactProperty, models.Artifact)
    )
    return sa.select(properties.artifact_id).where(
        properties.name == _REQUIREMENTS,
        properties.key_name.in_(list(names)),
        artifacts.id == properties.artifact_id,
        artifacts.name != properties.key_name,
    )


def stable() -> Any:
    """Return a statement for the ids of all artifacts that are not pre-releases."""
    artifacts = models.Artifact.__table__.alias().c
    return sa.select(artifacts.id).where(artifacts.version_suffix == "")


def not_yanked() -> Any:
    """Return a statement for the ids of all artifacts that are not yanked."""
    artifacts, properties = (
        model.__table__.alias().c for model in (models.Artifact, models.ArtifactProperty)
    )
    yanked = sa.select(properties.artifact_id).where(properties.name == "yanked")
    return sa.select(artifacts.id).where(artifacts.id.not_in(yanked))


def find_urls(connection: Connection) -> Iterator[str]:
    """Find the URLs of all blobs, of any artifact type."""
    statement = sa.select(_blobs.url).where(_blobs.url.is_not(None))
    yield from connection.execute(statement).scalars()


def find_uploads(connection: Connection) -> list[Row]:
    """Find the artifacts, of any type, to which a blob is being uploaded.

    :returns: rows with ``id``, ``type_name`` and ``created_at``.
    """
    columns = (_artifacts.id, _artifacts.type_name, _artifacts.created_at)
    is_upload = sa.and_(_blobs.artifact_id == _artifacts.id, _blobs.status == "saving")
    return list(connection.execute(sa.select(*columns).where(is_upload).distinct()))


def find_old_drafts(connection: Connection, before: datetime.datetime) -> list[Row]:
    """Find the drafts that were not changed since a time, the oldest first.

    :returns: rows with ``id``, ``updated_at``, ``name``, ``owner`` and the version.
    """
    columns = (_artifacts.id, _artifacts.updated_at, _artifacts.name, _artifacts.owner, *_VERSION)
    statement = sa.select(*columns).where(
        _artifacts.type_name == fields.TYPE_NAME,
        _artifacts.status == "drafted",
        _artifacts.updated_at < before,
    )
    return list(connection.execute(statement.order_by(_artifacts.updated_at)))


def is_empty(connection: Connection) -> bool:
    """Return whether there is no artifact of any type."""
    return connection.execute(sa.select(_artifacts.id).limit(1)).first() is None


def _look_up(
    connection: Connection, statement: Any, values: Iterable[str], **parameters: str | None
) -> Iterator[Row]:
    """Execute a statement for values, at most ``_MAX_VALUES`` of them at once."""
    ordered = sorted(values)
    for start in range(0, len(ordered), _MAX_VALUES):
        share = ordered[start : start + _MAX_VALUES]
        yield from connection.execute(statement, {"values": share, **parameters}).all()


def _among(column: Any) -> Any:
    return column.in_(sa.bindparam("values", expanding=True))


def _filter(*conditions: Any) -> Any:
    """Join conditions, and keep the database from using indexes for them.

    SQLite does not know the number of rows for a value: with an index, it would look up
    all active artifacts, or all requirements, to find fifty artifacts.
    """
    return sa.case((sa.and_(*conditions), 1), else_=0) == 1


def _visible(statement: Any, is_admin: bool, has_project: bool) -> Any:
    """Restrict a statement to visible artifacts, by Glare's own rule for lists."""
    viewer = Viewer(sa.bindparam("project") if has_project else None, is_admin)
    return database._apply_query_base_filters(statement, viewer)


@functools.lru_cache
def _usable(column: str, is_admin: bool, has_project: bool) -> Any:
    is_package = _artifacts.id == sa.bindparam("package")
    usable = sa.select(_artifacts.id).where(
        _artifacts.type_name == fields.TYPE_NAME,
        sa.or_(_artifacts.status == "active", sa.and_(is_package, _artifacts.status != "deleted")),
    )
    condition = _visible(usable, is_admin, has_project).whereclause
    return sa.select(
        _artifacts.id,
        _artifacts.name,
        *_VERSION,
        _artifacts.owner,
        _artifacts.visibility,
        _artifacts.status,
    ).where(_among(_artifacts[column]), _filter(condition))


@functools.lru_cache
def _extending(is_admin: bool, has_project: bool) -> Any:
    statement = _of_active("inherits", *_ELEMENT, _artifacts.id, _artifacts.name, *_VERSION)
    return _visible(statement.where(_among(_properties.key_name)), is_admin, has_project)


def _requiring(name: str, owner: str | None, *columns: Any) -> Any:
    statement = _of_active(_REQUIREMENTS, *columns).where(
        _properties.key_name == name, _artifacts.name != name
    )
    return statement if owner is None else statement.where(_artifacts.owner == owner)


def _of_active(field: str, *columns: Any) -> Any:
    """Select columns of active artifacts and the elements of a field."""
    return sa.select(*columns).where(
        _artifacts.id == _properties.artifact_id,
        _properties.name == field,
        _artifacts.type_name == fields.TYPE_NAME,
        _artifacts.status == "active",
    )


# Few artifacts have this property.
_YANKED = sa.select(_properties.artifact_id, _properties.string_value).where(
    _properties.name == "yanked", _among(_properties.artifact_id)
)

_DEFINING = sa.select(_properties.string_value, _properties.artifact_id).where(
    _properties.name == _CLASSES, _among(_properties.string_value)
)

_RANGES = sa.select(_properties.artifact_id, *_ELEMENT).where(
    _among(_properties.artifact_id), _filter(_properties.name == _REQUIREMENTS)
)

_IS_ARCHIVE = sa.and_(_blobs.name == fields.ARCHIVE, _blobs.status == "active")

_ARCHIVES = sa.select(_blobs.artifact_id, _blobs.url, _blobs.size).where(
    _among(_blobs.artifact_id), _filter(_IS_ARCHIVE, _blobs.external.is_(False))
)

# A row for each requirement and each class, and one row for an archive that has neither.
_METADATA = (
    sa.select(_blobs.artifact_id, _blobs.sha256, _blobs.size, _properties.name, *_ELEMENT)
    .outerjoin_from(
        models.ArtifactBlob.__table__,
        models.ArtifactProperty.__table__,
        sa.and_(
            _properties.artifact_id == _blobs.artifact_id,
            _filter(_properties.name.in_([_REQUIREMENTS, _CLASSES])),
        ),
    )
    .where(_among(_blobs.artifact_id), _filter(_IS_ARCHIVE))
)

_HAS_ARCHIVE = sa.exists().where(_blobs.artifact_id == _artifacts.id, _IS_ARCHIVE)

_CANDIDATES = sa.select(
    _artifacts.id,
    _artifacts.name,
    *_VERSION,
    _artifacts.owner,
    _artifacts.visibility,
    _artifacts.status,
).where(
    _among(_artifacts.name),
    _filter(
        _artifacts.type_name == fields.TYPE_NAME,
        sa.or_(
            _artifacts.status == "active", sa.and_(_artifacts.status == "drafted", _HAS_ARCHIVE)
        ),
    ),
)

_PUBLIC = sa.select(_artifacts.name, *_VERSION).where(
    _among(_artifacts.name),
    _filter(
        _artifacts.type_name == fields.TYPE_NAME,
        _artifacts.visibility == "public",
        _artifacts.status != "deleted",
    ),
)
