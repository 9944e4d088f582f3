# SPDX-License-Identifier: Apache-2.0

"""All subclasses of a class, direct and indirect, from Glare's database.

Classes are identified by name, across all versions of packages. A level of
subclasses takes one statement.
"""

import collections
import dataclasses

from sqlalchemy.engine import Connection

from glare_murano.glare.db import queries
from glare_murano.glare.policies import Viewer
from glare_murano.package import Version


@dataclasses.dataclass
class Subclass:
    """A direct or indirect subclass of a class.

    :ivar extends: its direct base classes within the hierarchy.
    :ivar packages: FQN of a package with its definition -> versions of the package.
    """

    extends: set[str] = dataclasses.field(default_factory=set)
    packages: dict[str, set[Version]] = dataclasses.field(
        default_factory=lambda: collections.defaultdict(set)
    )


def find_subclasses(connection: Connection, viewer: Viewer, class_name: str) -> dict[str, Subclass]:
    """Return all subclasses of a class by name, in the active packages visible to a viewer."""
    found: dict[str, Subclass] = collections.defaultdict(Subclass)
    level = {class_name}
    seen = {class_name}
    while level:
        for row in queries.find_extending(connection, viewer, level):
            # Some databases ignore case.
            if row.key_name in level:
                for name in row.string_value.split(","):
                    found[name].extends.add(row.key_name)
                    found[name].packages[row.name].add(queries.version_of(row))
        level = found.keys() - seen
        seen |= level
    return dict(found)
