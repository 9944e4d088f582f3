# SPDX-License-Identifier: Apache-2.0

"""List packages by the parameters of a request to Murano's API.

By default, a list has the newest version of each package. A request can have the parameter
``version``, which Murano's own API lacks: a version or a range. Then the list has every version in
the range.
"""

import dataclasses
import itertools
import re
from collections.abc import Collection, Mapping
from typing import Any

from glare_murano import wire
from glare_murano.package import InvalidName, InvalidVersion, VersionSpec, parse_version
from glare_murano.package.errors import quoted
from glare_murano.package.manifest import check_fqn
from glare_murano.package_order import RELEVANCE, Key, Order, relevance
from glare_murano.selection import CHOICES, Distinct, Selection
from loader import errors
from loader.catalogs.repository import Repository
from loader.catalogs.stored_package import StoredPackage
from loader.murano_api import package_json

_ID = re.compile(r"[0-9A-Fa-f-]{32,36}")
# A sort key in Murano's API -> the sort key in Glare and Glance.
_KEYS = {"fqn": "name", "name": "display_name", "created": "created_at"}
# A parameter in Murano's API -> the field that Glare and Glance compare with its value.
_CONDITIONS = {
    "category": "categories",
    "class_name": "class_definitions",
    "fqn": "name",
    "id": "id",
    "name": "display_name",
    "tag": "tags",
    "type": "type",
}


@dataclasses.dataclass(frozen=True)
class PackageList:
    """A request for a list of packages.

    :param filters: the parameters, as Murano's API reads them.
    :param project: the project of the caller.
    :param is_admin: whether the caller sees the packages of all projects.
    :param is_catalog: whether to list only packages that the project can deploy.
    :param is_public_shown: whether to list public packages of other projects.
    :param version: a version or a range; None for the newest version of each package.
    """

    filters: Mapping[str, Any]
    project: str
    is_admin: bool = False
    is_catalog: bool = False
    is_public_shown: bool = True
    version: VersionSpec | None = None

    def page(self, repository: Repository, limit: int) -> list[StoredPackage]:
        """Return one page of the requested list.

        :param limit: how many packages the page may have.
        :raises NotFound: if the parameter ``marker`` names a missing package.
        :raises CatalogError: if the service refuses a condition, or does not answer.
        """
        marker, after = self.filters.get("marker"), None
        if marker is not None:
            after = self._marker(find(repository, marker))
        selection = self._selection()
        if not _is_possible(selection):
            return []
        size = min(limit, wire.MAX_PACKAGES)
        listed = repository.packages(selection, self._order, after, size)
        return list(itertools.islice(listed, limit))

    def _selection(self) -> Selection:
        chosen = self.filters
        values = {_CONDITIONS[name]: _all(chosen[name]) for name in _CONDITIONS if name in chosen}
        if "type" in values:
            values["type"] = [value.title() for value in values["type"]]
        if self._is_owned:
            values["owner"] = [self.project]
        if self._is_with_disabled:
            values["status"] = package_json.SHOWN
        distinct: Distinct = "version" if self.version else "name"
        return Selection(
            values,
            self._words,
            version=self.version,
            yanked=None if self._is_with_disabled else False,
            # Administrators see the private packages of other projects, which they cannot deploy.
            project_id=self.project if self.is_catalog else None,
            distinct="" if "id" in chosen else distinct,
        )

    @property
    def _order(self) -> Order:
        """The order of the list.

        The descending order is exactly the reverse of the ascending order. To get the previous
        page, clients request the packages after their marker in the other order.
        """
        is_descending = self.filters.get("sort_dir") == "desc"
        chosen = [_KEYS[key] for key in self.filters.get("order_by", [])]
        names = dict.fromkeys([RELEVANCE, *chosen, "name"] if self._words else [*chosen, "name"])
        version = Key("version", is_descending=not is_descending)
        return Order((*(Key(name, is_descending) for name in names), version))

    def _marker(self, package: StoredPackage) -> str:
        """Return the marker with which Glare and Glance begin a list after a package."""
        values = {
            **package.fields,
            "id": package.id,
            "name": package.fqn,
            "version": str(package.version),
            "display_name": package_json.display_name(package),
        }
        values[RELEVANCE] = relevance(values, self._words) or 0
        return self._order.marker(values)

    @property
    def _words(self) -> list[str]:
        return [word for word in re.split("[;,]", self.filters.get("search") or "") if word]

    @property
    def _is_with_disabled(self) -> bool:
        return str(self.filters.get("include_disabled", "")).lower() == "true"

    @property
    def _is_owned(self) -> bool:
        """Whether only the project's own packages are listed."""
        if str(self.filters.get("owned", "")).lower() == "true":
            return True
        return not (self.is_admin or self.is_catalog or self.is_public_shown)


def _all(value: str | Collection[str]) -> Collection[str]:
    """Return the values of a parameter as a list.

    Murano reads a parameter as a string or as a list.
    """
    return [value] if isinstance(value, str) else value


def _is_possible(selection: Selection) -> bool:
    """Return whether the requested names and types are valid, so that a package can have them.

    Glare and Glance refuse requests with other names and types.
    """
    try:
        for name in selection.values.get("name", ()):
            check_fqn(name)
    except InvalidName:
        return False
    return set(selection.values.get("type", ())) <= set(CHOICES["type"])


def find(repository: Repository, package_id: str) -> StoredPackage:
    """Return the package with an id, even if a newer version of the package exists.

    :raises NotFound: if the package is missing, a draft, or private to another project.
    :raises CatalogError: if the service does not answer.
    """
    if not _ID.fullmatch(package_id):
        raise errors.NotFound(f"{quoted(package_id)} is not the id of a package")
    package = repository.get(package_id)
    if not package_json.is_shown(package):
        raise errors.NotFound(f"package {package_id} is not published")
    return package


def range_of(text: str) -> VersionSpec:
    """Read the parameter ``version``, and return a range.

    :param text: a version or a range. A version such as 1.2 means exactly 1.2.0. As a range, 1.2
        would contain 1.2.1 as well.
    :raises InvalidRange: if it is neither a version nor a range.
    """
    try:
        return VersionSpec.exactly(parse_version(text))
    except InvalidVersion:
        return VersionSpec.of(text)
