# SPDX-License-Identifier: Apache-2.0

"""Find all direct and indirect subclasses of a class, with their packages.

The rule is the engine's: it looks for the name of a base class in the package itself, and in
its direct requirements. So a class of another package is a base class only if the requirement
allows a version that defines the class. Servers and the loader share this module, so both give
the same answers.
"""

import collections
import dataclasses
import functools
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from typing import Any, NamedTuple, Protocol, Self

from glare_murano import resolver, wire
from glare_murano.package import Unplannable, Version, VersionSpec
from glare_murano.resolver import PackageVersion


class ExtendingRecord(NamedTuple):
    """A package with direct subclasses of a class.

    :ivar base: the base class.
    """

    base: str
    id: str
    package: PackageVersion
    subclasses: Collection[str]


class Extensions(Protocol):
    """The packages to search for subclasses."""

    def find_extending(self, base_names: Iterable[str]) -> Iterable[ExtendingRecord]:
        """Find the packages that have direct subclasses of these classes."""

    def find_requirements(
        self, ids: Collection[str]
    ) -> Mapping[str, Mapping[str, str]] | Mapping[str, Mapping[str, VersionSpec]]:
        """Return the requirements of packages: id -> FQN -> range."""


@dataclasses.dataclass(frozen=True)
class Subclass:
    """A subclass of a class.

    :param name: the fully qualified name.
    :param extends: the direct base classes within the hierarchy, sorted.
    :param packages: FQN -> the versions that define the class, the newest first.
    """

    name: str
    extends: tuple[str, ...]
    packages: Mapping[str, tuple[Version, ...]]

    @classmethod
    def of(cls, name: str, bases: Set[str], packages: Iterable[PackageVersion]) -> Self:
        """Make a subclass from what a hierarchy has found."""
        versions = collections.defaultdict(set)
        for package in packages:
            versions[package.fqn].add(package.version)
        newest = {fqn: tuple(resolver.newest_first(versions[fqn])) for fqn in sorted(versions)}
        return cls(name, tuple(sorted(bases)), newest)

    def to_json(self) -> dict[str, Any]:
        """Return the subclass as JSON."""
        return {
            "class": self.name,
            "extends": list(self.extends),
            "packages": wire.versions_to_json(self.packages),
        }


def find_subclasses(
    class_name: str, bases: Set[PackageVersion], extensions: Extensions, seconds: float
) -> list[Subclass]:
    """Find all subclasses of a class, sorted by name.

    :param bases: the packages that define the class.
    :param seconds: the longest time that the search may take.
    :raises Unplannable: if the search takes longer.
    """
    found = _Hierarchy(class_name, bases, extensions, seconds)
    return [
        Subclass.of(name, found.extends[name], found.packages[name])
        for name in sorted(found.packages)
    ]


class _Hierarchy:
    """The subclasses in some packages.

    :ivar extends: subclass -> its direct base classes within the hierarchy.
    :ivar packages: subclass -> the packages that define it.
    """

    def __init__(
        self, class_name: str, bases: Set[PackageVersion], extensions: Extensions, seconds: float
    ) -> None:
        self.extends: dict[str, set[str]] = collections.defaultdict(set)
        self.packages: dict[str, set[PackageVersion]] = collections.defaultdict(set)
        # Package -> FQN -> range.
        self._requirements: dict[str, Mapping[str, str | VersionSpec]] = {}
        extending: dict[str, list[ExtendingRecord]] = {}
        level = {class_name: set(bases)}
        end = time.monotonic() + seconds
        # When another package is found that defines a class, the subclasses of the class are
        # searched again.
        while level:
            if time.monotonic() > end:
                raise Unplannable(
                    f"listing the subclasses of {class_name} stopped at class {min(level)}, after "
                    f"{seconds:g} seconds; request those of another class, or raise the option "
                    f"plan_seconds"
                )
            extending |= _find_extending(extensions, level.keys() - extending.keys())
            # A package that defines the base class itself needs no requirement.
            ids = {
                each.id
                for base, defining in level.items()
                for each in extending[base]
                if each.package not in defining
            }
            unread = ids - self._requirements.keys()
            self._requirements |= extensions.find_requirements(unread)
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
        """Add a class's direct subclasses; yield those for which a package was added.

        :param defining: the packages that define the class.
        """
        is_satisfied = _requirement_check(defining)
        for _, id_, package, subclasses in extending:
            ranges = self._requirements.get(id_, {})
            # A class can inherit from its own package only in the same version.
            if package in defining or any(
                is_satisfied(*each) for each in ranges.items() if each[0] != package.fqn
            ):
                for name in subclasses:
                    self.extends[name].add(base)
                    if package not in self.packages[name]:
                        self.packages[name].add(package)
                        yield name


def _requirement_check(
    packages: Collection[PackageVersion],
) -> Callable[[str, str | VersionSpec], bool]:
    """Return a function that checks whether one of these packages satisfies a requirement."""
    versions = collections.defaultdict(list)
    for package in packages:
        versions[package.fqn].append(package.version)

    @functools.cache
    def is_satisfied(fqn: str, range_: str | VersionSpec) -> bool:
        return any(map(VersionSpec.of(range_).match, versions.get(fqn, ())))

    return is_satisfied


def _find_extending(
    extensions: Extensions, base_names: Set[str]
) -> dict[str, list[ExtendingRecord]]:
    found: dict[str, list[ExtendingRecord]] = {name: [] for name in base_names}
    for record in extensions.find_extending(base_names):
        # Some databases ignore case.
        if record.base in found:
            found[record.base].append(record)
    return found
