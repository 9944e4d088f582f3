# SPDX-License-Identifier: Apache-2.0

"""The resource ``subclasses``: all direct and indirect subclasses of a class.

A class can extend a class of another package only if its own package requires a version of the
other package that has the base class. The engine has the same rule: it resolves names in direct
requirements.
"""

from collections.abc import Callable, Mapping
from typing import Any

import webob

from glare_murano import wire
from glare_murano.inheritance import find_subclasses
from glare_murano.package import Unplannable, VersionSpec
from glare_murano.package.errors import quoted
from glare_murano.package.manifest import check_full_name
from glare_murano.resolver import PackageVersion
from glare_murano.service import request_reading, schemas
from glare_murano.service.database import Database
from glare_murano.service.refusals import bad_request
from glare_murano.service.settings import Settings
from glare_murano.service.source import CatalogSource

_DEFAULT_LIMIT = 100


def _limit(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 5 else 0
    if not 1 <= number <= wire.MAX_SUBCLASSES:
        raise ValueError(f"expected a number from 1 to {wire.MAX_SUBCLASSES}, found {quoted(text)}")
    return number


# Parameter -> the function that reads it.
_READ: dict[str, Callable[[str], Any]] = {
    "class": check_full_name,
    "package": check_full_name,
    "version": VersionSpec.of,
    "marker": check_full_name,
    "limit": _limit,
}


def read_parameters(req: webob.Request) -> dict[str, Any]:
    """Read the parameters of a request.

    :raises RefusedRequest: for values that are not valid.
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
    """Return a page of the subclasses of a class, with their packages, as JSON.

    :raises RefusedRequest: if the search takes longer than ``plan_seconds``.
    """
    source = CatalogSource(database, wire.Query(), settings.reserved_names())
    bases = _find_bases(source, parameters)
    try:
        found = find_subclasses(parameters["class"], bases, source, settings.plan_seconds)
    except Unplannable as error:
        raise bad_request(str(error)) from error
    rest = [subclass for subclass in found if subclass.name > parameters.get("marker", "")]
    page = rest[: min(parameters.get("limit", _DEFAULT_LIMIT), settings.max_subclasses)]
    body = {"class": parameters["class"], "subclasses": [subclass.to_json() for subclass in page]}
    if len(page) < len(rest):
        query = [(name, value) for name, value in req.GET.items() if name != "marker"]
        marker = ("marker", page[-1].name)
        body["next"] = request_reading.link(wire.SUBCLASSES_PATH, [*query, marker])
    return body


def _find_bases(source: CatalogSource, parameters: Mapping[str, Any]) -> set[PackageVersion]:
    """Find the packages with the requested name and range that define the class."""
    class_name = parameters["class"]
    spec = parameters.get("version", VersionSpec.of("*"))
    return {
        package
        for package in source.defining([class_name]).get(class_name, ())
        if package.fqn == parameters.get("package", package.fqn) and spec.match(package.version)
    }
