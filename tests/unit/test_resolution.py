# SPDX-License-Identifier: Apache-2.0

"""The packages of a deployment, loaded from directories in the operator's order."""

import concurrent.futures
import copy
import itertools
import logging
import pathlib
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import loader
from glare_murano import resolver
from glare_murano.package import Version, VersionSpec, parse_version
from glare_murano.wire import Query, Release
from loader import resolution
from loader.catalogs.directory import DirectoryCatalog
from loader.formats.registry import PackageTypes
from tests import packages

Place = Callable[..., None]


@pytest.fixture
def place(tmp_path: pathlib.Path) -> Place:
    """Put a package into one of the directories."""

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
    return str(package_loader.load(fqn, VersionSpec.of(text)).version)


def test_the_first_catalogue_with_a_version_in_the_range_is_used(
    place: Place, make_loader: Callable[..., loader.PackageLoader]
) -> None:
    place("own", "org.db", "1.1.0")
    place("public", "org.db", "1.5.0")
    place("public", "org.db", "2.0.0")

    assert _load(make_loader("own", "public"), "org.db", "1") == "1.1.0"
    assert _load(make_loader("public", "own"), "org.db", "1") == "1.5.0"
    assert _load(make_loader("own", "public"), "org.db", "2") == "2.0.0"


def test_a_closure_is_chosen_from_all_catalogues(place: Place, tmp_path: pathlib.Path) -> None:
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


def test_one_version_is_used_if_it_satisfies_all_ranges(
    place: Place, make_loader: Callable[..., loader.PackageLoader]
) -> None:
    for version in ("1.0.0", "1.2.0", "1.9.0"):
        place("own", "org.db", version)
    place("own", "org.old", org__db="<1.5")
    place("own", "org.portal", org__db="1", org__old="1")
    package_loader = make_loader("own")

    package_loader.load("org.portal", VersionSpec.of("1"))

    assert _load(package_loader, "org.db", "1") == "1.2.0"
    assert _load(package_loader, "org.db", "<1.5") == "1.2.0"


def test_a_loaded_version_is_used_for_every_range_with_it(
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


def test_a_loaded_package_of_a_class_is_preferred_to_a_planned_one(
    place: Place, make_loader: Callable[..., loader.PackageLoader]
) -> None:
    place("own", "org.db", "1.0.0")
    place("own", "org.db", "1.9.0")
    place("own", "org.wiki", org__db=">=1.5")
    package_loader = make_loader("own")
    loaded = package_loader.load("org.db", VersionSpec.of("1.0"))
    package_loader.load("org.wiki", VersionSpec.of("1"))

    assert package_loader.load_class_package("org.db.Thing", VersionSpec.of("1")) is loaded
    assert package_loader.pins.dump()["org.db"] == ["1.0.0"]
    assert _load(package_loader, "org.db", ">=1.5") == "1.9.0"


@pytest.mark.parametrize(
    ("ranges", "pins", "expected"),
    [
        (["<0.4", ">=0"], [], ["0.3.0", "0.3.0"]),
        (["<0.4", ">=0.5", ">=0"], [], ["0.3.0", "1.0.0", "1.0.0"]),
        # The missing version gives way to a near one before the others are planned.
        (["0.3.7", ">=0"], [], ["0.3.0", "0.3.0"]),
        (["<0.4", ">=0", ">=0.5"], ["0.2.0"], ["0.2.0", "0.2.0", "1.0.0"]),
        (["<0.4", ">=0.5", ">=0"], ["0.2.0", "0.5.0"], ["0.2.0", "0.5.0", "0.5.0"]),
    ],
)
def test_objects_get_the_same_versions_in_any_order(
    place: Place,
    make_loader: Callable[..., loader.PackageLoader],
    ranges: list[str],
    pins: list[str],
    expected: list[str],
) -> None:
    for version in ("0.2.0", "0.3.0", "0.5.0", "1.0.0"):
        place("own", "org.db", version)
    place("own", "org.wiki", org__db=ranges[-1])
    headers = [*(("org.db.Thing", text) for text in ranges), ("org.wiki.Thing", "1")]

    for ordered in itertools.permutations(headers):
        package_loader = make_loader("own", pins=loader.Pins({"org.db": pins}))
        package_loader.plan_objects(ordered)
        loaded = {}
        for name, text in ordered:
            package = package_loader.load_class_package(name, text)
            if name == "org.wiki.Thing":
                package = package_loader.load_requirement(package, "org.db")
                assert str(package.version) == expected[-1]
            loaded[text] = str(package.version)
        assert [loaded[text] for text in ranges] == expected


def test_a_requirement_keeps_the_version_that_it_was_planned_with(
    place: Place, make_loader: Callable[..., loader.PackageLoader]
) -> None:
    for version in ("1.0.0", "1.9.0"):
        place("own", "org.db", version)
    place("own", "org.old", org__db="<1.5")
    place("own", "org.wiki", org__db="1", org__old="1")
    package_loader = make_loader("own")
    wiki = package_loader.load("org.wiki")
    assert _load(package_loader, "org.db", ">=1.5") == "1.9.0"
    place("own", "org.portal", org__wiki="1")
    package_loader.load("org.portal")

    package = package_loader.load_requirement(wiki, "org.db")

    assert str(package.version) == "1.0.0"


def test_the_classes_of_objects_may_be_missing_or_in_other_versions(
    place: Place, make_loader: Callable[..., loader.PackageLoader], tmp_path: pathlib.Path
) -> None:
    place("own", "org.db", "1.0.0")
    manifest = packages.manifest("org.db", "1.1.0", Classes={"org.db.Other": "Other.yaml"})
    packages.write(tmp_path / "own" / "org.db" / "1.1.0", packages.files(manifest))
    package_loader = make_loader("own")

    package_loader.plan_objects((f"org.db.{name}", "1") for name in ("Thing", "Other", "Missing"))

    for name, version in (("Thing", "1.0.0"), ("Other", "1.1.0")):
        assert str(package_loader.load_class_package(f"org.db.{name}", "1").version) == version
    with pytest.raises(loader.NoSuchClass):
        package_loader.load_class_package("org.db.Missing", "1")


def test_objects_whose_pinned_version_is_gone_get_the_newest_with_a_warning(
    place: Place,
    make_loader: Callable[..., loader.PackageLoader],
    caplog: pytest.LogCaptureFixture,
) -> None:
    place("own", "org.db", "1.1.0")
    place("own", "org.wiki", org__db="1")
    package_loader = make_loader("own", pins=loader.Pins({"org.db": ["1.0.0"]}))
    package_loader.plan_objects([("org.db.Thing", "1"), ("org.wiki.Thing", "1")])

    wiki = package_loader.load_class_package("org.wiki.Thing", "1")
    with pytest.raises(loader.NoSuchPackage, match=r"pinned to 1\.0\.0"):
        package_loader.load_requirement(wiki, "org.db")
    assert str(package_loader.load_object_package("org.db", "1").version) == "1.1.0"
    assert "missing in the pinned version 1.0.0" in caplog.text


def test_threads_that_load_a_version_at_once_get_one_object(
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
            pool.submit(package_loader.load, "org.db", VersionSpec.of("1")) for _ in range(2)
        ]

    assert loading[0].result() is loading[1].result()


def test_plans_of_several_threads_are_all_kept(
    place: Place,
    make_loader: Callable[..., loader.PackageLoader],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "loader")
    requirements = {"org.wiki": "org.db", "org.shop": "org.log"}
    for name, required in requirements.items():
        place("own", name, **{required.replace(".", "__"): "1"})
        place("own", required)
    package_loader = make_loader("own")
    join = resolution.Resolution.joined

    def join_slowly(*resolved: resolution.Resolution) -> resolution.Resolution:
        time.sleep(0.05)
        return join(*resolved)

    monkeypatch.setattr(resolution.Resolution, "joined", join_slowly)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: _load(package_loader, name, "1"), requirements))
    caplog.clear()
    for required in requirements.values():
        _load(package_loader, required, "1")

    assert caplog.text.count("as planned") == len(requirements)


def test_a_plan_past_its_time_ends_with_the_package_where_it_stopped(
    place: Place, tmp_path: pathlib.Path
) -> None:
    place("own", "org.wiki")
    catalogs = [DirectoryCatalog(tmp_path / folder) for folder in ("own", "core")]
    packages = loader.PackageLoader(catalogs, loader.Cache(tmp_path / "cache"), plan_seconds=0)

    with packages, pytest.raises(loader.Unplannable) as refusal:
        packages.load("org.wiki", "1")

    assert str(refusal.value) == (
        "package org.wiki in the range 1 cannot be found: planning stopped at package org.wiki, "
        "after 0 seconds; request fewer packages, or raise the option plan_seconds"
    )


def test_newer_versions_that_were_passed_over_are_logged_with_their_reasons(
    place: Place,
    make_loader: Callable[..., loader.PackageLoader],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "loader")
    for version in ("1.0.0", "1.2.0", "2.0.0"):
        place("own", "org.db", version)
    place("public", "org.db", "1.1.0")
    place("own", "org.wiki", org__db="<1.2", org__shop="1")
    place("own", "org.shop", org__db="<2")

    make_loader("public", "own").load("org.wiki", "1")

    assert [line for line in caplog.messages if "is used, not" in line] == [
        "org.db 1.1.0 is used, not a newer version: 2.0.0 excluded by <2 of org.shop 1.0.0, "
        "<1.2 of org.wiki 1.0.0; 1.2.0 excluded by <1.2 of org.wiki 1.0.0"
    ]


def test_versions_of_a_missing_package_are_explained() -> None:
    demand = resolver.Demand("org.db", VersionSpec.of(">=2"), None)
    version, yanked = parse_version("1.0.0"), parse_version("2.0.0")
    missing = resolver.Unsatisfied(demand, (version,), (yanked,))

    assert resolution.explain_missing(missing) == (
        "1.0.0 excluded by >=2 of the request; "
        "2.0.0 yanked or a pre-release, and not required exactly by >=2 of the request"
    )


def test_what_is_missing_is_found_by_an_equal_range() -> None:
    missing = resolver.Unsatisfied(
        resolver.Demand("org.db", VersionSpec.of(">=2"), None), (parse_version("1.0.0"),)
    )
    found = resolution.Resolution({}, (missing,), (), (), ())
    other, equal = VersionSpec.of(">=3"), copy.copy(missing.demand.spec)

    assert found.find_missing("org.db", other, equal) is missing
    assert found.find_missing("org.db", other) is None
    assert found.find_missing("org.wiki", equal) is None


@pytest.mark.parametrize(
    ("yanked", "served"),
    [("", {"1", "1.2.0", ">=1"}), ("a reason", {"1.2.0", ">=1"})],
)
def test_a_yanked_release_is_used_for_the_ranges_that_it_was_chosen_for(
    tmp_path: pathlib.Path, yanked: str, served: set[str]
) -> None:
    release = Release("org.db", parse_version("1.2.0"), {}, frozenset(), yanked=yanked)
    demands = (resolver.Demand("org.db", VersionSpec.of(">=1"), None),)
    choice = resolution.Choice(DirectoryCatalog(tmp_path), release, demands)

    ranges = ("1", "2", "1.2.0", ">=1", "<1")
    assert {text for text in ranges if choice.serves(VersionSpec.of(text))} == served


def test_a_chain_begins_where_nothing_is_known_about_who_requires_it() -> None:
    """The answer of a service may leave this out."""
    requirer = resolver.PackageVersion("org.wiki", parse_version("1.0.0"))
    demand = resolver.Demand("org.db", VersionSpec.of("1"), requirer)

    chains = resolution.Resolution().chains([demand])

    assert chains.shown == ((demand,),)
    assert str(chains) == "... -> org.db 1"


def test_a_version_of_an_earlier_catalogue_is_explained(
    place: Place, tmp_path: pathlib.Path
) -> None:
    place("own", "org.db", "1.0.0")
    place("public", "org.db", "1.2.0")
    catalogs = [DirectoryCatalog(tmp_path / folder) for folder in ("own", "public", "core")]
    query = Query((("org.db", VersionSpec.of("1")),), why=True)

    found = resolution.resolve(catalogs, query).find("org.db", VersionSpec.of("1"))

    assert found is not None
    assert resolution.explain(found) == "1.2.0 in a later catalogue"


def test_versions_side_by_side_are_logged_with_their_requirers(
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

    package_loader.load("org.wiki", VersionSpec.of("1"))

    assert _versions_logged(caplog) == [
        "2.0.0 is used for org.wiki 1 (1.0.0) -> org.shop 1 (1.0.0) -> org.db 2",
        "1.0.0 is used for org.wiki 1 (1.0.0) -> org.db 1",
    ]


def test_versions_of_several_plans_are_logged_with_their_requirers(
    place: Place,
    make_loader: Callable[..., loader.PackageLoader],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "loader")
    place("own", "org.db", "1.0.0")
    place("own", "org.db", "2.0.0")
    place("own", "org.shop", org__db="2")
    place("own", "org.wiki", org__db="1")
    place("own", "org.blog", org__db="*")
    package_loader = make_loader("own")

    package_loader.load("org.wiki", VersionSpec.of("1"))
    assert _versions_logged(caplog) == []
    package_loader.load("org.shop", VersionSpec.of("1"))
    reported = _versions_logged(caplog)
    package_loader.load("org.blog", VersionSpec.of("*"))

    assert reported == [
        "2.0.0 is used for org.shop 1 (1.0.0) -> org.db 2",
        "1.0.0 is used for org.wiki 1 (1.0.0) -> org.db 1",
    ]
    assert _versions_logged(caplog) == reported


def test_only_some_versions_side_by_side_are_logged(
    place: Place,
    make_loader: Callable[..., loader.PackageLoader],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "loader")
    for number in range(12):
        place("own", "org.db", f"1.{number}.0")
        place("own", f"org.app{number}", org__db=f"==1.{number}.0")
    place("own", "org.wiki", **{f"org__app{number}": "1" for number in range(12)})

    make_loader("own").load("org.wiki", VersionSpec.of("1"))

    logged = _versions_logged(caplog)
    assert [line.split(" is used")[0] for line in logged] == [f"1.{n}.0" for n in range(11, 1, -1)]
    assert "2 more versions of org.db are used" in caplog.messages
    explained = [line for line in caplog.messages if line.startswith("org.db 1.")]
    assert [line.split(" is used, not")[0] for line in explained] == [
        f"org.db 1.{number}.0" for number in range(10, 1, -1)
    ]


def test_the_beginning_of_a_long_chain_is_not_logged(
    place: Place,
    make_loader: Callable[..., loader.PackageLoader],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO, "loader")
    lengths: list[int] = []
    chain_of = resolution.chain_of

    def measured(*arguments: Any) -> tuple[resolver.Demand, ...]:
        found = chain_of(*arguments)
        lengths.append(len(found))
        return found

    monkeypatch.setattr("loader.resolution.chain_of", measured)
    names = [f"org.row{number}" for number in range(25)]
    for name, following in itertools.pairwise(names):
        place("own", name, **{following.replace(".", "__"): "*"})
    place("own", names[-1], org__db="1")
    place("own", "org.db", "1.0.0")
    place("own", "org.db", "2.0.0")
    place("own", "org.wiki", org__db="2", org__row0="1")

    make_loader("own").load("org.wiki", VersionSpec.of("1"))

    newest, oldest = _versions_logged(caplog)
    assert newest == "2.0.0 is used for org.wiki 1 (1.0.0) -> org.db 2"
    assert oldest.startswith(
        "1.0.0 is used for ... -> org.row6 * (1.0.0) -> org.row7 * (1.0.0) -> "
    )
    assert oldest.endswith(" -> org.row24 * (1.0.0) -> org.db 1")
    assert max(lengths) == 20


def test_chains_are_only_made_for_the_log(
    place: Place,
    make_loader: Callable[..., loader.PackageLoader],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.WARNING, "loader")
    monkeypatch.setattr("loader.resolution.chain_of", lambda *_: pytest.fail("made"))
    place("own", "org.db", "1.0.0")
    place("own", "org.db", "2.0.0")
    place("own", "org.shop", org__db="2")
    place("own", "org.wiki", org__db="1", org__shop="1")

    make_loader("own").load("org.wiki", VersionSpec.of("1"))

    assert caplog.messages == []


def _versions_logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    reported = [
        record.getMessage().split("No single version of org.db satisfies all requirements: ")
        for record in caplog.records
    ]
    return [texts[1] for texts in reported if len(texts) > 1]


def test_a_conflict_is_reported_with_the_chain_of_every_requirement(
    place: Place, make_loader: Callable[..., loader.PackageLoader]
) -> None:
    place("own", "org.db", "1.0.0")
    place("own", "org.db", "1.1.0")
    place("own", "org.tool", org__db="<1.1")
    place("own", "org.shop", org__db=">=3", org__wiki="*")
    place("own", "org.wiki", org__db=">=3", org__shop="1")
    place("own", "org.portal", org__wiki=">=1,<2", org__db="1")
    package_loader = make_loader("own")
    package_loader.load("org.tool", VersionSpec.of("*"))
    package_loader.load("org.portal", VersionSpec.of("1"))

    with pytest.raises(loader.NoSuchPackage) as missing:
        package_loader.load_requirement(package_loader.load("org.shop"), "org.db")

    head, reported = str(missing.value).split("; the requirements on it: ")
    assert head.startswith("package org.db in the range >=3, required by org.shop 1.0.0, was not ")
    assert head.endswith(
        "(available: 1.1.0, 1.0.0); add a version in the range to the directory, unpacked or as "
        "a ZIP file; or change the range"
    )
    wiki = "org.portal 1 (1.0.0) -> org.wiki >=1,<2 (1.0.0)"
    assert reported.split("; ") == [
        f"{wiki} -> org.shop 1 (1.0.0) -> org.db >=3",
        f"{wiki} -> org.db >=3",
        "org.tool * (1.0.0) -> org.db <1.1",
        "org.portal 1 (1.0.0) -> org.db 1",
    ]
    assert [str(chain[-1].requirer) for chain in missing.value.chains.shown] == [
        "org.shop 1.0.0",
        "org.wiki 1.0.0",
        "org.tool 1.0.0",
        "org.portal 1.0.0",
    ]


def test_each_of_two_missing_packages_is_reported_with_its_own_requirements(
    place: Place, make_loader: Callable[..., loader.PackageLoader]
) -> None:
    place("own", "org.db", "1.0.0")
    place("own", "org.log", "2.0.0")
    place("own", "org.wiki", org__db=">=3", org__log=">=3")
    package_loader = make_loader("own")
    package_loader.load("org.wiki", VersionSpec.of("1"))

    for fqn, version in (("org.db", "1.0.0"), ("org.log", "2.0.0")):
        with pytest.raises(loader.NoSuchPackage) as missing:
            package_loader.load(fqn, VersionSpec.of(">=3"))

        assert missing.value.fqn == fqn
        assert missing.value.available == (Version(version),)
        text = str(missing.value)
        assert text.startswith(f"package {fqn} in the range >=3, required by org.wiki 1.0.0, ")
        assert text.endswith(f"; the requirements on it: org.wiki 1 (1.0.0) -> {fqn} >=3")


def test_a_missing_root_is_reported_without_a_chain(
    place: Place, make_loader: Callable[..., loader.PackageLoader]
) -> None:
    place("own", "org.db", "1.0.0")

    with pytest.raises(loader.NoSuchPackage, match=r"\(available: 1\.0\.0\); add .* range\Z"):
        make_loader("own").load("org.db", VersionSpec.of(">=3"))


def test_a_large_conflict_is_reported_briefly(
    place: Place, make_loader: Callable[..., loader.PackageLoader]
) -> None:
    long = ">=3" + ",<40000.0.0" * 31
    names = [f"org.row{number}" for number in range(30)]
    for name, following in itertools.pairwise(names):
        place("own", name, **{following.replace(".", "__"): "*"})
    place("own", names[-1], **{f"org__wide{number}": "*" for number in range(30)})
    for number in range(30):
        place("own", f"org.wide{number}", org__db=long)
        place("own", "org.db", f"1.{number}.0")
    package_loader = make_loader("own")
    package_loader.load(names[0], VersionSpec.of("*"))

    with pytest.raises(loader.NoSuchPackage) as missing:
        package_loader.load_requirement(package_loader.load("org.wide7"), "org.db")

    head, reported = str(missing.value).split("; the requirements on it: ")
    assert "(available: 1.29.0, " in head
    assert ", 1.10.0 and 10 more); add" in head
    first, *others, last = reported.split("; ")
    assert last == "and 20 more"
    assert len(others) == 9
    assert first.startswith("org.row0 * (1.0.0) -> org.row1 * (1.0.0) -> ")
    assert " -> org.row4 * (1.0.0) -> 21 more -> org.row26 * (1.0.0) -> " in first
    assert "-> org.wide7 * (1.0.0) -> org.db '>=3,<4" in first
    assert len(reported) < 5000


def test_a_pre_release_that_the_query_excludes_is_not_reported_as_yanked(
    place: Place, tmp_path: pathlib.Path
) -> None:
    for version in ("1.0.0", "2.0.0-rc.1"):
        place("own", "org.db", version)
    catalogs = [DirectoryCatalog(tmp_path / "own")]

    wanted = VersionSpec.of(">1")
    resolved = resolution.resolve(catalogs, Query((("org.db", wanted),), prereleases=False))

    (missing,) = resolved.unsatisfied
    message = str(resolved.error(missing, catalogs))
    assert "(available: 1.0.0; yanked or a pre-release: 2.0.0-rc.1)" in message


def test_a_missing_pinned_version_is_reported_with_its_chain(
    place: Place, make_loader: Callable[..., loader.PackageLoader]
) -> None:
    place("own", "org.db", "1.1.0")
    place("own", "org.wiki", org__db="1")
    pins = loader.Pins({"org.db": ["1.0.0"]})
    package_loader = make_loader("own", pins=pins)
    wiki = package_loader.load("org.wiki", VersionSpec.of("1"))

    with pytest.raises(loader.NoSuchPackage, match=r"pinned to 1\.0\.0") as missing:
        package_loader.load_requirement(wiki, "org.db")

    assert str(missing.value).endswith("on it: org.wiki 1 (1.0.0) -> org.db 1")


def test_the_reason_for_a_version_is_logged(
    place: Place,
    make_loader: Callable[..., loader.PackageLoader],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "loader")
    for version in ("1.0.0", "1.1.0"):
        place("own", "org.db", version)
        place("own", "org.log", version)
    place("own", "org.wiki", org__db="1", org__log="1")
    pins = loader.Pins({"org.log": ["1.0.0"]})
    package_loader = make_loader("own", pins=pins)

    wiki = package_loader.load("org.wiki", VersionSpec.of("*"))
    package_loader.load_requirement(wiki, "org.db")
    package_loader.load_requirement(wiki, "org.log")

    reported = [record.getMessage() for record in caplog.records]
    assert [text.split(" was chosen for ")[1] for text in reported if "was chosen" in text] == [
        "the range *, the newest",
        "the range 1 of org.wiki 1.0.0, as planned",
        "the range 1 of org.wiki 1.0.0, as pinned",
    ]


def test_a_missing_pinned_version_is_reported(
    place: Place, make_loader: Callable[..., loader.PackageLoader]
) -> None:
    place("own", "org.db", "1.1.0")
    pins = loader.Pins({"org.db": ["1.0.0"]})

    with pytest.raises(loader.NoSuchPackage, match=r"pinned to 1\.0\.0, .*1\.1\.0\); .* the pin"):
        make_loader("own", pins=pins).load("org.db", VersionSpec.of("1"))


def test_pins_and_versions_precede_the_order_of_catalogues_for_a_class(
    place: Place, make_loader: Callable[..., loader.PackageLoader]
) -> None:
    place("own", "org.db", "1.9.0")
    place("public", "org.db", "1.2.3")
    pins = loader.Pins({"org.db": ["1.2.3"]})

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
