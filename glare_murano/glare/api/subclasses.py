# SPDX-License-Identifier: Apache-2.0

"""The resource ``subclasses``: all direct and indirect subclasses of a class.

Classes are identified by name, across all versions of packages.
"""

import collections

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


def show(req: webob.Request) -> webob.Response:
    """List the subclasses of a class, with their packages."""
    class_name = validation.read_parameters(req, SCHEMA)["class"]
    viewer = policies.viewer_of(req.context)
    with queries.snapshot() as connection:
        extends, packages = _find_subclasses(connection, viewer, class_name)
    listed = [
        {
            "class": name,
            "extends": sorted(bases),
            "packages": {
                fqn: [str(version) for version in resolver.newest_first(versions)]
                for fqn, versions in sorted(packages[name].items())
            },
        }
        for name, bases in sorted(extends.items())
    ]
    return webob.Response(json={"class": class_name, "subclasses": listed})


def _find_subclasses(
    connection: Connection, viewer: policies.Viewer, class_name: str
) -> tuple[dict[str, set[str]], dict[str, dict[str, set[Version]]]]:
    """Find the subclasses in active packages visible to a viewer, a level by a statement.

    :returns: subclass -> its direct base classes within the hierarchy, and subclass ->
        FQN of a package that defines it -> versions of the package.
    """
    extends: dict[str, set[str]] = collections.defaultdict(set)
    packages: dict[str, dict[str, set[Version]]] = collections.defaultdict(
        lambda: collections.defaultdict(set)
    )
    level = seen = {class_name}
    while level:
        for row in queries.find_extending(connection, viewer, level):
            # Some databases ignore case.
            if row.key_name in level:
                for name in row.string_value.split(","):
                    extends[name].add(row.key_name)
                    packages[name][row.name].add(queries.version_of(row))
        level = extends.keys() - seen
        seen = seen | level
    return extends, packages
