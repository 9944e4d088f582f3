# SPDX-License-Identifier: Apache-2.0

"""Build the SQL statements that find packages in Glare's tables; see ``GlareDatabase``.

The values to look up are parameters, so that SQLAlchemy compiles each statement only once: it takes
longer to compile a statement than to execute it. The statements select rows of tables, and not
objects of mapped classes, which take longer to read.
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
    """Return the value of the column ``version_prefix`` for a version.

    The column contains the three numbers of the version as one number, without pre-release and
    build metadata.
    """
    prefix: int = semver_db.parse(str(version)).__composite_values__()[0]
    return prefix


def version_of(row: Row) -> Version:
    """Return the version of an artifact, from its row."""
    return _version(row.version_prefix, row.version_suffix, row.version_meta)


# Versions are cached, since most packages share a few versions.
@functools.lru_cache(maxsize=4096)
def _version(prefix: int, suffix: str | None, meta: str | None) -> Version:
    version: Version = semver_db.DBVersion(prefix, suffix, meta).version
    return version


def requiring(names: Iterable[str]) -> Any:
    """Return a statement for the ids of artifacts that require any of several packages.

    A package's requirement on itself does not count.
    """
    # This statement becomes a part of Glare's statements, so it needs aliases of the tables.
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
    """Return the condition that a column has one of the values of the parameter ``values``."""
    return column.in_(sa.bindparam("values", expanding=True))


def without_index(*conditions: Any) -> Any:
    """Join conditions by AND, and prevent the database from using indexes for them.

    Use this for conditions that most artifacts meet. SQLite does not know how many artifacts meet a
    condition. With an index for such a condition, it would look up all active artifacts, or all
    requirements, to find fifty artifacts.
    """
    return sa.case((sa.and_(*conditions), 1), else_=0) == 1


def visible(statement: Any, is_admin: bool, has_project: bool) -> Any:
    """Restrict a statement to visible artifacts, by the rule that Glare itself uses for lists."""
    viewer = Viewer(sa.bindparam("project") if has_project else None, is_admin)
    return database._apply_query_base_filters(statement, viewer)


@functools.lru_cache
def usable(column: str, is_admin: bool, has_project: bool) -> Any:
    """Return the statement for artifacts that are visible and active.

    A visible artifact with the id in the parameter ``package`` need not be active, but must not be
    deleted.

    :param column: the column to look up: ``id`` or ``name``.
    :param is_admin: whether the viewer sees the artifacts of all projects.
    :param has_project: whether the viewer has a project.
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
    """Return the statement for visible, active artifacts that extend one of the given classes."""
    statement = _of_active("inherits", *_ELEMENT, _artifacts.id, _artifacts.name, *_VERSION)
    return visible(statement.where(among(_properties.key_name)), is_admin, has_project)


def dependents(name: str, owner: str | None) -> Any:
    """Return the statement for the ranges in which active artifacts require a package.

    A package's requirement on itself does not count.

    :param name: the FQN of the required package.
    :param owner: the project of the artifacts; None for all projects.
    """
    columns = (*_ELEMENT, _artifacts.owner, _artifacts.visibility)
    return _requiring(name, owner, *columns).distinct()


def dependents_in(name: str, group: DependentsRecord) -> Any:
    """Return the statement for the artifacts in a group of dependents.

    :param name: the FQN of the required package.
    :param group: a group that ``dependents`` has found for the required package.
    """
    return _requiring(name, group.owner, _artifacts.name, *_VERSION).where(
        _properties.string_value == group.range, _artifacts.visibility == group.visibility
    )


def _requiring(name: str, owner: str | None, *columns: Any) -> Any:
    statement = _of_active(REQUIREMENTS, *columns).where(
        _properties.key_name == name, _artifacts.name != name
    )
    return statement if owner is None else statement.where(_artifacts.owner == owner)


def _of_active(field: str, *columns: Any) -> Any:
    """Return a statement for active artifacts, joined with the elements of a list or mapping.

    :param field: the field with the list or mapping.
    :param columns: the columns that the statement selects.
    """
    return sa.select(*columns).where(
        _artifacts.id == _properties.artifact_id,
        _properties.name == field,
        _artifacts.type_name == fields.TYPE_NAME,
        _artifacts.status == "active",
    )


# The reasons of yanked artifacts with given ids. Few artifacts have this property.
YANKED = sa.select(_properties.artifact_id, _properties.string_value).where(
    _properties.name == "yanked", among(_properties.artifact_id)
)

# The ids of artifacts that define given classes.
DEFINING = sa.select(_properties.string_value, _properties.artifact_id).where(
    _properties.name == CLASSES, among(_properties.string_value)
)

# The requirements of artifacts with given ids.
RANGES = sa.select(_properties.artifact_id, *_ELEMENT).where(
    among(_properties.artifact_id), without_index(_properties.name == REQUIREMENTS)
)

IS_ARCHIVE = sa.and_(_blobs.name == fields.ARCHIVE, _blobs.status == "active")

# The stored archives of artifacts with given ids.
ARCHIVES = sa.select(_blobs.artifact_id, _blobs.url, _blobs.size).where(
    among(_blobs.artifact_id), without_index(IS_ARCHIVE, _blobs.external.is_(False))
)

# The metadata of artifacts with given ids: a row for each requirement and each class, or one row
# for an archive that has neither.
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

# Active artifacts, and drafts with an uploaded archive, with given names, of any project.
CANDIDATES = sa.select(*RECORD).where(
    among(_artifacts.name),
    without_index(
        _artifacts.type_name == fields.TYPE_NAME,
        sa.or_(
            _artifacts.status == "active", sa.and_(_artifacts.status == "drafted", _HAS_ARCHIVE)
        ),
    ),
)

# Artifacts with given names and version numbers, of any project. Drafts without an archive are
# left out: they cannot be published, and any user can create many of them through the API.
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

# The artifacts, of any type, to which a blob is being uploaded, without duplicates.
UPLOADS = (
    sa.select(_artifacts.id, _artifacts.type_name, _artifacts.created_at)
    .where(_blobs.artifact_id == _artifacts.id, _blobs.status == "saving")
    .distinct()
)

# One artifact of any type.
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
