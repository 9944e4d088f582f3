# SPDX-License-Identifier: Apache-2.0

"""The SQL statements over Glare's tables.

The values that rows are looked up by are parameters, so that SQLAlchemy compiles
a statement once, which takes longer than running it.
"""

import collections
import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from glare.common import semver_db
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models
from sqlalchemy.engine import Connection, Row

from glare_murano import fields
from glare_murano.glare.policies import Viewer
from glare_murano.package import Version

# SQLite allows 32,766 values in a statement, PostgreSQL 65,535.
_MAX_VALUES = 30_000

_REQUIREMENTS = "requirements"
_CLASSES = "class_definitions"

# Tables, since rows of mapped classes take longer.
_artifacts = models.Artifact.__table__
_blobs = models.ArtifactBlob.__table__
_properties = models.ArtifactProperty.__table__

_VERSION = (_artifacts.c.version_prefix, _artifacts.c.version_suffix, _artifacts.c.version_meta)


@dataclasses.dataclass(frozen=True)
class PackageMetadata:
    """The metadata of an artifact with an archive.

    :param requirements: FQN -> range as a string, since a parsed one takes fifty
        times the memory.
    :param classes: names of the classes that it defines, sorted.
    :param digest: the SHA-256 of its archive, in hexadecimal.
    :param size: of its archive, in bytes.
    """

    requirements: Mapping[str, str]
    classes: tuple[str, ...]
    digest: str
    size: int


@contextlib.contextmanager
def snapshot() -> Iterator[Connection]:
    """Open a transaction that reads the database as it is at its first statement."""
    session = database.get_session()
    with session.begin():
        is_postgresql = session.get_bind().dialect.name == "postgresql"
        # The other databases do so by default.
        options = {"isolation_level": "REPEATABLE READ"} if is_postgresql else {}
        yield session.connection(execution_options=options)


def version_of(row: Row) -> Version:
    """Return the version in a row of artifacts."""
    return _version(row.version_prefix, row.version_suffix, row.version_meta)


# Most packages have the same versions.
@functools.lru_cache(maxsize=4096)
def _version(prefix: int, suffix: str | None, meta: str | None) -> Version:
    version: Version = semver_db.DBVersion(prefix, suffix, meta).version
    return version


def find_usable(
    connection: Connection,
    viewer: Viewer,
    column: str,
    values: Iterable[str],
    package: str | None = None,
) -> Iterator[Row]:
    """Find the active artifacts that a caller sees.

    :param column: the column with the values: ``id`` or ``name``.
    :param package: the id of an artifact that is found even if it is a draft.
    :returns: rows with ``id``, ``name``, ``owner``, ``visibility`` and the version.
    """
    statement = _usable(column, viewer.sees_all, viewer.project_id is not None)
    parameters = {"package": package, "project": viewer.project_id}
    return _look_up(connection, statement, values, parameters)


def find_defining(connection: Connection, class_names: Iterable[str]) -> Iterator[Row]:
    """Find the artifacts that define classes.

    :returns: rows with ``string_value``, the class, and ``artifact_id``.
    """
    return _look_up(connection, _DEFINING, class_names)


def find_extending(
    connection: Connection, viewer: Viewer, base_names: Iterable[str]
) -> Iterator[Row]:
    """Find the active artifacts, of those that a caller sees, with subclasses of classes.

    :returns: rows with ``key_name``, the base class, ``string_value``, its direct
        subclasses joined by commas, ``name`` and the version of the package.
    """
    statement = _extending(viewer.sees_all, viewer.project_id is not None)
    return _look_up(connection, statement, base_names, {"project": viewer.project_id})


def find_archives(connection: Connection, ids: Iterable[str]) -> Iterator[Row]:
    """Find the stored archives of artifacts.

    :returns: rows with ``artifact_id``, ``url`` and ``size``.
    """
    return _look_up(connection, _ARCHIVES, ids)


def find_metadata(connection: Connection, ids: Iterable[str]) -> dict[str, PackageMetadata]:
    """Find the metadata of the artifacts that have an archive, by id."""
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


def find_candidates(
    connection: Connection, names: Iterable[str], except_id: str = ""
) -> Iterator[Row]:
    """Find the active artifacts with names, and the drafts with an uploaded archive.

    :returns: rows with ``name``, ``owner``, ``visibility``, ``status`` and the version.
    """
    return _look_up(connection, _CANDIDATES, names, {"except_id": except_id})


def find_dependents(connection: Connection, name: str, owner: str | None) -> Iterator[Row]:
    """Find the ranges in which active artifacts require a package.

    :param owner: the project that sees the package; None for all.
    :returns: distinct rows with ``key_name``, the package, ``string_value``, the
        range, ``owner`` and ``visibility``.
    """
    columns = (
        _properties.c.key_name,
        _properties.c.string_value,
        _artifacts.c.owner,
        _artifacts.c.visibility,
    )
    yield from connection.execute(_requiring(name, owner, *columns).distinct())


def find_requiring(
    connection: Connection, name: str, range_: str, owner: str, visibility: str, limit: int
) -> Iterator[Row]:
    """Find the active artifacts of a project that require a package in a range.

    :returns: rows with ``name`` and the version.
    """
    statement = _requiring(name, owner, _artifacts.c.name, *_VERSION).where(
        _properties.c.string_value == range_, _artifacts.c.visibility == visibility
    )
    yield from connection.execute(statement.limit(limit))


def _look_up(
    connection: Connection,
    statement: Any,
    values: Iterable[str],
    parameters: Mapping[str, str | None] | None = None,
) -> Iterator[Row]:
    """Execute a statement for values, in shares if there are too many for one statement.

    :param statement: has a condition ``_among``.
    :param parameters: the other parameters of the statement.
    """
    ordered = sorted(values)
    for start in range(0, len(ordered), _MAX_VALUES):
        share = {"values": ordered[start : start + _MAX_VALUES]}
        yield from connection.execute(statement, {**share, **(parameters or {})}).all()


def _among(column: Any) -> Any:
    return column.in_(sa.bindparam("values", expanding=True))


def _filter(*conditions: Any) -> Any:
    """Return a condition that filters rows, for which the database uses no index.

    SQLite ignores how many rows have a value. Without this, it would look up all
    active artifacts, or all requirements, to find fifty artifacts.
    """
    return sa.case((sa.and_(*conditions), 1), else_=0) == 1


class _Caller(NamedTuple):
    """The attributes of a context that Glare's rule for lists reads."""

    is_admin: bool
    project_id: Any


def _visible(statement: Any, sees_all: bool, has_project: bool) -> Any:
    """Restrict a statement to the artifacts that Glare would list, by its own rule."""
    project_id = sa.bindparam("project") if has_project else None
    return database._apply_query_base_filters(statement, _Caller(sees_all, project_id))


# The statements that depend on the caller: one for each kind of callers.


@functools.lru_cache
def _usable(column: str, sees_all: bool, has_project: bool) -> Any:
    is_package = _artifacts.c.id == sa.bindparam("package")
    matching = _visible(
        sa.select(_artifacts.c.id).where(
            _artifacts.c.type_name == fields.TYPE_NAME,
            sa.or_(
                _artifacts.c.status == "active",
                sa.and_(is_package, _artifacts.c.status != "deleted"),
            ),
        ),
        sees_all,
        has_project,
    )
    return sa.select(
        _artifacts.c.id, _artifacts.c.name, *_VERSION, _artifacts.c.owner, _artifacts.c.visibility
    ).where(_among(_artifacts.c[column]), _filter(matching.whereclause))


@functools.lru_cache
def _extending(sees_all: bool, has_project: bool) -> Any:
    statement = (
        sa.select(_properties.c.key_name, _properties.c.string_value, _artifacts.c.name, *_VERSION)
        .select_from(_properties)
        .join(_artifacts, _artifacts.c.id == _properties.c.artifact_id)
        .where(
            _among(_properties.c.key_name),
            _properties.c.name == "inherits",
            _artifacts.c.type_name == fields.TYPE_NAME,
            _artifacts.c.status == "active",
        )
    )
    return _visible(statement, sees_all, has_project)


_DEFINING = sa.select(_properties.c.string_value, _properties.c.artifact_id).where(
    _properties.c.name == _CLASSES, _among(_properties.c.string_value)
)

_ARCHIVES = sa.select(_blobs.c.artifact_id, _blobs.c.url, _blobs.c.size).where(
    _among(_blobs.c.artifact_id),
    _filter(
        _blobs.c.name == fields.ARCHIVE,
        _blobs.c.status == "active",
        _blobs.c.external.is_(False),
    ),
)

# A row for each requirement and class, and one for an archive without any.
_METADATA = (
    sa.select(
        _blobs.c.artifact_id,
        _blobs.c.sha256,
        _blobs.c.size,
        _properties.c.name,
        _properties.c.key_name,
        _properties.c.string_value,
    )
    .select_from(
        _blobs.outerjoin(
            _properties,
            sa.and_(
                _properties.c.artifact_id == _blobs.c.artifact_id,
                _filter(_properties.c.name.in_([_REQUIREMENTS, _CLASSES])),
            ),
        )
    )
    .where(
        _among(_blobs.c.artifact_id),
        _filter(_blobs.c.name == fields.ARCHIVE, _blobs.c.status == "active"),
    )
)

_IS_UPLOADED = (
    sa.select(_blobs.c.artifact_id)
    .where(
        _blobs.c.artifact_id == _artifacts.c.id,
        _blobs.c.name == fields.ARCHIVE,
        _blobs.c.status == "active",
    )
    .exists()
)

_CANDIDATES = sa.select(
    _artifacts.c.name,
    *_VERSION,
    _artifacts.c.owner,
    _artifacts.c.visibility,
    _artifacts.c.status,
).where(
    _among(_artifacts.c.name),
    _artifacts.c.id != sa.bindparam("except_id"),
    _filter(
        _artifacts.c.type_name == fields.TYPE_NAME,
        sa.or_(
            _artifacts.c.status == "active",
            sa.and_(_artifacts.c.status == "drafted", _IS_UPLOADED),
        ),
    ),
)


def _requiring(name: str, owner: str | None, *columns: Any) -> Any:
    """Select columns of the active artifacts that require a package."""
    statement = (
        sa.select(*columns)
        .select_from(_properties)
        .join(_artifacts, _artifacts.c.id == _properties.c.artifact_id)
        .where(
            _properties.c.name == _REQUIREMENTS,
            _properties.c.key_name == name,
            _artifacts.c.type_name == fields.TYPE_NAME,
            _artifacts.c.status == "active",
            _artifacts.c.name != name,
        )
    )
    return statement if owner is None else statement.where(_artifacts.c.owner == owner)
