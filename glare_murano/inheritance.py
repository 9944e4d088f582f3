# SPDX-License-Identifier: Apache-2.0

"""Find all direct and indirect subclasses of a class, with their packages.

The engine looks for a base class in the package of the subclass, and in the direct requirements of
this package. So a package can extend a class of another package only if it requires that package.
The range of the requirement must contain a version that defines the class. Servers and the loader
share this module, so both find the same subclasses.
"""

import collections
import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from typing import Any, NamedTuple, Protocol, Self

from glare_murano import resolver, wire
from glare_murano.budget import Budget
from glare_murano.package.versions import SortedVersions, Version, VersionSpec
from glare_murano.resolver import PackageVersion

# What the client can do instead if the search exceeds its time limit.
REMEDY = "request those of another class"


class ExtendingRecord(NamedTuple):
    """A package that defines direct subclasses of a base class.

    :ivar base: the name of the base class.
    :ivar id: the id of the package.
    :ivar subclasses: the names of the direct subclasses in the package.
    """

    base: str
    id: str
    package: PackageVersion
    subclasses: Collection[str]


class Extensions(Protocol):
    """The packages in which subclasses are searched, such as those in a service's database."""

    def find_extending(self, base_names: Iterable[str]) -> Iterable[ExtendingRecord]:
        """Find the packages that define direct subclasses of the given base classes.

        :param base_names: the names of the base classes.
        :returns: the records, one for each pair of a base class and a package that defines direct
            subclasses of the base class.
        """

    def find_requirements(
        self, ids: Collection[str]
    ) -> Mapping[str, Mapping[str, str]] | Mapping[str, Mapping[str, VersionSpec]]:
        """Return the requirements of packages.

        :param ids: the ids of the packages.
        :returns: id of the package -> FQN of a required package -> range.
        """


@dataclasses.dataclass(frozen=True)
class Subclass:
    """A direct or indirect subclass of the requested class.

    :param name: the fully qualified name of the subclass.
    :param extends: the direct base classes of the subclass, sorted. Only the requested class and
        its subclasses are listed; other base classes are left out.
    :param packages: the packages that define the subclass: FQN -> versions, the newest first.
    """

    name: str
    extends: tuple[str, ...]
    packages: Mapping[str, tuple[Version, ...]]

    @classmethod
    def of(cls, name: str, bases: Set[str], packages: Iterable[PackageVersion]) -> Self:
        """Make a subclass from its direct base classes, and the packages that define it."""
        versions = collections.defaultdict(set)
        for package in packages:
            versions[package.fqn].add(package.version)
        newest = {fqn: tuple(resolver.newest_first(versions[fqn])) for fqn in sorted(versions)}
        return cls(name, tuple(sorted(bases)), newest)

    def to_json(self) -> dict[str, Any]:
        """Return the subclass as a JSON object."""
        return {
            "class": self.name,
            "extends": list(self.extends),
            "packages": wire.versions_to_json(self.packages),
        }


def find_subclasses(
    class_name: str, bases: Set[PackageVersion], extensions: Extensions, budget: Budget
) -> list[Subclass]:
    """Find all direct and indirect subclasses of a class, sorted by name.

    :param bases: the packages that define the class.
    :param extensions: the packages in which subclasses are searched.
    :param budget: the time limit of the request.
    :raises Unplannable: if the time is over.
    """
    found = _Hierarchy(class_name, bases, extensions, budget)
    return [
        Subclass.of(name, found.extends[name], found.packages[name])
        for name in sorted(found.packages)
    ]


class _Hierarchy:
    """The search for all subclasses of a class, in rounds.

    The first round finds the direct subclasses. Each further round finds the direct subclasses of
    the classes that the previous round has found.

    :ivar extends: the name of each subclass -> its direct base classes. Only the searched class and
        its subclasses are listed.
    :ivar packages: the name of each subclass -> the packages that define the subclass.
    """

    def __init__(
        self, class_name: str, bases: Set[PackageVersion], extensions: Extensions, budget: Budget
    ) -> None:
        self.extends: dict[str, set[str]] = collections.defaultdict(set)
        self.packages: dict[str, set[PackageVersion]] = collections.defaultdict(set)
        # Id of a package -> FQN of a requirement -> range.
        requirements: dict[str, Mapping[str, str | VersionSpec]] = {}
        # Class -> the packages that extend a class of this name, but require no version of the
        # packages that were found to define it.
        pending: dict[str, list[ExtendingRecord]] = {}
        # Class -> the packages that were found in the last round to define it. The next round
        # searches for its subclasses.
        added = {class_name: set(bases)}
        step = f"listing the subclasses of {class_name}"
        while added:
            budget.check(step, f"class {min(added)}")
            pending |= _find_extending(extensions, added.keys() - pending.keys())
            # A package that defines the base class itself needs no requirement.
            ids = {
                each.id
                for base, defining in added.items()
                for each in pending[base]
                if each.package not in defining
            }
            requirements |= extensions.find_requirements(ids - requirements.keys())
            found: dict[str, set[PackageVersion]] = collections.defaultdict(set)
            for base, defining in added.items():
                records, pending[base] = pending[base], []
                inherits = _inheritance_check(defining if records else (), requirements)
                for record in budget.watch(records, step, lambda each: f"class {each.base}"):
                    if inherits(record):
                        self._add(record, found)
                    else:
                        pending[base].append(record)
            added = found

    def _add(self, record: ExtendingRecord, found: Mapping[str, set[PackageVersion]]) -> None:
        """Add the subclasses in a record to the hierarchy.

        :param record: a package, and its direct subclasses of a base class.
        :param found: the subclasses that this round of the search has newly found: name -> packages
            that define the subclass. New subclasses in the record are added to this mapping.
        """
        for name in record.subclasses:
            self.extends[name].add(record.base)
            if record.package not in self.packages[name]:
                self.packages[name].add(record.package)
                found[name].add(record.package)


def _is_searched(package: PackageVersion, fqn: str, range_: str | VersionSpec) -> bool:
    """Return whether a requirement makes the engine look for base classes in another release.

    The result is False if a package requires itself, and its own version satisfies the requirement.
    Then the engine loads no other version of the package.

    :param package: the package that has the requirement.
    :param fqn: the required package.
    :param range_: the required range.
    """
    if fqn != package.fqn:
        return True
    return not resolver.satisfies_itself(package.version, VersionSpec.of(range_))


def _inheritance_check(
    defining: Collection[PackageVersion],
    requirements: Mapping[str, Mapping[str, str | VersionSpec]],
) -> Callable[[ExtendingRecord], bool]:
    """Return a function that checks whether the package of a record can extend a class.

    The package can extend the class if it defines the class itself. It can also extend the class if
    it requires a defining package, in a range that contains the version of the defining package.

    :param defining: the packages that define the class.
    :param requirements: the requirements of packages: id -> FQN of a required package -> range.
    """
    by_name = collections.defaultdict(list)
    for package in defining:
        by_name[package.fqn].append(package.version)
    versions = {fqn: SortedVersions(found) for fqn, found in by_name.items()}

    @functools.cache
    def is_satisfied(fqn: str, range_: str | VersionSpec) -> bool:
        return versions[fqn].within(VersionSpec.of(range_)) != 0

    def inherits(record: ExtendingRecord) -> bool:
        ranges = requirements.get(record.id, {})
        searched = versions.keys() & ranges.keys()
        return record.package in defining or any(
            is_satisfied(fqn, ranges[fqn])
            for fqn in searched
            if _is_searched(record.package, fqn, ranges[fqn])
        )

    return inherits


def _find_extending(
    extensions: Extensions, base_names: Set[str]
) -> dict[str, list[ExtendingRecord]]:
    found: dict[str, list[ExtendingRecord]] = {name: [] for name in base_names}
    for record in extensions.find_extending(base_names):
        # Some databases ignore case, and so return other classes as well.
        if record.base in found:
            found[record.base].append(record)
    return found
