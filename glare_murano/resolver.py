# SPDX-License-Identifier: Apache-2.0

"""Plan the closure of a set of requirements: the releases to load, with their requirements.

A range takes the pinned version if possible. For the other ranges of a package,
the fewest versions are chosen that together satisfy all of them, and of equally
few the newest. Glare and the loader share this code, so both give the same
answer. A source supplies versions and requirements.

Dependency cycles need another rule. A version may require a range that excludes
the version itself, and is chosen again as soon as the range is gone. In such a
cycle, required ranges are kept, so several versions are chosen.
"""

import collections
import dataclasses
import functools
import itertools
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from glare_murano.package.errors import GlareMuranoError
from glare_murano.package.versions import Version, VersionSpec

Requirements = Mapping[str, VersionSpec]
Roots = Iterable[tuple[str, VersionSpec]]
Pins = Mapping[str, Collection[Version]]

# The greatest number of version combinations to try for a package. Written
# ranges need a handful.
_MAX_STEPS = 100_000
# The largest deployed closures have a hundred packages.
MAX_PACKAGES = 5000


@dataclasses.dataclass(frozen=True)
class PackageVersion:
    """A version of a package."""

    fqn: str
    version: Version
    # Cached: planning needs the hash very often, and a version computes its own anew.
    _hash: int = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.fqn, self.version)))

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return f"{self.fqn} {self.version}"


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


class Source(Protocol):
    """The catalogue of a plan. Each package is requested once."""

    def versions(self, fqns: Collection[str]) -> Mapping[str, Sequence[Version]]:
        """Return the available versions of packages, the best first.

        The best is the newest, except for versions from several catalogues.
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
    """

    demand: Demand
    chain: tuple[Demand, ...]
    available: tuple[Version, ...]


@dataclasses.dataclass(frozen=True)
class Closure:
    """The result of a plan.

    :param releases: release -> its demands, in the order of their distance from
        the roots; the first demand led to the release.
    :param unsatisfied: demands without a release, in the same order.
    """

    releases: Mapping[PackageVersion, tuple[Demand, ...]]
    unsatisfied: tuple[Unsatisfied, ...]


class Unplannable(GlareMuranoError):
    """A plan would take too long; only malicious requirements lead here.

    A package has too many different ranges to find the fewest versions, or a
    closure has more packages than any deployment.
    """


def plan(roots: Roots, pins: Pins, source: Source) -> Closure:
    """Plan the closure of a set of requirements.

    :param roots: FQNs and ranges; a package may have several.
    :param pins: FQN -> versions with which an environment was deployed.
    :raises Unplannable: if the plan would take too long.
    """
    return _Planner(roots, pins, source).closure()


# Releases of one package, the newest first.
_Choice = tuple[PackageVersion, ...]


class _Planner:
    """Chooses versions again and again until nothing changes."""

    def __init__(self, roots: Roots, pins: Pins, source: Source) -> None:
        ordered = sorted(roots, key=lambda root: (root[0], root[1].canonical))
        self._roots = tuple(Demand(fqn, spec, None) for fqn, spec in ordered)
        # Sorted, since the order of a set differs between processes.
        self._pins = {fqn: newest_first(versions) for fqn, versions in pins.items()}
        self._source = source
        self._versions: dict[str, tuple[Version, ...]] = {}
        self._required_by: dict[PackageVersion, tuple[Demand, ...]] = {}
        # (package, its ranges) -> versions that were chosen and dropped. So that
        # planning ends, they are not chosen again for the same ranges, unless
        # a range would have no version.
        self._dropped: dict[tuple[str, frozenset[str]], set[Version]] = collections.defaultdict(set)
        # The demands that stay, once a dependency cycle is found.
        self._kept: dict[str, dict[Demand, None]] | None = None
        # The last choice for each package, and its demands. Few change between rounds.
        self._choices: dict[str, tuple[tuple[Demand, ...], _Choice]] = {}

    def closure(self) -> Closure:
        taken: dict[str, _Choice] = {}
        demands: dict[str, tuple[Demand, ...]] = {}
        seen: set[tuple[frozenset[PackageVersion], int]] = set()
        while True:
            before, before_demands = taken, demands
            demands = self._demands(taken)
            self._learn_versions(demands)
            taken = {fqn: self._choice(fqn, upon) for fqn, upon in demands.items()}
            self._learn_requirements(taken)
            if taken == before and demands.keys() == before_demands.keys():
                return self._result(taken)
            for fqn in taken.keys() & before.keys():
                dropped = {release.version for release in before[fqn] if release not in taken[fqn]}
                if dropped:
                    self._dropped[fqn, _ranges(before_demands[fqn])] |= dropped
                    del self._choices[fqn]
            dropped_count = sum(map(len, self._dropped.values()))
            state = frozenset(itertools.chain(*taken.values())), dropped_count
            if state in seen and self._kept is None:
                self._kept = collections.defaultdict(dict)
                self._choices.clear()
            seen.add(state)

    def _demands(self, taken: Mapping[str, _Choice]) -> dict[str, tuple[Demand, ...]]:
        """Return the demands for each package, as reached from the roots."""
        found = collections.defaultdict(dict) if self._kept is None else self._kept
        queue = collections.deque(self._roots)
        reached: set[PackageVersion] = set()
        while queue:
            demand = queue.popleft()
            found[demand.fqn][demand] = None
            for release in taken.get(demand.fqn, ()):
                if release not in reached and demand.spec.match(release.version):
                    reached.add(release)
                    queue.extend(self._required_by[release])
        return {fqn: tuple(upon) for fqn, upon in found.items()}

    def _choice(self, fqn: str, demands: tuple[Demand, ...]) -> _Choice:
        known = self._choices.get(fqn)
        if known is None or known[0] != demands:
            known = self._choices[fqn] = demands, self._choose(fqn, demands)
        return known[1]

    def _choose(self, fqn: str, demands: Sequence[Demand]) -> _Choice:
        pins = self._pins.get(fqn, ())
        pinned = {d: pin for d in demands if (pin := d.spec.select(pins)) is not None}
        specs = tuple(dict.fromkeys(d.spec for d in demands if d not in pinned))
        chosen = set(fewest_newest(self._candidates(fqn, specs, _ranges(demands)), specs))
        chosen.update(set(self._versions[fqn]).intersection(pinned.values()))
        return tuple(PackageVersion(fqn, version) for version in newest_first(chosen))

    def _candidates(
        self, fqn: str, specs: Collection[VersionSpec], ranges: frozenset[str]
    ) -> Sequence[Version]:
        versions = self._versions[fqn]
        dropped = self._dropped.get((fqn, ranges))
        if not dropped or self._kept is not None:
            return versions
        left = [version for version in versions if version not in dropped]
        return left if _satisfiable(specs, left) == _satisfiable(specs, versions) else versions

    def _learn_versions(self, fqns: Collection[str]) -> None:
        unknown = sorted(fqn for fqn in fqns if fqn not in self._versions)
        if unknown:
            if len(self._versions) + len(unknown) > MAX_PACKAGES:
                raise Unplannable(
                    f"the requirements lead to more than {MAX_PACKAGES} packages; request fewer"
                )
            found = self._source.versions(unknown)
            self._versions.update((fqn, tuple(found.get(fqn, ()))) for fqn in unknown)

    def _learn_requirements(self, taken: Mapping[str, _Choice]) -> None:
        releases = {release for choice in taken.values() for release in choice}
        unknown = sorted(releases - self._required_by.keys(), key=str)
        if unknown:
            found = self._source.requirements(unknown)
            for release in unknown:
                self._required_by[release] = tuple(demands_of(release, found[release]))

    def _result(self, taken: Mapping[str, _Choice]) -> Closure:
        """Assign the demands to the chosen releases, from the roots down."""
        answers: dict[PackageVersion, list[Demand]] = {}
        unsatisfied = []
        queue = collections.deque(self._roots)
        while queue:
            demand = queue.popleft()
            release = self._answer(demand, taken[demand.fqn])
            if release is None:
                available = newest_first(self._versions[demand.fqn])
                chain = chain_of(demand, lambda requirer: answers[requirer][0])
                unsatisfied.append(Unsatisfied(demand, chain, available))
                continue
            if release not in answers:
                answers[release] = []
                queue.extend(self._required_by[release])
            answers[release].append(demand)
        ordered = {release: tuple(answers[release]) for release in sorted(answers, key=str)}
        return Closure(ordered, tuple(unsatisfied))

    def _answer(self, demand: Demand, choice: _Choice) -> PackageVersion | None:
        """Return the release for a demand: the pinned version, else the newest chosen version."""
        version = demand.spec.select(self._pins.get(demand.fqn, ()))
        if version is None:
            version = demand.spec.select(release.version for release in choice)
        return next((release for release in choice if release.version == version), None)


def chain_of(
    demand: Demand, reached_by: Callable[[PackageVersion], Demand | None]
) -> tuple[Demand, ...]:
    """Return a shortest chain of demands from a root to this demand.

    :param reached_by: returns the first demand for a release. If the demand is
        unknown (None), the chain begins with the release.
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
    """Yield the demands of a release, without those that it satisfies by itself."""
    for fqn, spec in sorted(requirements.items()):
        # The implicit requirement is satisfied even by 2.0.0-rc.1, which is not in its range, 2.
        is_implicit = spec.text == str(release.version.major)
        if fqn != release.fqn or not (is_implicit or spec.match(release.version)):
            yield Demand(fqn, spec, release)


def _satisfiable(specs: Iterable[VersionSpec], versions: Collection[Version]) -> int:
    return sum(any(map(spec.match, versions)) for spec in specs)


def newest_first(versions: Iterable[Version]) -> tuple[Version, ...]:
    """Sort versions, the newest first."""
    # Build metadata does not make a version newer, but fixes the order.
    return tuple(sorted(set(versions), key=lambda v: (v.precedence_key, v.build), reverse=True))


def choose_defining(
    defining: Iterable[Iterable[PackageVersion]], spec: VersionSpec, pins: Pins
) -> tuple[str, VersionSpec] | None:
    """Choose the package of an object's class, as the root of a plan.

    :param defining: the releases that define the class, by catalogue; within a
        range, earlier catalogues win.
    :param spec: the range in the object's header, tried with its fallbacks.
    :returns: the package, and the range of a single version, if possible a
        pinned one, else the newest; None if no version is in the range.
    """
    ordered = list(itertools.chain.from_iterable(map(one_of_each, defining)))
    pinned = [release for release in ordered if release.version in pins.get(release.fqn, ())]
    for wanted in spec.with_fallbacks():
        for release in (*pinned, *ordered):
            if wanted.match(release.version):
                return release.fqn, VersionSpec.exactly(release.version)
    return None


def one_of_each(releases: Iterable[PackageVersion]) -> tuple[PackageVersion, ...]:
    """Return a release for each version, the newest first; the greatest name wins."""
    found: dict[Version, str] = {}
    for release in releases:
        found[release.version] = max(found.get(release.version, ""), release.fqn)
    return tuple(PackageVersion(found[version], version) for version in newest_first(found))


def fewest_newest(versions: Sequence[Version], specs: Sequence[VersionSpec]) -> tuple[Version, ...]:
    """Return the fewest versions that together satisfy all satisfiable ranges.

    Of equally few, the newest are returned, compared from the newest down: the
    greatest minimum hitting set.

    :param versions: the best first; as a rule, the newest.
    :returns: versions in the same order.
    :raises Unplannable: if the search takes too long.
    """
    if len(specs) == 1:
        return tuple(itertools.islice(filter(specs[0].match, versions), 1))
    # Only the newest of the versions that satisfy the same ranges matters.
    kinds: dict[int, Version] = {}
    for version in versions:
        satisfied = sum(1 << bit for bit, spec in enumerate(specs) if spec.match(version))
        if satisfied:
            kinds.setdefault(satisfied, version)
    wanted = functools.reduce(operator.or_, kinds, 0)
    search = _Search(tuple(kinds))
    # One version for each range is always enough.
    covers = (search.cover(0, wanted, size) for size in range(len(specs) + 1))
    cover = next(found for found in covers if found is not None)
    newest_of = list(kinds.values())
    return tuple(newest_of[index] for index in cover)


class _Search:
    """Searches sets of bits, in the order given, for the first cover."""

    def __init__(self, sets: Sequence[int]) -> None:
        self._sets = sets
        # Index -> the bits of the sets from there on.
        self._rest = list(itertools.accumulate(reversed(sets), operator.or_))[::-1]
        self._failed: set[tuple[int, int, int]] = set()
        self._steps = 0

    def cover(self, start: int, wanted: int, size: int) -> tuple[int, ...] | None:
        """Return the first ``size`` sets, from ``start`` on, with the wanted bits."""
        if not wanted:
            return ()
        if not size or (start, wanted, size) in self._failed:
            return None
        for index in range(start, len(self._sets)):
            if wanted & ~self._rest[index]:
                break
            self._steps += 1
            if self._steps > _MAX_STEPS:
                raise Unplannable(
                    "the ranges upon a package cannot be satisfied by few versions; "
                    "write them less strictly"
                )
            if self._sets[index] & wanted:
                rest = self.cover(index + 1, wanted & ~self._sets[index], size - 1)
                if rest is not None:
                    return (index, *rest)
        self._failed.add((start, wanted, size))
        return None


def _ranges(demands: Iterable[Demand]) -> frozenset[str]:
    return frozenset(demand.spec.canonical for demand in demands)
