# SPDX-License-Identifier: Apache-2.0

"""Closures of the real Glare, in one answer and a level at a time."""

import itertools
import pathlib
from collections.abc import Callable, Collection, Mapping

import hypothesis
import pytest
from hypothesis import strategies as st
from keystoneauth1 import exceptions as ksa_exceptions

from benchmarks import catalogue
from glare_murano.package import Version, VersionSpec
from glare_murano.resolver import Demand, Unsatisfied
from glare_murano.wire import Query
from loader import errors, resolution
from loader.catalogs.glare import GlareCatalog
from tests import effort, packages
from tests.functional.client import Client
from tests.unit.published import Shelf

VERSIONS = ("0.9.0", "1.0.0-rc.1", "1.0.0", "1.1.0", "1.2.0", "2.0.0-alpha.2", "2.0.0", "2.0.0+b.1")
RANGES = (
    *("*", "0", "1", "1.0", "1.0.0", "2", ">=1.1", "<2", ">=1.0.0-rc.1,<1.1", ">=1,!=1.1.0,<2"),
    # Versions that differ only in their build.
    *("2.0.0", "==2.0.0+b.1"),
)
NAMES = tuple(f"org.{letter}" for letter in "abcdef")

# A package -> its versions -> what each requires.
Packages = Mapping[str, Mapping[str, Mapping[str, str]]]

_requirements = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(RANGES), max_size=3)
_packages = st.dictionaries(
    st.sampled_from(NAMES),
    st.dictionaries(st.sampled_from(VERSIONS), _requirements, min_size=1, max_size=5),
    min_size=1,
)
_counter = itertools.count()


def _publish(state_dir: pathlib.Path, project: str, found: Packages) -> None:
    artifacts = [
        catalogue.Artifact(catalogue.contents(fqn, version, requirements), project, "private")
        for fqn, versions in found.items()
        for version, requirements in versions.items()
    ]
    catalogue.load(state_dir / "glare.sqlite", artifacts)


def _chains(resolved: resolution.Resolution, fqn: str) -> errors.RequirementChains:
    """Return all requirements on a package."""
    demand = Demand(fqn, VersionSpec.of("1"), None)
    return resolved.error(Unsatisfied(demand, ()), []).chains


def _shown(resolved: resolution.Resolution) -> object:
    """Return the content of a resolution in a comparable form."""
    return (
        {
            fqn: {
                str(version): (
                    choice.release.digest,
                    choice.release.classes,
                    dict(choice.release.requirements),
                    choice.demands,
                    choice.why,
                )
                for version, choice in versions.items()
            }
            for fqn, versions in resolved.choices.items()
        },
        [(missing.demand, missing.available) for missing in resolved.unsatisfied],
        set(resolved.undefined),
        [_chains(resolved, fqn) for fqn in NAMES],
    )


@hypothesis.settings(
    max_examples=effort.CLOSURES,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(
    found=_packages,
    roots=_requirements,
    classes=st.dictionaries(st.sampled_from(NAMES), st.sampled_from(RANGES), max_size=2),
    pins=st.dictionaries(
        st.sampled_from(NAMES), st.lists(st.sampled_from(VERSIONS), max_size=2), max_size=3
    ),
    copied=st.sets(st.sampled_from(NAMES)),
    prereleases=st.booleans(),
)
def test_both_ways_give_the_same_result(
    as_user: Callable[[str], Client],
    state_dir: pathlib.Path,
    found: Packages,
    roots: Mapping[str, str],
    classes: Mapping[str, str],
    pins: Mapping[str, list[str]],
    copied: Collection[str],
    prereleases: bool,
) -> None:
    project = f"resolution{next(_counter)}"
    client = as_user(project)
    _publish(state_dir, project, found)
    catalog = GlareCatalog(client.session(), project_id=project, endpoint=client.url)
    query = Query(
        tuple((fqn, VersionSpec.of(text)) for fqn, text in roots.items()),
        tuple((f"{fqn}.Main", VersionSpec.of(text)) for fqn, text in classes.items()),
        {fqn: [Version(text) for text in texts] for fqn, texts in pins.items()},
        prereleases=prereleases,
        why=True,
    )

    at_once = resolution.resolve([catalog], query)
    assert catalog.counters.requests == 1
    assert _shown(resolution.by_level([catalog], query)) == _shown(at_once)

    copies = Shelf(catalog.releases_of(sorted(copied)))
    mixed = resolution.resolve([copies, catalog], query)
    assert _shown(mixed) == _shown(at_once)
    for choice in mixed.chosen:
        assert choice.catalog is (copies if choice.release.fqn in copied else catalog)


def test_a_level_takes_one_request(
    catalog: GlareCatalog, project: str, state_dir: pathlib.Path
) -> None:
    leaves = {f"org.leaf{number}": {"1.0.0": {}} for number in range(20)}
    wide: Packages = {"org.wide": {"1.0.0": dict.fromkeys(leaves, "1")}, **leaves}
    _publish(state_dir, project, wide)

    resolved = resolution.by_level([catalog], Query((("org.wide", VersionSpec.of("1")),)))

    assert len(resolved.choices) == 21
    assert catalog.counters.requests <= 4


def test_a_glare_without_the_filter_is_queried_a_level_at_a_time(
    catalog: GlareCatalog, glare: Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    glare.publish(name, "1.0.0", packages.package(name))
    monkeypatch.setattr("glare_murano.glare.api.middleware.ROUTES", {})

    resolved = resolution.resolve([catalog], Query(((name, VersionSpec.of("1")),)))

    assert set(resolved.choices[name]) == {Version("1.0.0")}
    assert catalog.resolve(Query()) is None


def test_a_forbidden_query_is_an_error(
    catalog: GlareCatalog, policy: Callable[[str, str], None]
) -> None:
    policy("artifact:list", "!")

    with pytest.raises(errors.CatalogError) as refusal:
        resolution.resolve([catalog], Query((("org.a", VersionSpec.of("1")),)))

    assert isinstance(refusal.value.__cause__, ksa_exceptions.Forbidden)


@pytest.mark.parametrize(
    "query",
    [
        Query((("org.a", VersionSpec.of("1")), ("org.a", VersionSpec.of("2")))),
        Query(pins={"org.a": [Version(f"1.0.{number}") for number in range(101)]}),
        Query(pins={f"org.a{number}": [] for number in range(1001)}),
    ],
    ids=["two ranges", "many versions", "many packages"],
)
def test_a_query_beyond_the_limits_is_split_into_levels(
    catalog: GlareCatalog, project: str, state_dir: pathlib.Path, query: Query
) -> None:
    _publish(state_dir, project, {"org.a": {"1.0.0": {}, "2.0.0": {}}})

    assert catalog.resolve(query) is None
    assert catalog.counters.requests == 0
    resolved = resolution.resolve([catalog], query)
    assert len(resolved.choices.get("org.a", {})) == len(query.requirements)
