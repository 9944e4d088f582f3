# SPDX-License-Identifier: Apache-2.0

"""Build the SQL statements that find packages in Glance's tables; see ``GlanceDatabase``.

Each statement joins and returns only what is necessary. The values to look up are parameters, so
that SQLAlchemy compiles each statement once.
"""

import functools
from collections.abc import Collection, Iterator
from typing import Any

import sqlalchemy as sa

from glare_murano import images
from glare_murano.glance.db.image_tables import ACCEPTED, IMAGES, MEMBERS, PROPERTIES

SHARED = "shared"

# The largest number of names for which the database searches properties with lists and mappings. A
# search for more names takes longer than reading all these properties.
_MAX_NAMES = 64
# The largest number of names in one statement. The search takes time for each name, and the time of
# a request is checked only between statements.
MAX_NAMES_AT_ONCE = 16
COMMUNITY = "community"


def among(column: Any) -> Any:
    """Return the SQL condition that a column has one of several values.

    The values are the bind parameter ``values`` of the statement.
    """
    return column.in_(sa.bindparam("values", expanding=True))


def _property(name: str, alias: str) -> tuple[Any, Any]:
    """Return an alias of the table of properties, and the condition that joins it to images.

    With this join, a statement can select the value of one property of each image.

    :param name: the name of the property.
    :param alias: the name of the alias.
    """
    table = PROPERTIES.alias(alias)
    is_property = sa.and_(
        table.c.image_id == IMAGES.c.id, table.c.name == name, table.c.deleted == sa.false()
    )
    return table, is_property


_version_table, _has_version = _property(images.VERSION, "version")
_published_table, _has_published = _property(images.PUBLISHED, "published")
_yanked_table, _is_yanked = _property(images.YANKED, "yanked")
_own_version_table, _has_own_version = _property(images.OWN_VERSION, "own_version")

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


def is_package(table: Any) -> Any:
    """Return the condition that an image is the image of a package, and is not deleted.

    :param table: the table of images, or an alias of it.
    """
    is_present = table.c.deleted == sa.false()
    return sa.and_(table.c.container_format == images.CONTAINER_FORMAT, is_present)


IS_PACKAGE = is_package(IMAGES)


def _packages(source: Any, own_version: Any) -> Any:
    """Return the statement for packages.

    :param source: the table of images, joined with the versions.
    :param own_version: the version that the owner has announced before the import.
    """
    joined = source.outerjoin(_published_table, _has_published)
    joined = joined.outerjoin(_yanked_table, _is_yanked)
    columns = (*_COLUMNS, own_version.label("own_version"))
    return sa.select(*columns).select_from(joined).where(IS_PACKAGE)


# The packages whose archive was imported.
IMPORTED = _packages(IMAGES.join(_version_table, _has_version), sa.null())
# All packages, also those without an archive.
EVERY = _packages(
    IMAGES.outerjoin(_version_table, _has_version).outerjoin(_own_version_table, _has_own_version),
    _own_version_table.c.value,
)


def _is_member(*conditions: Any) -> Any:
    return sa.exists().where(
        MEMBERS.c.image_id == IMAGES.c.id,
        MEMBERS.c.member == sa.bindparam("project"),
        MEMBERS.c.deleted == sa.false(),
        *conditions,
    )


def visible(is_admin: bool, has_project: bool) -> Any:
    """Return the condition for images in Glance's default list.

    Images of other projects with the visibility ``community`` are not in this list.

    :param is_admin: whether the viewer sees the images of all projects.
    :param has_project: whether the viewer has a project.
    """
    is_own = IMAGES.c.owner == sa.bindparam("project")
    if is_admin:
        return sa.or_(IMAGES.c.visibility != COMMUNITY, *[is_own] * has_project)
    is_public = IMAGES.c.visibility == "public"
    if not has_project:
        return is_public
    is_shared = sa.and_(IMAGES.c.visibility == SHARED, _is_member(MEMBERS.c.status == ACCEPTED))
    return sa.or_(is_public, is_own, is_shared)


def _visible_by_id(is_admin: bool, has_project: bool) -> Any:
    """Return the condition for images that Glance shows to a viewer who requests them by id."""
    if is_admin:
        return sa.true()
    is_open = IMAGES.c.visibility == COMMUNITY
    is_offered = sa.and_(IMAGES.c.visibility == SHARED, _is_member())
    return sa.or_(visible(is_admin, has_project), is_open, *[is_offered] * has_project)


@functools.lru_cache
def usable(column: str, is_admin: bool, has_project: bool) -> Any:
    """Return the statement for the packages that a viewer may use.

    The package whose id is the parameter ``package`` is also found if it is a draft or deactivated.

    :param column: the column to look up: ``id`` or ``name``.
    :param is_admin: whether the viewer sees the images of all projects.
    :param has_project: whether the viewer has a project.
    """
    is_listed = sa.and_(
        IMAGES.c.status == images.ACTIVE,
        _published_table.c.value.is_not(None),
        visible(is_admin, has_project),
    )
    is_package = sa.and_(
        IMAGES.c.id == sa.bindparam("package"),
        IMAGES.c.status.in_([images.ACTIVE, images.DEACTIVATED]),
        _visible_by_id(is_admin, has_project),
    )
    return IMPORTED.where(among(IMAGES.c[column]), sa.or_(is_listed, is_package))


def lists(names: Collection[str]) -> Iterator[Any]:
    """Yield statements that find the values of a property in which one of some names may occur.

    The property has lists or mappings as values. If there are more than ``_MAX_NAMES`` names, there
    is only one statement. It finds the values of the property for all active packages.

    :param names: the names to search for in the values.
    """
    if len(names) > _MAX_NAMES:
        yield _LISTS
        return
    found = [PROPERTIES.c.value.contains(f'"{name}"', autoescape=True) for name in sorted(names)]
    for start in range(0, len(found), MAX_NAMES_AT_ONCE):
        yield _LISTS.where(sa.or_(*found[start : start + MAX_NAMES_AT_ONCE]))


# Active packages with given names, of any project.
CANDIDATES = IMPORTED.where(among(IMAGES.c.name), IMAGES.c.status == images.ACTIVE)

# Packages with given names and versions, of any project.
NAMESAKES = IMPORTED.where(
    among(IMAGES.c.name),
    _version_table.c.value.in_(sa.bindparam("versions", expanding=True)),
)

# Packages with given ids, of any project.
BY_ID = IMPORTED.where(among(IMAGES.c.id))

# The values of one property, for all active packages.
_LISTS = sa.select(PROPERTIES.c.image_id, PROPERTIES.c.name, PROPERTIES.c.value).where(
    PROPERTIES.c.image_id == IMAGES.c.id,
    PROPERTIES.c.name == sa.bindparam("property"),
    PROPERTIES.c.deleted == sa.false(),
    IMAGES.c.status == images.ACTIVE,
    IS_PACKAGE,
)

# The values of one property, for images with given ids.
VALUES = sa.select(PROPERTIES.c.image_id, PROPERTIES.c.name, PROPERTIES.c.value).where(
    among(PROPERTIES.c.image_id),
    PROPERTIES.c.name == sa.bindparam("property"),
    PROPERTIES.c.deleted == sa.false(),
)

# The properties and the sizes of images with given ids, for ``PackageMetadata``.
METADATA = sa.select(
    PROPERTIES.c.image_id, PROPERTIES.c.name, PROPERTIES.c.value, IMAGES.c.size
).where(
    among(PROPERTIES.c.image_id),
    PROPERTIES.c.name.in_([images.REQUIREMENTS, images.CLASSES, images.SHA256]),
    PROPERTIES.c.deleted == sa.false(),
    IMAGES.c.id == PROPERTIES.c.image_id,
)

# The projects with which images with given ids are shared.
MEMBERS_OF = sa.select(MEMBERS.c.image_id, MEMBERS.c.member, MEMBERS.c.status).where(
    among(MEMBERS.c.image_id), MEMBERS.c.deleted == sa.false()
)
