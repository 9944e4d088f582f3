# SPDX-License-Identifier: Apache-2.0

"""All heirs of a class, direct and indirect, asked of Glare's own database.

Classes are known by name: an heir of a class is one in every version of the
packages that define both. A level of heirs takes one statement.
"""

import collections
import dataclasses
from typing import Any

import sqlalchemy as sa
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models

from glare_murano import fields
from glare_murano.glare.db.queries import VERSION, among, looked_up, version_of
from glare_murano.package import Version


@dataclasses.dataclass
class Heir:
    """A class that inherits from another, directly or not.

    :ivar extends: which of the classes above it it extends.
    :ivar packages: FQN of a package that defines it -> its versions that do.
    """

    extends: set[str] = dataclasses.field(default_factory=set)
    packages: dict[str, set[Version]] = dataclasses.field(
        default_factory=lambda: collections.defaultdict(set)
    )


def heirs(connection: Any, context: Any, see_all: bool, class_name: str) -> dict[str, Heir]:
    """All heirs of a class in the active packages that the caller can list.

    :param connection: one to Glare's database, in a transaction.
    :param see_all: whether a list call of the caller would show the artifacts
        of all projects.
    :returns: name of a class -> what is known of it.
    """
    found: dict[str, Heir] = collections.defaultdict(Heir)
    extending = _extending(context, see_all)
    level = {class_name}
    seen = {class_name}
    while level:
        for row in looked_up(connection, extending, level):
            # A database may compare without regard to case.
            if row.key_name in level:
                for name in row.string_value.split(","):
                    found[name].extends.add(row.key_name)
                    found[name].packages[row.name].add(version_of(row))
        level = found.keys() - seen
        seen |= level
    return dict(found)


def _extending(context: Any, see_all: bool) -> Any:
    """The statement that gives rows of the field "inherits" with one of the keys asked for."""
    statement = (
        sa.select(
            models.ArtifactProperty.key_name,
            models.ArtifactProperty.string_value,
            models.Artifact.name,
            *VERSION,
        )
        .select_from(models.ArtifactProperty)
        .join(models.Artifact, models.Artifact.id == models.ArtifactProperty.artifact_id)
        .where(
            among(models.ArtifactProperty.key_name),
            models.ArtifactProperty.name == "inherits",
            models.Artifact.type_name == fields.TYPE_NAME,
            models.Artifact.status == "active",
        )
    )
    # Glare's own rule of what a caller can list.
    return database._apply_query_base_filters(statement, context, see_all)
