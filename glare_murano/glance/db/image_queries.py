# SPDX-License-Identifier: Apache-2.0

"""The SQL statements to find packages in Glance's tables; see ``GlanceDatabase``.

No statement joins or returns more than is necessary. Values for look-ups are parameters, so
SQLAlchemy compiles each statement once.
"""

import functools
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from glare_murano import images
from glare_murano.glance.db.image_tables import ACCEPTED, IMAGES, MEMBERS, PROPERTIES

SHARED = "shared"

# The most names for which the database searches properties with lists and mappings. A search for
# more names takes longer than reading all these properties.
_MAX_NAMES = 64
_COMMUNITY = "community"


def _among(column: Any) -> Any:
    return column.in_(sa.bindparam("values", expanding=True))


def _property(name: str, alias: str) -> tuple[Any, Any]:
    """Return an alias of the table for a property, and the condition to join it to an image."""
    table = PROPERTIES.alias(alias)
    is_property = sa.and_(
        table.c.image_id == IMAGES.c.id, table.c.name == name, table.c.deleted == sa.false()
    )
    return table, is_property


_version_table, _has_version = _property(images.VERSION, "version")
_published_table, _has_published = _property(images.PUBLISHED, "published")
_yanked_table, _is_yanked = _property(images.YANKED, "yanked")

_COLUMNS = (
    IMAGES.c.id,
    IMAGES.c.name,
    IMAGES.c.owner,
    IMAGES.c.visibility,
    IMAGES.c.status,
    _version_table.c.name.label("version_name"),
    _version_table.c.value.label("version"),
    _published_table.c.name.label("published_name"),
    _published_table.c.value.label("published"),
    _yanked_table.c.name.label("yanked_name"),
    _yanked_table.c.value.label("yanked"),
    IMAGES.c.created_at,
)
# The packages of the catalogue whose archive was imported.
_PACKAGES = (
    sa.select(*_COLUMNS)
    .select_from(
        IMAGES.join(_version_table, _has_version)
        .outerjoin(_published_table, _has_published)
        .outerjoin(_yanked_table, _is_yanked)
    )
    .where(IMAGES.c.container_format == images.CONTAINER_FORMAT, IMAGES.c.deleted == sa.false())
)


def _is_member(*conditions: Any) -> Any:
    return sa.exists().where(
        MEMBERS.c.image_id == IMAGES.c.id,
        MEMBERS.c.member == sa.bindparam("project"),
        MEMBERS.c.deleted == sa.false(),
        *conditions,
    )


def _visible(is_admin: bool, has_project: bool) -> Any:
    """Return the condition for images in Glance's default list, which has no community images."""
    is_own = IMAGES.c.owner == sa.bindparam("project")
    if is_admin:
        return sa.or_(IMAGES.c.visibility != _COMMUNITY, *[is_own] * has_project)
    is_public = IMAGES.c.visibility == "public"
    if not has_project:
        return is_public
    is_shared = sa.and_(IMAGES.c.visibility == SHARED, _is_member(MEMBERS.c.status == ACCEPTED))
    return sa.or_(is_public, is_own, is_shared)


def _visible_by_id(is_admin: bool, has_project: bool) -> Any:
    """Return the condition for images that Glance shows to those who know the id."""
    if is_admin:
        return sa.true()
    is_open = IMAGES.c.visibility == _COMMUNITY
    is_offered = sa.and_(IMAGES.c.visibility == SHARED, _is_member())
    return sa.or_(_visible(is_admin, has_project), is_open, *[is_offered] * has_project)


@functools.lru_cache
def usable(column: str, is_admin: bool, has_project: bool) -> Any:
    """Return the statement for the packages that a caller may use, and for the package of a query.

    :param column: the column of the values: ``id`` or ``name``.
    """
    is_listed = sa.and_(
        IMAGES.c.status == images.ACTIVE,
        _published_table.c.value.is_not(None),
        _visible(is_admin, has_project),
    )
    is_package = sa.and_(
        IMAGES.c.id == sa.bindparam("package"),
        IMAGES.c.status.in_([images.ACTIVE, images.DEACTIVATED]),
        _visible_by_id(is_admin, has_project),
    )
    return _PACKAGES.where(_among(IMAGES.c[column]), sa.or_(is_listed, is_package))


def lists(names: Collection[str]) -> Any:
    """Return the statement for lists and mappings that may contain one of the names.

    With too many names, the statement finds all lists and mappings.
    """
    if len(names) > _MAX_NAMES:
        return _LISTS
    found = (PROPERTIES.c.value.contains(f'"{name}"', autoescape=True) for name in names)
    return _LISTS.where(sa.or_(*found))


# Active packages by name, of any project.
CANDIDATES = _PACKAGES.where(_among(IMAGES.c.name), IMAGES.c.status == images.ACTIVE)

# Public packages by name.
PUBLIC = _PACKAGES.where(_among(IMAGES.c.name), IMAGES.c.visibility == "public")

# Packages by id, of any project.
BY_ID = _PACKAGES.where(_among(IMAGES.c.id))

# The values of a property, for all active packages.
_LISTS = sa.select(PROPERTIES.c.image_id, PROPERTIES.c.name, PROPERTIES.c.value).where(
    PROPERTIES.c.image_id == IMAGES.c.id,
    PROPERTIES.c.name == sa.bindparam("property"),
    PROPERTIES.c.deleted == sa.false(),
    IMAGES.c.container_format == images.CONTAINER_FORMAT,
    IMAGES.c.status == images.ACTIVE,
    IMAGES.c.deleted == sa.false(),
)

# The values of a property, for images by id.
VALUES = sa.select(PROPERTIES.c.image_id, PROPERTIES.c.name, PROPERTIES.c.value).where(
    _among(PROPERTIES.c.image_id),
    PROPERTIES.c.name == sa.bindparam("property"),
    PROPERTIES.c.deleted == sa.false(),
)

# The properties and the size for ``PackageMetadata``.
METADATA = sa.select(
    PROPERTIES.c.image_id, PROPERTIES.c.name, PROPERTIES.c.value, IMAGES.c.size
).where(
    _among(PROPERTIES.c.image_id),
    PROPERTIES.c.name.in_([images.REQUIREMENTS, images.CLASSES, images.SHA256]),
    PROPERTIES.c.deleted == sa.false(),
    IMAGES.c.id == PROPERTIES.c.image_id,
)

# The projects that have accepted a shared image.
ACCEPTED_MEMBERS = sa.select(MEMBERS.c.image_id, MEMBERS.c.member).where(
    _among(MEMBERS.c.image_id),
    MEMBERS.c.status == ACCEPTED,
    MEMBERS.c.deleted == sa.false(),
)
