# SPDX-License-Identifier: Apache-2.0

"""The resource ``subclasses``: all direct and indirect subclasses of a class.

Classes are identified by name, across all versions of packages.
"""

import collections
import dataclasses

import jsonschema
import webob
from sqlalchemy.engine import Connection

from glare_murano import resolver
from glare_murano.glare import policies
from glare_murano.glare.api import validation
from glare_murano.glare.db import queries
from glare_murano.package import Version

SCHEMA = {
    "type": "object",
    "properties": {"class": {"type": "string", "minLength": 1}},
    "required": ["class"],
    "additionalProperties": False,
}
_VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@dataclasses.dataclass
class _Subclass:
    """A direct or indirect subclass of a class.

    :ivar extends: its direct base classes within the hierarchy.
    :ivar packages: FQN of a package with its definition -> versions of the package.
    """

    extends: set[str] = dataclasses.field(default_factory=set)
    packages: dict[str, set[Version]] = dataclasses.field(
        default_factory=lambda: collections.defaultdict(set)
    )


def show(req: webob.Request) -> webob.Response:
    """List the subclasses of a class, with their packages."""
    class_name = validation.read_parameters(req, _VALIDATOR)["class"]
    viewer = policies.viewer_of(req.context)
    with queries.snapshot() as connection:
        found = _find_subclasses(connection, viewer, class_name)
    listed = [
        {
            "class": name,
            "extends": sorted(subclass.extends),
            "packages": {
                fqn: [str(version) for version in resolver.newest_first(versions)]
                for fqn, versions in sorted(subclass.packages.items())
            },
        }
        for name, subclass in sorted(found.items())
    ]
    return webob.Response(json={"class": class_name, "subclasses": listed})


def _find_subclasses(
    connection: Connection, viewer: policies.Viewer, class_name: str
) -> dict[str, _Subclass]:
    """Find the subclasses in active packages visible to a viewer, a level by a statement."""
    found: dict[str, _Subclass] = collections.defaultdict(_Subclass)
    level = seen = {class_name}
    while level:
        for row in queries.find_extending(connection, viewer, level):
            # Some databases ignore case.
            if row.key_name in level:
                for name in row.string_value.split(","):
                    found[name].extends.add(row.key_name)
                    found[name].packages[row.name].add(queries.version_of(row))
        level = found.keys() - seen
        seen = seen | level
    return found
