# SPDX-License-Identifier: Apache-2.0

"""The closure of requirements, chosen from catalogues before any archive is fetched.

A single catalogue may answer a dependency query in one request. Otherwise each
catalogue is queried for each level of the graph. Both ways choose by
``glare_murano.resolver``, with the same result. A version in several catalogues is
taken from the first of them. Of versions that satisfy the requirements equally
well, those of the first catalogue are chosen.
"""

import collections
import contextlib
import dataclasses
import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from glare_murano import resolver
from glare_murano.package import Version, VersionSpec
from glare_murano.wire import Query, Release, Undefined
from loader import errors
from loader.catalogs.base import Catalog, newest_first


@dataclasses.dataclass(frozen=True)
class Choice:
    """A chosen release.

    :param catalog: the catalogue of the release.
    :param demands: the satisfied ranges with their requirers.
    """

    catalog: Catalog
    release: Release
    demands: tuple[resolver.Demand, ...]


@dataclasses.dataclass(frozen=True, repr=False)
class Resolution:
    """The result of one query, or of several in turn.

    :param choices: FQN -> version -> choice.
    :param unsatisfied: ranges without any version.
    :param undefined: classes without a package in the range.
    """

    choices: Mapping[str, Mapping[Version, Choice]] = dataclasses.field(default_factory=dict)
    unsatisfied: tuple[resolver.Unsatisfied, ...] = ()
    undefined: tuple[Undefined, ...] = ()

    def __repr__(self) -> str:
        releases = ", ".join(str(choice.release) for choice in self.chosen)
        missing = ", ".join(str(missing.demand) for missing in self.unsatisfied)
        return f"<Resolution: {releases or 'nothing'}{missing and f'; missing: {missing}'}>"

    @property
    def chosen(self) -> list[Choice]:
        """All choices."""
        return [choice for versions in self.choices.values() for choice in versions.values()]

    def find(self, fqn: str, spec: VersionSpec) -> Choice | None:
        """Return the newest choice in a range."""
        choices = self.choices.get(fqn, {})
        version = spec.select(choices)
        return choices[version] if version is not None else None

    def find_class(self, class_name: str, specs: Iterable[VersionSpec]) -> Choice | None:
        """Return the newest choice that defines a class, in the first range with any."""
        defining = {c.release.version: c for c in self.chosen if class_name in c.release.classes}
        versions = (spec.select(defining) for spec in specs)
        return next((defining[version] for version in versions if version is not None), None)

    def find_missing(self, fqn: str, *specs: VersionSpec) -> resolver.Unsatisfied | None:
        """Return the first unsatisfied demand for a package in one of these ranges."""
        found = (m for spec in specs for m in self.unsatisfied if m.demand.spec == spec)
        return next((missing for missing in found if missing.demand.fqn == fqn), None)

    def error(
        self,
        missing: resolver.Unsatisfied,
        catalogs: Iterable[Catalog],
        spec: VersionSpec | None = None,
        pinned: Version | None = None,
        required_by: str | None = None,
    ) -> errors.NoSuchPackage:
        """Return the error for a range without any version.

        :param spec: the range in the message; by default, the missing one.
        :param required_by: the requirer in the message; by default, the demand's.
        """
        demand = missing.demand
        if required_by is None and demand.requirer is not None:
            required_by = str(demand.requirer)
        chains = self.chains(self._demands_on(demand, required_by))
        where, spec = names(catalogs), spec or demand.spec
        return errors.NoSuchPackage(
            demand.fqn, spec, missing.available, where, required_by, pinned, chains
        )

    def chains(self, demands: Sequence[resolver.Demand]) -> errors.RequirementChains:
        """Return the chains of demands, from the roots of this closure."""
        shown = demands[: errors.MAX_CHAINS]
        chains = tuple(resolver.chain_of(demand, self._reached_by) for demand in shown)
        return errors.RequirementChains(chains, len(demands) - len(shown))

    def joined(self, later: "Resolution") -> "Resolution":
        """Return this result with the result of a later query.

        The first demand of each release stays the first.
        """
        choices = {fqn: dict(versions) for fqn, versions in self.choices.items()}
        for choice in later.chosen:
            known = choices.setdefault(choice.release.fqn, {})
            before = known.get(choice.release.version)
            demands = dict.fromkeys((*(before.demands if before else ()), *choice.demands))
            known[choice.release.version] = dataclasses.replace(choice, demands=tuple(demands))
        unsatisfied = {m.demand: m for m in (*self.unsatisfied, *later.unsatisfied)}
        undefined = dict.fromkeys((*self.undefined, *later.undefined))
        return Resolution(choices, tuple(unsatisfied.values()), tuple(undefined))

    def _demands_on(self, demand: resolver.Demand, requirer: str | None) -> list[resolver.Demand]:
        """Return all demands for a package, first with the range of this demand.

        Unsatisfied demands precede others, newer versions precede older ones, and
        short chains precede long ones.
        """
        demands = [m.demand for m in self.unsatisfied if m.demand.fqn == demand.fqn]
        choices = self.choices.get(demand.fqn, {})
        for version in resolver.newest_first(choices):
            demands += choices[version].demands
        return sorted(demands, key=lambda d: (d.spec != demand.spec, str(d.requirer) != requirer))

    def _reached_by(self, release: resolver.PackageVersion) -> resolver.Demand | None:
        choice = self.choices.get(release.fqn, {}).get(release.version)
        return choice.demands[0] if choice is not None and choice.demands else None


def as_catalogs(catalogs: Catalog | Iterable[Catalog]) -> tuple[Catalog, ...]:
    """Return catalogues, or a single catalogue, as a tuple.

    :raises TypeError: if an item is not a catalogue.
    """
    found: tuple[Any, ...] = (catalogs,)
    if not isinstance(catalogs, Catalog | str) and isinstance(catalogs, Iterable):
        found = tuple(catalogs)
    for item in found:
        if not isinstance(item, Catalog):
            is_path = isinstance(item, str | os.PathLike)
            hint = f"DirectoryCatalog({str(item)!r})" if is_path else "GlareCatalog(session)"
            raise TypeError(f"{item!r} is not a catalogue; use a catalogue such as {hint}")
    return found


def names(catalogs: Iterable[Catalog]) -> str:
    """Return the names of catalogues for a message."""
    return ", ".join(catalog.name for catalog in catalogs) or "no catalogue at all"


def resolve(catalogs: Sequence[Catalog], query: Query) -> Resolution:
    """Choose the closure of a query.

    :param catalogs: in the order of preference.
    :raises CatalogError: if a catalogue cannot be read.
    :raises Unplannable: if the closure exceeds a limit.
    """
    if len(catalogs) == 1:
        with _naming(catalogs[0]):
            answer = catalogs[0].resolve(query)
        if answer is not None:
            chosen = (Choice(catalogs[0], release, demands) for release, demands in answer.releases)
            return Resolution(_by_fqn(chosen), answer.unsatisfied, answer.undefined)
    return by_level(catalogs, query)


def by_level(catalogs: Sequence[Catalog], query: Query) -> Resolution:
    """Choose as ``resolve`` does, from the catalogues' releases, a level at a time."""
    source = _Releases(catalogs)
    roots, undefined = _class_roots(catalogs, query)
    planned = resolver.plan([*roots, *query.requirements], query.pins, source)
    chosen = (Choice(*source.found[key], demands) for key, demands in planned.releases.items())
    return Resolution(_by_fqn(chosen), planned.unsatisfied, undefined)


class _Releases:
    """The releases of several catalogues, as a source of the resolver.

    :ivar found: each release, with the first catalogue that has the version.
    """

    def __init__(self, catalogs: Sequence[Catalog]) -> None:
        self._catalogs = catalogs
        self.found: dict[resolver.PackageVersion, tuple[Catalog, Release]] = {}

    def versions(self, fqns: Collection[str]) -> Mapping[str, Sequence[Version]]:
        """Return the versions of packages, by catalogue and then the newest first."""
        versions: dict[str, dict[Version, None]] = {fqn: {} for fqn in fqns}
        for catalog in self._catalogs:
            with _naming(catalog):
                known = newest_first(catalog.known(fqns))
            for release in known:
                # A database may compare names without regard to case.
                if release.fqn in versions:
                    self.found.setdefault(release.key, (catalog, release))
                    versions[release.fqn][release.version] = None
        return {fqn: tuple(found) for fqn, found in versions.items()}

    def requirements(
        self, releases: Collection[resolver.PackageVersion]
    ) -> Mapping[resolver.PackageVersion, resolver.Requirements]:
        return {release: self.found[release][1].requirements for release in releases}


def _class_roots(
    catalogs: Sequence[Catalog], query: Query
) -> tuple[list[tuple[str, VersionSpec]], tuple[Undefined, ...]]:
    """Return the packages that define a query's classes, and the classes without any."""
    roots, undefined = [], []
    for class_name, spec in query.classes:
        defining = []
        for catalog in catalogs:
            with _naming(catalog):
                defining.append([r.key for r in catalog.releases_defining(class_name)])
        root = resolver.choose_defining(defining, spec, query.pins)
        if root is not None:
            roots.append(root)
        else:
            available = resolver.one_of_each(itertools.chain(*defining))
            undefined.append(Undefined(class_name, spec, tuple(map(str, available))))
    return roots, tuple(undefined)


@contextlib.contextmanager
def _naming(catalog: Catalog) -> Iterator[None]:
    """Note in an error which catalogue cannot be reached."""
    try:
        yield
    except errors.CatalogUnavailable as error:
        error.catalog = catalog
        raise


def _by_fqn(chosen: Iterable[Choice]) -> Mapping[str, Mapping[Version, Choice]]:
    choices: dict[str, dict[Version, Choice]] = collections.defaultdict(dict)
    for choice in chosen:
        choices[choice.release.fqn][choice.release.version] = choice
    return choices
