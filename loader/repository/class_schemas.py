# SPDX-License-Identifier: Apache-2.0

"""Request the JSON schemas of classes, which Murano's API makes for forms."""

import urllib.parse
from collections.abc import Sequence
from typing import Any

from loader import errors
from loader.transport.adapter import ServiceAdapter
from loader.transport.failures import NoSuchPath


def class_schema(
    murano: ServiceAdapter,
    class_name: str,
    methods: Sequence[str] = (),
    version: str | None = None,
    package: str | None = None,
    lists_subclasses: bool = False,
) -> Any:
    """Return the schema of a class and its model builders.

    :param murano: a client for Murano's API.
    :param methods: model builders, if only their schemas are wanted; by default, the class and
        all its model builders.
    :param version: the range for the package's version; by default, the newest version.
    :param package: the name of the package, if several define the class.
    :param lists_subclasses: whether the schemas of objects list the subclasses of their classes;
        this needs the filter ``murano-packages``.
    :raises NotFound: if no package in the range defines the class.
    :raises CatalogError: if Murano's API does not answer.
    """
    parts = [class_name, ",".join(methods)] if methods else [class_name]
    path = "/v1/schemas/" + "/".join(urllib.parse.quote(part, safe=",") for part in parts)
    given = {
        "classVersion": version,
        "packageName": package,
        "subclasses": "true" if lists_subclasses else None,
    }
    query = urllib.parse.urlencode({key: value for key, value in given.items() if value})
    try:
        return murano.document("GET", f"{path}?{query}")
    except NoSuchPath as error:
        raise errors.NotFound(
            f"class {class_name} in the range {version or '*'} was not found by Murano; check the "
            f"names and the range: {error}"
        ) from error
