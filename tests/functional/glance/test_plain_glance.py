# SPDX-License-Identifier: Apache-2.0

"""The real Glance with its own paste file: the catalogue does without the filters."""

import pathlib
from collections.abc import Iterator

import pytest

from glare_murano.package import VersionSpec
from glare_murano.wire import Query
from loader import Cache, PackageLoader, resolution
from tests import packages, prerequisites
from tests.functional.glance import service, stored
from tests.functional.glance.conftest import Catalogs


def _without_filters(etc: pathlib.Path) -> None:
    stock = prerequisites.glance().parent / "etc" / "glance" / "glance-api-paste.ini"
    text = stock.read_text()
    assert "murano" not in text
    (etc.parent / stock.name).write_text(service.trusting(text))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[service.Glance]:
    """A Glance without the filters of this project."""
    with service.running(tmp_path_factory.mktemp("plain"), change=_without_filters) as running:
        yield running


def test_the_answer_is_that_of_the_filter(
    glance: service.Glance, plain: service.Glance, catalog_of: Catalogs, project: str
) -> None:
    names = [f"org.{project}.p{number}" for number in range(3)]
    archives = [
        *(
            packages.package(name, version, Require={"io.murano": "*", **required})
            for version in ("1.0.0", "1.2.0", "2.0.0")
            for name, required in zip(names, [{names[1]: ">=1"}, {names[2]: "1"}, {}], strict=True)
        ),
    ]
    core = stored.package(packages.package("io.murano", "0.0.1"), project, "public")
    query = Query(((names[0], VersionSpec.of("1")),), ((f"{names[2]}.Thing", VersionSpec.of("*")),))
    found = []
    for each in (glance, plain):
        of_project = [stored.package(archive, project) for archive in archives]
        stored.store(each, [core, *of_project])
        catalog = catalog_of(project, url=each.url)
        found.append((resolution.resolve([catalog], query), catalog.counters.requests))

    (expected, one), (resolved, several) = found
    assert [str(choice.release) for choice in resolved.chosen] == [
        str(choice.release) for choice in expected.chosen
    ]
    assert len(resolved.chosen) == len(names) + 1
    assert one == 1 < several


def test_packages_are_loaded(
    plain: service.Glance, catalog_of: Catalogs, project: str, tmp_path: pathlib.Path
) -> None:
    fqn = f"org.{project}.loaded"
    core = stored.package(packages.package("io.murano", "0.0.1"), project, "public")
    stored.store(plain, [core, stored.package(packages.package(fqn), project)])
    catalog = catalog_of(project, url=plain.url)

    with PackageLoader(catalog, Cache(tmp_path / "cache")) as loaded:
        assert {package.full_name for package in loaded.load_all(fqn)} == {fqn, "io.murano"}
