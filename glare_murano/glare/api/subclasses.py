# SPDX-License-Identifier: Apache-2.0

"""The resource ``subclasses``: all direct and indirect subclasses of a class."""

import jsonschema
import webob

from glare_murano import resolver
from glare_murano.glare import policies
from glare_murano.glare.api import validation
from glare_murano.glare.db import queries
from glare_murano.glare.db.subclasses import find_subclasses

SCHEMA = {
    "type": "object",
    "properties": {"class": {"type": "string", "minLength": 1}},
    "required": ["class"],
    "additionalProperties": False,
}
_VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def show(req: webob.Request) -> webob.Response:
    """List the subclasses of a class, with their packages."""
    class_name = validation.read_parameters(req, _VALIDATOR)["class"]
    viewer = policies.viewer_of(req.context)
    with queries.snapshot() as connection:
        found = find_subclasses(connection, viewer, class_name)
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
