# SPDX-License-Identifier: Apache-2.0

"""The same packages in Glance and in Glare give the same closures."""

import itertools
import pathlib
from collections.abc import Callable, Mapping

import hypothesis
from hypothesis import strategies as st

from benchmarks import catalogue
from glare_murano.package import Version, VersionSpec
from glare_murano.wire import Query
from loader import resolution
from loader.catalogs.glare import GlareCatalog
from tests import effort
from tests.functional.client import Client
from tests.functional.glance import stored
from tests.functional.glance.conftest import Catalogs
from tests.functional.glance.service import Glance
from tests.unit import published

_counter = itertools.count()


def _shown(resolved: resolution.Resolution) -> object:
    """Return the content of a resolution in a form in which two services can agree."""
    return (
        {
            str(choice.release): (
                choice.release.classes,
                dict(choice.release.requirements),
                choice.release.yanked,
                choice.demands,
                choice.why,
            )
            for choice in resolved.chosen
        },
        [(missing.demand, missing.chain, missing.available) for missing in resolved.unsatisfied],
        set(resolved.undefined),
    )


@hypothesis.settings(
    max_examples=effort.CLOSURES,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(
    found=published.packages,
    roots=published.requirements,
    classes=st.dictionaries(
        st.sampled_from(published.NAMES), st.sampled_from(published.RANGES), max_size=2
    ),
    pins=published.pins(),
    prereleases=st.booleans(),
)
def test_glance_and_glare_give_the_same_closures(
    glance: Glance,
    catalog_of: Catalogs,
    as_user: Callable[[str], Client],
    state_dir: pathlib.Path,
    found: published.Packages,
    roots: Mapping[str, str],
    classes: Mapping[str, str],
    pins: Mapping[str, list[str]],
    prereleases: bool,
) -> None:
    project = f"same{next(_counter)}"
    contents = [
        catalogue.contents(fqn, version, requirements)
        for fqn, versions in found.items()
        for version, requirements in versions.items()
    ]
    stored.store(glance, [stored.Package(each, project) for each in contents])
    artifacts = [catalogue.Artifact(each, project, "private") for each in contents]
    catalogue.load(state_dir / "glare.sqlite", artifacts)
    client = as_user(project)
    in_glare = GlareCatalog(client.session(), project_id=project, endpoint=client.url)
    query = Query(
        tuple(published.ranges(roots).items()),
        tuple((f"{fqn}.Main", VersionSpec.of(text)) for fqn, text in classes.items()),
        {fqn: [Version(text) for text in texts] for fqn, texts in pins.items()},
        prereleases=prereleases,
        why=True,
    )

    expected = _shown(resolution.resolve([in_glare], query))

    assert _shown(resolution.by_level([catalog_of(project)], query)) == expected
    catalog = catalog_of(project)
    assert _shown(resolution.resolve([catalog], query)) == expected
    assert catalog.counters.requests == 1
