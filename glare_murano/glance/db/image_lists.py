# SPDX-License-Identifier: Apache-2.0

"""Build the SQL statements for lists of packages in Glance's tables; see ``GlanceDatabase``.

The statements find all packages that meet the conditions. They may also find other packages, since
MariaDB ignores case and accents, and since lists and mappings are stored as JSON. So
``GlanceDatabase`` and ``service.listed_packages`` check the conditions again.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from glare_murano import images
from glare_murano.glance.db import image_queries
from glare_murano.glance.db.image_tables import IMAGES, PROPERTIES
from glare_murano.package_order import SEARCHED
from glare_murano.selection import ACTIVE, ANY, DEACTIVATED, DRAFTED, Selection
from glare_murano.service.database import Viewer
from glare_murano.service.list_statements import NameRange, forms_of, like, literals_of, sort_names

# The largest number of characters of a text that the database searches. The owner of an image may
# write longer texts, and the time of a request is checked only between statements.
_MAX_SEARCHED = 2048

# Field -> its column.
COLUMNS = {name: IMAGES.c[name] for name in ("created_at", "updated_at")}
# Condition -> the column with its value.
_ATTRIBUTES: Mapping[str, Any] = {name: IMAGES.c[name] for name in ("id", "owner", "visibility")}
# The status of a package -> the status of its image. The image of a draft may have any status.
_STATUSES = {ACTIVE: images.ACTIVE, DEACTIVATED: images.DEACTIVATED}


def listed(selection: Selection, viewer: Viewer, names: Iterable[str] | None) -> Any:
    """Return the statement for the packages of a list.

    :param names: the names of the packages to search; None to search all packages.
    """
    has_drafts = DRAFTED in selection.statuses
    packages = image_queries.EVERY if has_drafts else image_queries.IMPORTED
    statement = _restricted(packages, selection, viewer)
    return statement if names is None else statement.where(IMAGES.c.name.in_(list(names)))


def sorted_names(selection: Selection, viewer: Viewer, names: NameRange) -> Any:
    """Return the statement for the names of the listed packages, sorted and without duplicates."""
    name = IMAGES.c.name
    is_named = name.is_not(None)
    statement = sa.select(name).where(image_queries.IS_PACKAGE, is_named).group_by(name)
    statement = _restricted(statement, selection, viewer)
    return sort_names(statement, name, names)


def _restricted(statement: Any, selection: Selection, viewer: Viewer) -> Any:
    """Restrict a statement to the images that meet the conditions and are visible to the viewer."""
    if literals := literals_of(selection.words):
        found = _containing(literals).subquery()
        statement = statement.where(found.c.id == IMAGES.c.id)
    if DRAFTED not in selection.statuses:
        statuses = [_STATUSES[status] for status in selection.statuses]
        statement = statement.where(IMAGES.c.status.in_(statuses))
    if selection.yanked:
        statement = statement.where(_has([images.YANKED]))
    conditions = {
        name: list(values) for name, values in selection.values.items() if name != "status"
    }
    return statement.where(
        image_queries.visible(viewer.is_admin, viewer.project_id is not None),
        *(_condition(name, values) for name, values in conditions.items()),
    )


def _condition(name: str, values: list[str]) -> Any:
    if name == "name":
        patterns = [like(IMAGES.c.name, value) for value in values if ANY in value]
        return sa.or_(IMAGES.c.name.in_([v for v in values if ANY not in v]), *patterns)
    if name in _ATTRIBUTES:
        return _ATTRIBUTES[name].in_(values)
    return _has(images.property_names(name), forms_of(values))


def _has(names: Collection[str], literals: Collection[str] = ()) -> Any:
    """Return the condition that an image has a property with one of several names.

    :param names: the names. The image has to have at least one property with one of these names.
    :param literals: the value of the property has to contain at least one of these strings. Any
        value is accepted if there are no strings, or too many strings for one statement.
    """
    properties = PROPERTIES.alias().c
    found = sa.exists().where(
        properties.image_id == IMAGES.c.id,
        properties.name.in_(list(names)),
        properties.deleted == sa.false(),
    )
    if not 0 < len(literals) <= image_queries.MAX_NAMES_AT_ONCE:
        return found
    return found.where(_may_contain(properties.value, properties.value, literals))


def _may_contain(column: Any, text: Any, literals: Collection[str]) -> Any:
    """Return the condition that a text contains one of several strings, or is too long to search.

    :param column: the column with the text.
    :param text: the column, or an expression that changes its case.
    :param literals: the strings.
    """
    contains = sa.or_(*(text.contains(each, autoescape=True) for each in literals))
    return sa.case((sa.func.length(column) > _MAX_SEARCHED, sa.true()), else_=contains)


def _containing(literals: Collection[str]) -> Any:
    """Return a statement that finds the ids of the packages that contain one of some strings.

    The string can be in the name of the package, or in a field of ``SEARCHED``.

    :param literals: the strings, in lower case.
    """
    names = [name for field in SEARCHED for name in images.property_names(field)]
    others = IMAGES.alias()

    def contains(column: Any) -> Any:
        return _may_contain(column, sa.func.lower(column), literals)

    return sa.union(
        sa.select(others.c.id).where(image_queries.is_package(others), contains(others.c.name)),
        sa.select(others.c.id).where(
            image_queries.is_package(others),
            PROPERTIES.c.image_id == others.c.id,
            PROPERTIES.c.name.in_(names),
            PROPERTIES.c.deleted == sa.false(),
            contains(PROPERTIES.c.value),
        ),
    )


# The properties that have given names, for images with given ids.
PROPERTY_VALUES = sa.select(PROPERTIES.c.image_id, PROPERTIES.c.name, PROPERTIES.c.value).where(
    image_queries.among(PROPERTIES.c.image_id),
    PROPERTIES.c.name.in_(sa.bindparam("names", expanding=True)),
    PROPERTIES.c.deleted == sa.false(),
)

ATTRIBUTES = sa.select(IMAGES.c.id, *COLUMNS.values()).where(image_queries.among(IMAGES.c.id))
