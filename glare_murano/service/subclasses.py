# SPDX-License-Identifier: Apache-2.0

"""The resource ``subclasses``: all direct and indirect subclasses of a class.

A class of another package is a base only if the package requires a version of the other
package that has the class, as in the engine: names resolve in direct requirements.
"""

import collections
import functools
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from typing import Any

import webob

from glare_murano import resolver, wire
from glare_murano.package import VersionSpec
from glare_murano.package.errors import quoted
from glare_murano.package.manifest import check_full_name
from glare_murano.resolver import PackageVersion
from glare_murano.service import http_requests, schemas
from glare_murano.service.database import Database, ExtendingRecord
from glare_murano.service.refusals import bad_request
from glare_murano.service.source import CatalogSource

_MAX_LIMIT = 1000
_DEFAULT_LIMIT = 100


def _limit(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 5 else 0
    if not 1 <= number <= _MAX_LIMIT:
        raise ValueError(f"expected a number from 1 to {_MAX_LIMIT}, found {quoted(text)}")
    return number


# Parameter -> how to read it.
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
    for name, text in http_requests.read_parameters(req, schemas.SUBCLASSES).items():
        try:
            read[name] = _READ[name](text)
        except ValueError as error:
            raise bad_request(f"{name}: {error}") from error
    return read


def find(
    req: webob.Request, parameters: Mapping[str, Any], database: Database, seconds: float
) -> dict[str, Any]:
    """Return a page of the subclasses of a class, with their packages, as JSON.

    :param seconds: the longest time of the search.
    :raises RefusedRequest: after that time.
    """
    bases = _find_bases(CatalogSource(database, wire.Query()), parameters)
    found = _Hierarchy(database, parameters["class"], bases, seconds)
    names = sorted(name for name in found.packages if name > parameters.get("marker", ""))
    page = names[: parameters.get("limit", _DEFAULT_LIMIT)]
    body = {
        "class": parameters["class"],
        "subclasses": [_to_json(name, found.extends[name], found.packages[name]) for name in page],
    }
    if len(page) < len(names):
        query = [(name, value) for name, value in req.GET.items() if name != "marker"]
        body["next"] = http_requests.link(wire.SUBCLASSES_PATH, [*query, ("marker", page[-1])])
    return body


def _to_json(name: str, bases: Set[str], packages: Collection[PackageVersion]) -> dict[str, Any]:
    versions = collections.defaultdict(set)
    for package in packages:
        versions[package.fqn].add(package.version)
    return {
        "class": name,
        "extends": sorted(bases),
        "packages": {
            fqn: [str(version) for version in resolver.newest_first(versions[fqn])]
            for fqn in sorted(versions)
        },
    }


def _find_bases(source: CatalogSource, parameters: Mapping[str, Any]) -> set[PackageVersion]:
    """Find the packages that define the class, of the requested name and range."""
    class_name = parameters["class"]
    spec = parameters.get("version", VersionSpec.of("*"))
    return {
        package
        for package in source.defining([class_name]).get(class_name, ())
        if package.fqn == parameters.get("package", package.fqn) and spec.match(package.version)
    }


class _Hierarchy:
    """The subclasses in active packages that are visible to a viewer.

    :ivar extends: subclass -> its direct base classes within the hierarchy.
    :ivar packages: subclass -> the packages that define it.
    """

    def __init__(
        self, database: Database, class_name: str, bases: set[PackageVersion], seconds: float
    ) -> None:
        self.extends: dict[str, set[str]] = collections.defaultdict(set)
        self.packages: dict[str, set[PackageVersion]] = collections.defaultdict(set)
        # Artifact -> FQN -> range.
        self._requirements: dict[str, dict[str, str]] = {}
        extending: dict[str, list[ExtendingRecord]] = {}
        level = {class_name: bases}
        end = time.monotonic() + seconds
        # A class comes again when another package with it is found.
        while level:
            if time.monotonic() > end:
                raise bad_request(
                    f"listing the subclasses of {class_name} stopped at class {min(level)}, after "
                    f"{seconds:g} seconds; request those of another class, or raise the option "
                    f"plan_seconds"
                )
            extending |= _find_extending(database, level.keys() - extending.keys())
            # Packages that define the base themselves need no requirement.
            ids = {
                each.id
                for base, defining in level.items()
                for each in extending[base]
                if each.package not in defining
            }
            unread = ids - self._requirements.keys()
            self._requirements |= database.find_requirements(unread)
            changed = {
                name
                for base, defining in level.items()
                for name in self._extend(base, extending[base], defining)
            }
            level = {
                name: self.packages[name] | (bases if name == class_name else set())
                for name in changed
            }

    def _extend(
        self, base: str, extending: list[ExtendingRecord], defining: Set[PackageVersion]
    ) -> Iterator[str]:
        """Add the subclasses of a class that some packages define; yield the changed ones."""
        can_meet = _matcher(defining)
        for _, id_, package, subclasses in extending:
            ranges = self._requirements.get(id_, {})
            # A class inherits from its own package only in the same version.
            if package in defining or any(
                can_meet(*each) for each in ranges.items() if each[0] != package.fqn
            ):
                for name in subclasses:
                    self.extends[name].add(base)
                    if package not in self.packages[name]:
                        self.packages[name].add(package)
                        yield name


def _matcher(packages: Collection[PackageVersion]) -> Callable[[str, str], bool]:
    """Return whether a requirement can be met by some packages."""
    versions = collections.defaultdict(list)
    for package in packages:
        versions[package.fqn].append(package.version)

    @functools.cache
    def can_meet(fqn: str, range_: str) -> bool:
        return any(map(VersionSpec.of(range_).match, versions.get(fqn, ())))

    return can_meet


def _find_extending(database: Database, base_names: Set[str]) -> dict[str, list[ExtendingRecord]]:
    found: dict[str, list[ExtendingRecord]] = {name: [] for name in base_names}
    for record in database.find_extending(base_names):
        # Some databases ignore case.
        if record.base in found:
            found[record.base].append(record)
    return found
