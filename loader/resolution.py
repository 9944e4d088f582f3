# SPDX-License-Identifier: Apache-2.0

"""Choose the packages that a query needs from catalogues, before any archive is fetched.

A query has requirements, and the result is their *closure*: a release for each of them, and for all
that these releases require. A single catalogue may choose the whole closure in one request. If it
cannot, or if there are several catalogues, each catalogue is queried level by level: first for the
packages that the query requires, then for those that these require, and so on. Both ways use
``glare_murano.resolver``, so the result is the same.

If several catalogues have a version, the first of them is used. If different versions satisfy the
requirements equally well, the versions in the first catalogue are chosen.
"""

import collections
import contextlib
import dataclasses
import functools
import itertools
import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from glare_murano import resolver
from glare_murano.budget import Budget, PausingBudget
from glare_murano.eligibility import Eligibility, Excluded
from glare_murano.package import Version, VersionSpec
from glare_murano.package.reserved_names import NO_RESERVED_NAMES, ReservedNames
from glare_murano.resolver import Reason, Undefined, Why
from glare_murano.wire import Answer, Query, Release
from loader import errors
from loader.catalogs.base import Catalog, newest_first, one_of_each

LOG = logging.getLogger(__name__)

# The reasons why newer versions were not chosen, for messages; "{}" stands for ranges.
_REASONS = {
    Reason.RANGE: "excluded by {}",
    Reason.CLASS: "without the class that is required in {}",
    Reason.EXACT_ONLY: "yanked or a pre-release, and not required exactly by {}",
    Reason.CATALOGUE: "in a later catalogue",
}


@dataclasses.dataclass(frozen=True)
class Choice:
    """A chosen release.

    :param catalog: the catalogue that has the release.
    :param demands: the requirements that the release satisfies, each with the requiring package.
    :param why: why the release was chosen; empty if the query did not request reasons.
    """

    catalog: Catalog
    release: Release
    demands: tuple[resolver.Demand, ...]
    why: Why = dataclasses.field(default_factory=Why)

    def serves(self, spec: VersionSpec) -> bool:
        """Return whether the release may be used for a range.

        A yanked release may be used only if the range is exactly its version, or if the release was
        chosen for the range.
        """
        version = self.release.version
        if not self.release.yanked:
            return spec.match(version)
        return spec.is_exactly(version) or any(demand.spec == spec for demand in self.demands)


@dataclasses.dataclass(frozen=True, repr=False)
class Resolution:
    """The releases that were chosen for one query, or for several.

    A *demand* is a requirement: the name of a package, a range, and the requiring package.

    :param choices: the chosen releases, by FQN and version.
    :param unsatisfied: the demands that no version satisfies.
    :param undefined: the classes that no package in the range defines.
    :param external: the demands that extension plug-ins of the engine satisfy.
    :param excluded: releases that the project can see but must not use. For a missing package, all
        of them are listed. For other packages, some may be left out.
    """

    choices: Mapping[str, Mapping[Version, Choice]] = dataclasses.field(default_factory=dict)
    unsatisfied: tuple[resolver.Unsatisfied, ...] = ()
    undefined: tuple[Undefined, ...] = ()
    external: tuple[resolver.External, ...] = ()
    excluded: tuple[Excluded, ...] = ()

    def __repr__(self) -> str:
        releases = ", ".join(str(choice.release) for choice in self.chosen)
        missing = ", ".join(str(missing.demand) for missing in self.unsatisfied)
        return f"<Resolution: {releases or 'nothing'}{missing and f'; missing: {missing}'}>"

    @property
    def chosen(self) -> list[Choice]:
        """All chosen releases."""
        return [choice for versions in self.choices.values() for choice in versions.values()]

    def find(self, fqn: str, spec: VersionSpec) -> Choice | None:
        """Return the newest chosen release that may be used for a range; None if there is none."""
        return _newest(self.choices.get(fqn, {}).values(), spec)

    def find_class(self, class_name: str, specs: Iterable[VersionSpec]) -> Choice | None:
        """Return a chosen release that defines a class; None if there is none.

        The ranges are tried in the given order. In a range, a release that was chosen for the
        header of an object is preferred, and then the newest release.

        :param specs: the ranges of the package's version.
        """
        defining = [choice for choice in self.chosen if class_name in choice.release.classes]
        for spec in specs:
            of_roots = [
                c for c in defining if resolver.Demand(c.release.fqn, spec, None) in c.demands
            ]
            if found := _newest(of_roots, spec) or _newest(defining, spec):
                return found
        return None

    def assigned(
        self, fqn: str, spec: VersionSpec, requirer: resolver.PackageVersion | None
    ) -> Choice | None:
        """Return the release that was chosen for a demand; None if there was no such demand.

        :param requirer: the requiring package; None if the query itself requires the package.
        """
        return self._assigned(fqn).get(resolver.Demand(fqn, spec, requirer))

    def find_missing(
        self, fqn: str, *specs: VersionSpec
    ) -> resolver.Unsatisfied | resolver.External | None:
        """Return the first demand for a package that no chosen release satisfies.

        Either nothing satisfies the demand, or an extension plug-in of the engine does.

        :param specs: the ranges that the demand may have; they are tried in this order.
        :returns: None if there is no such demand.
        """
        every: list[resolver.Unsatisfied | resolver.External] = [*self.unsatisfied, *self.external]
        found = (missing for spec in specs for missing in every if missing.demand.spec == spec)
        return next((missing for missing in found if missing.demand.fqn == fqn), None)

    def error(
        self,
        missing: resolver.Unsatisfied | resolver.External,
        catalogs: Iterable[Catalog],
        spec: VersionSpec | None = None,
        pinned: Version | None = None,
        requirer: resolver.PackageVersion | None = None,
    ) -> errors.NoSuchPackage:
        """Make the error for a demand that no release satisfies.

        :param catalogs: the catalogues that were searched.
        :param spec: the range in the message; by default, the range of the demand.
        :param pinned: the missing version, if it is pinned.
        :param requirer: the requiring package in the message; by default, that of the demand.
        """
        demand = missing.demand
        requirer = requirer or demand.requirer
        chains = self.chains(self._demands_on(demand, requirer))
        where, spec = names(catalogs), spec or demand.spec
        how = remedy(catalogs, "a version in the range" if pinned is None else f"version {pinned}")
        if isinstance(missing, resolver.Unsatisfied) and missing.provided:
            how = (
                f"install a version of the extension plug-in {demand.fqn} in the range beside the "
                f"engine, which takes no package of a catalogue for it"
            )
        if isinstance(missing, resolver.External):
            how = f"install the extension plug-in {demand.fqn} {missing.version} beside the engine"
            missing = resolver.Unsatisfied(demand, ())
        return errors.NoSuchPackage(
            demand.fqn,
            spec,
            missing.available,
            _unusable(missing),
            where,
            how,
            requirer,
            pinned,
            chains,
            [str(each) for each in self.excluded if each.key.fqn == demand.fqn],
        )

    def chains(
        self, demands: Sequence[resolver.Demand], longest: int = resolver.MAX_PACKAGES
    ) -> errors.RequirementChains:
        """Return the chains of demands that lead from the query to the given demands.

        :param longest: how many demands a chain has at most.
        """
        shown = demands[: errors.MAX_CHAINS]
        chains = tuple(chain_of(demand, self._reached_by, longest) for demand in shown)
        return errors.RequirementChains(chains, len(demands) - len(shown))

    def joined(self, later: "Resolution") -> "Resolution":
        """Return this result together with the result of a later query.

        A release in both results keeps its first demand and its reason from this result. A demand
        in both results keeps its release from this result.
        """
        choices = {fqn: dict(versions) for fqn, versions in self.choices.items()}
        for choice in later.chosen:
            known = choices.setdefault(choice.release.fqn, {})
            before = known.get(choice.release.version)
            assigned = self._assigned(choice.release.fqn)
            new = (demand for demand in choice.demands if demand not in assigned)
            demands = (*(before.demands if before else ()), *new)
            why = before.why if before else choice.why
            known[choice.release.version] = dataclasses.replace(choice, demands=demands, why=why)
        unsatisfied = {m.demand: m for m in (*self.unsatisfied, *later.unsatisfied)}
        undefined = dict.fromkeys((*self.undefined, *later.undefined))
        external = dict.fromkeys((*self.external, *later.external))
        excluded = dict.fromkeys((*self.excluded, *later.excluded))
        joined = Resolution(
            choices,
            tuple(unsatisfied.values()),
            tuple(undefined),
            tuple(external),
            tuple(excluded),
        )
        # The demands for a package that the later query has not chosen are the same as before. To
        # read all of them again took 0.2 seconds for each later query of a plan with 100,000.
        unchanged = self._assignments.keys() - later.choices.keys()
        joined._assignments.update((fqn, self._assignments[fqn]) for fqn in unchanged)
        return joined

    @functools.cached_property
    def _assignments(self) -> dict[str, Mapping[resolver.Demand, Choice]]:
        """The results of ``_assigned``, by FQN."""
        return {}

    def _assigned(self, fqn: str) -> Mapping[resolver.Demand, Choice]:
        """Return the demands for a package, each with the release that was chosen for it."""
        if fqn not in self._assignments:
            # Objects of several classes may require the same range, and get different versions. The
            # newest wins, since it comes last.
            oldest_first = sorted(self.choices.get(fqn, {}).items())
            self._assignments[fqn] = {
                demand: choice for _, choice in oldest_first for demand in choice.demands
            }
        return self._assignments[fqn]

    def _demands_on(
        self, demand: resolver.Demand, requirer: resolver.PackageVersion | None
    ) -> list[resolver.Demand]:
        """Return all demands for the package of a given demand.

        Demands with the range of the given demand come first. Among these, and among the others,
        the demands of ``requirer`` come first. Then unsatisfied demands come before others, demands
        for newer versions before those for older ones, and short chains before long ones.

        :param requirer: a package; None to prefer no package.
        """
        demands = [m.demand for m in self.unsatisfied if m.demand.fqn == demand.fqn]
        choices = self.choices.get(demand.fqn, {})
        for version in resolver.newest_first(choices):
            demands += choices[version].demands
        return sorted(
            demands,
            key=lambda d: (d.spec != demand.spec, requirer is None or d.requirer != requirer),
        )

    def _reached_by(self, release: resolver.PackageVersion) -> resolver.Demand | None:
        choice = self.choices.get(release.fqn, {}).get(release.version)
        return choice.demands[0] if choice is not None and choice.demands else None


def chain_of(
    demand: resolver.Demand,
    reached_by: Callable[[resolver.PackageVersion], resolver.Demand | None],
    longest: int = resolver.MAX_PACKAGES,
) -> tuple[resolver.Demand, ...]:
    """Return the chain of demands that leads from a root of the plan to a demand.

    Each demand of the chain, except the first, belongs to a release that satisfies the previous
    demand. If ``reached_by`` returns the demand nearest to a root, no other chain is shorter.

    :param demand: the last demand of the chain.
    :param reached_by: a function that takes a release, and returns a demand that the release
        satisfies. The chain begins with a demand of the release if the function returns None, or a
        demand that is already in the chain.
    :param longest: how many demands the chain has at most. The beginning of a longer chain is left
        out.
    """
    chain = {demand: None}
    while demand.requirer is not None and len(chain) < longest:
        before = reached_by(demand.requirer)
        # A received answer may be incomplete, or have a cycle.
        if before is None or before in chain:
            break
        demand = before
        chain[demand] = None
    return tuple(reversed(chain))


def _unusable(missing: resolver.Unsatisfied) -> Mapping[str, Sequence[Version]]:
    """Return a mapping of reasons to the versions that cannot be chosen for these reasons."""
    found = collections.defaultdict(list)
    for version in missing.exact_only:
        # A query may exclude all pre-releases; the answer does not say which were also yanked.
        found["yanked or a pre-release" if version.prerelease else "yanked"].append(version)
    return {**found, "provided by engines": missing.provided}


def explain(choice: Choice) -> str:
    """Return why newer versions than the chosen one were not chosen; empty if there are none.

    Versions that only a pin excludes do not count.
    """
    found = [passed for passed in choice.why.passed_over if passed.reason != Reason.PIN]
    return "; ".join(
        f"{errors.listed(map(str, passed.versions))} "
        + _REASONS[passed.reason].format(
            ", ".join(_range_text(demand, demand in choice.why.kept) for demand in passed.demands)
        )
        for passed in found
    )


def explain_missing(missing: resolver.Unsatisfied) -> str:
    """Return why no version of a missing package was chosen; empty if it has no versions."""
    demand = _range_text(missing.demand, False)
    found = {Reason.RANGE: missing.available, Reason.EXACT_ONLY: missing.exact_only}
    return "; ".join(
        f"{errors.listed(map(str, versions))} {_REASONS[reason].format(demand)}"
        for reason, versions in found.items()
        if versions
    )


def _range_text(demand: resolver.Demand, is_kept: bool) -> str:
    requirer = "the request" if demand.requirer is None else str(demand.requirer)
    return f"{demand.spec} of {requirer}" + (" (kept in a dependency cycle)" if is_kept else "")


def as_catalogs(catalogs: Catalog | Iterable[Catalog]) -> tuple[Catalog, ...]:
    """Return one catalogue, or several, as a tuple.

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


def remedy(catalogs: Iterable[Catalog], missing: str) -> str:
    """Return, for a message, what a user can do if something is missing in the catalogues.

    :param missing: what is missing, such as ``a version in the range``.
    """
    remedies = dict.fromkeys(catalog.remedy(missing) for catalog in catalogs)
    return "; or ".join(remedies) or "pass a catalogue"


def resolve(
    catalogs: Sequence[Catalog],
    query: Query,
    seconds: float = resolver.MAX_SECONDS,
    reserved: ReservedNames = NO_RESERVED_NAMES,
) -> Resolution:
    """Choose all packages that a query requires.

    :param catalogs: the catalogues in the order of preference.
    :param seconds: the longest time, in seconds, that this process may take to choose the packages.
        A service that chooses them has a limit of its own.
    :param reserved: names that belong to projects. A service that chooses the packages has a file
        of reserved names of its own.
    :raises CatalogError: if a catalogue cannot be read.
    :raises Unplannable: if the closure exceeds a limit.
    """
    if len(catalogs) == 1:
        with _naming_catalog(catalogs[0]):
            answer = catalogs[0].resolve(query)
        if answer is not None and _is_eligible(answer, Eligibility(reserved)):
            chosen = (
                Choice(catalogs[0], release, demands, answer.why.get(release.key, Why()))
                for release, demands in answer.releases
            )
            return Resolution(
                _by_fqn(chosen),
                answer.unsatisfied,
                answer.undefined,
                answer.external,
                answer.excluded,
            )
    return by_level(catalogs, query, seconds, reserved)


def _is_eligible(answer: Answer, rules: Eligibility) -> bool:
    """Return whether this loader may use all releases that a service has chosen.

    The service and this loader may have different files of reserved names. Then the service may
    choose a release that this loader must not use. This is logged.
    """
    for release, _ in answer.releases:
        if objection := rules.find_objection(release):
            LOG.warning(
                "The answer is not used, since %s must not be chosen: %s. Give the service the "
                "same reserved_names_file",
                release,
                objection,
            )
            return False
    return True


def by_level(
    catalogs: Sequence[Catalog],
    query: Query,
    seconds: float = resolver.MAX_SECONDS,
    reserved: ReservedNames = NO_RESERVED_NAMES,
) -> Resolution:
    """Choose packages as ``resolve`` does, but let no catalogue choose them itself.

    The catalogues are queried level by level: first for the packages that the query requires, then
    for the packages that these require, and so on.
    """
    eligibility = Eligibility(reserved, query.private_overrides)
    budget = PausingBudget(seconds, resolver.REMEDY)
    source = _Releases(EligibleReleases(catalogs, eligibility, budget), query.prereleases)
    headers, undefined = resolver.find_headers(
        query.classes, source.defining, query.pins, source.is_exact_only, budget
    )
    planned = resolver.plan(
        query.requirements,
        query.pins,
        source,
        headers=headers,
        provided=query.provided,
        is_exact_only=source.is_exact_only,
        budget=budget,
    )
    why = planned.why if query.why else dict.fromkeys(planned.releases, Why())
    chosen = (
        Choice(*source.found[key], demands, why[key]) for key, demands in planned.releases.items()
    )
    return Resolution(
        _by_fqn(chosen),
        planned.unsatisfied,
        undefined,
        planned.external,
        tuple(itertools.chain.from_iterable(source.excluded.values())),
    )


class EligibleReleases:
    """The releases in several catalogues that may be chosen.

    Before a release may be chosen, all releases with its name are looked up in all catalogues: a
    public release in one catalogue may exclude a private release in another.

    :ivar found: for each version of a package, the first catalogue that has it, and the release
        there.
    :ivar excluded: the releases that can be seen but must not be chosen, by FQN; each name that was
        looked up is a key.
    """

    def __init__(
        self, catalogs: Sequence[Catalog], eligibility: Eligibility, budget: Budget
    ) -> None:
        self.catalogs = catalogs
        self._budget = budget
        self.found: dict[resolver.PackageVersion, tuple[Catalog, Release]] = {}
        self.excluded: dict[str, list[Excluded]] = {}
        self._eligibility = eligibility
        # For each catalogue: FQN -> its releases, the newest first, and one for each version.
        self._best: list[dict[str, list[Release]]] = [{} for _ in catalogs]

    def look_up(self, fqns: Collection[str]) -> None:
        """Read the releases of packages from all catalogues, each package only once."""
        unknown = {fqn for fqn in fqns if fqn not in self.excluded}
        if not unknown:
            return
        offers: list[list[Release]] = []
        for catalog in self._watch(self.catalogs):
            with _naming_catalog(catalog):
                known = newest_first(catalog.releases_of(unknown))
            # Filter by name, since a database may ignore case when it compares names.
            offers.append([release for release in known if release.fqn in unknown])
        selected, excluded = self._eligibility.select(itertools.chain.from_iterable(offers))
        self.excluded |= {fqn: [] for fqn in unknown}
        for each in excluded:
            self.excluded[each.key.fqn].append(each)
        chosen = set(map(id, selected))
        for place, releases in enumerate(offers):
            eligible = one_of_each(release for release in releases if id(release) in chosen)
            for release in self._budget.watch(eligible, "planning"):
                self._best[place].setdefault(release.fqn, []).append(release)
                self.found.setdefault(release.key, (self.catalogs[place], release))

    def by_catalog(self, fqn: str) -> Iterator[list[Release]]:
        """Yield, for each catalogue, its releases of a package, the newest first.

        Call ``look_up`` for the package first.
        """
        return (best.get(fqn, []) for best in self._best)

    def defining(self, class_name: str) -> list[list[Release]]:
        """Return, for each catalogue, the releases that define a class and are allowed to do so."""
        fqns: dict[str, None] = {}
        for catalog in self._watch(self.catalogs):
            with _naming_catalog(catalog):
                fqns |= {release.fqn: None for release in catalog.releases_defining(class_name)}
        self.look_up(fqns)
        return [
            [
                release
                for fqn in fqns
                for release in best.get(fqn, [])
                if class_name in release.classes
                and self._eligibility.allows_class(class_name, release)
            ]
            for best in self._best
        ]

    def _watch(self, catalogs: Iterable[Catalog]) -> Iterable[Catalog]:
        return self._budget.watch(catalogs, "reading catalogues", lambda catalog: catalog.name)


class _Releases:
    """The releases in several catalogues, with the methods that the resolver calls."""

    def __init__(self, releases: EligibleReleases, prereleases: bool) -> None:
        self._releases = releases
        self._prereleases = prereleases
        self.found = releases.found
        self.excluded = releases.excluded

    def versions(self, fqns: Collection[str]) -> Mapping[str, Sequence[Version]]:
        """Return the versions of each package.

        Versions in the first catalogue come first, and in each catalogue, the newest come first.
        """
        self._releases.look_up(fqns)
        return {
            fqn: tuple(
                dict.fromkeys(
                    release.version
                    for releases in self._releases.by_catalog(fqn)
                    for release in releases
                )
            )
            for fqn in fqns
        }

    def requirements(
        self, releases: Collection[resolver.PackageVersion]
    ) -> Mapping[resolver.PackageVersion, resolver.Requirements]:
        return {release: self.found[release][1].requirements for release in releases}

    def defining(self, class_name: str) -> list[list[resolver.PackageVersion]]:
        """Return, for each catalogue, the versions of packages that define a class."""
        found = self._releases.defining(class_name)
        return [[release.key for release in releases] for releases in found]

    def is_exact_only(self, release: resolver.PackageVersion) -> bool:
        """Return whether a version may be chosen only for a range of exactly this version.

        This is so if the version is yanked, or is a pre-release that the query does not allow.
        """
        is_wanted = self._prereleases or not release.version.prerelease
        return bool(self.found[release][1].yanked) or not is_wanted


@contextlib.contextmanager
def _naming_catalog(catalog: Catalog) -> Iterator[None]:
    """Add the catalogue to a ``CatalogUnavailable`` error that the ``with`` block raises."""
    try:
        yield
    except errors.CatalogUnavailable as error:
        error.catalog = catalog
        raise


def _newest(choices: Iterable[Choice], spec: VersionSpec) -> Choice | None:
    """Return the newest chosen release that may be used for a range; None if there is none."""
    serving = {choice.release.version: choice for choice in choices if choice.serves(spec)}
    return serving[max(serving)] if serving else None


def _by_fqn(chosen: Iterable[Choice]) -> Mapping[str, Mapping[Version, Choice]]:
    choices: dict[str, dict[Version, Choice]] = collections.defaultdict(dict)
    for choice in chosen:
        choices[choice.release.fqn][choice.release.version] = choice
    return choices
