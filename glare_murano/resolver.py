# SPDX-License-Identifier: Apache-2.0

"""Planning: which releases a set of requirements comes to, all the way down.

The rule is the design's ("The engine's rules"): a pinned version wherever it
satisfies; else of each package the fewest versions that together satisfy
every range upon it, and among equally few the newest. Glare and the loader
plan by this code, so that both give the same answer. It asks a source for
versions and requirements and knows nothing of where they come from.

One thing is added to the rule. Where a choice leads round in a circle (a
version rules itself out by what it requires, and is wanted again without it),
the rule alone would end by refusing ranges that can be satisfied. There, what
was required on the way round stays required, so that versions are taken side by
side.
"""

import collections
import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from glare_murano.package.errors import GlareMuranoError
from glare_murano.package.versions import Version, VersionSpec

Requirements = Mapping[str, VersionSpec]

# How many combinations of versions may be tried for one package. Ranges that
# people write need a handful.
_MAX_STEPS = 100_000
# The largest closures that people deploy have a hundred.
MAX_PACKAGES = 5000


@dataclasses.dataclass(frozen=True)
class PackageVersion:
    """One version of one package."""

    fqn: str
    version: Version
    # Planning asks for it a thousand times, and a version works its own out anew.
    _hash: int = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.fqn, self.version)))

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return f"{self.fqn} {self.version}"


@dataclasses.dataclass(frozen=True)
class Demand:
    """A range upon a package, and who states it.

    :param requirer: the release that requires it; None for a root.
    """

    fqn: str
    spec: VersionSpec
    requirer: PackageVersion | None

    def __str__(self) -> str:
        return f"{self.fqn} {self.spec}"


class Source(Protocol):
    """What is asked while a closure is planned; each package once."""

    def versions(self, fqns: Collection[str]) -> Mapping[str, Sequence[Version]]:
        """The versions that there are of each of the packages, the best first.

        The best is the newest, unless they come from several places.
        """

    def requirements(
        self, releases: Collection[PackageVersion]
    ) -> Mapping[PackageVersion, Requirements]:
        """What each of the releases requires."""


@dataclasses.dataclass(frozen=True)
class Unsatisfied:
    """A range that no version is in.

    :param chain: the demands from a root down to this one.
    :param available: the versions that there are, the newest first.
    """

    demand: Demand
    chain: tuple[Demand, ...]
    available: tuple[Version, ...]


@dataclasses.dataclass(frozen=True)
class Closure:
    """What a set of requirements comes to.

    :param releases: release -> the demands that it answers, in the order of
        their distance from the roots, so that the first is the one by which
        the release was reached.
    :param unsatisfied: what could not be answered, in the same order.
    """

    releases: Mapping[PackageVersion, tuple[Demand, ...]]
    unsatisfied: tuple[Unsatisfied, ...]


class Unplannable(GlareMuranoError):
    """Requirements that nobody writes, and that would take too long."""


class TooManyVersions(Unplannable):
    """So many ranges upon a package that the fewest versions cannot be told."""


class TooManyPackages(Unplannable):
    """A closure of more packages than any deployment has."""


def plan(
    roots: Iterable[tuple[str, VersionSpec]],
    pins: Mapping[str, Collection[Version]],
    source: Source,
) -> Closure:
    """Plan the closure of a set of requirements.

    :param roots: FQNs and ranges; there may be several of a package.
    :param pins: FQN -> versions that an environment was deployed with.
    :raises TooManyVersions: if a package cannot be decided upon.
    """
    return _Planner(roots, pins, source).closure()


# Releases of one package, the newest first.
_Choice = tuple[PackageVersion, ...]


class _Planner:
    """Repeats the choice of versions until nothing changes."""

    def __init__(
        self,
        roots: Iterable[tuple[str, VersionSpec]],
        pins: Mapping[str, Collection[Version]],
        source: Source,
    ) -> None:
        ordered = sorted(roots, key=lambda root: (root[0], root[1].canonical))
        self._roots = tuple(Demand(fqn, spec, None) for fqn, spec in ordered)
        # A set of them has another order in each process.
        self._pins = {fqn: newest_first(versions) for fqn, versions in pins.items()}
        self._source = source
        self._versions: dict[str, tuple[Version, ...]] = {}
        self._required_by: dict[PackageVersion, tuple[Demand, ...]] = {}
        # A package and the set of ranges upon it -> versions that were chosen
        # for them and given up again. They are not taken for the same ranges
        # a second time, so that it ends; but rather a second time than not at
        # all.
        self._given_up: dict[tuple[str, frozenset[str]], set[Version]] = collections.defaultdict(
            set
        )
        # What was required once, and stays so, since it goes round in a circle.
        self._kept: dict[str, dict[Demand, None]] | None = None
        # The last choice for each package, and the demands that it was made
        # for; from one round to the next, few change.
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
                given_up = {release.version for release in before[fqn] if release not in taken[fqn]}
                if given_up:
                    self._given_up[fqn, _ranges(before_demands[fqn])] |= given_up
                    del self._choices[fqn]
            state = (
                frozenset(itertools.chain(*taken.values())),
                sum(map(len, self._given_up.values())),
            )
            if state in seen and self._kept is None:
                self._kept = collections.defaultdict(dict)
                self._choices.clear()
            seen.add(state)

    def _demands(self, taken: Mapping[str, _Choice]) -> dict[str, tuple[Demand, ...]]:
        """The ranges upon each package that can be reached from the roots."""
        kept = self._kept
        found: dict[str, dict[Demand, None]]
        found = collections.defaultdict(dict) if kept is None else kept
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
        pinned: dict[Demand, Version] = {}
        pins = self._pins.get(fqn, ())
        for demand in demands:
            pin = demand.spec.select(pins)
            if pin is not None:
                pinned[demand] = pin
        specs = tuple({d.spec: None for d in demands if d not in pinned})
        chosen = fewest_newest(self._candidates(fqn, specs, _ranges(demands)), specs)
        available = set(self._versions[fqn])
        chosen_pins = available.intersection(pinned.values())
        return tuple(
            PackageVersion(fqn, version) for version in newest_first({*chosen, *chosen_pins})
        )

    def _candidates(
        self, fqn: str, specs: Collection[VersionSpec], ranges: frozenset[str]
    ) -> Sequence[Version]:
        versions = self._versions[fqn]
        given_up = self._given_up.get((fqn, ranges))
        if not given_up:
            return versions
        left = [version for version in versions if version not in given_up]
        if self._kept is None and _satisfiable(specs, left) == _satisfiable(specs, versions):
            return left
        return versions

    def _learn_versions(self, fqns: Collection[str]) -> None:
        unknown = sorted(fqn for fqn in fqns if fqn not in self._versions)
        if unknown:
            if len(self._versions) + len(unknown) > MAX_PACKAGES:
                raise TooManyPackages(
                    f"the requirements lead to more than {MAX_PACKAGES} packages; ask for fewer"
                )
            found = self._source.versions(unknown)
            for fqn in unknown:
                self._versions[fqn] = tuple(found.get(fqn, ()))

    def _learn_requirements(self, taken: Mapping[str, _Choice]) -> None:
        releases = {release for choice in taken.values() for release in choice}
        unknown = sorted(releases - self._required_by.keys(), key=str)
        if unknown:
            found = self._source.requirements(unknown)
            self._required_by.update(
                {release: tuple(_demanded_by(release, found[release])) for release in unknown}
            )

    def _result(self, taken: Mapping[str, _Choice]) -> Closure:
        """What the roots come to: who requires what, and which version answers."""
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
        """The release that a demand gets: of the pinned version, or the newest taken."""
        version = demand.spec.select(self._pins.get(demand.fqn, ()))
        if version is None:
            version = demand.spec.select(release.version for release in choice)
        return next((release for release in choice if release.version == version), None)


def chain_of(
    demand: Demand, reached_by: Callable[[PackageVersion], Demand | None]
) -> tuple[Demand, ...]:
    """The demands that lead from a root down to this one, one chain of the shortest.

    :param reached_by: the first of the demands that a release answers; None
        if that is not known, where the chain begins with what is known.
    """
    chain = {demand: None}
    while demand.requirer is not None:
        before = reached_by(demand.requirer)
        # An answer that was sent may lead nowhere, or round in a circle.
        if before is None or before in chain:
            break
        demand = before
        chain[demand] = None
    return tuple(reversed(chain))


def _demanded_by(release: PackageVersion, requirements: Requirements) -> Iterable[Demand]:
    for fqn, spec in sorted(requirements.items()):
        if fqn != release.fqn or not _satisfied_by_itself(release, spec):
            yield Demand(fqn, spec, release)


def _satisfied_by_itself(release: PackageVersion, spec: VersionSpec) -> bool:
    """Whether a package satisfies a requirement on itself; the implicit one it always does.

    2.0.0-rc.1 is not in the range 2, which it requires unless it says otherwise.
    """
    return spec.match(release.version) or spec.text == str(release.version.major)


def _satisfiable(specs: Iterable[VersionSpec], versions: Collection[Version]) -> int:
    return sum(any(map(spec.match, versions)) for spec in specs)


def newest_first(versions: Iterable[Version]) -> tuple[Version, ...]:
    """Versions in one fixed order, the newest first."""
    # Build metadata makes no version newer, but would leave the order open.
    return tuple(sorted(set(versions), key=lambda v: (v.precedence_key, v.build), reverse=True))


def choose_defining(
    defining: Iterable[Iterable[PackageVersion]],
    spec: VersionSpec,
    pins: Mapping[str, Collection[Version]],
) -> tuple[str, VersionSpec] | None:
    """Which package answers for an object's class: the root that a plan starts from.

    :param defining: the releases that define the class, place by place; those
        of an earlier place come first within a range.
    :param spec: the range in the object's header; one version gives way to
        near ones (specification "Murano versioning", section "Object version").
    :returns: a package, and the range of just one version that defines the
        class: a pinned one, else the newest; None if there is none.
    """
    ordered = list(itertools.chain.from_iterable(map(one_of_each, defining)))
    pinned = [release for release in ordered if release.version in pins.get(release.fqn, ())]
    for wanted in spec.with_fallbacks():
        for release in (*pinned, *ordered):
            if wanted.match(release.version):
                return release.fqn, VersionSpec.exactly(release.version)
    return None


def one_of_each(releases: Iterable[PackageVersion]) -> tuple[PackageVersion, ...]:
    """One release of each version, the newest first: that with the greatest name."""
    found: dict[Version, str] = {}
    for release in releases:
        found[release.version] = max(found.get(release.version, ""), release.fqn)
    return tuple(PackageVersion(found[version], version) for version in newest_first(found))


def fewest_newest(versions: Sequence[Version], specs: Sequence[VersionSpec]) -> tuple[Version, ...]:
    """The fewest versions that together satisfy all ranges that can be satisfied.

    Among equally few the newest, compared from the newest down: a minimum
    hitting set, the greatest of them.

    :param versions: the best first, which is the newest as a rule.
    :returns: in the same order.
    :raises TooManyVersions: if it takes too long to tell.
    """
    if len(specs) == 1:
        return tuple(itertools.islice(filter(specs[0].match, versions), 1))
    # Of versions that satisfy the same ranges, only the newest matters.
    kinds: dict[int, Version] = {}
    for version in versions:
        satisfied = sum(1 << bit for bit, spec in enumerate(specs) if spec.match(version))
        if satisfied:
            kinds.setdefault(satisfied, version)
    wanted = 0
    for satisfied in kinds:
        wanted |= satisfied
    search = _Search(tuple(kinds))
    for size in range(len(specs) + 1):
        found = search.cover(0, wanted, size)
        if found is not None:
            newest_of = list(kinds.values())
            return tuple(newest_of[index] for index in found)
    raise AssertionError("as many versions as ranges always suffice")


class _Search:
    """Finds the first sets, in the order given, whose union holds all bits."""

    def __init__(self, sets: Sequence[int]) -> None:
        self._sets = sets
        self._rest = [0] * (len(sets) + 1)
        for index in range(len(sets) - 1, -1, -1):
            self._rest[index] = self._rest[index + 1] | sets[index]
        self._failed: set[tuple[int, int, int]] = set()
        self._steps = 0

    def cover(self, start: int, wanted: int, size: int) -> tuple[int, ...] | None:
        """The first ``size`` sets, from ``start`` on, that hold the wanted bits."""
        if not wanted:
            return ()
        if not size or (start, wanted, size) in self._failed:
            return None
        for index in range(start, len(self._sets)):
            if wanted & ~self._rest[index]:
                break
            self._steps += 1
            if self._steps > _MAX_STEPS:
                raise TooManyVersions(
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
