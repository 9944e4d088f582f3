# SPDX-License-Identifier: Apache-2.0

"""The SQL statements to find packages in Glare's tables; see ``GlareDatabase``.

Values for look-ups are parameters, so that SQLAlchemy compiles each statement once:
compiling takes longer than running. Statements select from tables, since objects of
mapped classes take longer to read than rows.
"""

import functools
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from glare.common import semver_db
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models
from sqlalchemy.engine import Row

from glare_murano import fields
from glare_murano.package import Version
from glare_murano.service.database import DependentsRecord, Viewer

REQUIREMENTS = "requirements"
CLASSES = "class_definitions"

_artifacts = models.Artifact.__table__.c
_blobs = models.ArtifactBlob.__table__.c
_properties = models.ArtifactProperty.__table__.c

_VERSION = (_artifacts.version_prefix, _artifacts.version_suffix, _artifacts.version_meta)
# The columns of an element of a list or a dict.
_ELEMENT = (_properties.key_name, _properties.string_value)
# The columns for ``PackageRecord``.
RECORD = (
    *(_artifacts.id, _artifacts.name, *_VERSION),
    *(_artifacts.owner, _artifacts.visibility, _artifacts.status),
)


def prefix_of(version: Version) -> int:
    """Return the column with the numbers of a version, without a pre-release or a build."""
    prefix: int = semver_db.parse(str(version)).__composite_values__()[0]
    return prefix


def version_of(row: Row) -> Version:
    """Return the version in a row of artifacts."""
    return _version(row.version_prefix, row.version_suffix, row.version_meta)


# Most packages share a few versions, so that each is read once.
@functools.lru_cache(maxsize=4096)
def _version(prefix: int, suffix: str | None, meta: str | None) -> Version:
    version: Version = semver_db.DBVersion(prefix, suffix, meta).version
    return version


def requiring(names: Iterable[str]) -> Any:
    """Return a statement for the ids of artifacts that require any of several packages.

    A package's requirement on itself does not count.
    """
    # This statement becomes a part of Glare's statements, so it needs tables of its own.
    properties, artifacts = (
        model.__table__.alias().c for model in (models.ArtifactProperty, models.Artifact)
    )
    return sa.select(properties.artifact_id).where(
        properties.name == REQUIREMENTS,
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


def among(column: Any) -> Any:
    """Return the condition that a column has one of the values of a look-up."""
    return column.in_(sa.bindparam("values", expanding=True))


def without_index(*conditions: Any) -> Any:
    """Join conditions, and keep the database from using indexes for them.

    Most artifacts meet these conditions. SQLite does not know the number of rows for a value:
    with an index, it would look up all active artifacts, or all requirements, to find fifty
    artifacts.
    """
    return sa.case((sa.and_(*conditions), 1), else_=0) == 1


def visible(statement: Any, is_admin: bool, has_project: bool) -> Any:
    """Restrict a statement to visible artifacts, by Glare's own rule for lists."""
    viewer = Viewer(sa.bindparam("project") if has_project else None, is_admin)
    return database._apply_query_base_filters(statement, viewer)


@functools.lru_cache
def usable(column: str, is_admin: bool, has_project: bool) -> Any:
    """Return the statement for visible artifacts that are active, or the package of the query.

    The package of the query may have any state but deleted.

    :param column: the column of the values: ``id`` or ``name``.
    """
    is_package = _artifacts.id == sa.bindparam("package")
    usable = sa.select(_artifacts.id).where(
        _artifacts.type_name == fields.TYPE_NAME,
        sa.or_(_artifacts.status == "active", sa.and_(is_package, _artifacts.status != "deleted")),
    )
    condition = visible(usable, is_admin, has_project).whereclause
    return sa.select(*RECORD).where(among(_artifacts[column]), without_index(condition))


@functools.lru_cache
def extending(is_admin: bool, has_project: bool) -> Any:
    """Return the statement for active, visible artifacts with direct subclasses of classes."""
    statement = _of_active("inherits", *_ELEMENT, _artifacts.id, _artifacts.name, *_VERSION)
    return visible(statement.where(among(_properties.key_name)), is_admin, has_project)


def dependents(name: str, owner: str | None) -> Any:
    """Return the statement for the ranges in which active artifacts require a package.

    :param owner: the project of the artifacts; None for all.
    """
    columns = (*_ELEMENT, _artifacts.owner, _artifacts.visibility)
    return _requiring(name, owner, *columns).distinct()


def dependents_in(name: str, group: DependentsRecord) -> Any:
    """Return the statement for the artifacts of a group of dependents of a package."""
    return _requiring(name, group.owner, _artifacts.name, *_VERSION).where(
        _properties.string_value == group.range, _artifacts.visibility == group.visibility
    )


def _requiring(name: str, owner: str | None, *columns: Any) -> Any:
    statement = _of_active(REQUIREMENTS, *columns).where(
        _properties.key_name == name, _artifacts.name != name
    )
    return statement if owner is None else statement.where(_artifacts.owner == owner)


def _of_active(field: str, *columns: Any) -> Any:
    """Return a statement that joins active artifacts with the elements of one of their fields."""
    return sa.select(*columns).where(
        _artifacts.id == _properties.artifact_id,
        _properties.name == field,
        _artifacts.type_name == fields.TYPE_NAME,
        _artifacts.status == "active",
    )


# The reasons of yanked artifacts by id; few artifacts have this property.
YANKED = sa.select(_properties.artifact_id, _properties.string_value).where(
    _properties.name == "yanked", among(_properties.artifact_id)
)

# The artifacts that define classes.
DEFINING = sa.select(_properties.string_value, _properties.artifact_id).where(
    _properties.name == CLASSES, among(_properties.string_value)
)

# The requirements of artifacts by id.
RANGES = sa.select(_properties.artifact_id, *_ELEMENT).where(
    among(_properties.artifact_id), without_index(_properties.name == REQUIREMENTS)
)

IS_ARCHIVE = sa.and_(_blobs.name == fields.ARCHIVE, _blobs.status == "active")

# The stored archives of artifacts by id.
ARCHIVES = sa.select(_blobs.artifact_id, _blobs.url, _blobs.size).where(
    among(_blobs.artifact_id), without_index(IS_ARCHIVE, _blobs.external.is_(False))
)

# A row for each requirement and each class, and one row for an archive that has neither.
METADATA = (
    sa.select(_blobs.artifact_id, _blobs.sha256, _blobs.size, _properties.name, *_ELEMENT)
    .outerjoin_from(
        models.ArtifactBlob.__table__,
        models.ArtifactProperty.__table__,
        sa.and_(
            _properties.artifact_id == _blobs.artifact_id,
            without_index(_properties.name.in_([REQUIREMENTS, CLASSES])),
        ),
    )
    .where(among(_blobs.artifact_id), without_index(IS_ARCHIVE))
)

_HAS_ARCHIVE = sa.exists().where(_blobs.artifact_id == _artifacts.id, IS_ARCHIVE)

# Active artifacts by name, of any project, and drafts with an uploaded archive.
CANDIDATES = sa.select(*RECORD).where(
    among(_artifacts.name),
    without_index(
        _artifacts.type_name == fields.TYPE_NAME,
        sa.or_(
            _artifacts.status == "active", sa.and_(_artifacts.status == "drafted", _HAS_ARCHIVE)
        ),
    ),
)

# Artifacts by name and the numbers of their versions, of any project. A draft without an archive
# cannot be published, and everybody can create many of them.
NAMESAKES = sa.select(*RECORD).where(
    among(_artifacts.name),
    _artifacts.version_prefix.in_(sa.bindparam("prefixes", expanding=True)),
    without_index(
        _artifacts.type_name == fields.TYPE_NAME,
        _artifacts.status != "deleted",
        sa.or_(_artifacts.status != "drafted", _HAS_ARCHIVE),
    ),
)

# The URLs of all blobs, of any artifact type.
BLOB_URLS = sa.select(_blobs.url).where(_blobs.url.is_not(None))

# The artifacts, of any type, to which a blob is being uploaded.
UPLOADS = (
    sa.select(_artifacts.id, _artifacts.type_name, _artifacts.created_at)
    .where(_blobs.artifact_id == _artifacts.id, _blobs.status == "saving")
    .distinct()
)

# One artifact of any type, if there is one.
ANY_ARTIFACT = sa.select(_artifacts.id).limit(1)

# The drafts that were not changed since the time ``before``, the oldest first.
OLD_DRAFTS = (
    sa.select(_artifacts.id, _artifacts.updated_at, _artifacts.name, _artifacts.owner, *_VERSION)
    .where(
        _artifacts.type_name == fields.TYPE_NAME,
        _artifacts.status == "drafted",
        _artifacts.updated_at < sa.bindparam("before"),
    )
    .order_by(_artifacts.updated_at)
)
