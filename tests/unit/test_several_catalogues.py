# SPDX-License-Identifier: Apache-2.0

"""Closures of several random catalogues, compared with the documented rule."""

import random
from collections.abc import Collection, Iterable, Mapping, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from glare_murano import resolver
from glare_murano.budget import Budget
from glare_murano.package import Version, VersionSpec
from glare_murano.wire import Query
from loader import resolution
from tests import effort
from tests.unit import published
from tests.unit.published import RANGES, VERSIONS, Packages, catalog, ranges
from tests.unit.test_resolver import cover_by_force

LEAVES = tuple("xyz")

_several = st.lists(published.packages, max_size=3)


def _query(
    roots: Mapping[str, str],
    pins: Mapping[str, Sequence[str]],
    classes: Mapping[str, str] | None = None,
) -> Query:
    return Query(
        tuple(ranges(roots).items()),
        tuple((f"{fqn}.Thing", VersionSpec.of(text)) for fqn, text in (classes or {}).items()),
        {fqn: [Version(text) for text in texts] for fqn, texts in pins.items()},
    )


class _Together:
    """The packages of several catalogues, as the documentation describes them."""

    def __init__(self, several: Sequence[Packages]) -> None:
        self.several = several

    def place(self, release: resolver.PackageVersion) -> int:
        """Return the first catalogue with a version."""
        return next(
            number
            for number, packages in enumerate(self.several)
            if str(release.version) in packages.get(release.fqn, {})
        )

    def of(self, fqn: str) -> list[Version]:
        """Return the versions of a package, by catalogue and then the newest first."""
        found: dict[Version, None] = {}
        for packages in self.several:
            in_this = map(Version, packages.get(fqn, ()))
            found |= dict.fromkeys(resolver.newest_first(in_this))
        return list(found)

    def versions(self, fqns: Collection[str]) -> Mapping[str, Sequence[Version]]:
        return {fqn: self.of(fqn) for fqn in fqns}

    def requirements(
        self, releases: Iterable[resolver.PackageVersion]
    ) -> Mapping[resolver.PackageVersion, resolver.Requirements]:
        return {
            release: ranges(self.several[self.place(release)][release.fqn][str(release.version)])
            for release in releases
        }


def _chosen(
    resolved: resolution.Resolution,
) -> dict[resolver.PackageVersion, tuple[resolver.Demand, ...]]:
    return {
        resolver.PackageVersion(choice.release.fqn, choice.release.version): choice.demands
        for choice in resolved.chosen
    }


@settings(max_examples=effort.GRAPHS)
@given(_several, published.requirements, published.pins(), published.requirements)
def test_several_catalogues_give_the_result_of_the_rule(
    several: Sequence[Packages],
    roots: Mapping[str, str],
    pins: Mapping[str, list[str]],
    classes: Mapping[str, str],
) -> None:
    catalogs = [catalog(packages, str(number)) for number, packages in enumerate(several)]
    query = _query(roots, pins, classes)

    resolved = resolution.resolve(catalogs, query)

    together = _Together(several)
    defining = {
        f"{fqn}.Thing": [
            [resolver.PackageVersion(fqn, Version(version)) for version in packages.get(fqn, ())]
            for packages in several
        ]
        for fqn in classes
    }
    headers, undefined = resolver.find_headers(
        query.classes, defining.__getitem__, query.pins, lambda _: False, Budget(60, "")
    )
    planned = resolver.plan(
        query.requirements,
        query.pins,
        together,
        headers=headers,
    )
    assert _chosen(resolved) == planned.releases
    assert resolved.unsatisfied == planned.unsatisfied
    assert resolved.undefined == undefined
    for choice in resolved.chosen:
        key = resolver.PackageVersion(choice.release.fqn, choice.release.version)
        assert choice.catalog is catalogs[together.place(key)]
        assert choice.release in choice.catalog.releases(key.fqn)


@settings(max_examples=effort.GRAPHS)
@given(_several, published.requirements)
def test_every_range_is_satisfied_or_without_any_version(
    several: Sequence[Packages], roots: Mapping[str, str]
) -> None:
    catalogs = [catalog(packages, str(number)) for number, packages in enumerate(several)]

    resolved = resolution.resolve(catalogs, _query(roots, {}))

    requested = {resolver.Demand(fqn, spec, None) for fqn, spec in ranges(roots).items()}
    for choice in resolved.chosen:
        release = resolver.PackageVersion(choice.release.fqn, choice.release.version)
        for fqn, spec in choice.release.requirements.items():
            # A requirement that a package satisfies by itself is left out.
            if fqn != release.fqn or not (
                spec.match(release.version) or spec.text == str(release.version.major)
            ):
                requested.add(resolver.Demand(fqn, spec, release))
    answered = {d: release for release, demands in _chosen(resolved).items() for d in demands}
    missing = {m.demand for m in resolved.unsatisfied}
    assert answered.keys() | missing == requested
    for demand, release in answered.items():
        assert demand.fqn == release.fqn
        assert demand.spec.match(release.version)
    for demand in missing:
        assert not any(map(demand.spec.match, _Together(several).of(demand.fqn)))


@settings(max_examples=effort.GRAPHS)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(LEAVES), st.sets(st.sampled_from(VERSIONS), max_size=4), max_size=3
        ),
        min_size=1,
        max_size=3,
    ),
    st.lists(
        st.dictionaries(st.sampled_from(LEAVES), st.sampled_from(RANGES), max_size=3), max_size=4
    ),
    published.pins(LEAVES),
)
def test_pins_come_first_then_few_versions_then_the_order_then_the_newest(
    several: Sequence[Mapping[str, set[str]]],
    applications: Sequence[Mapping[str, str]],
    pins: Mapping[str, list[str]],
) -> None:
    """Packages without requirements allow a comparison with all combinations."""
    leaves: list[Packages] = [
        {fqn: {version: {} for version in versions} for fqn, versions in packages.items()}
        for packages in several
    ]
    required = {f"app{n}": {"1.0.0": texts} for n, texts in enumerate(applications)}
    catalogs = [catalog(packages, str(n)) for n, packages in enumerate([required, *leaves])]
    query = _query(dict.fromkeys(required, "1"), pins)

    found = resolution.resolve(catalogs, query).choices

    for fqn in LEAVES:
        available = _Together(leaves).of(fqn)
        specs = {ranges(texts)[fqn] for texts in applications if fqn in texts}
        pinned = resolver.newest_first(query.pins.get(fqn, ()))
        in_pins = {spec: spec.select(pinned) for spec in specs}
        free = [spec for spec, pin in in_pins.items() if pin is None]
        # combinations() gives the first catalogue's newest first.
        taken = {*cover_by_force(available, free), *in_pins.values()}.intersection(available)
        of_free = {spec.select(resolver.newest_first(taken)) for spec in free}
        expected = {*of_free, *in_pins.values()}.intersection(available)
        assert set(found.get(fqn, {})) == expected


@settings(max_examples=effort.GRAPHS)
@given(_several, published.requirements, published.pins(), st.randoms())
def test_the_order_of_catalogues_without_common_packages_does_not_matter(
    several: Sequence[Packages],
    roots: Mapping[str, str],
    pins: Mapping[str, list[str]],
    random: random.Random,
) -> None:
    seen: set[str] = set()
    apart = []
    for packages in several:
        apart.append(catalog({fqn: v for fqn, v in packages.items() if fqn not in seen}))
        seen |= packages.keys()
    query = _query(roots, pins)
    in_order = resolution.resolve(apart, query)

    random.shuffle(apart)

    assert _chosen(resolution.resolve(apart, query)) == _chosen(in_order)


@settings(max_examples=effort.GRAPHS)
@given(_several, published.requirements, published.pins())
def test_duplicate_catalogues_change_nothing(
    several: Sequence[Packages], roots: Mapping[str, str], pins: Mapping[str, list[str]]
) -> None:
    catalogs = [catalog(packages, str(number)) for number, packages in enumerate(several)]
    query = _query(roots, pins)
    alone = resolution.resolve(catalogs, query)

    assert resolution.resolve([*catalogs, *reversed(catalogs)], query) == alone
