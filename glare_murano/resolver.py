# SPDX-License-Identifier: Apache-2.0

"""Plan the closure of a set of requirements: the releases to load, with their requirements.

A range takes the pinned version if possible. The other ranges of a package together
get the fewest versions that satisfy all of them. If several sets of versions are equally
small, the newest versions are chosen. Glare and the loader share this code, so both give
the same answer. A source supplies versions and requirements.

Planning takes several rounds. Each round chooses the versions again, from the ranges that
the choices of the previous round require. The last round changes nothing. In a dependency
cycle, each version of a package may lead to a range that excludes this version, and the
rounds would never end. Then the required ranges of this package are kept for all later
rounds, and it may get several versions.

Some versions, such as yanked ones, are chosen only if they are pinned, or if a range names
exactly this version. A provided package is an extension plug-in of the engine. The
closure has neither a provided package nor any other package with its name.
"""

import collections
import dataclasses
import enum
import functools
import itertools
import time
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from glare_murano import reachability
from glare_murano.hitting_set import fewest_newest
from glare_murano.package.errors import TooManyVersions, Unplannable, shown
from glare_murano.package.versions import Version, VersionSpec
from glare_murano.reachability import Node

Requirements = Mapping[str, VersionSpec]
Roots = Iterable[tuple[str, VersionSpec]]
Pins = Mapping[str, Collection[Version]]

# Planning pauses for other threads after this time, in seconds.
_PAUSE_INTERVAL = 0.01
# The largest number of ranges in a message.
_MAX_LISTED = 5
# The largest number of newer versions in an explanation.
_MAX_NEWER = 20
# The largest number of packages in a plan. The largest deployed closures have a hundred.
MAX_PACKAGES = 5000
# The longest time for a plan, in seconds. Some catalogues take seconds for each level.
MAX_SECONDS = 300


@dataclasses.dataclass(frozen=True)
class PackageVersion:
    """A version of a package."""

    fqn: str
    version: Version
    # The hash is kept, since planning needs it very often, and a version computes it each time.
    _hash: int = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.fqn, self.version)))

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return f"{self.fqn} {self.version}"


# Returns whether a version is chosen only if it is pinned or named exactly.
IsExactOnly = Callable[[PackageVersion], bool]


@dataclasses.dataclass(frozen=True)
class Demand:
    """A required range of a package.

    :param requirer: the release with the requirement; None for a root.
    """

    fqn: str
    spec: VersionSpec
    requirer: PackageVersion | None

    def __str__(self) -> str:
        return f"{self.fqn} {self.spec}"


@dataclasses.dataclass(frozen=True)
class Header:
    """A range that a root requires, such as the range in the header of an object.

    :param defining: the versions that define the object's class; None without an object.
    """

    fqn: str
    spec: VersionSpec
    defining: frozenset[Version] | None


class Source(Protocol):
    """The catalogue for a plan. Each package is requested once."""

    def versions(self, fqns: Collection[str]) -> Mapping[str, Sequence[Version]]:
        """Return the available versions of packages, the best first.

        The best version is the newest, unless the versions come from several catalogues.
        """

    def requirements(
        self, releases: Collection[PackageVersion]
    ) -> Mapping[PackageVersion, Requirements]:
        """Return the requirements of releases."""


@dataclasses.dataclass(frozen=True)
class Unsatisfied:
    """A demand without a version in its range.

    :param chain: the demands from a root to this demand.
    :param available: the available versions, the newest first.
    :param exact_only: versions that only a pin or their exact range selects, the newest first.
    :param provided: the versions that the engine provides, the newest first.
    """

    demand: Demand
    chain: tuple[Demand, ...]
    available: tuple[Version, ...]
    exact_only: tuple[Version, ...] = ()
    provided: tuple[Version, ...] = ()


@dataclasses.dataclass(frozen=True)
class External:
    """A demand that a provided package satisfies.

    :param version: the version of the provided package.
    """

    demand: Demand
    version: Version


@dataclasses.dataclass(frozen=True)
class Undefined:
    """A class that no package in a range defines.

    :param available: packages that define it, as ``FQN version``.
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
    """Versions newer than the chosen one that were passed over for the same reason.

    :param versions: these versions, the newest first.
    :param demands: a demand for each range to which the reason applies, such as each range that
        excludes the versions.
    """

    versions: tuple[Version, ...]
    reason: Reason
    demands: tuple[Demand, ...] = ()


@dataclasses.dataclass(frozen=True)
class Why:
    """Why a version was chosen, in addition to the demands that the closure lists.

    :param kept: demands of former rounds, in a dependency cycle, whose ranges were kept.
    :param passed_over: the newer versions by reason, at most twenty in total.
    """

    kept: tuple[Demand, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()


@dataclasses.dataclass(frozen=True)
class Closure:
    """The result of a plan.

    :param releases: release -> its demands, those nearest to the roots first. The first
        demand led to the release.
    :param unsatisfied: demands without a release, those nearest to the roots first.
    :param external: demands that provided packages satisfy.
    :param explain: returns why a release was chosen.
    """

    releases: Mapping[PackageVersion, tuple[Demand, ...]]
    unsatisfied: tuple[Unsatisfied, ...]
    external: tuple[External, ...]
    explain: Callable[[PackageVersion], Why] = dataclasses.field(compare=False)

    @functools.cached_property
    def why(self) -> Mapping[PackageVersion, Why]:
        """Why each release was chosen; each reason is found when it is read."""
        return {release: self.explain(release) for release in self.releases}


def plan(
    roots: Roots,
    pins: Pins,
    source: Source,
    *,
    headers: Iterable[Header] = (),
    provided: Pins = types.MappingProxyType({}),
    is_exact_only: IsExactOnly = lambda _: False,
    seconds: float = MAX_SECONDS,
) -> Closure:
    """Plan the closure of a set of requirements.

    :param roots: FQNs and ranges; a package may have several ranges.
    :param pins: FQN -> versions with which an environment was deployed.
    :param headers: further roots, from ``find_headers``.
    :param provided: FQN -> the versions that the engine provides; no others are chosen.
    :param seconds: the longest time for the plan, including the time of the source.
    :raises Unplannable: if the plan exceeds a limit.
    """
    planner = _Planner(pins, provided, source, is_exact_only, _Budget(seconds))
    return planner.closure([*(Header(fqn, spec, None) for fqn, spec in roots), *headers])


def chain_of(
    demand: Demand, reached_by: Callable[[PackageVersion], Demand | None]
) -> tuple[Demand, ...]:
    """Return a shortest chain of demands from a root to this demand.

    :param reached_by: returns the first demand for a release; if it returns None, the chain
        begins with this release.
    """
    chain = {demand: None}
    while demand.requirer is not None:
        before = reached_by(demand.requirer)
        # A received answer may be incomplete, or have a cycle.
        if before is None or before in chain:
            break
        demand = before
        chain[demand] = None
    return tuple(reversed(chain))


def demands_of(release: PackageVersion, requirements: Requirements) -> Iterable[Demand]:
    """Yield the demands of a release, without those that the release itself satisfies."""
    for fqn, spec in sorted(requirements.items()):
        # A package requires itself implicitly. Even 2.0.0-rc.1 satisfies this requirement,
        # although its range, 2, does not contain 2.0.0-rc.1.
        is_implicit = spec.text == str(release.version.major)
        if fqn != release.fqn or not (is_implicit or spec.match(release.version)):
            yield Demand(fqn, spec, release)


def newest_first(versions: Iterable[Version]) -> tuple[Version, ...]:
    """Sort versions, the newest first."""
    # Versions that differ only in build metadata are equally new, but need a fixed order.
    return tuple(sorted(set(versions), key=lambda v: (v.precedence_key, v.build), reverse=True))


def find_headers(
    classes: Iterable[tuple[str, VersionSpec]],
    defining: Callable[[str], Iterable[Iterable[PackageVersion]]],
    pins: Pins,
    is_exact_only: IsExactOnly = lambda _: False,
    *,
    seconds: float = MAX_SECONDS,
) -> tuple[list[Header], tuple[Undefined, ...]]:
    """Find the packages of objects; ``plan`` then chooses the versions.

    If a version in the range is pinned, its package is found, else the package of the newest
    version.

    :param classes: the classes of the objects, with the ranges in the headers. The fallbacks of
        each range are tried as well.
    :param defining: returns the releases that define a class, by catalogue. If several
        catalogues have a version in the range, the first of them wins.
    :param seconds: the longest time for the search.
    :returns: the headers, and the classes without a package.
    :raises Unplannable: if the search takes longer.
    """
    budget = _Budget(seconds)
    headers, undefined = [], []
    # A thousand objects may have the same class, and the class may have a thousand versions.
    definitions: dict[str, _Definition] = {}
    for class_name, spec in classes:
        budget.check(f"class {class_name}")
        if class_name not in definitions:
            definitions[class_name] = _Definition(defining(class_name), pins)
        header = definitions[class_name].find_header(spec, is_exact_only)
        if header is not None:
            headers.append(header)
        else:
            undefined.append(Undefined(class_name, spec, definitions[class_name].available))
    return headers, tuple(undefined)


class _Definition:
    """The releases that define a class.

    :ivar available: a release for each version in any catalogue.
    """

    def __init__(self, releases: Iterable[Iterable[PackageVersion]], pins: Pins) -> None:
        found = list(map(tuple, releases))
        # The releases of all packages that define the class are needed: of two packages with the
        # same version, one may be pinned, or only its exact range may select it.
        in_turn = (sorted(each, key=_newness, reverse=True) for each in found)
        ordered = list(itertools.chain.from_iterable(in_turn))
        self._pinned = {each: None for each in ordered if each.version in pins.get(each.fqn, ())}
        self._in_turn = (*self._pinned, *ordered)
        versions = collections.defaultdict(set)
        for release in itertools.chain(*found):
            versions[release.fqn].add(release.version)
        self._versions = {fqn: frozenset(of_package) for fqn, of_package in versions.items()}
        self.available = tuple(map(str, one_of_each(itertools.chain(*found))))

    def find_header(self, spec: VersionSpec, is_exact_only: IsExactOnly) -> Header | None:
        for wanted in spec.with_fallbacks():
            for release in self._in_turn:
                is_candidate = release in self._pinned or not is_exact_only(release)
                if wanted.is_exactly(release.version) or (
                    is_candidate and wanted.match(release.version)
                ):
                    return Header(release.fqn, wanted, self._versions[release.fqn])
        return None


def _newness(release: PackageVersion) -> tuple[object, ...]:
    return release.version.precedence_key, release.version.build, release.fqn


def one_of_each(releases: Iterable[PackageVersion]) -> tuple[PackageVersion, ...]:
    """Return a release for each version, the newest first; of several, the last name wins."""
    found: dict[Version, str] = {}
    for release in releases:
        found[release.version] = max(found.get(release.version, ""), release.fqn)
    return tuple(PackageVersion(found[version], version) for version in newest_first(found))


class _Budget:
    """The time for a plan."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._next_pause = 0.0

    def check(self, place: str) -> None:
        """Check the time; now and then, let other threads run.

        :param place: the class or package that is planned next.
        :raises Unplannable: if the time is over.
        """
        now = time.monotonic()
        if now > self._end:
            raise Unplannable(
                f"planning stopped at {place}, after {self._seconds:g} seconds; request "
                f"fewer packages, or raise the option plan_seconds"
            )
        if now > self._next_pause:
            # In a program with green threads, this is eventlet's function.
            time.sleep(0)
            self._next_pause = time.monotonic() + _PAUSE_INTERVAL


class _Requirer(Node):
    """The roots of a plan together, or a release; its targets are the ranges of its demands."""

    def __init__(self) -> None:
        super().__init__()
        self.demands: Sequence[tuple[Demand, _RangeNode]] = ()
        self.external: Sequence[External] = ()

    def find_targets(self) -> Iterable[Node]:
        return (range_ for _, range_ in self.demands)


class _ReleaseNode(_Requirer):
    """A release that some round has chosen.

    :ivar is_known: whether its demands are known.
    """

    def __init__(self, key: PackageVersion) -> None:
        super().__init__()
        self.key = key
        self.is_known = False


# The chosen releases of a package, the newest first; None if no range of it is required.
_Choice = tuple[_ReleaseNode, ...] | None


class _RangeNode(Node):
    """A required range of a package; its target is the release that the range takes."""

    def __init__(
        self, package: "_Package", spec: VersionSpec, among: Collection[Version] | None
    ) -> None:
        super().__init__()
        self.package = package
        self.spec = spec
        self._among = among

    def find_targets(self) -> Iterable[Node]:
        release = self.take()
        return () if release is None else (release,)

    @functools.cached_property
    def pinned(self) -> Version | None:
        """Return the pinned version for the range, if any; exact-only versions come last."""
        pins = [pin for pin in self.package.pins if self._among is None or pin in self._among]
        usual = self.spec.select(pin for pin in pins if pin not in self.package.exact_only)
        return self.spec.select(pins) if usual is None else usual

    def take(self) -> _ReleaseNode | None:
        """Return the pinned release, else the newest chosen release in the range."""
        if not self.package.choice:
            return None
        chosen = {release.key.version: release for release in self.package.choice}
        version = self.pinned
        if version is None:
            version = max(filter(self.match, chosen), default=None)
        return None if version is None else chosen.get(version)

    def match(self, version: Version) -> bool:
        """Check whether the range may take an unpinned version."""
        return self.spec.match(version) and self._objection(version) is None

    def reason(self, version: Version) -> Reason | None:
        """Return why the range cannot take a version; other ranges are not considered."""
        if not self.spec.match(version):
            return Reason.RANGE
        return Reason.PIN if self.pinned is not None else self._objection(version)

    def _objection(self, version: Version) -> Reason | None:
        if self._among is not None and version not in self._among:
            return Reason.CLASS
        if version in self.package.exact_only and not self.spec.is_exactly(version):
            return Reason.EXACT_ONLY
        return None


class _Package:
    """A package that some round requires.

    :ivar ranges: the required ranges in this round.
    :ivar kept: kept range -> its demands. Kept ranges apply while the package is required.
    """

    def __init__(self, fqn: str, pins: Iterable[Version]) -> None:
        self.fqn = fqn
        # The pins are sorted, since the order of a set differs between processes.
        self.pins = newest_first(pins)
        self.versions: Sequence[Version] = ()
        self.exact_only: Collection[Version] = ()
        self._all_ranges: dict[tuple[VersionSpec, Collection[Version] | None], _RangeNode] = {}
        self.releases: dict[Version, _ReleaseNode] = {}
        self.ranges: set[_RangeNode] = set()
        self.kept: dict[_RangeNode, set[Demand]] = collections.defaultdict(set)
        self.choice: _Choice = None

    def range(self, spec: VersionSpec, among: frozenset[Version] | None = None) -> _RangeNode:
        """Return the node for a required range of this package.

        :param among: the versions that may be chosen; None for all.
        """
        if (spec, among) not in self._all_ranges:
            self._all_ranges[spec, among] = _RangeNode(self, spec, among)
        return self._all_ranges[spec, among]

    def choose(self) -> _Choice:
        """Return the choice for the ranges of this round.

        :raises TooManyVersions: if the search takes too long.
        """
        if not self.ranges:
            return None
        ranges = self.ranges.union(self.kept)
        pinned = {each.pinned for each in ranges}.intersection(self.versions)
        free = [each for each in ranges if each.pinned is None]
        try:
            chosen = pinned.union(fewest_newest(self.versions, free))
        except TooManyVersions as error:
            texts = [shown(text) for text in sorted(each.spec.text for each in free)]
            others = len(texts) - _MAX_LISTED
            raise TooManyVersions(
                f"the fewest versions of package {self.fqn} for {len(texts)} ranges cannot be "
                f"found in reasonable time; write these ranges less strictly: "
                f"{', '.join(texts[:_MAX_LISTED])}{f' and {others} more' if others > 0 else ''}"
            ) from error
        return tuple(map(self._release, newest_first(chosen)))

    def why(self, release: _ReleaseNode, demands: Mapping[Demand, _RangeNode]) -> Why:
        """Return why a release was chosen.

        :param demands: the satisfied demands, with their ranges.
        """
        kept = {
            demand: range_
            for range_, kept_demands in self.kept.items()
            if range_ not in self.ranges and range_.take() is release
            for demand in kept_demands
        }
        # Reversed, so that each range has its first demand.
        first = {range_: demand for demand, range_ in reversed([*demands.items(), *kept.items()])}
        versions: dict[tuple[Reason, tuple[Demand, ...]], list[Version]]
        versions = collections.defaultdict(list)
        for version in _newer(release.key.version, self.versions):
            reasons = {range_: range_.reason(version) for range_ in first}
            reason = next((each for each in Reason if each in reasons.values()), Reason.CATALOGUE)
            named = (demand for range_, demand in first.items() if reasons[range_] is reason)
            versions[reason, tuple(sorted(named, key=_by_requirer))].append(version)
        passed_over = (PassedOver(tuple(v), *because) for because, v in versions.items())
        return Why(tuple(sorted(kept, key=_by_requirer)), tuple(passed_over))

    def _release(self, version: Version) -> _ReleaseNode:
        if version not in self.releases:
            self.releases[version] = _ReleaseNode(PackageVersion(self.fqn, version))
        return self.releases[version]


def _newer(version: Version, versions: Collection[Version]) -> Sequence[Version]:
    ordered = newest_first(versions)
    return ordered[: min(ordered.index(version), _MAX_NEWER)]


def _by_requirer(demand: Demand) -> tuple[str, str]:
    return str(demand.requirer or ""), demand.spec.text


class _Rounds:
    """The rounds since the start, or since the last call of ``keep_ranges``.

    :ivar packages: the packages that these rounds require.
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
        """Add the newly reached nodes of a round."""
        for node in reached:
            if isinstance(node, _RangeNode):
                self.packages.add(node.package)
            elif isinstance(node, _Requirer):
                self._requirers.add(node)

    def end(self, before: Mapping[_Package, _Choice]) -> None:
        """End a round.

        :param before: package -> its former choice, if the round has changed the choice.
        """
        if self._count:
            # Choices from before the first of these rounds are ignored.
            self._choices.update((p, choice) for p, choice in before.items() if choice is not None)
            for package in before:
                if package.choice not in (None, self._choices.get(package, package.choice)):
                    self._changed.add(package)
        self._count += 1

    @property
    def exclude_each_other(self) -> bool:
        """Whether versions in a dependency cycle exclude each other.

        Without such a cycle, each round makes the final choice for at least one package.
        """
        return self._count > len(self.packages)

    def keep_ranges(self) -> _Package:
        """Keep all ranges that these rounds require of a package in a cycle; return the package."""
        required: dict[str, set[str]] = collections.defaultdict(set)
        for requirer in self._requirers:
            if isinstance(requirer, _ReleaseNode):
                required[requirer.key.fqn].update(demand.fqn for demand, _ in requirer.demands)
        ordered = sorted(self._changed, key=lambda package: package.fqn)
        package = next(each for each in ordered if _is_on_cycle(each.fqn, required))
        for requirer in self._requirers:
            for demand, range_ in requirer.demands:
                if range_.package is package:
                    package.kept[range_].add(demand)
        return package


def _is_on_cycle(fqn: str, required: Mapping[str, Collection[str]]) -> bool:
    reached: set[str] = set()
    stack = [fqn]
    while stack:
        following = set(required.get(stack.pop(), ())) - reached
        reached |= following
        stack += following
    return fqn in reached


def _order(root: Header) -> tuple[object, ...]:
    return root.fqn, root.spec.canonical, root.spec.text, _sorted_texts(root.defining)


# All objects of a class share one set, so a small cache is enough.
@functools.lru_cache(maxsize=100)
def _sorted_texts(versions: frozenset[Version] | None) -> Sequence[str]:
    return sorted(map(str, versions or ()))


class _Planner:
    """Chooses versions, round by round."""

    def __init__(
        self,
        pins: Pins,
        provided: Pins,
        source: Source,
        is_exact_only: IsExactOnly,
        budget: _Budget,
    ) -> None:
        self._pins = pins
        self._provided = provided
        self._source = source
        self._is_exact_only = is_exact_only
        self._budget = budget
        self._packages: dict[str, _Package] = {}
        self._known: set[_Package] = set()

    def closure(self, headers: Iterable[Header]) -> Closure:
        roots = _Requirer()
        ordered = dict.fromkeys(sorted(headers, key=_order))
        self._require(roots, ((Demand(h.fqn, h.spec, None), h.defining) for h in ordered))
        reached = reachability.start(roots)
        rounds = _Rounds({roots, *reached})
        affected = self._assign(reached)
        while before := self._choose(affected):
            rounds.end(before)
            kept = {rounds.keep_ranges()} if rounds.exclude_each_other else set()
            self._learn_requirements(before)
            changed = reachability.update(r for package in before for r in package.ranges)
            affected = self._assign(changed) | kept
            if kept:
                rounds = _Rounds({roots, *self._reached()})
            else:
                rounds.add(node for node in changed if node.is_reached)
        return self._result(roots)

    def _package(self, fqn: str) -> _Package:
        if fqn not in self._packages:
            self._packages[fqn] = _Package(fqn, self._pins.get(fqn, ()))
        return self._packages[fqn]

    def _assign(self, changed: Iterable[Node]) -> set[_Package]:
        """Add reached ranges to their packages, remove unreached ones; return the packages."""
        ranges = [node for node in changed if isinstance(node, _RangeNode)]
        for each in ranges:
            if each.is_reached:
                each.package.ranges.add(each)
            else:
                each.package.ranges.remove(each)
        return {each.package for each in ranges}

    def _choose(self, packages: Collection[_Package]) -> dict[_Package, _Choice]:
        """Choose versions of packages again; return the former choices that have changed."""
        ordered = sorted(packages, key=lambda package: package.fqn)
        self._learn_versions(ordered)
        before = {}
        for package in ordered:
            self._budget.check(f"package {package.fqn}")
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
        for fqn, package in unknown.items():
            package.versions = found.get(fqn, ())
            releases = (PackageVersion(fqn, version) for version in package.versions)
            package.exact_only = {r.version for r in releases if self._is_exact_only(r)}

    def _learn_requirements(self, packages: Iterable[_Package]) -> None:
        chosen = itertools.chain.from_iterable(package.choice or () for package in packages)
        unknown = {release.key: release for release in chosen if not release.is_known}
        if unknown:
            found = self._source.requirements(sorted(unknown, key=str))
            for key, release in unknown.items():
                self._require(release, ((d, None) for d in demands_of(key, found[key])))
                release.is_known = True

    def _require(
        self, requirer: _Requirer, demands: Iterable[tuple[Demand, frozenset[Version] | None]]
    ) -> None:
        """Set the demands of a requirer, each with its permitted versions."""
        internal, external = [], []
        for demand, among in demands:
            version = demand.spec.select(newest_first(self._provided.get(demand.fqn, ())))
            if version is not None:
                external.append(External(demand, version))
            else:
                internal.append((demand, self._package(demand.fqn).range(demand.spec, among)))
        requirer.demands, requirer.external = internal, external

    def _reached(self) -> Iterable[Node]:
        for package in self._packages.values():
            yield from package.ranges
            yield from (release for release in package.releases.values() if release.is_reached)

    def _result(self, roots: _Requirer) -> Closure:
        """Assign each demand to a chosen release, from the roots down."""
        answers: dict[_ReleaseNode, dict[Demand, _RangeNode]] = {}
        first: dict[PackageVersion, Demand] = {}
        unsatisfied = []
        queue = collections.deque(roots.demands)
        while queue:
            demand, range_ = queue.popleft()
            release = range_.take()
            if release is None:
                exact_only = newest_first(range_.package.exact_only)
                available = newest_first(set(range_.package.versions).difference(exact_only))
                chain = chain_of(demand, lambda requirer: first[requirer])
                provided = newest_first(self._provided.get(demand.fqn, ()))
                unsatisfied.append(Unsatisfied(demand, chain, available, exact_only, provided))
                continue
            if release not in answers:
                answers[release] = {}
                first[release.key] = demand
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
        release = package.releases[key.version]
        return package.why(release, answers[release])
