# SPDX-License-Identifier: Apache-2.0

"""The rule of planning, word by word, at any cost; see ``glare_murano.resolver``.

All rounds are computed from scratch, and all sets of versions are tried.
"""

import dataclasses
import itertools
import random
from collections.abc import Collection, Iterable, Mapping, Sequence

from glare_murano.package import Version, VersionSpec
from glare_murano.resolver import Demand, Header, PackageVersion, demands_of, newest_first

NAMES = "abcdefgh"
VERSIONS = ("0.9.0", "1.0.0-rc.1", "1.0.0", "1.1.0", "1.2.0", "2.0.0-beta.1", "2.0.0", "2.1.0+b.7")
RANGES = ("*", "*", "0", "1", "1.1", "2", ">=1", "<2", "<=1.1.0", ">=1,<2", "!=1.1.0", "3")
EXACT = ("1.1.0", "==2.0.0", "=1.0.0-rc.1", "2.1.0")

# A range, and the versions that it may take in any case; None for all.
Range = tuple[VersionSpec, frozenset[Version] | None]
# A demand with these versions.
Wish = tuple[Demand, frozenset[Version] | None]
# FQN -> version -> requirements.
Packages = Mapping[str, Mapping[Version, Mapping[str, VersionSpec]]]


@dataclasses.dataclass
class Catalogue:
    """Packages, as a source of the resolver, and a query for them.

    :ivar exact_only: versions that serve only pins, and ranges that are exactly these.
    """

    packages: Packages
    roots: Sequence[tuple[str, VersionSpec]]
    headers: Sequence[Header]
    pins: Mapping[str, Sequence[Version]]
    exact_only: Collection[PackageVersion]

    def versions(self, fqns: Iterable[str]) -> Mapping[str, Sequence[Version]]:
        return {fqn: newest_first(self.packages[fqn]) for fqn in fqns if fqn in self.packages}

    def requirements(
        self, releases: Iterable[PackageVersion]
    ) -> Mapping[PackageVersion, Mapping[str, VersionSpec]]:
        return {release: self.packages[release.fqn][release.version] for release in releases}

    def is_exact_only(self, release: PackageVersion) -> bool:
        return release in self.exact_only

    def has_cycle(self) -> bool:
        """Whether any packages require each other, in any version."""
        required = {
            (fqn, name)
            for fqn, versions in self.packages.items()
            for version, requirements in versions.items()
            for name in _names(PackageVersion(fqn, version), requirements)
        }
        return any(fqn == name for fqn, name in _closed(required))


def _names(release: PackageVersion, requirements: Mapping[str, VersionSpec]) -> list[str]:
    return [demand.fqn for demand in demands_of(release, requirements)]


def generate(dice: random.Random) -> Catalogue:
    """Return a random catalogue, in every third without cycles, and a query."""
    names = NAMES[: dice.randint(2, len(NAMES))]
    is_acyclic = dice.random() < 1 / 3

    def requirements(fqn: str) -> dict[str, VersionSpec]:
        others = [name for name in names if name > fqn or not is_acyclic]
        count = min(len(others), dice.choice((0, 1, 1, 2, 3)))
        return {name: _random_range(dice) for name in dice.sample(others, count)}

    packages = {
        fqn: {
            Version(text): requirements(fqn)
            for text in dice.sample(VERSIONS, dice.randint(1, len(VERSIONS)))
        }
        for fqn in names
    }
    releases = [PackageVersion(fqn, v) for fqn, versions in packages.items() for v in versions]
    exact_only = dice.sample(releases, dice.choice((0, 0, len(releases) // 4)))
    if dice.random() < 0.3:
        exact_only += [release for release in releases if release.version.prerelease]
    roots = [(dice.choice(names), _random_range(dice)) for _ in range(dice.randint(1, 4))]
    headers = [
        Header(fqn, _random_range(dice), frozenset(dice.sample(list(packages[fqn]), 1)))
        for fqn in dice.sample(names, dice.choice((0, 0, 1, 2)))
    ]
    pins = {
        fqn: [Version(text) for text in dice.sample(VERSIONS, dice.randint(1, 2))]
        for fqn in dice.sample(names, dice.choice((0, 0, 0, 1, 2)))
    }
    return Catalogue(packages, roots, headers, pins, frozenset(exact_only))


def _random_range(dice: random.Random) -> VersionSpec:
    return VersionSpec.of(dice.choice(EXACT if dice.random() < 0.1 else RANGES))


@dataclasses.dataclass
class Result:
    """The end of planning.

    :ivar answers: each wish of the roots and their closure, and the release it leads to.
    :ivar kept: FQN -> ranges that were kept.
    :ivar rounds: how many it took.
    """

    answers: dict[Wish, PackageVersion | None]
    kept: dict[str, set[Range]]
    rounds: int


Choices = dict[str, frozenset[Version]]


def plan(catalogue: Catalogue) -> Result:
    """Plan by the rule."""
    taken: Choices = {}
    kept: dict[str, set[Range]] = {}
    since: list[tuple[Iterable[Wish], Choices]] = []
    for count in itertools.count():
        wishes = reach(catalogue, taken)
        chosen = {
            fqn: choose(catalogue, fqn, upon(fqn, wishes) | kept.get(fqn, set()))
            for fqn in {demand.fqn for demand, _ in wishes}
        }
        if chosen == taken:
            return Result(wishes, kept, count)
        taken = chosen
        since.append((wishes, chosen))
        if len(since) > len({fqn for _, choices in since for fqn in choices}):
            fqn = _package_to_hold(since)
            seen = {wish for wishes, _ in since for wish in wishes}
            kept[fqn] = kept.get(fqn, set()) | upon(fqn, seen)
            since = []
    raise AssertionError


def reach(catalogue: Catalogue, taken: Choices) -> dict[Wish, PackageVersion | None]:
    """Follow the wishes from the roots through the taken releases."""
    found: dict[Wish, PackageVersion | None] = {}
    queue: list[Wish] = [(Demand(fqn, spec, None), None) for fqn, spec in catalogue.roots]
    queue += [(Demand(each.fqn, each.spec, None), each.defining) for each in catalogue.headers]
    while queue:
        wish = queue.pop()
        if wish not in found:
            release = found[wish] = _lead(catalogue, wish, taken.get(wish[0].fqn, frozenset()))
            if release is not None:
                required = catalogue.packages[release.fqn][release.version]
                queue += [(demand, None) for demand in demands_of(release, required)]
    return found


def choose(catalogue: Catalogue, fqn: str, ranges: Collection[Range]) -> frozenset[Version]:
    """Return the pinned versions, and the greatest of the smallest sets for other ranges."""
    versions = newest_first(catalogue.packages.get(fqn, ()))
    pinned = {range_: _pinned(catalogue, fqn, range_) for range_ in ranges}
    free = [
        {
            version
            for version in versions
            if _serves(catalogue, PackageVersion(fqn, version), range_)
        }
        for range_, pin in pinned.items()
        if pin is None
    ]
    wanted = [served for served in free if served]
    sets = (itertools.combinations(versions, size) for size in range(len(versions) + 1))
    # combinations() gives the newest first, so that the first is the greatest.
    fewest = next(
        chosen
        for chosen in itertools.chain.from_iterable(sets)
        if all(not served.isdisjoint(chosen) for served in wanted)
    )
    return frozenset(fewest).union(set(pinned.values()) & set(versions))


def upon(fqn: str, wishes: Iterable[Wish]) -> set[Range]:
    """Return the ranges upon a package."""
    return {(demand.spec, among) for demand, among in wishes if demand.fqn == fqn}


def _pinned(catalogue: Catalogue, fqn: str, range_: Range) -> Version | None:
    spec, among = range_
    pins = [p for p in newest_first(catalogue.pins.get(fqn, ())) if among is None or p in among]
    usual = [pin for pin in pins if PackageVersion(fqn, pin) not in catalogue.exact_only]
    return spec.select(usual) or spec.select(pins)


def _serves(catalogue: Catalogue, release: PackageVersion, range_: Range) -> bool:
    """Whether a range may take a release that is not pinned."""
    spec, among = range_
    is_exact = spec.text.lstrip("=") == str(release.version)
    is_candidate = among is None or release.version in among
    is_allowed = is_exact or release not in catalogue.exact_only
    return spec.match(release.version) and is_candidate and is_allowed


def _lead(catalogue: Catalogue, wish: Wish, taken: Collection[Version]) -> PackageVersion | None:
    demand, among = wish
    pinned = _pinned(catalogue, demand.fqn, (demand.spec, among))
    for version in newest_first(taken):
        release = PackageVersion(demand.fqn, version)
        if version == pinned:
            return release
        if pinned is None and _serves(catalogue, release, (demand.spec, among)):
            return release
    return None


def _package_to_hold(since: Sequence[tuple[Iterable[Wish], Choices]]) -> str:
    required = {
        (demand.requirer.fqn, demand.fqn)
        for wishes, _ in since
        for demand, _ in wishes
        if demand.requirer is not None
    }
    on_cycle = {fqn for fqn, name in _closed(required) if fqn == name}
    changed = {
        fqn for fqn in on_cycle if len({choices[fqn] for _, choices in since if fqn in choices}) > 1
    }
    return min(changed)


def _closed(pairs: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the transitive closure of a relation."""
    closed = set(pairs)
    while more := {(a, d) for a, b in closed for c, d in pairs if b == c} - closed:
        closed |= more
    return closed
