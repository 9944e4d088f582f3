# SPDX-License-Identifier: Apache-2.0

"""Find all subclasses of a class in the packages of all catalogues together.

A base class may be in another catalogue than its subclasses: for example, Murano's core library may
be in a directory. So every catalogue is searched for the direct subclasses of the class, then for
the direct subclasses of these, and so on.
"""

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from glare_murano.budget import PausingBudget
from glare_murano.eligibility import Eligibility
from glare_murano.inheritance import REMEDY, ExtendingRecord, Subclass, find_subclasses
from glare_murano.package import Version, VersionSpec
from glare_murano.resolver import PackageVersion
from glare_murano.wire import Release
from loader.catalogs.base import Catalog
from loader.resolution import EligibleReleases

# The specification "MuranoPL forms", section "Deployer impact", requires a maximum.
DEFAULT_MAXIMUM = 100


@dataclasses.dataclass(frozen=True)
class Subclasses:
    """The subclasses of a class that were found.

    :param found: the subclasses, sorted by name; at most the requested number.
    :param is_truncated: whether there are more subclasses than these.
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
    eligibility: Eligibility,
) -> Subclasses:
    """Find the direct and indirect subclasses of a class.

    :param spec: the range of versions of the package that defines the class.
    :param package: the name of this package; None for any name.
    :param maximum: how many subclasses are returned at most.
    :param seconds: the longest time that the search may take, in seconds.
    :param provided: a mapping of the names of the engine's extension plug-ins to their versions.
    :param eligibility: the rules that decide which releases may be chosen.
    :raises Unplannable: if the search takes longer than ``seconds``.
    :raises CatalogError: if a catalogue cannot be read.
    """
    budget = PausingBudget(seconds, REMEDY)
    releases = EligibleReleases(catalogs, eligibility, budget)
    bases = {
        release.key
        for in_catalog in releases.defining(class_name)
        for release in in_catalog
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
    found = find_subclasses(class_name, bases, _Extensions(releases, eligibility), budget)
    return Subclasses(tuple(found[:maximum]), len(found) > maximum)


class _Extensions:
    """The packages in all catalogues, with the methods that ``find_subclasses`` calls.

    If several catalogues have a version, the first catalogue's release is used.
    """

    def __init__(self, releases: EligibleReleases, eligibility: Eligibility) -> None:
        self._releases = releases
        self._eligibility = eligibility
        self._extending: dict[str, Release] = {}

    def find_extending(self, base_names: Iterable[str]) -> Iterable[ExtendingRecord]:
        names = sorted(base_names)
        offers = [
            (catalog, release)
            for catalog in self._releases.catalogs
            for release in catalog.releases_extending(names)
        ]
        self._releases.look_up({release.fqn for _, release in offers})
        for catalog, release in offers:
            # Another release may have been chosen for this version, and may have other classes.
            found = self._releases.found.get(release.key)
            if found is not None and found[0] is catalog and found[1].id == release.id:
                self._extending[str(release)] = release
                yield from self._records(names, release)

    def find_requirements(self, ids: Collection[str]) -> Mapping[str, Mapping[str, VersionSpec]]:
        return {each: self._extending[each].requirements for each in ids}

    def _records(self, names: Iterable[str], release: Release) -> Iterator[ExtendingRecord]:
        for name in names:
            subclasses = [
                subclass
                for subclass in release.inherits.get(name, ())
                if self._eligibility.allows_class(subclass, release)
            ]
            if subclasses:
                yield ExtendingRecord(name, str(release), release.key, subclasses)
