# SPDX-License-Identifier: Apache-2.0

"""Plan the closure of a set of requirements: which release to load for each of them.

The requirements of a query are the roots of the plan. A demand is one requirement: a package, a
range of versions, and the release that has the requirement. The closure contains the releases for
the roots, the releases that those require, and so on. A source supplies versions and requirements.
The services and the loader share this code, so their plans are the same.

Versions are chosen by these rules:

- A pinned version is one with which an environment was deployed. A range that contains a pinned
  version takes this version. If a range names exactly one version, a pinned version with the same
  build metadata precedes other pinned versions.
- For the other ranges of a package, the fewest versions are chosen that together satisfy all of
  them. If several sets of versions are equally small, the set with the newest versions is chosen.
- An exact-only version, such as a yanked version, is chosen only if it is pinned, or if a range
  names exactly this version.
- A provided package is an extension plug-in of the engine. The closure contains no provided
  package, and no release of the same name.

Planning takes several rounds. Each round chooses the versions again, from the ranges that the
choices of the previous round require. The last round changes nothing. In a dependency cycle, each
version of a package may lead to a range that excludes the version itself. Then the rounds would
never end. So the required ranges of such a package are kept for all later rounds, and several
versions of the package may be chosen.
"""

import collections
import dataclasses
import enum
import functools
import itertools
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from glare_murano import reachability
from glare_murano.budget import Budget, PausingBudget
from glare_murano.hitting_set import fewest_newest
from glare_murano.package.errors import TooManyVersions, Unplannable, shown
from glare_murano.package.versions import SortedVersions, Version, VersionSpec, places, sort_key
from glare_murano.reachability import Node

_T = TypeVar("_T")

Requirements = Mapping[str, VersionSpec]
Roots = Iterable[tuple[str, VersionSpec]]
Pins = Mapping[str, Collection[Version]]

# The largest number of ranges in a message.
_MAX_LISTED = 5
# The largest number of newer versions in an explanation.
_MAX_NEWER = 20
# The largest number of releases that are listed for a class without a release in the range.
_MAX_DEFINING = 20
# The largest number of packages in a plan. The largest deployed closures have a hundred.
MAX_PACKAGES = 5000
# The longest time for a plan, in seconds. With some catalogues, each level of requirements takes
# seconds.
MAX_SECONDS = 300
# What the client can do instead if a plan exceeds its time limit.
REMEDY = "request fewer packages"


@dataclasses.dataclass(frozen=True)
class PackageVersion:
    """A version of a package."""

    fqn: str
    version: Version
    # The hash is stored, since planning needs it very often, and ``Version`` would compute it each
    # time.
    _hash: int = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.fqn, self.version)))

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return f"{self.fqn} {self.version}"


# A function that returns whether a version is exact-only: chosen only if it is pinned, or if a
# range names exactly this version.
IsExactOnly = Callable[[PackageVersion], bool]


@dataclasses.dataclass(frozen=True)
class Demand:
    """A requirement: a package, a range, and the release that has the requirement.

    :param fqn: the required package.
    :param spec: the required range.
    :param requirer: the release that has the requirement; None for a root, which is a requirement
        of the query itself.
    """

    fqn: str
    spec: VersionSpec
    requirer: PackageVersion | None

    def __str__(self) -> str:
        return f"{self.fqn} {self.spec}"


@dataclasses.dataclass(frozen=True)
class Header:
    """A root of a plan: a requirement of the query, which may come from the header of an object.

    An object in an environment's model has a header, which names the object's class, and a range of
    versions for the package of the class.

    :param fqn: the required package.
    :param spec: the required range.
    :param defining: the versions of the package that define the object's class. Only these versions
        may be chosen. None if the root does not come from an object; then any version may be
        chosen.
    """

    fqn: str
    spec: VersionSpec
    defining: frozenset[Version] | None


class Source(Protocol):
    """The catalogue that supplies the versions and the requirements of packages for a plan.

    A plan requests the versions of each package once, and the requirements of each release once.
    """

    def versions(self, fqns: Collection[str]) -> Mapping[str, Sequence[Version]]:
        """Return the available versions of packages: FQN -> versions, the best first.

        With one catalogue, the best version is the newest. With several catalogues, all versions in
        an earlier catalogue may be better than all versions in a later catalogue.

        :param fqns: the packages.
        """

    def requirements(
        self, releases: Collection[PackageVersion]
    ) -> Mapping[PackageVersion, Requirements]:
        """Return the requirements of releases: release -> FQN of a required package -> range."""


@dataclasses.dataclass(frozen=True)
class Unsatisfied:
    """A demand (a requirement) that no version satisfies.

    :param available: the available versions of the package that are not exact-only, the newest
        first.
    :param exact_only: the available exact-only versions, the newest first. They are chosen only if
        they are pinned, or if a range names them exactly.
    :param provided: the versions of the package that the engine provides, the newest first.
    """

    demand: Demand
    available: tuple[Version, ...]
    exact_only: tuple[Version, ...] = ()
    provided: tuple[Version, ...] = ()


@dataclasses.dataclass(frozen=True)
class External:
    """A demand (a requirement) that an extension plug-in of the engine satisfies.

    :param version: the version of the package that the plug-in provides.
    """

    demand: Demand
    version: Version


@dataclasses.dataclass(frozen=True)
class Undefined:
    """A class in the header of an object, for which no release in the required range can be chosen.

    :param spec: the required range.
    :param available: the releases that define the class, one for each version, as ``FQN version``;
        only the newest twenty. None of them can be chosen for the range.
    """

    class_name: str
    spec: VersionSpec
    available: tuple[str, ...]


class Reason(enum.StrEnum):
    """Why a newer version was not chosen."""

    RANGE = "range"  # a range excludes it
    PIN = "pin"  # another version is pinned
    EXACT_ONLY = "exact_only"  # only a pin or its exact range selects it
    CLASS = "class"  # it does not define the object's class
    CATALOGUE = "catalogue"  # an earlier catalogue has another version


@dataclasses.dataclass(frozen=True)
class PassedOver:
    """Versions that are newer than a chosen version, but were not chosen instead of it.

    :param versions: the newer versions, the newest first.
    :param reason: why none of the newer versions was chosen for the demands of the chosen version.
    :param demands: the demands to which the reason applies, one for each range. The chosen version
        satisfies them. For example, if the reason is ``RANGE``, their ranges exclude the newer
        versions.
    """

    versions: tuple[Version, ...]
    reason: Reason
    demands: tuple[Demand, ...] = ()


@dataclasses.dataclass(frozen=True)
class Why:
    """Why a version was chosen. ``Closure.releases`` has the demands that the version satisfies.

    :param kept: further demands that the version satisfies. They belong to releases that were
        chosen in an earlier round of planning, but are not in the closure. The ranges of these
        demands were kept because of a dependency cycle.
    :param passed_over: the newer versions, grouped by the reason why they were not chosen; at most
        twenty in total.
    """

    kept: tuple[Demand, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()


@dataclasses.dataclass(frozen=True)
class Closure:
    """The result of a plan: the releases for the roots, the releases that these require, and so on.

    The roots are the requirements of the query.

    :param releases: the chosen releases: release -> the demands (requirements) that the release
        satisfies. The demands nearest to the roots of the plan come first. Because of the first
        demand, the release was added to the closure.
    :param unsatisfied: the demands that no release satisfies. The demands nearest to the roots come
        first.
    :param external: the demands that extension plug-ins of the engine satisfy.
    :param explain: a function that takes a release of the closure, and returns why it was chosen.
    """

    releases: Mapping[PackageVersion, tuple[Demand, ...]]
    unsatisfied: tuple[Unsatisfied, ...]
    external: tuple[External, ...]
    explain: Callable[[PackageVersion], Why] = dataclasses.field(compare=False)

    @functools.cached_property
    def why(self) -> Mapping[PackageVersion, Why]:
        """Why each release was chosen: release -> explanation."""
        return {release: self.explain(release) for release in self.releases}


def plan(
    roots: Roots,
    pins: Pins,
    source: Source,
    *,
    headers: Iterable[Header] = (),
    provided: Pins = types.MappingProxyType({}),
    is_exact_only: IsExactOnly = lambda _: False,
    budget: Budget | None = None,
) -> Closure:
    """Plan which releases to load for a set of requirements, and for what these releases require.

    :param roots: the requirements: FQNs and ranges. A package may have several ranges.
    :param pins: the versions with which an environment was deployed: FQN -> versions.
    :param source: the catalogue that supplies versions and requirements.
    :param headers: further roots, from ``find_headers``.
    :param provided: the packages that the engine provides: FQN -> versions. No other versions of
        these packages are chosen.
    :param is_exact_only: a function that returns whether a version is exact-only: chosen only if it
        is pinned, or if a range names exactly this version.
    :param budget: the time limit of the request, which includes the time of the source; by default
        ``MAX_SECONDS``.
    :raises Unplannable: if the plan exceeds a limit.
    """
    budget = budget or PausingBudget(MAX_SECONDS, REMEDY)
    planner = _Planner(pins, provided, source, is_exact_only, budget)
    return planner.closure([*(Header(fqn, spec, None) for fqn, spec in roots), *headers])


def demands_of(release: PackageVersion, requirements: Requirements) -> Iterable[Demand]:
    """Yield the requirements of a release as demands.

    If the release requires its own package, and itself satisfies this requirement, the requirement
    is left out.
    """
    for fqn, spec in sorted(requirements.items()):
        if fqn != release.fqn or not satisfies_itself(release.version, spec):
            yield Demand(fqn, spec, release)


def satisfies_itself(version: Version, spec: VersionSpec) -> bool:
    """Return whether a release satisfies its requirement on its own package.

    Every package implicitly requires itself, in the range of its major version. A release always
    satisfies this requirement. For example, the release 2.0.0-rc.1 satisfies it, although the range
    2 does not contain this version.

    :param version: the version of the release.
    :param spec: the range in which the release requires its own package.
    """
    return spec.text == str(version.major) or spec.match(version)


def newest_first(versions: Iterable[Version]) -> tuple[Version, ...]:
    """Sort versions, the newest first, and remove duplicates."""
    return tuple(sorted(set(versions), key=sort_key, reverse=True))


def find_headers(
    classes: Iterable[tuple[str, VersionSpec]],
    defining: Callable[[str], Iterable[Iterable[PackageVersion]]],
    pins: Pins,
    is_exact_only: IsExactOnly,
    budget: Budget,
) -> tuple[list[Header], tuple[Undefined, ...]]:
    """Find the package that defines the class of each object. ``plan`` then chooses the versions.

    Several packages may define a class. If one of them has a pinned version in the range, this
    package is found. If not, the package with the newest version in the range is found.

    :param classes: the classes of the objects, with the ranges in their headers. If no version is
        in a range, the fallbacks of the range are tried, see ``VersionSpec.with_fallbacks``.
    :param defining: a function that takes the name of a class, and returns the releases that define
        it, in a list for each catalogue. If several catalogues have a version in the range, the
        first of these catalogues is used.
    :param pins: as in ``plan``.
    :param is_exact_only: as in ``plan``.
    :param budget: the time limit of the request.
    :returns: the headers for ``plan``, and the classes for which no package was found.
    :raises Unplannable: if the time is over.
    """
    headers, undefined = [], []
    # Each class is read once: a thousand objects may have the same class, and the class may have a
    # thousand versions.
    definitions: dict[str, _Definition] = {}
    # Equal sets of versions are replaced by one object, so that later code can compare them by
    # identity.
    sets: dict[frozenset[Version], frozenset[Version]] = {}
    for class_name, spec in budget.watch(classes, "planning", lambda each: f"class {each[0]}"):
        if class_name not in definitions:
            watched = functools.partial(
                budget.watch, step="planning", place=lambda each: f"package {each.fqn}"
            )
            found = list(map(tuple, defining(class_name)))
            definitions[class_name] = _Definition(found, pins, is_exact_only, watched, sets)
        header = definitions[class_name].find_header(spec)
        if header is not None:
            headers.append(header)
        else:
            undefined.append(Undefined(class_name, spec, definitions[class_name].available))
    return headers, tuple(undefined)


_Watch = Callable[[Iterable[PackageVersion]], Iterable[PackageVersion]]


class _Definition:
    """The releases that define a class, from all catalogues.

    :ivar available: one release for each available version, as ``FQN version``; only the newest
        ``_MAX_DEFINING``.
    """

    def __init__(
        self,
        by_catalog: Sequence[Sequence[PackageVersion]],
        pins: Pins,
        is_exact_only: IsExactOnly,
        watch: _Watch,
        sets: dict[frozenset[Version], frozenset[Version]],
    ) -> None:
        versions = collections.defaultdict(set)
        for release in watch(itertools.chain(*by_catalog)):
            versions[release.fqn].add(release.version)
        frozen = {fqn: frozenset(of_package) for fqn, of_package in versions.items()}
        self._versions = {fqn: sets.setdefault(found, found) for fqn, found in frozen.items()}
        pinned = {PackageVersion(fqn, version) for fqn in versions for version in pins.get(fqn, ())}
        # Two packages may define the class in the same version, and only one of them may be pinned
        # or exact-only. So releases are compared here, and not only versions. Pinned releases are
        # tried first.
        pinned_in_turn = (filter(pinned.__contains__, releases) for releases in by_catalog)
        self._in_turn = [
            *(_Offers(watch(releases), lambda _: False) for releases in pinned_in_turn),
            *(
                _Offers(watch(releases), lambda each: each not in pinned and is_exact_only(each))
                for releases in by_catalog
            ),
        ]
        newest = one_of_each(watch(itertools.chain(*by_catalog)))[:_MAX_DEFINING]
        self.available = tuple(map(str, newest))

    def find_header(self, spec: VersionSpec) -> Header | None:
        for wanted in spec.with_fallbacks():
            for offers in self._in_turn:
                if release := offers.newest(wanted):
                    return Header(release.fqn, wanted, self._versions[release.fqn])
        return None


class _Offers:
    """The releases in one catalogue, of any package, that define a class."""

    def __init__(self, releases: Iterable[PackageVersion], is_exact_only: IsExactOnly) -> None:
        # Version -> release.
        self._usual: dict[Version, PackageVersion] = {}
        self._exact_only: dict[Version, PackageVersion] = {}
        for release in releases:
            found = self._exact_only if is_exact_only(release) else self._usual
            # If several packages have the same version, the last package by FQN is used.
            found[release.version] = max(release, found.get(release.version, release), key=_newness)
        self._sorted = SortedVersions(self._usual)

    def newest(self, spec: VersionSpec) -> PackageVersion | None:
        """Return the newest release in a range; None if no release can be chosen for the range.

        An exact-only release, such as a yanked release, is returned only for a range that names
        exactly its version.
        """
        found = [self._exact_only.get(spec.exact)]
        if version := self._sorted.newest(self._sorted.within(spec)):
            found.append(self._usual[version])
        return max(filter(None, found), key=_newness, default=None)


def _newness(release: PackageVersion) -> tuple[object, ...]:
    return sort_key(release.version), release.fqn


def one_of_each(releases: Iterable[PackageVersion]) -> tuple[PackageVersion, ...]:
    """Return only one release for each version, the newest version first.

    Releases of different packages can have the same version. Of these, the one whose FQN is the
    last in alphabetical order is returned.
    """
    found: dict[Version, str] = {}
    for release in releases:
        found[release.version] = max(found.get(release.version, ""), release.fqn)
    return tuple(PackageVersion(found[version], version) for version in newest_first(found))


class _Requirer(Node):
    """A node of the graph of requirements: for one release, or one node for all roots.

    Its targets are the nodes of the required ranges.

    :ivar demands: the demands that no extension plug-in satisfies, each with the node of its range.
    :ivar external: the demands that extension plug-ins of the engine satisfy.
    """

    def __init__(self) -> None:
        super().__init__()
        self.demands: Sequence[tuple[Demand, _RangeNode]] = ()
        self.external: Sequence[External] = ()

    def find_targets(self) -> Iterable[Node]:
        return (range_ for _, range_ in self.demands)


class _ReleaseNode(_Requirer):
    """A node for a release that was chosen in a round of planning.

    :ivar is_known: whether the source has supplied the requirements of the release.
    """

    def __init__(self, key: PackageVersion) -> None:
        super().__init__()
        self.key = key
        self.is_known = False

    def __str__(self) -> str:
        return f"package {self.key.fqn}"


_NO_VERSIONS = SortedVersions(())
# The set of the chosen versions of a package, as a bit mask (see ``SortedVersions``); None if no
# range of the package is required.
_Choice = int | None


class _RangeNode(Node):
    """A node for a required range of a package. It leads to the release chosen for the range."""

    def __init__(
        self, package: "_Package", spec: VersionSpec, among: frozenset[Version] | None
    ) -> None:
        super().__init__()
        self.package = package
        self.spec = spec
        self._among = among

    def __str__(self) -> str:
        return str(self.package)

    def find_targets(self) -> Iterable[Node]:
        release = self.take()
        return () if release is None else (release,)

    @functools.cached_property
    def pinned(self) -> Version | None:
        """The pinned version that is chosen for the range; None if no pinned version is in it.

        The pinned versions in the range are tried in this order:

        1. The version that the range names exactly, with the same build metadata.
        2. The newest version that is not exact-only. A yanked version, for example, is exact-only.
        3. The newest exact-only version.
        """
        pins = self.package.pins
        if not pins.every:
            return None
        found = pins.within(self.spec)
        if self._among is not None:
            found &= pins.among(self._among)
        same = found & pins.among(filter(None, (self.spec.exact,)))
        usual = found & ~pins.among(self.package.exact_only)
        return pins.newest(same or usual or found)

    @functools.cached_property
    def usable(self) -> int:
        """The set of the available versions that may be chosen if the range has no pinned version.

        The set is a bit mask, see ``SortedVersions``.
        """
        package = self.package
        exact = () if self.spec.exact is None else (self.spec.exact,)
        found = package.sorted.within(self.spec)
        found &= package.usual | package.sorted.among(exact)
        return found if self._among is None else found & package.among(self._among)

    def take(self) -> _ReleaseNode | None:
        """Return the chosen release that satisfies this range; None if there is no such release.

        If ``pinned`` is a version, only the chosen release with this version satisfies the range.
        If ``pinned`` is None, the newest chosen release whose version is in ``usable`` is returned.
        """
        package = self.package
        # Before the first choice, the versions are unknown.
        if not package.choice:
            return None
        wanted = self.usable if self.pinned is None else package.sorted.among((self.pinned,))
        newest = (wanted & package.choice).bit_length() - 1
        return None if newest < 0 else package.release(newest)

    def reason(self, version: Version) -> Reason | None:
        """Return why a version cannot be chosen for this range, whatever other ranges require.

        :returns: the reason; None if the version can be chosen.
        """
        if not self.spec.match(version):
            return Reason.RANGE
        if self.pinned is not None:
            return Reason.PIN
        if self._among is not None and version not in self._among:
            return Reason.CLASS
        if version in self.package.exact_only and not self.spec.is_exactly(version):
            return Reason.EXACT_ONLY
        return None


class _Package:
    """A package that a plan requires, with its available and its chosen versions.

    Planning takes several rounds, which may require different ranges of the package. Sets of
    versions are bit masks, see ``SortedVersions``.

    :ivar sorted: the available versions.
    :ivar exact_only: the exact-only versions, which are chosen only if they are pinned, or if a
        range names them exactly.
    :ivar usual: the set of all available versions that are not exact-only.
    :ivar ranges: the ranges that the present round requires.
    :ivar kept: the ranges that are kept from earlier rounds: range -> the demands with this range.
        Kept ranges apply as long as the present round requires the package.
    :ivar choice: the set of the chosen versions; None if the package is not required.
    """

    def __init__(self, fqn: str, pins: Collection[Version], budget: Budget) -> None:
        self.fqn = fqn
        self.pins = SortedVersions(pins) if pins else _NO_VERSIONS
        self.sorted = _NO_VERSIONS
        # A set for each version, which contains only this version. The set of the best version is
        # first.
        self._in_order: Sequence[int] = ()
        self.exact_only: Collection[Version] = ()
        self.usual = 0
        self._budget = budget
        self._all_ranges: dict[tuple[VersionSpec, Collection[Version] | None], _RangeNode] = {}
        self._among: dict[frozenset[Version], int] = {}
        self._releases: dict[int, _ReleaseNode] = {}
        self.ranges: set[_RangeNode] = set()
        self.kept: dict[_RangeNode, set[Demand]] = collections.defaultdict(set)
        self.choice: _Choice = None

    def __str__(self) -> str:
        return f"package {self.fqn}"

    def offer(self, versions: Sequence[Version], exact_only: Collection[Version]) -> None:
        """Set the available versions. Call this before any version is chosen.

        :param versions: the available versions, the best first.
        :param exact_only: the exact-only versions among them.
        """
        self.sorted = SortedVersions(versions)
        self._in_order = [self.sorted.among((version,)) for version in versions]
        self.exact_only = exact_only
        self.usual = self.sorted.every & ~self.sorted.among(exact_only)

    def range(self, spec: VersionSpec, among: frozenset[Version] | None = None) -> _RangeNode:
        """Return the node for a required range of this package.

        :param spec: the range.
        :param among: the versions that may be chosen; None for all versions.
        """
        if (spec, among) not in self._all_ranges:
            self._all_ranges[spec, among] = _RangeNode(self, spec, among)
        return self._all_ranges[spec, among]

    def among(self, versions: frozenset[Version]) -> int:
        """Return the set of those given versions that are available, as a bit mask."""
        if versions not in self._among:
            self._among[versions] = self.sorted.among(versions)
        return self._among[versions]

    def choose(self) -> _Choice:
        """Choose versions for the ranges of the present round, and for the kept ranges.

        :returns: the set of the chosen versions; None if the present round does not require the
            package.
        :raises TooManyVersions: if the search takes too long.
        :raises Unplannable: if the time of the request is over.
        """
        if not self.ranges:
            return None
        pinned, free = 0, {}
        for each in self.ranges.union(self.kept) if self.kept else self.ranges:
            self._budget.check("planning", self)
            if each.pinned is None:
                free[each] = each.usable
            else:
                pinned |= self.sorted.among((each.pinned,))
        return pinned | self._fewest(free)

    def _fewest(self, ranges: Mapping[_RangeNode, int]) -> int:
        """Choose the fewest versions that together satisfy ranges that have no pinned version.

        If several sets of versions are equally small, the set with the newest versions is chosen.

        :param ranges: the ranges, each with the set of the versions that may be chosen for it.
        :returns: the set of the chosen versions, as a bit mask.
        """
        if len(ranges) == 1:
            (usable,) = ranges.values()
            return next((bit for bit in self._in_order if bit & usable), 0)
        satisfied = self.sorted.memberships(self._watch(ranges.values()))
        versions = ((bit, satisfied[bit.bit_length() - 1]) for bit in self._in_order)
        try:
            return sum(fewest_newest(versions, self._budget, self))
        except TooManyVersions as error:
            texts = [shown(text) for text in sorted(each.spec.text for each in ranges)]
            others = texts[_MAX_LISTED:]
            raise TooManyVersions(
                f"the fewest versions of package {self.fqn} for {len(texts)} ranges cannot be "
                f"found in reasonable time; write these ranges less strictly: "
                f"{', '.join(texts[:_MAX_LISTED])}{f' and {len(others)} more' if others else ''}"
            ) from error

    def release(self, place: int) -> _ReleaseNode:
        """Return the node for a release.

        :param place: the index of the release's version in ``sorted``.
        """
        if place not in self._releases:
            self._releases[place] = _ReleaseNode(PackageVersion(self.fqn, self.sorted[place]))
        return self._releases[place]

    def chosen(self) -> Iterable[_ReleaseNode]:
        """Yield the nodes for the chosen releases, the newest first."""
        return map(self.release, places(self.choice or 0))

    def reached_releases(self) -> Iterable[_ReleaseNode]:
        """Yield the nodes for the releases that can be reached from the roots."""
        return (release for release in self._releases.values() if release.is_reached)

    @functools.cached_property
    def offered(self) -> tuple[tuple[Version, ...], tuple[Version, ...]]:
        """The available versions in two tuples: the usual versions, and the exact-only versions.

        Both tuples begin with the newest version. A usual version is one that is not exact-only.
        """
        usual, others = self.usual, self.sorted.every & ~self.usual
        return tuple(self.sorted.newest_first(usual)), tuple(self.sorted.newest_first(others))

    def why(self, release: _ReleaseNode, demands: Mapping[Demand, _RangeNode]) -> Why:
        """Return why a release was chosen.

        :param demands: the demands that the release satisfies, each with the node of its range.
        :raises Unplannable: if the time of the request is over.
        """
        kept = {
            demand: range_
            for range_, kept_demands in self.kept.items()
            if range_ not in self.ranges and range_.take() is release
            for demand in kept_demands
        }
        # Several demands may have the same range. In reversed order, the first of them replaces the
        # others.
        first = {range_: demand for demand, range_ in reversed([*demands.items(), *kept.items()])}
        versions: dict[tuple[Reason, tuple[Demand, ...]], list[Version]]
        versions = collections.defaultdict(list)
        if newer := tuple(self._newer(release.key.version)):
            first = dict(sorted(first.items(), key=lambda item: _by_requirer(item[1])))
        for version in newer:
            reasons = {range_: range_.reason(version) for range_ in self._watch(first)}
            reason = next((each for each in Reason if each in reasons.values()), Reason.CATALOGUE)
            named = tuple(demand for range_, demand in first.items() if reasons[range_] is reason)
            versions[reason, named].append(version)
        passed_over = (PassedOver(tuple(v), *because) for because, v in versions.items())
        return Why(tuple(sorted(kept, key=_by_requirer)), tuple(passed_over))

    def _newer(self, version: Version) -> Iterable[Version]:
        """Yield the available versions that are newer than a version, the newest first.

        Only the first ``_MAX_NEWER`` of them are yielded.
        """
        newer = self.sorted.every >> (place := self.sorted.place(version) + 1) << place
        return itertools.islice(self.sorted.newest_first(newer), _MAX_NEWER)

    def _watch(self, items: Iterable[_T]) -> Iterable[_T]:
        return self._budget.watch(items, "planning", lambda _: self)


def _by_requirer(demand: Demand) -> tuple[str, str]:
    return str(demand.requirer or ""), demand.spec.text


class _Rounds:
    """A record of the rounds of planning, in which versions are chosen again and again.

    The record begins at the start of planning. When ``keep_ranges`` has kept the ranges of a
    package, a new record begins.

    :ivar packages: the packages that the recorded rounds have required.
    """

    def __init__(self, reached: Iterable[Node]) -> None:
        self.packages: set[_Package] = set()
        self._count = 0
        self._requirers: set[_Requirer] = set()
        self._changed: set[_Package] = set()
        # The last choice for each package, even if nothing requires it any more.
        self._choices: dict[_Package, _Choice] = {}
        self.add(reached)

    def add(self, reached: Iterable[Node]) -> None:
        """Record the required packages and the releases that a round has newly reached.

        :param reached: all nodes that the round has newly reached from the roots.
        """
        for node in reached:
            if isinstance(node, _RangeNode):
                self.packages.add(node.package)
            elif isinstance(node, _Requirer):
                self._requirers.add(node)

    def end(self, before: Mapping[_Package, _Choice]) -> None:
        """Record the end of a round, and the packages whose chosen versions the round has changed.

        :param before: the packages whose chosen versions the round has changed: package -> the set
            of the versions that were chosen before the round; None if the package was not required
            before the round.
        """
        if self._count:
            # Choices that were made before the first of these rounds are ignored.
            self._choices.update((p, choice) for p, choice in before.items() if choice is not None)
            for package in before:
                if package.choice not in (None, self._choices.get(package, package.choice)):
                    self._changed.add(package)
        self._count += 1

    @property
    def exclude_each_other(self) -> bool:
        """Whether versions in a dependency cycle exclude each other.

        This is assumed if there were more rounds than packages. Without such a cycle, each round
        would make the final choice for at least one package.
        """
        return self._count > len(self.packages)

    def keep_ranges(self, budget: Budget) -> _Package:
        """Keep the ranges on one package for all later rounds, and return the package.

        The package is in a dependency cycle, and its chosen versions have changed in the recorded
        rounds. If there are several such packages, the first one by FQN is used. Every range on
        this package that a recorded round has required is kept: as long as later rounds require the
        package, they choose a version for the range, even if no release requires the range any
        more.

        Call this method only if ``exclude_each_other`` is true.

        :raises Unplannable: if the time of the request is over.
        """
        required: dict[str, set[str]] = collections.defaultdict(set)
        for requirer in budget.watch(self._requirers, "planning"):
            if isinstance(requirer, _ReleaseNode):
                required[requirer.key.fqn].update(demand.fqn for demand, _ in requirer.demands)
        ordered = sorted(self._changed, key=lambda package: package.fqn)
        package = next(each for each in ordered if _is_on_cycle(each.fqn, required, budget))
        for requirer in budget.watch(self._requirers, "planning"):
            for demand, range_ in requirer.demands:
                if range_.package is package:
                    package.kept[range_].add(demand)
        return package


def _is_on_cycle(fqn: str, required: Mapping[str, Collection[str]], budget: Budget) -> bool:
    reached: set[str] = set()
    stack = [fqn]
    while stack:
        budget.check("planning", f"package {stack[-1]}")
        following = set(required.get(stack.pop(), ())) - reached
        reached |= following
        stack += following
    return fqn in reached


def _sorted_roots(roots: Iterable[Header]) -> Iterable[Header]:
    """Remove duplicates from roots, and sort them, so that the order in the query has no effect."""
    found = list(roots)
    # Many objects share one set of versions. The sets are compared by ``id``, since comparing the
    # elements of large sets takes long.
    sets = {id(root.defining): root.defining or () for root in found}
    texts = {id_: sorted(map(str, versions)) for id_, versions in sets.items()}

    def order(root: Header) -> tuple[object, ...]:
        return root.fqn, root.spec.canonical, root.spec.text, texts[id(root.defining)]

    return dict.fromkeys(sorted(found, key=order))


class _Planner:
    """A planner of one closure. It chooses versions in rounds until no choice changes."""

    def __init__(
        self,
        pins: Pins,
        provided: Pins,
        source: Source,
        is_exact_only: IsExactOnly,
        budget: Budget,
    ) -> None:
        self._pins = pins
        self._provided = provided
        self._source = source
        self._is_exact_only = is_exact_only
        self._budget = budget
        self._packages: dict[str, _Package] = {}
        self._known: set[_Package] = set()
        self._sorted_provided = functools.cache(
            lambda fqn: SortedVersions(self._provided.get(fqn, ()))
        )

    def closure(self, headers: Iterable[Header]) -> Closure:
        roots = _Requirer()
        ordered = _sorted_roots(headers)
        self._require(roots, ((Demand(h.fqn, h.spec, None), h.defining) for h in ordered))
        reached = reachability.start(roots, self._budget)
        rounds = _Rounds({roots, *reached})
        affected = self._assign(reached)
        while before := self._choose(affected):
            rounds.end(before)
            kept = {rounds.keep_ranges(self._budget)} if rounds.exclude_each_other else set()
            self._learn_requirements(before)
            ranges = (range_ for package in before for range_ in package.ranges)
            changed = reachability.update(ranges, self._budget)
            affected = self._assign(changed) | kept
            if kept:
                rounds = _Rounds({roots, *self._reached()})
            else:
                rounds.add(node for node in changed if node.is_reached)
        return self._result(roots)

    def _package(self, fqn: str) -> _Package:
        if fqn not in self._packages:
            self._packages[fqn] = _Package(fqn, self._pins.get(fqn, ()), self._budget)
        return self._packages[fqn]

    def _assign(self, changed: Iterable[Node]) -> set[_Package]:
        """Update the required ranges of packages after nodes have become reachable or unreachable.

        :param changed: the nodes that have become reachable or unreachable.
        :returns: the packages whose required ranges have changed.
        """
        ranges = [node for node in changed if isinstance(node, _RangeNode)]
        for each in ranges:
            if each.is_reached:
                each.package.ranges.add(each)
            else:
                each.package.ranges.remove(each)
        return {each.package for each in ranges}

    def _choose(self, packages: Collection[_Package]) -> dict[_Package, _Choice]:
        """Choose the versions of packages, and store the choices that have changed.

        :returns: the packages whose chosen versions have changed: package -> the set of the
            versions that were chosen before; None if the package was not required before.
        """
        ordered = sorted(packages, key=lambda package: package.fqn)
        self._learn_versions(ordered)
        before = {}
        for package in ordered:
            choice = package.choose()
            if choice != package.choice:
                before[package], package.choice = package.choice, choice
        return before

    def _learn_versions(self, packages: Iterable[_Package]) -> None:
        unknown = {package.fqn: package for package in packages if package not in self._known}
        if not unknown:
            return
        self._known.update(unknown.values())
        if len(self._known) > MAX_PACKAGES:
            raise Unplannable(
                f"the requirements lead to more than {MAX_PACKAGES} packages, among them "
                f"{max(unknown)}; request fewer"
            )
        # The code of a plug-in belongs to the operator, so no package from a catalogue may
        # replace it.
        sought = [fqn for fqn in unknown if not self._provided.get(fqn)]
        found = self._source.versions(sought) if sought else {}
        for package in unknown.values():
            self._budget.check("planning", package)
            versions = found.get(package.fqn, ())
            releases = (PackageVersion(package.fqn, version) for version in versions)
            package.offer(versions, {r.version for r in releases if self._is_exact_only(r)})

    def _learn_requirements(self, packages: Iterable[_Package]) -> None:
        chosen = itertools.chain.from_iterable(package.chosen() for package in packages)
        unknown = {release.key: release for release in chosen if not release.is_known}
        if unknown:
            found = self._source.requirements(list(unknown))
            for key, release in unknown.items():
                self._budget.check("planning", release)
                self._require(release, ((d, None) for d in demands_of(key, found[key])))
                release.is_known = True

    def _require(
        self, requirer: _Requirer, demands: Iterable[tuple[Demand, frozenset[Version] | None]]
    ) -> None:
        """Set the demands of a release or of the roots.

        Demands that extension plug-ins of the engine satisfy are stored separately.

        :param requirer: the node of the release or of the roots.
        :param demands: the demands, each with the versions that may be chosen for it, or with None
            if all versions may be chosen.
        """
        internal, external = [], []
        for demand, among in demands:
            provided = self._sorted_provided(demand.fqn)
            version = provided.newest(provided.within(demand.spec))
            if version is not None:
                external.append(External(demand, version))
            else:
                internal.append((demand, self._package(demand.fqn).range(demand.spec, among)))
        requirer.demands, requirer.external = internal, external

    def _reached(self) -> Iterable[Node]:
        for package in self._packages.values():
            self._budget.check("planning", package)
            yield from package.ranges
            yield from package.reached_releases()

    def _result(self, roots: _Requirer) -> Closure:
        """Return the closure: the chosen releases that can be reached from the roots.

        :param roots: the node of all roots together.
        """
        answers: dict[_ReleaseNode, dict[Demand, _RangeNode]] = {}
        unsatisfied = []
        queue = collections.deque(roots.demands)
        while queue:
            demand, range_ = queue.popleft()
            release = range_.take()
            if release is None:
                self._budget.check("planning", range_)
                provided = self._sorted_provided(demand.fqn)
                every = tuple(provided.newest_first(provided.every))
                unsatisfied.append(Unsatisfied(demand, *range_.package.offered, every))
                continue
            if release not in answers:
                self._budget.check("planning", range_)
                answers[release] = {}
                queue.extend(release.demands)
            answers[release][demand] = range_
        ordered = sorted(answers, key=lambda release: str(release.key))
        external = (requirer.external for requirer in (roots, *answers))
        return Closure(
            {release.key: tuple(answers[release]) for release in ordered},
            tuple(unsatisfied),
            tuple(itertools.chain.from_iterable(external)),
            lambda key: self._why(key, answers),
        )

    def _why(
        self,
        key: PackageVersion,
        answers: Mapping[_ReleaseNode, Mapping[Demand, _RangeNode]],
    ) -> Why:
        package = self._packages[key.fqn]
        release = package.release(package.sorted.place(key.version))
        return package.why(release, answers[release])
