# SPDX-License-Identifier: Apache-2.0

"""Build the SQL statements for lists of packages in Glare's tables; see ``GlareDatabase``.

The statements find all packages that meet the conditions. They may also find other packages, for
example in a database that ignores case. So ``service.listed_packages`` checks the conditions again.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from glare.db.sqlalchemy import models

from glare_murano import fields
from glare_murano.glare.db import artifact_queries
from glare_murano.package_order import SEARCHED
from glare_murano.selection import ANY, Selection
from glare_murano.service.database import Viewer
from glare_murano.service.list_statements import NameRange, like, literals_of, sort_names

_artifacts = models.Artifact.__table__.c
_properties = models.ArtifactProperty.__table__.c
_blobs = models.ArtifactBlob.__table__.c
_tags = models.ArtifactTag.__table__.c

# Field -> its column.
COLUMNS = {name: _artifacts[name] for name in ("description", "created_at", "updated_at")}
# Condition -> the column with its value.
_ATTRIBUTES: Mapping[str, Any] = {
    name: _artifacts[name] for name in ("id", "owner", "status", "visibility")
}
_SEARCHED = [name for name in SEARCHED if name in {field.name for field in fields.FIELDS}]


def listed(selection: Selection, viewer: Viewer, names: Iterable[str] | None) -> Any:
    """Return the statement for the packages of a list.

    :param names: the names of the packages to search; None to search all packages.
    """
    statement = _restricted(sa.select(*artifact_queries.RECORD), selection, viewer)
    return statement if names is None else statement.where(_artifacts.name.in_(list(names)))


def sorted_names(selection: Selection, viewer: Viewer, names: NameRange) -> Any:
    """Return the statement for the names of the listed packages, sorted and without duplicates."""
    name = _artifacts.name
    statement = _restricted(sa.select(name), selection, viewer).group_by(name)
    return sort_names(statement, name, names)


def _restricted(statement: Any, selection: Selection, viewer: Viewer) -> Any:
    """Restrict a statement to artifacts that meet the conditions and are visible to the viewer."""
    if literals := literals_of(selection.words):
        found = _containing(literals).subquery()
        statement = statement.join_from(
            models.Artifact.__table__, found, found.c.id == _artifacts.id
        )
    listed = sa.select(_artifacts.id).where(
        _artifacts.type_name == fields.TYPE_NAME, _artifacts.status.in_(list(selection.statuses))
    )
    listed = artifact_queries.visible(listed, viewer.is_admin, viewer.project_id is not None)
    statement = statement.where(
        artifact_queries.without_index(listed.whereclause),
        *(_condition(name, list(values)) for name, values in selection.values.items()),
    )
    if selection.yanked is None:
        return statement
    is_yanked = _artifacts.id.in_(_with("yanked"))
    return statement.where(is_yanked if selection.yanked else ~is_yanked)


def _condition(name: str, values: list[str]) -> Any:
    if name == "name":
        patterns = [like(_artifacts.name, value) for value in values if ANY in value]
        return sa.or_(_artifacts.name.in_([v for v in values if ANY not in v]), *patterns)
    if name in _ATTRIBUTES:
        return _ATTRIBUTES[name].in_(values)
    if name == "tags":
        tagged = sa.select(_tags.artifact_id)
        return _artifacts.id.in_(tagged.where(_tags.value.in_(values)) if values else tagged)
    if name == "requirements" and values:
        return _artifacts.id.in_(artifact_queries.requiring(values))
    value = _properties.key_name if name == "inherits" else _properties.string_value
    found = _with(name).where(value.in_(values)) if values else _with(name)
    if name == "type":
        # Many packages have the same type, so the type is compared for each package that was found.
        of_artifact = _properties.artifact_id == _artifacts.id
        is_type = artifact_queries.without_index(found.whereclause)
        return sa.exists().where(of_artifact, is_type)
    return _artifacts.id.in_(found)


def _with(name: str) -> Any:
    """Return the statement for the ids of artifacts that have any value in a field.

    :param name: the name of the field, which is a property in Glare's database.
    """
    return sa.select(_properties.artifact_id).where(_properties.name == name)


def _containing(literals: Collection[str]) -> Any:
    """Return the statement for the ids of artifacts that contain one of the given strings.

    A string can be in the name, the description, the tags, or a field of ``SEARCHED``.

    :param literals: the strings, in lower case.
    """
    artifacts = models.Artifact.__table__.alias().c

    def contains(column: Any) -> Any:
        lowered = sa.func.lower(column)
        return sa.or_(*(lowered.contains(each, autoescape=True) for each in literals))

    return sa.union(
        sa.select(artifacts.id).where(
            sa.or_(contains(artifacts.name), contains(artifacts.description))
        ),
        sa.select(_properties.artifact_id).where(
            _properties.name.in_(_SEARCHED), contains(_properties.string_value)
        ),
        sa.select(_tags.artifact_id).where(contains(_tags.value)),
    )


# The values of fields of artifacts with given ids: strings, and elements of lists and mappings.
PROPERTIES = (
    sa.select(
        _properties.artifact_id,
        _properties.name,
        _properties.key_name,
        _properties.string_value,
    )
    .where(
        artifact_queries.among(_properties.artifact_id),
        artifact_queries.without_index(_properties.name.in_(sa.bindparam("names", expanding=True))),
    )
    .order_by(_properties.position)
)

TAGS = sa.select(_tags.artifact_id, _tags.value).where(artifact_queries.among(_tags.artifact_id))

ATTRIBUTES = sa.select(_artifacts.id, *COLUMNS.values()).where(
    artifact_queries.among(_artifacts.id)
)

DIGESTS = sa.select(_blobs.artifact_id, _blobs.sha256, _blobs.size).where(
    artifact_queries.among(_blobs.artifact_id),
    artifact_queries.without_index(artifact_queries.IS_ARCHIVE),
)
