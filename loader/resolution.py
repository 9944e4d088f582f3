# SPDX-License-Identifier: Apache-2.0

"""Requirements go in, releases come out: the closure, before anything is fetched.

It asks the catalogues and knows nothing of archives. Where there is one
catalogue that can tell the closure by itself, one question is asked; else one
for each level of the graph and each catalogue. Both come to the same, since both
plan by ``glare_murano.resolver``. A version that several catalogues have
is the first one's; where several versions do equally well, the first
catalogue's are taken.
"""

import collections
import dataclasses
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from glare_murano import resolver
from glare_murano.package import Version, VersionSpec
from glare_murano.wire import Answer, Query, Release, Undefined
from loader import errors
from loader.catalogs.base import Catalog
from loader.chains import Chains

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class Choice:
    """A release that was chosen.

    :param catalog: where it was found, and is fetched from.
    :param demands: the ranges that it answers, and whose they are.
    """

    catalog: Catalog
    release: Release
    demands: tuple[resolver.Demand, ...]

    def joined(self, later: "Choice") -> "Choice":
        """The same release, as it was chosen in a later query."""
        demands = dict.fromkeys((*self.demands, *later.demands))
        return dataclasses.replace(later, demands=tuple(demands))


@dataclasses.dataclass(frozen=True)
class Resolution:
    """What a query comes to, or several, one after the other.

    :param choices: FQN -> version -> what was chosen.
    """

    choices: Mapping[str, Mapping[Version, Choice]] = dataclasses.field(default_factory=dict)
    unsatisfied: tuple[resolver.Unsatisfied, ...] = ()
    undefined: tuple[Undefined, ...] = ()

    @property
    def chosen(self) -> list[Choice]:
        """All that was chosen."""
        return [choice for versions in self.choices.values() for choice in versions.values()]

    def missing(self, fqn: str, spec: VersionSpec) -> resolver.Unsatisfied | None:
        """What is known of a range upon a package that no version is in; else None."""
        of_range = (m for m in self.unsatisfied if (m.demand.fqn, m.demand.spec) == (fqn, spec))
        return next(of_range, None)

    def upon(self, fqn: str, spec: VersionSpec, required_by: str | None = None) -> Chains:
        """All requirements upon a package, each with its chain.

        What nothing answers comes first, then what the newest version does; in
        each of these, what is nearest to the roots.

        :param spec: the range whose requirements are told before all others.
        :param required_by: whose of them is told before the others of that range.
        """
        demands = [m.demand for m in self.unsatisfied if m.demand.fqn == fqn]
        of_package = self.choices.get(fqn, {})
        for version in resolver.newest_first(of_package):
            demands += of_package[version].demands
        demands.sort(key=lambda d: (d.spec != spec, str(d.requirer) != required_by))
        return self.chains(demands)

    def chains(self, demands: Sequence[resolver.Demand]) -> Chains:
        """Requirements of this closure, each with its chain."""
        return Chains.of(demands, self._reached_by)

    def joined(self, later: "Resolution") -> "Resolution":
        """The same with what a later query came to.

        How a release was reached first stays so.
        """
        choices = {fqn: dict(versions) for fqn, versions in self.choices.items()}
        for fqn, versions in later.choices.items():
            known = choices.setdefault(fqn, {})
            for version, choice in versions.items():
                known[version] = known[version].joined(choice) if version in known else choice
        unsatisfied = {m.demand: m for m in (*self.unsatisfied, *later.unsatisfied)}
        return Resolution(
            choices,
            tuple(unsatisfied.values()),
            tuple(dict.fromkeys((*self.undefined, *later.undefined))),
        )

    def _reached_by(self, release: resolver.PackageVersion) -> resolver.Demand | None:
        choice = self.choices.get(release.fqn, {}).get(release.version)
        return choice.demands[0] if choice is not None and choice.demands else None


def resolve(catalogs: Sequence[Catalog], query: Query) -> Resolution:
    """Plan the closure of a query.

    :param catalogs: in the operator's order.
    :raises CatalogError: if a catalogue does not answer.
    :raises Unplannable: if that would take too long.
    """
    if len(catalogs) == 1:
        answer = _asked(catalogs[0], lambda: catalogs[0].resolve(query))
        if answer is not None:
            return _resolution(answer, lambda release: catalogs[0])
    return by_level(catalogs, query)


def by_level(catalogs: Sequence[Catalog], query: Query) -> Resolution:
    """Plan the closure of a query from what catalogues know, a level at a time."""
    source = _Source(catalogs)
    roots, undefined = _classes(catalogs, query)
    planned = resolver.plan([*roots, *query.requirements], query.pins, source)
    answer = Answer(
        tuple((source.found[key][1], demands) for key, demands in planned.releases.items()),
        planned.unsatisfied,
        undefined,
    )
    return _resolution(answer, source.catalog_of)


class _Source:
    """What a closure is planned from.

    :ivar found: release -> the catalogue that has it, and what it says of it.
    """

    def __init__(self, catalogs: Sequence[Catalog]) -> None:
        self._catalogs = catalogs
        self.found: dict[resolver.PackageVersion, tuple[Catalog, Release]] = {}

    def versions(self, fqns: Collection[str]) -> Mapping[str, Sequence[Version]]:
        """See the protocol ``Source``."""
        versions: dict[str, dict[Version, None]] = {fqn: {} for fqn in fqns}
        for catalog in self._catalogs:
            known = _known(catalog, fqns)
            # A database may compare names without regard to case.
            asked = (release for release in known if release.fqn in versions)
            for release in sorted(asked, key=lambda r: r.version.precedence_key, reverse=True):
                self.found.setdefault(release.key, (catalog, release))
                versions[release.fqn][release.version] = None
        return {fqn: tuple(found) for fqn, found in versions.items()}

    def requirements(
        self, releases: Collection[resolver.PackageVersion]
    ) -> Mapping[resolver.PackageVersion, resolver.Requirements]:
        """See the protocol ``Source``."""
        return {release: self.found[release][1].requirements for release in releases}

    def catalog_of(self, release: Release) -> Catalog:
        """The catalogue that a release was found in."""
        return self.found[release.key][0]


def _classes(
    catalogs: Sequence[Catalog], query: Query
) -> tuple[list[tuple[str, VersionSpec]], tuple[Undefined, ...]]:
    """The packages that define classes, each as a root; and what none defines."""
    roots, undefined = [], []
    for class_name, spec in query.classes:
        defining = [
            [release.key for release in _defining(catalog, class_name)] for catalog in catalogs
        ]
        root = resolver.choose_defining(defining, spec, query.pins)
        if root is not None:
            roots.append(root)
        else:
            there = resolver.one_of_each(itertools.chain(*defining))
            undefined.append(Undefined(class_name, spec, tuple(map(str, there))))
    return roots, tuple(undefined)


def _known(catalog: Catalog, fqns: Collection[str]) -> list[Release]:
    return _asked(catalog, lambda: list(catalog.known(fqns)))


def _defining(catalog: Catalog, class_name: str) -> list[Release]:
    return _asked(catalog, lambda: list(catalog.releases_defining(class_name)))


def _asked(catalog: Catalog, ask: Callable[[], _T]) -> _T:
    try:
        return ask()
    except errors.NoAnswer as error:
        error.catalog = catalog
        raise


def _resolution(answer: Answer, catalog_of: Callable[[Release], Catalog]) -> Resolution:
    choices: dict[str, dict[Version, Choice]] = collections.defaultdict(dict)
    for release, demands in answer.releases:
        choices[release.fqn][release.version] = Choice(catalog_of(release), release, demands)
    return Resolution(choices, answer.unsatisfied, answer.undefined)
