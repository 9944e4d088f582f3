# SPDX-License-Identifier: Apache-2.0

"""Searches for packages in the repository: by name, range, class, tag and so on."""

import dataclasses
import fnmatch
import re
from collections.abc import Iterator, Mapping

from glare_murano.package import InvalidName
from glare_murano.package.errors import quoted
from loader.catalogs.repository import Repository
from loader.catalogs.stored_package import Selection, StoredPackage, newest
from loader.references import split_range

_PATTERN = re.compile(r"[A-Za-z0-9_.*-]{1,255}\Z")


@dataclasses.dataclass(frozen=True)
class Search:
    """A search for packages.

    :param pattern: the name, in which ``*`` stands for any string; ``@RANGE`` may follow.
    :param filters: field of the artifact type -> value.
    :param subclass_of: a class whose direct or indirect subclasses the packages define.
    :param yanked: whether to find only yanked packages, or only the others.
    :param all_versions: whether to find every version, or only the newest.
    :param sort: keys with directions, as in Glare's API.
    """

    pattern: str = ""
    filters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    subclass_of: str | None = None
    yanked: bool = False
    all_versions: bool = False
    sort: str = "name:asc,version:desc"

    def run(self, repository: Repository) -> Iterator[StoredPackage]:
        """Yield the found packages; pages are requested as needed.

        :raises InvalidName: if the pattern is not valid.
        :raises InvalidRange: if the range is not valid.
        :raises CatalogError: if the service refuses a filter, or does not answer.
        """
        name, spec = split_range(self.pattern)
        if not _PATTERN.match(name or "*"):
            raise InvalidName(
                f"{quoted(name)} is not a name, or a pattern with * for any characters"
            )
        defining = None if self.subclass_of is None else repository.subclasses(self.subclass_of)
        is_filtered = spec is not None or defining is not None
        selection = self._selection(name, newest=not (self.all_versions or is_filtered))
        found = (
            package
            for package in repository.packages(selection, self.sort)
            # The name is compared again: in Glare's filter, _ matches any character.
            if fnmatch.fnmatchcase(package.fqn, name or "*")
            and (spec is None or spec.match(package.version))
            and (defining is None or package.key in defining)
        )
        return found if self.all_versions or not is_filtered else iter(newest(found))

    def _selection(self, pattern: str, newest: bool) -> Selection:
        yanked: bool | None = None
        values = dict(self.filters)
        if self.yanked:
            yanked = True
        elif "status" not in values:
            values["status"], yanked = "active", False
        return Selection(pattern, values, yanked, newest)
