# SPDX-License-Identifier: Apache-2.0

"""Search the repository for packages by name, range, class, tag and so on."""

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping

from glare_murano.package import InvalidName
from glare_murano.package.errors import quoted
from glare_murano.package_order import BY_NAME, Order
from glare_murano.selection import Selection
from loader.catalogs.repository import Repository
from loader.catalogs.stored_package import StoredPackage
from loader.references import split_range

_PATTERN = re.compile(r"[A-Za-z0-9_.*-]{1,255}\Z")


@dataclasses.dataclass(frozen=True)
class Search:
    """A search for packages.

    :param pattern: the name, in which ``*`` stands for any string; ``@RANGE`` may follow.
    :param filters: a mapping of conditions to values; see ``selection.CONDITIONS``.
    :param subclass_of: a class; only packages with direct or indirect subclasses of it are found.
    :param yanked: whether to find only yanked packages. By default, yanked packages are left out;
        but if ``filters`` has a status, yanked and other packages are found.
    :param all_versions: whether to find every version, or only the newest.
    """

    pattern: str = ""
    filters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    subclass_of: str | None = None
    yanked: bool = False
    all_versions: bool = False
    order: Order = BY_NAME

    def run(self, repository: Repository) -> Iterator[StoredPackage]:
        """Yield the found packages.

        A page of the list is requested when its first package is needed.

        :raises InvalidName: if the pattern is not valid.
        :raises InvalidRange: if the range is not valid.
        :raises CatalogError: if the service refuses a filter, or does not answer.
        """
        name, spec = split_range(self.pattern)
        if not _PATTERN.match(name or "*"):
            raise InvalidName(
                f"{quoted(name)} is not a name, or a pattern with * for any characters"
            )
        values: dict[str, Collection[str]] = {key: [each] for key, each in self.filters.items()}
        if name:
            values["name"] = [name]
        return repository.packages(
            Selection(
                values,
                version=spec,
                yanked=self.yanked or (None if "status" in values else False),
                subclass_of=self.subclass_of,
                distinct="" if self.all_versions else "name",
            ),
            self.order,
        )
