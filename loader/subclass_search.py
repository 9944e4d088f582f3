# SPDX-License-Identifier: Apache-2.0

"""All subclasses of a class, in the packages of all catalogues together.

A base class may lie in another catalogue than its subclasses, such as Murano's core library in
a directory. So each level of the hierarchy is looked up in every catalogue.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence

from glare_murano.inheritance import ExtendingRecord, Subclass, find_subclasses
from glare_murano.package import Version, VersionSpec
from glare_murano.resolver import PackageVersion
from glare_murano.wire import Release
from loader.catalogs.base import Catalog

# Specification "MuranoPL forms", "Deployer impact".
DEFAULT_MAXIMUM = 100


@dataclasses.dataclass(frozen=True)
class Subclasses:
    """The subclasses of a class.

    :param found: by name; at most as many as allowed.
    :param is_truncated: whether there are more.
    """

    found: tuple[Subclass, ...]
    is_truncated: bool


def search(
    catalogs: Sequence[Catalog],
    class_name: str,
    spec: VersionSpec,
    package: str | None,
    maximum: int,
    seconds: float,
    provided: Mapping[str, Iterable[Version]],
) -> Subclasses:
    """Find the subclasses of a class.

    :param spec: the range of the packages that define the class.
    :param package: the name of these packages; by default any.
    :param maximum: the largest number of subclasses to return.
    :param seconds: the longest time of the search.
    :param provided: the packages that the engine provides: FQN -> versions.
    :raises Unplannable: if the search takes longer.
    :raises CatalogError: if a catalogue cannot be read.
    """
    bases = {
        release.key
        for catalog in catalogs
        for release in catalog.releases_defining(class_name)
        if package in (None, release.fqn)
        and release.fqn not in provided
        and spec.match(release.version)
    }
    bases.update(
        PackageVersion(fqn, version)
        for fqn, versions in provided.items()
        if fqn == package
        for version in versions
        if spec.match(version)
    )
    found = find_subclasses(class_name, bases, _Extensions(catalogs), seconds)
    return Subclasses(tuple(found[:maximum]), len(found) > maximum)


class _Extensions:
    """The packages of catalogues; the first catalogue with a version has precedence."""

    def __init__(self, catalogs: Sequence[Catalog]) -> None:
        self._catalogs = catalogs
        self._releases: dict[str, tuple[int, Release]] = {}

    def find_extending(self, base_names: Iterable[str]) -> Iterable[ExtendingRecord]:
        names = sorted(base_names)
        for place, catalog in enumerate(self._catalogs):
            for release in catalog.releases_extending(names):
                first, _ = self._releases.setdefault(str(release), (place, release))
                if first != place:
                    continue
                for name in names:
                    if subclasses := release.inherits.get(name):
                        yield ExtendingRecord(name, str(release), release.key, subclasses)

    def find_requirements(self, ids: Collection[str]) -> Mapping[str, Mapping[str, VersionSpec]]:
        return {each: self._releases[each][1].requirements for each in ids}
