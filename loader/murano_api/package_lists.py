# SPDX-License-Identifier: Apache-2.0

"""Lists of packages in Murano's API: the parameters of a request, and the packages for them.

By default, a list has the newest version of each package. The parameter ``version``, which Murano
does not have, is a version or a range. Then every version in the range is listed.
"""

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from glare_murano.package import InvalidVersion, VersionSpec, parse_version
from glare_murano.package.errors import quoted
from loader import errors
from loader.catalogs.repository import Repository
from loader.catalogs.stored_package import Selection, StoredPackage, newest
from loader.murano_api import package_json

_BY_NAME = "name:{direction},version:desc"
_ID = re.compile(r"[0-9A-Fa-f-]{32,36}")
_ORDERS: Mapping[str, Callable[[StoredPackage], Any]] = {
    "fqn": lambda package: package.fqn,
    "name": lambda package: package_json.display_name(package).casefold(),
    "created": lambda package: package.fields.get("created_at") or "",
}
# The fields that a search reads, the most important first, as in Murano.
_SEARCHED: tuple[Callable[[StoredPackage], Iterable[str]], ...] = (
    lambda package: [package_json.display_name(package)],
    lambda package: [package.fqn],
    lambda package: [package.fields.get("description") or ""],
    package_json.categories,
    lambda package: package.fields.get("tags") or [],
    lambda package: package.fields.get("class_definitions") or [],
    lambda package: [package.fields.get("author") or ""],
)
_ONE_OF = {"category": "categories", "tag": "tags"}
_EQUAL = {"class_name": "class_definitions", "name": "display_name"}


@dataclasses.dataclass(frozen=True)
class PackageList:
    """A request for a list.

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
        """Return the packages of one page.

        :raises NotFound: if the parameter ``marker`` names a missing package.
        :raises CatalogError: if the service refuses a condition, or does not answer.
        """
        marker = self.filters.get("marker")
        after = None if marker is None else find(repository, marker)
        if self._is_paged:
            return list(itertools.islice(self._paged(repository, after, limit), limit))
        found = self.everything(repository)
        if after is None:
            return found[:limit]
        # The marker may be missing: a newer version may have replaced it since the last request.
        others = [package for package in found if package.id != after.id]
        listed = self._sorted([*others, after])
        begin = listed.index(after) + 1
        return listed[begin : begin + limit]

    @property
    def _is_paged(self) -> bool:
        """Whether the service can choose the packages, sort them and make pages by itself."""
        is_in_order = self.filters.get("order_by", ["fqn"]) == ["fqn"]
        return self._is_newest and is_in_order and not self._words

    @property
    def _is_newest(self) -> bool:
        """Whether the service can choose the newest version of each package.

        The service cannot if this module filters the packages after that: if the newest version is
        left out, an older version belongs to the list. Lists for administrators are filtered, since
        the service also gives them packages that their project cannot deploy.
        """
        chosen = self.filters
        return not (
            self.version
            or "id" in chosen
            or (self.is_admin and self.is_catalog)
            or any(len(chosen.get(name, [])) > 1 for name in _ONE_OF)
        )

    @property
    def _is_with_disabled(self) -> bool:
        return str(self.filters.get("include_disabled", "")).lower() == "true"

    @property
    def _is_descending(self) -> bool:
        return self.filters.get("sort_dir") == "desc"

    def _paged(
        self, repository: Repository, after: StoredPackage | None, limit: int
    ) -> Iterator[StoredPackage]:
        """Yield the newest version of each package, page by page."""
        sort = _BY_NAME.format(direction="desc" if self._is_descending else "asc")
        # Two projects may have the newest version of a package. So one package more is requested.
        listed = repository.packages(
            self._selection(newest=True), sort, after.id if after else None, limit + 1
        )
        for fqn, same in itertools.groupby(filter(self._matches, listed), lambda each: each.fqn):
            chosen = min(same, key=self._is_foreign)
            if after is None or fqn != after.fqn:
                yield chosen

    def everything(self, repository: Repository) -> list[StoredPackage]:
        """Return all packages of the list, in its order.

        :raises CatalogError: if the service refuses a condition, or does not answer.
        """
        if "id" in self.filters:
            listed: Iterable[StoredPackage] = _existing(repository, self.filters["id"])
        else:
            listed = repository.packages(self._selection(newest=self._is_newest))
        found = sorted(filter(self._matches, listed), key=self._is_foreign)
        if self.version:
            found = list({package.key: package for package in reversed(found)}.values())
        elif "id" not in self.filters:
            found = newest(found)
        return self._sorted(found)

    def _sorted(self, found: list[StoredPackage]) -> list[StoredPackage]:
        """Sort a list; the descending order is the reverse of the whole list.

        For the previous page, clients request the reverse order, starting after their marker.
        """
        words = self._words
        found.sort(key=lambda package: package.version.precedence_key, reverse=True)
        for key in reversed([*self.filters.get("order_by", []), "fqn"]):
            found.sort(key=_ORDERS[key])
        if words:
            found.sort(key=lambda package: _place(package, words) or 0)
        return found[::-1] if self._is_descending else found

    @property
    def _words(self) -> list[str]:
        words = re.split("[;,]", self.filters.get("search") or "")
        return [word.casefold() for word in words if word]

    def _selection(self, *, newest: bool) -> Selection:
        """Return the conditions that the service checks."""
        chosen = self.filters
        values = {field: chosen[name] for name, field in _EQUAL.items() if name in chosen}
        for name, field in _ONE_OF.items():
            if len(chosen.get(name, [])) == 1:
                values[field] = chosen[name][0]
        if "type" in chosen:
            values["type"] = chosen["type"].title()
        if self._is_owned:
            values["owner"] = self.project
        # In a pattern, * matches any string. No name contains *, so it is removed.
        name = chosen.get("fqn", "").replace("*", "")
        if self._is_with_disabled:
            return Selection(name, values, newest=newest, without_drafts=True)
        values["status"] = package_json.ACTIVE
        return Selection(name, values, yanked=False, newest=newest)

    @property
    def _is_owned(self) -> bool:
        """Whether only the project's own packages are listed."""
        if str(self.filters.get("owned", "")).lower() == "true":
            return True
        return not (self.is_admin or self.is_catalog or self.is_public_shown)

    def _is_foreign(self, package: StoredPackage) -> bool:
        return package.owner != self.project

    def _matches(self, package: StoredPackage) -> bool:
        """Return whether a package meets the conditions that the service does not check."""
        chosen = self.filters
        return (
            package_json.is_shown(package)
            and self._is_visible(package)
            and (self._is_with_disabled or package_json.is_enabled(package))
            and chosen.get("fqn", package.fqn) == package.fqn
            and (self.version is None or self.version.match(package.version))
            and all(
                not set(chosen[name]).isdisjoint(package.fields.get(field) or [])
                for name, field in _ONE_OF.items()
                if name in chosen
            )
            and (not self._words or _place(package, self._words) is not None)
        )

    def _is_visible(self, package: StoredPackage) -> bool:
        if not self._is_foreign(package):
            return True
        # Only administrators see private packages of other projects, which they cannot deploy.
        # Others can deploy all packages that they see, also those that Glance shares with them.
        is_deployable = package.visibility == "public" or not self.is_admin
        return not self._is_owned and (is_deployable or not self.is_catalog)


def find(repository: Repository, package_id: str) -> StoredPackage:
    """Return a package by its id; it may be of any version.

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
    """Read the parameter ``version``: a version stands for itself; all else is read as a range.

    :raises InvalidRange: if it is neither a version nor a range.
    """
    try:
        return VersionSpec.exactly(parse_version(text))
    except InvalidVersion:
        return VersionSpec.of(text)


def _existing(repository: Repository, ids: Iterable[str]) -> Iterator[StoredPackage]:
    """Yield the packages with these ids, except missing ones."""
    for package_id in dict.fromkeys(ids):
        try:
            yield find(repository, package_id)
        except errors.NotFound:
            continue


def _place(package: StoredPackage, words: list[str]) -> int | None:
    """Return the index in ``_SEARCHED`` of the first field with one of the words, or None."""
    for number, values in enumerate(_SEARCHED):
        if any(word in value.casefold() for value in values(package) for word in words):
            return number
    return None
