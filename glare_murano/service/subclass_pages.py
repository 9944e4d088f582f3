# SPDX-License-Identifier: Apache-2.0

"""Handle the resource ``subclasses``, which lists all direct and indirect subclasses of a class.

The subclasses are listed page by page. A class can extend a class of another package only if its
own package requires the other package, in a version that has the base class. The engine has the
same rule: it looks for a class only in the package itself and in its direct requirements.
"""

from collections.abc import Callable, Mapping
from typing import Any

import webob

from glare_murano import wire
from glare_murano.inheritance import find_subclasses
from glare_murano.package import VersionSpec
from glare_murano.package.manifest import check_fqn
from glare_murano.resolver import PackageVersion
from glare_murano.service import request_reading, schemas
from glare_murano.service.database import Database
from glare_murano.service.refusals import bad_request
from glare_murano.service.settings import Settings
from glare_murano.service.source import CatalogSource

# Parameter -> the function that reads it.
_READ: dict[str, Callable[[str], Any]] = {
    "class": check_fqn,
    "package": check_fqn,
    "version": VersionSpec.of,
    "marker": check_fqn,
    "limit": lambda text: request_reading.read_limit(text, wire.MAX_SUBCLASSES),
}


def read_parameters(req: webob.Request) -> dict[str, Any]:
    """Read the parameters of a request for subclasses.

    :returns: name of a parameter -> parsed value.
    :raises RefusedRequest: if a value is not valid.
    """
    read = {}
    for name, text in request_reading.read_parameters(req, schemas.SUBCLASSES).items():
        try:
            read[name] = _READ[name](text)
        except ValueError as error:
            raise bad_request(f"{name}: {error}") from error
    return read


def find(
    req: webob.Request, parameters: Mapping[str, Any], database: Database, settings: Settings
) -> dict[str, Any]:
    """Return a page of a class's subclasses, with their packages, as a JSON object.

    :param parameters: the result of ``read_parameters``.
    :raises Unplannable: if the time of the request is over.
    """
    source = CatalogSource(database, wire.Query(), settings.reserved_names())
    bases = _find_bases(source, parameters)
    found = find_subclasses(parameters["class"], bases, source, database.budget)
    rest = [subclass for subclass in found if subclass.name > parameters.get("marker", "")]
    # Each page needs a search of the whole hierarchy, so a page is as large as possible by default.
    page = rest[: min(parameters.get("limit", wire.MAX_SUBCLASSES), settings.max_subclasses)]
    body = {"class": parameters["class"], "subclasses": [subclass.to_json() for subclass in page]}
    if len(page) < len(rest):
        query = [(name, value) for name, value in req.GET.items() if name != "marker"]
        marker = ("marker", page[-1].name)
        body["next"] = request_reading.link(wire.SUBCLASSES_PATH, [*query, marker])
    return body


def _find_bases(source: CatalogSource, parameters: Mapping[str, Any]) -> set[PackageVersion]:
    """Return the packages that define the requested class.

    If the request names a package, only packages with this FQN are returned. If the request names a
    range, only packages in this range are returned.
    """
    class_name = parameters["class"]
    spec = parameters.get("version", VersionSpec.of("*"))
    return {
        package
        for package in source.defining([class_name]).get(class_name, ())
        if package.fqn == parameters.get("package", package.fqn) and spec.match(package.version)
    }
