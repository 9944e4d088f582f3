# SPDX-License-Identifier: Apache-2.0

"""The same packages in Glance, in Glare and in a directory give the same closures."""

import itertools
import pathlib
from collections.abc import Callable, Iterator, Mapping

import hypothesis
from hypothesis import strategies as st

from benchmarks import catalogue
from glare_murano.package import Archive, Contents, Version, VersionSpec, read_contents
from glare_murano.wire import Query
from loader import resolution
from loader.catalogs.directory import DirectoryCatalog
from loader.catalogs.glare import GlareCatalog
from tests import effort, packages
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
        [(missing.demand, missing.available) for missing in resolved.unsatisfied],
        set(resolved.undefined),
    )


def _written(folder: pathlib.Path, found: published.Packages) -> Iterator[Contents]:
    """Write packages into a directory, and yield their contents."""
    for fqn, versions in found.items():
        for version, requirements in versions.items():
            keys = {"Require": dict(requirements), "Tags": ["made"]}
            manifest = packages.manifest(fqn, version, **keys)
            place = packages.write(folder / fqn / version, packages.files(manifest))
            with Archive.open(place) as archive:
                yield read_contents(archive)


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
    private_overrides=st.booleans(),
)
def test_glance_glare_and_a_directory_give_the_same_closures(
    glance: Glance,
    catalog_of: Catalogs,
    as_user: Callable[[str], Client],
    state_dir: pathlib.Path,
    tmp_path: pathlib.Path,
    found: published.Packages,
    roots: Mapping[str, str],
    classes: Mapping[str, str],
    pins: Mapping[str, list[str]],
    prereleases: bool,
    private_overrides: bool,
) -> None:
    project = f"same{next(_counter)}"
    folder = tmp_path / project
    contents = list(_written(folder, found))
    stored.store(glance, [stored.Package(each, project) for each in contents])
    artifacts = [catalogue.Artifact(each, project, "private") for each in contents]
    catalogue.load(state_dir / "glare.sqlite", artifacts)
    client = as_user(project)
    in_directory = DirectoryCatalog(folder)
    in_glare = GlareCatalog(client.session(), project_id=project, endpoint=client.url)
    query = Query(
        tuple(published.ranges(roots).items()),
        tuple((f"{fqn}.Thing", VersionSpec.of(text)) for fqn, text in classes.items()),
        {fqn: [Version(text) for text in texts] for fqn, texts in pins.items()},
        # The services have different core libraries.
        provided={"io.murano": [Version("0.5.0")]},
        prereleases=prereleases,
        why=True,
        private_overrides=private_overrides,
    )

    expected = _shown(resolution.resolve([in_glare], query))

    assert _shown(resolution.resolve([in_directory], query)) == expected
    assert _shown(resolution.by_level([catalog_of(project)], query)) == expected
    catalog = catalog_of(project)
    assert _shown(resolution.resolve([catalog], query)) == expected
    assert catalog.counters.requests == 1
