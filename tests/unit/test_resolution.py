# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What a deployment comes to: from folders, in the operator's order."""

import concurrent.futures
import logging
import pathlib
import threading
from collections.abc import Callable

import pytest

import loader
from glare_murano.package import VersionSpec
from loader import resolution
from loader.catalogs.base import Query
from loader.catalogs.directory import DirectoryCatalog
from loader.formats.registry import PackageTypes
from tests import packages

Place = Callable[..., None]


@pytest.fixture
def place(tmp_path: pathlib.Path) -> Place:
    """Puts a package into one of the folders."""

    def place_package(folder: str, name: str, version: str = "1.0.0", **require: str) -> None:
        requirements = {fqn.replace("__", "."): text for fqn, text in require.items()}
        manifest = packages.manifest(name, version, Require={"io.murano": "*", **requirements})
        packages.write(tmp_path / folder / name / version, packages.files(manifest))

    place_package("core", "io.murano", "0.1.0")
    return place_package


@pytest.fixture
def make_loader(tmp_path: pathlib.Path) -> Callable[..., loader.PackageLoader]:
    def make(*folders: str, pins: loader.Pins | None = None) -> loader.PackageLoader:
        catalogs = [DirectoryCatalog(tmp_path / folder) for folder in (*folders, "core")]
        return loader.PackageLoader(catalogs, loader.Cache(tmp_path / "cache"), pins)

    return make


def _load(package_loader: loader.PackageLoader, fqn: str, text: str) -> str:
    return str(package_loader.load_package(fqn, VersionSpec.of(text)).version)


def test_the_first_catalogue_with_a_version_in_the_range_answers(
    place: Place, make_loader: Callable[..., loader.PackageLoader]
) -> None:
    place("own", "org.db", "1.1.0")
    place("public", "org.db", "1.5.0")
    place("public", "org.db", "2.0.0")

    assert _load(make_loader("own", "public"), "org.db", "1") == "1.1.0"
    assert _load(make_loader("public", "own"), "org.db", "1") == "1.5.0"
    assert _load(make_loader("own", "public"), "org.db", "2") == "2.0.0"


def test_a_closure_is_made_of_all_catalogues(place: Place, tmp_path: pathlib.Path) -> None:
    place("own", "org.wiki", org__db="1")
    place("public", "org.db", "1.2.0", org__log="*")
    place("own", "org.log", "3.0.0")
    catalogs = [DirectoryCatalog(tmp_path / folder) for folder in ("own", "public", "core")]

    resolved = resolution.resolve(catalogs, Query((("org.wiki", VersionSpec.of("1")),)))

    found = {
        f"{fqn} {version}": choice.catalog
        for fqn, versions in resolved.choices.items()
        for version, choice in versions.items()
    }
    own, public, core = catalogs
    assert found == {
        "io.murano 0.1.0": core,
        "org.wiki 1.0.0": own,
        "org.db 1.2.0": public,
        "org.log 3.0.0": own,
    }


def test_one_version_serves_where_one_can(
    place: Place, make_loader: Callable[..., loader.PackageLoader]
) -> None:
    for version in ("1.0.0", "1.2.0", "1.9.0"):
        place("own", "org.db", version)
    place("own", "org.old", org__db="<1.5")
    place("own", "org.portal", org__db="1", org__old="1")
    package_loader = make_loader("own")

    package_loader.load_package("org.portal", VersionSpec.of("1"))

    assert _load(package_loader, "org.db", "1") == "1.2.0"
    assert _load(package_loader, "org.db", "<1.5") == "1.2.0"


def test_what_is_loaded_is_used_where_it_serves(
    place: Place, make_loader: Callable[..., loader.PackageLoader]
) -> None:
    place("own", "org.db", "1.0.0")
    place("own", "org.db", "1.9.0")
    package_loader = make_loader("own")

    assert _load(package_loader, "org.db", "1.0") == "1.0.0"
    assert _load(package_loader, "org.db", "1") == "1.0.0"
    assert _load(package_loader, "org.db", ">=1.5") == "1.9.0"
    assert package_loader.load_class_package("org.db.Thing", VersionSpec.of("1.0"))
    assert package_loader.pins.dump()["org.db"] == ["1.0.0", "1.9.0"]


def test_a_version_is_one_object_however_many_load_it_at_once(
    place: Place,
    make_loader: Callable[..., loader.PackageLoader],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place("own", "org.db")
    package_loader = make_loader("own")
    barrier = threading.Barrier(2, timeout=20)
    read = PackageTypes.load

    def read_at_once(types: PackageTypes, folder: pathlib.Path) -> object:
        barrier.wait()
        return read(types, folder)

    monkeypatch.setattr(PackageTypes, "load", read_at_once)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        loading = [
            pool.submit(package_loader.load_package, "org.db", VersionSpec.of("1"))
            for _ in range(2)
        ]

    assert loading[0].result() is loading[1].result()


def test_versions_side_by_side_are_told_with_who_asks(
    place: Place,
    make_loader: Callable[..., loader.PackageLoader],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "loader")
    place("own", "org.db", "1.0.0")
    place("own", "org.db", "2.0.0")
    place("own", "org.shop", org__db="2")
    place("own", "org.wiki", org__db="1", org__shop="1")
    package_loader = make_loader("own")

    package_loader.load_package("org.wiki", VersionSpec.of("1"))

    assert (
        "No single version of org.db serves: it is used as 1.0.0 for 1 of org.wiki 1.0.0, "
        "2.0.0 for 2 of org.shop 1.0.0"
    ) in caplog.text


def test_a_conflict_is_told_with_the_chain_of_requirements(
    place: Place, make_loader: Callable[..., loader.PackageLoader]
) -> None:
    place("own", "org.db", "1.0.0")
    place("own", "org.wiki", org__db=">=3")
    place("own", "org.portal", org__wiki=">=1,<2")
    package_loader = make_loader("own")
    package_loader.load_package("org.portal", VersionSpec.of("1"))

    with pytest.raises(loader.NoSuchPackage) as missing:
        package_loader.load_package("org.db", VersionSpec.of(">=3"), "org.wiki 1.0.0")

    assert (
        "org.db in the range >=3, required by org.wiki 1.0.0, which org.portal 1.0.0 requires "
        "in the range >=1,<2,"
    ) in str(missing.value)
    assert "there is 1.0.0" in str(missing.value)


def test_why_a_version_was_chosen_is_in_the_log(
    place: Place,
    make_loader: Callable[..., loader.PackageLoader],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "loader")
    for version in ("1.0.0", "1.1.0"):
        place("own", "org.db", version)
        place("own", "org.log", version)
    place("own", "org.wiki", org__db="1", org__log="1")
    pins = loader.Pins()
    pins.load({"org.log": ["1.0.0"]})
    package_loader = make_loader("own", pins=pins)

    package_loader.load_package("org.wiki", VersionSpec.of("*"))
    package_loader.load_package("org.db", VersionSpec.of("1"), "org.wiki 1.0.0")
    package_loader.load_package("org.log", VersionSpec.of("1"), "org.wiki 1.0.0")

    told = [record.getMessage() for record in caplog.records]
    assert [text.split(" was chosen for ")[1] for text in told if "was chosen" in text] == [
        "the range *, the newest",
        "the range 1 of org.wiki 1.0.0, as planned",
        "the range 1 of org.wiki 1.0.0, as pinned",
    ]


def test_a_pinned_version_that_is_gone_is_told(
    place: Place, make_loader: Callable[..., loader.PackageLoader]
) -> None:
    place("own", "org.db", "1.1.0")
    pins = loader.Pins()
    pins.load({"org.db": ["1.0.0"]})

    with pytest.raises(loader.NoSuchPackage, match=r"pinned to 1\.0\.0, .*there is 1\.1\.0"):
        make_loader("own", pins=pins).load_package("org.db", VersionSpec.of("1"))


def test_a_class_is_found_by_pins_and_versions_before_the_order_of_catalogues(
    place: Place, make_loader: Callable[..., loader.PackageLoader]
) -> None:
    place("own", "org.db", "1.9.0")
    place("public", "org.db", "1.2.3")
    pins = loader.Pins()
    pins.load({"org.db": ["1.2.3"]})

    def load(text: str, pins: loader.Pins | None = None) -> str:
        package_loader = make_loader("own", "public", pins=pins)
        package = package_loader.load_class_package("org.db.Thing", VersionSpec.of(text))
        return str(package.version)

    assert load("1") == "1.9.0"
    assert load("1", pins) == "1.2.3"
    assert load("1.2.3") == "1.2.3"
    assert load("1.3.0") == "1.9.0"


def test_a_class_is_taken_from_a_version_that_defines_it(
    place: Place, make_loader: Callable[..., loader.PackageLoader], tmp_path: pathlib.Path
) -> None:
    place("own", "org.db", "1.0.0")
    manifest = packages.manifest("org.db", "1.1.0", Classes={"org.db.Other": "Other.yaml"})
    packages.write(tmp_path / "own" / "org.db" / "1.1.0", packages.files(manifest))

    package = make_loader("own").load_class_package("org.db.Thing", VersionSpec.of("1"))

    assert str(package.version) == "1.0.0"
